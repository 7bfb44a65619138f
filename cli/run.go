package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a workflow: each task an attempt, each outcome a frame",
		Category:  "workflows",
		ArgsUsage: "<file>",
		Flags: append(runFlags(),
			&cli.StringFlag{Name: "i", Aliases: []string{"input"}, Usage: "what the workflow is given, as `json`; @file, or - for stdin"},
			&cli.StringFlag{Name: "name", Usage: "call the run `name`"},
			&cli.BoolFlag{Name: "dry-run", Usage: "load the file and look at the input, and run nothing"},
		),
		Description: `The file is a Starlark program with a function main. The tasks run in this
worktree, which is captured before and after each. A run that fails, is
interrupted or waits for a signal goes on with retcon resume; what has been done
is not done again.

Ctrl-C stops the run so that it can be resumed; the second one does not wait.

Examples:
  retcon run build.star
  retcon run build.star -i '{"who": "world"}' --name morning
  retcon run build.star --dry-run
  retcon run build.star --json --jobs 2`,
		Action: func(ctx *cli.Context) error {
			o, err := c.runOptions(ctx)
			if err != nil {
				return err
			}
			o.File, o.Name, o.DryRun = ctx.Args().First(), ctx.String("name"), ctx.Bool("dry-run")
			if ctx.IsSet("i") {
				if o.Input, o.Origin, err = c.document("-i", ctx.String("i")); err != nil {
					return err
				}
			}
			return c.conduct(ctx, func(w *retcon.Workspace, live *live) (*retcon.RunResult, error) {
				o.On = live.on
				return w.RunWorkflow(ctx.Context, o)
			})
		},
	}
}

// runFlags are those of every verb that runs tasks.
func runFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Usage: "stay while the run waits for a signal"},
		&cli.IntFlag{Name: "jobs", Value: 8, Usage: "at most `count` tasks at the same time"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show what the tasks print"},
		&cli.BoolFlag{Name: "events", Usage: "write what happens to stderr, one JSON object a line"},
	}
}

func (c *console) runOptions(ctx *cli.Context) (o retcon.RunOptions, err error) {
	o.Wait = ctx.Bool("wait")
	o.Jobs, err = atLeastOne(ctx, "jobs")
	return o, err
}

// document reads a JSON value of the command line: itself, @file, or - for
// stdin. origin is where it came from, for errors.
func (c *console) document(flag, text string) (b []byte, origin string, err error) {
	origin = flag
	switch file, isFile := strings.CutPrefix(text, "@"); {
	case text == "-":
		b, err = io.ReadAll(c.in)
		origin = "stdin"
	case isFile:
		at := file
		if !filepath.IsAbs(at) {
			at = filepath.Join(c.Dir, at)
		}
		origin = file
		if b, err = os.ReadFile(at); os.IsNotExist(err) {
			return nil, "", &failure{Code: "NOT_FOUND", Message: fmt.Sprintf("%s: %s: no such file", flag, name(file))}
		}
	default:
		b = []byte(text)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", flag, err)
	}
	if problem := notJSON(b); problem != "" {
		return nil, "", misuse(fmt.Sprintf("%s: %s is not JSON: %s", flag, brief(b), problem))
	}
	return b, origin, nil
}

// notJSON says why bytes are no JSON document, "" when they are one.
func notJSON(b []byte) string {
	var v json.RawMessage
	if err := json.Unmarshal(b, &v); err != nil {
		return err.Error()
	}
	return ""
}

// brief is the beginning of a text, quoted where it must be.
func brief(b []byte) string {
	const longest = 40
	s := strings.ToValidUTF8(string(b), "?")
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest-1]) + "…"
	}
	return name(s)
}

// conduct runs a run with its progress on the terminal, and tells how it ended.
func (c *console) conduct(ctx *cli.Context, do func(*retcon.Workspace, *live) (*retcon.RunResult, error)) error {
	return c.use(ctx.Context, retcon.Options{Env: c.Environ()}, func(w *retcon.Workspace) error {
		c.untrusted(w)
		live := c.live(ctx.Bool("verbose"), ctx.Bool("events"))
		stop := live.watch(ctx.Context)
		result, err := do(w, live)
		stop()
		live.done()
		if err != nil {
			return err
		}
		if err := c.answer(newEnded(result)); err != nil {
			return err
		}
		switch result.Status {
		case retcon.StatusOK, retcon.StatusLoaded:
			return nil
		case retcon.StatusInterrupted:
			return answered(exitStopped)
		}
		return answered(exitFailed)
	})
}
