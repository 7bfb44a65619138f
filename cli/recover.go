package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) recoverCommand() *cli.Command {
	return &cli.Command{
		Name:     "recover",
		Usage:    "settle a move whose process died",
		Category: "upkeep",
		Description: `Every command that writes does this by itself. A move that had touched nothing is
given up, one that had is carried to its end; a move that is going on is left
alone.

Examples:
  retcon recover`,
		Action: func(ctx *cli.Context) error {
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				settled, err := w.Recover(ctx.Context)
				if err != nil {
					return err
				}
				r := recovered{Settled: []settledMove{}}
				for _, s := range settled {
					r.Settled = append(r.Settled, settledMove{Op: s.Op, Verb: s.Verb, Result: s.Result, Rescue: s.Rescue, Rescued: newPlaces(s.Rescued), Stopped: s.Stopped})
				}
				return c.answer(r)
			})
		},
	}
}

// recovered lists the moves that were settled.
type recovered struct {
	Settled []settledMove `json:"settled"`
}

type settledMove struct {
	Op      int64   `json:"op"`
	Verb    string  `json:"verb"`
	Result  string  `json:"result"`
	Rescue  string  `json:"rescue"`
	Rescued []place `json:"rescued"`
	Stopped string  `json:"stopped"`
}

func (r recovered) Text(p *page) {
	if len(r.Settled) == 0 {
		p.printf("nothing to recover\n")
	}
	for _, s := range r.Settled {
		p.printf("op %d  %s: %s\n", s.Op, s.Verb, resultText(s.Result))
		if s.Stopped != "" {
			p.printf("  %s; worktree and record are as they were\n", p.red(clean(s.Stopped)))
		}
		if s.Rescue != "" {
			p.printf("  %s written meanwhile, kept in %s\n", p.yellow(count(len(s.Rescued), "path")), p.bold(s.Rescue))
		}
	}
}

// resultText says in words how a move ended.
func resultText(result string) string {
	switch result {
	case "":
		return "not finished"
	case "ok":
		return "done"
	case "aborted":
		return "given up; nothing was changed"
	case "failed":
		return "failed; nothing was changed"
	case "rolled-back":
		return "taken back; everything is as it was before it"
	}
	return fmt.Sprint(result)
}
