package cli

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) cancelCommand() *cli.Command {
	return &cli.Command{
		Name:      "cancel",
		Usage:     "stop a run, or give one up that waits or has failed",
		Category:  "workflows",
		ArgsUsage: "<run>",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "task", Usage: "only one `task`"},
			&cli.DurationFlag{Name: "timeout", Value: time.Minute, Usage: "wait for the tasks to end at most `duration`"},
		},
		Description: `The tasks of a run that goes on are told to end, and waited for. Nothing is
undone, and the run can still be resumed.

Examples:
  retcon cancel gate`,
		Action: func(ctx *cli.Context) error {
			o := retcon.CancelOptions{Run: ctx.Args().First(), Task: ctx.String("task"), Timeout: ctx.Duration("timeout")}
			if o.Timeout <= 0 {
				return misuse("--timeout is more than nothing")
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.CancelRun(ctx.Context, o)
				if err != nil {
					return err
				}
				return c.answer(cancelled{Run: found.Run, Was: found.Was, Stopped: found.Stopped})
			})
		},
	}
}

// cancelled is a run that was given up.
type cancelled struct {
	Run     string `json:"run"`
	Was     string `json:"was"`
	Stopped int64  `json:"stopped_pid"`
}

func (r cancelled) Text(p *page) {
	text := fmt.Sprintf("%s cancelled, was %s", r.Run, r.Was)
	if r.Stopped != 0 {
		text = fmt.Sprintf("%s cancelled: pid %d has stopped", r.Run, r.Stopped)
	}
	p.printf("%s\n", text)
}
