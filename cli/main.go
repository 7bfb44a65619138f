package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// console is one command line being carried out: its surroundings, its streams,
// and the flags every command shares. Commands are its methods.
type console struct {
	Env
	in       io.Reader
	out, err io.Writer

	json   bool // --json: one document on stdout instead of text
	quiet  bool // --quiet: no progress, no remarks
	colour bool // stdout takes colour

	line []string  // the command line, without the name of the program
	work *progress // what the terminal shows of the work going on

	stopped <-chan struct{} // closed by an interrupt

	// values completes placeholders: what may stand where the help says
	// <checkpoint>. It must be silent, quick, and read only.
	values map[string]func(context.Context) []candidate
}

// Main carries out one command line, args[0] being the name of the program, and
// returns the exit code; the table is in errors.go. It does not exit, and it
// never returns 2, which coding agents read as "block this": not for an unknown
// flag, not for a panic, not for a program it ran.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env Env) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt is not waited for

	c := &console{Env: env.orNothing(), in: stdin, out: stdout, err: stderr}
	c.json = asksForJSON(args) // so that an error in the flags themselves is a document too
	c.colour = c.wantsColour(false, false)
	c.values = c.completions()

	code := c.report(ctx, c.guarded(func() error { return c.run(ctx, args) }))
	if code == 2 {
		return exitFailed
	}
	return code
}

// run finds the command and calls it.
func (c *console) run(ctx context.Context, args []string) error {
	app := c.app()
	if len(args) == 0 {
		args = []string{app.Name}
	}
	c.line, c.stopped = args[1:], ctx.Done()
	defer func() { c.work.done() }()
	w := split(app, args[1:])
	if err := w.check(app); err != nil {
		return err
	}
	if w.help {
		return c.help(app, w)
	}
	return app.RunContext(ctx, w.line(app))
}

// guarded turns a panic into an error: Go would exit with code 2.
func (c *console) guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if c.Getenv("RETCON_DEBUG") != "" {
				fmt.Fprintf(c.err, "%s\n", debug.Stack())
			}
			err = &failure{
				Code:    "BUG",
				Message: fmt.Sprintf("BUG: %v", p),
				Hints:   []string{"run it again with RETCON_DEBUG=1 and report what it prints: https://github.com/retcon-dev/retcon/issues"},
			}
		}
	}()
	return do()
}
