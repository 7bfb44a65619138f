package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) ackCommand() *cli.Command {
	return &cli.Command{
		Name:      "ack",
		Usage:     "say that you have looked at what a run needs attention for",
		Category:  "history",
		ArgsUsage: "<run>",
		Description: `A run needs attention when something it did outside could not be undone, was left
behind by --force, or ended after it had been undone. Nothing else changes.

Examples:
  retcon ack greet`,
		Action: func(ctx *cli.Context) error {
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				done, err := w.Ack(ctx.Context, ctx.Args().First())
				if err != nil {
					return err
				}
				return c.answer(acked{Run: done.Run, Reasons: done.Reasons})
			})
		},
	}
}

// acked is what somebody has looked at.
type acked struct {
	Run     string   `json:"run"`
	Reasons []string `json:"reasons"`
}

func (a acked) Text(p *page) {
	if len(a.Reasons) == 0 {
		p.printf("%s needs no attention\n", a.Run)
	}
	for _, why := range a.Reasons {
		p.printf("%s: %s\n", a.Run, clean(why))
	}
}
