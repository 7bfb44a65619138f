package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) gcCommand() *cli.Command {
	return &cli.Command{
		Name:     "gc",
		Usage:    "give up old checkpoints of tools, and pack what is kept",
		Category: "upkeep",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "full", Usage: "pack everything anew, for the smallest store"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be given up, and keep it"},
			&cli.DurationFlag{Name: "keep-tools", Usage: "keep all that tools and watchers made within `duration`"},
			&cli.StringFlag{Name: "budget", Usage: "thin history out sooner, until the store takes at most `size`"},
		},
		Description: `Checkpoints made by hand, labelled or pinned ones, and all that undo needs are
kept. Those of tools and watchers are thinned out when they are old: to one an
hour, later to one a day. Files that moves have displaced go as well; what somebody
wrote to them since is kept in a rescue checkpoint.

Examples:
  retcon gc --dry-run
  retcon gc
  retcon gc --full --keep-tools 240h`,
		Action: func(ctx *cli.Context) error {
			o := retcon.CollectOptions{Full: ctx.Bool("full"), DryRun: ctx.Bool("dry-run"), KeepTools: ctx.Duration("keep-tools")}
			if o.KeepTools < 0 {
				return misuse("a duration is not negative")
			}
			if text := ctx.String("budget"); text != "" {
				n, err := parseSize(text)
				if err != nil {
					return misuse("--budget: " + err.Error())
				}
				o.Budget = n
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Collect(ctx.Context, o)
				if err != nil {
					return err
				}
				return c.answer(collected{
					DryRun: found.DryRun, Checkpoints: found.Checkpoints, Ops: found.Ops, Kept: found.Kept, Rescues: found.Rescues, Objects: found.Objects,
					Freed: found.FreedBytes, Size: found.SizeBytes, Shared: found.SharedBytes, Packs: found.Packs, OverBudget: found.OverBudget,
				})
			})
		},
	}
}

// collected is what gc gave up, and what the store takes now.
type collected struct {
	DryRun      bool     `json:"dry_run"`
	Checkpoints []string `json:"checkpoints"`
	Ops         []int64  `json:"operations"`
	Kept        int      `json:"kept"`
	Rescues     []string `json:"rescues"`
	Objects     int      `json:"objects"`
	Freed       int64    `json:"freed_bytes"`
	Size        int64    `json:"size_bytes"`
	Shared      int64    `json:"shared_bytes"`
	Packs       int      `json:"packs"`
	OverBudget  bool     `json:"over_budget"`
}

func (g collected) Text(p *page) {
	word := "gave up"
	if g.DryRun {
		word = "would give up"
	}
	p.printf("%s %s, %s kept\n", word, count(len(g.Checkpoints), "checkpoint"), count(g.Kept, "checkpoint"))
	if len(g.Checkpoints) > 0 {
		list := g.Checkpoints
		more := ""
		if len(list) > shown {
			list, more = list[:shown], fmt.Sprintf(" and %d more", len(list)-shown)
		}
		p.printf("  %s%s\n", strings.Join(list, " "), more)
	}
	for _, ref := range g.Rescues {
		p.printf("kept what was written to files after a move had put them away: %s\n", ref)
	}
	if !g.DryRun {
		p.printf("freed %s\n", size(g.Freed))
	}
	p.printf("the store takes %s", size(g.Size))
	if g.Shared > 0 {
		p.printf(" and shares %s with the repository", size(g.Shared))
	}
	p.printf("\n")
	if g.OverBudget {
		p.printf("%s what has to be kept is more than the budget\n", p.yellow("warning:"))
	}
}
