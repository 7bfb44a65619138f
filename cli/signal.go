package cli

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) signalCommand() *cli.Command {
	return &cli.Command{
		Name:      "signal",
		Usage:     "send a run what it waits for",
		Category:  "workflows",
		ArgsUsage: "<run> <wait>",
		Flags: append(runFlags(),
			&cli.StringFlag{Name: "value", Value: "null", Usage: "the answer, as `json`; @file, or - for stdin"},
			&cli.StringFlag{Name: "request-id", Usage: "send it once, however often it is asked for under the same `key`"},
			&cli.BoolFlag{Name: "resume", Usage: "go on with the run then"},
		),
		Description: `A run that goes on takes the signal at once; one that was left waiting takes it
when it is resumed. The value has to be what the workflow's schema for it says.

Examples:
  retcon signal gate approve --value true --request-id review-7
  retcon signal gate approve --value true --request-id review-7 --resume`,
		Action: func(ctx *cli.Context) error {
			value, _, err := c.document("--value", ctx.String("value"))
			if err != nil {
				return err
			}
			o := retcon.SignalOptions{Run: ctx.Args().Get(0), Name: ctx.Args().Get(1), Value: value, RequestID: ctx.String("request-id")}
			resume := retcon.ResumeOptions{Run: o.Run}
			if resume.RunOptions, err = c.runOptions(ctx); err != nil {
				return err
			}
			var s sent
			err = c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Signal(ctx.Context, o)
				if err != nil {
					return err
				}
				s = sent{Run: found.Run, Wait: found.Wait, Repeated: found.Repeated, Live: found.Live}
				return nil
			})
			switch {
			case err != nil:
				return err
			case !ctx.Bool("resume") || s.Live:
				return c.answer(s)
			}
			c.remark("%s", s.line())
			resume.Run = s.Run
			return c.resume(ctx, resume, true)
		},
	}
}

// sent is a signal that was sent.
type sent struct {
	Run      string `json:"run"`
	Wait     string `json:"wait"`
	Repeated bool   `json:"replayed"`
	Live     bool   `json:"live"`
}

func (s sent) line() string {
	text := fmt.Sprintf("%s sent to %s", shortTask(s.Wait), s.Run)
	if s.Repeated {
		text += ", as before"
	}
	return text
}

func (s sent) Text(p *page) {
	p.printf("%s\n", s.line())
	if !s.Live {
		p.printf("hint: retcon resume %s\n", s.Run)
	}
}

// waitValues are the signals that runs wait for.
func (c *console) waitValues(ctx context.Context) (found []candidate) {
	c.look(ctx, func(w *retcon.Workspace) error {
		all, err := w.Runs(ctx, offered)
		for i := range all {
			if all[i].Status != retcon.StatusWaiting && all[i].Status != retcon.StatusRunning {
				continue
			}
			waits, err := w.Waits(ctx, all[i].Ref)
			if err != nil {
				return err
			}
			for _, wait := range waits {
				found = append(found, candidate{wait, all[i].Ref + " waits for it"})
			}
		}
		return err
	})
	return found
}
