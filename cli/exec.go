package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) execCommand() *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "run a program as a run of its own: a checkpoint before it and one after it",
		Category:  "capture",
		ArgsUsage: "[--] <program> [<argument>...]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "call the run `name`"},
		},
		Description: `The program gets this terminal, and the signals sent to retcon. Its exit code
becomes that of retcon, but for 2, which becomes 1: coding agents read 2 as
"block this". It finds the run in RETCON_RUN, and can't move that run, or the
worktree, before it has ended. A line about what changed goes to stderr. With --json the document
has stdout for itself, and the program's output goes to stderr.

Examples:
  retcon exec -- sh -c 'echo new >new.txt'
  retcon exec --name fix -- make test
  retcon restore r1@before`,
		Action: func(ctx *cli.Context) error {
			argv := ctx.Args().Slice()
			if err := c.findProgram(argv[0]); err != nil {
				return err
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				c.unread(w)
				result, err := w.Exec(ctx.Context, retcon.ExecOptions{
					Name: ctx.String("name"), Argv: argv,
					Run: func(_ context.Context, env []string) (int, error) { return c.child(argv, env) },
				})
				if result == nil {
					return err
				}
				e := newExecuted(result)
				if err != nil {
					c.remark("%s", e.line()) // the program has run: say how far it is recorded
					return err
				}
				if c.json {
					if err := c.answer(e); err != nil {
						return err
					}
				} else {
					c.remark("%s", e.line())
				}
				if e.Exit != 0 {
					return answered(e.Exit)
				}
				return nil
			})
		},
	}
}

// findProgram looks before anything is recorded.
func (c *console) findProgram(program string) error {
	if strings.Contains(program, "/") {
		if !c.there(program) {
			return &failure{Code: "NOT_FOUND", Message: name(program) + ": no such program"}
		}
		return nil // whatever else is wrong with it, the system says
	}
	if _, err := exec.LookPath(program); err != nil {
		return &failure{Code: "NOT_FOUND", Message: fmt.Sprintf("%s: no such program on PATH", name(program))}
	}
	return nil
}

// child runs a program with our streams, and env beside our variables, and waits
// for it, however long it takes to heed a signal. It returns the program's exit
// code, 128 and the signal when one killed it.
func (c *console) child(argv, env []string) (int, error) {
	c.work.done()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.Environ()
	cmd.Env = append(cmd.Environ(), env...) // of a name that comes twice the last counts
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.in, c.out, c.err
	if c.json {
		cmd.Stdout = c.err
	}
	stop, err := c.start(cmd)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", name(argv[0]), err)
	}
	defer stop()
	err = cmd.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return ended.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("wait for %s: %v", name(argv[0]), err)
	}
	return 0, nil
}

// start starts a program and passes signals on to it. At a terminal the keys
// reach it by themselves, being in the same group; what was meant for it once
// must not arrive twice.
func (c *console) start(cmd *exec.Cmd) (stop func(), err error) {
	received := make(chan os.Signal, 8)
	signal.Notify(received, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := cmd.Start(); err != nil {
		signal.Stop(received)
		return nil, err
	}
	_, keys := c.Terminal(c.in)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-received:
				if keys && (s == os.Interrupt || s == syscall.SIGQUIT) {
					continue
				}
				_ = cmd.Process.Signal(s) // it has ended: Wait says how
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(received); close(done) }, nil
}

// executed is a run that has ended.
type executed struct {
	Run     string   `json:"run"`
	Exit    int      `json:"exit"`
	Before  *taken   `json:"before"`
	After   *taken   `json:"after"`
	Changes []change `json:"changes"`
	Totals  totals   `json:"totals"`
}

func newExecuted(r *retcon.ExecResult) executed {
	e := executed{Run: r.Run, Exit: r.Exit}
	e.Changes, e.Totals = newChanges(r.Changes)
	told := func(p *retcon.Checkpoint) *taken {
		if p == nil {
			return nil
		}
		t := newTaken(p)
		return &t
	}
	e.Before, e.After = told(r.Before), told(r.After)
	return e
}

func (e executed) Text(p *page) { p.printf("%s\n", e.line()) }

// line is the run in one line: where it can be found, what it did, and the way
// back.
func (e executed) line() string {
	text := e.Run
	if e.Before != nil && e.After != nil {
		text += fmt.Sprintf(" (%s to %s)", e.Before.Ref, e.After.Ref)
	}
	text += ": "
	if e.Exit != 0 {
		text += fmt.Sprintf("exit %d, ", e.Exit)
	}
	if e.Totals.all() == 0 {
		return text + "nothing changed"
	}
	return text + fmt.Sprintf("%s; back with: retcon restore %s@before", e.Totals, e.Run)
}
