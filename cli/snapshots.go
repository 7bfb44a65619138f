package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) snapshotsCommand() *cli.Command {
	return &cli.Command{
		Name:     "snapshots",
		Usage:    "list the checkpoints, newest first, and name or forget them",
		Category: "history",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "run", Usage: "only those of `run`"},
			&cli.StringFlag{Name: "tier", Usage: "only those of one `tier`: manual, tool, watch, safety or rescue"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 50, Usage: "at most `count`"},
			&cli.StringFlag{Name: "before", Usage: "only those older than `checkpoint`"},
			&cli.BoolFlag{Name: "all", Usage: "those that moves take for themselves, too"},
		},
		Description: `Examples:
  retcon snapshots
  retcon snapshots --tier manual --limit 5
  retcon snapshots --run r1 --json
  retcon snapshots label c1 start
  retcon snapshots pin c1
  retcon snapshots forget c1`,
		Subcommands: []*cli.Command{
			c.labelCommand(), c.unlabelCommand(), c.pinCommand(true), c.pinCommand(false), c.forgetCommand(),
		},
		Action: func(ctx *cli.Context) error {
			limit, err := atLeastOne(ctx, "limit")
			if err != nil {
				return err
			}
			if tier := ctx.String("tier"); tier != "" && !slices.Contains(tiers, tier) {
				return misuse(fmt.Sprintf("there is no tier %q, only %s", tier, strings.Join(tiers, ", ")))
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				o := retcon.ListOptions{Limit: limit, Run: retcon.Ref(ctx.String("run")), Tier: ctx.String("tier"), All: ctx.Bool("all")}
				if before := ctx.String("before"); before != "" {
					p, err := w.Resolve(ctx.Context, retcon.Ref(before))
					if err != nil {
						return err
					}
					o.Before = p.ID
				}
				found, err := w.Snapshots(ctx.Context, o)
				if err != nil {
					return err
				}
				return c.answer(list{Checkpoints: newTakens(found)})
			})
		},
	}
}

// tiers are why a checkpoint can have been taken.
var tiers = []string{retcon.TierManual, retcon.TierTool, retcon.TierWatch, retcon.TierSafety, retcon.TierRescue}

func atLeastOne(ctx *cli.Context, flag string) (int, error) {
	n := ctx.Int(flag)
	if n < 1 {
		return 0, misuse(fmt.Sprintf("--%s is at least 1, not %d", flag, n))
	}
	return n, nil
}

// list is some checkpoints, newest first.
type list struct {
	Checkpoints []taken `json:"checkpoints"`
}

func (l list) Text(p *page) {
	if len(l.Checkpoints) == 0 {
		p.printf("no checkpoints\n")
		return
	}
	var rows [][]string
	for _, t := range l.Checkpoints {
		rows = append(rows, t.row(p))
	}
	p.table(rows)
}

// noted answers a command that changes what is said about a checkpoint.
type noted struct {
	Action      string  `json:"action"`
	Checkpoints []taken `json:"checkpoints"`
	Label       string  `json:"label"`
}

func (n noted) Text(p *page) {
	var refs []string
	for _, t := range n.Checkpoints {
		refs = append(refs, t.Ref)
	}
	p.printf("%s %s", n.Action, strings.Join(refs, ", "))
	if n.Label != "" {
		p.printf(": %s", p.green("~"+name(n.Label)))
	}
	p.printf("\n")
}

// note changes what is said about one checkpoint and shows it as it is then.
func (c *console) note(ctx context.Context, ref, action, label string, do func(*retcon.Workspace, retcon.Ref) error) error {
	return c.use(ctx, retcon.Options{}, func(w *retcon.Workspace) error {
		p, err := w.Resolve(ctx, retcon.Ref(ref))
		if err != nil {
			return err
		}
		if err := do(w, retcon.Ref(p.Ref)); err != nil {
			return err
		}
		if p, err = w.Resolve(ctx, retcon.Ref(p.Ref)); err != nil {
			return err
		}
		return c.answer(noted{Action: action, Checkpoints: []taken{newTaken(p)}, Label: label})
	})
}

func (c *console) labelCommand() *cli.Command {
	return &cli.Command{
		Name: "label", Usage: "call a checkpoint by a name; it is kept as long as it has one",
		ArgsUsage:   "<checkpoint> <label>",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "move", Usage: "take the label from the checkpoint that has it"}},
		Description: "Examples:\n  retcon snapshots label c1 start\n  retcon snapshots label c2 start --move",
		Action: func(ctx *cli.Context) error {
			label := ctx.Args().Get(1)
			return c.note(ctx.Context, ctx.Args().First(), "labelled", label, func(w *retcon.Workspace, ref retcon.Ref) error {
				return w.Label(ctx.Context, ref, label, ctx.Bool("move"))
			})
		},
	}
}

func (c *console) unlabelCommand() *cli.Command {
	return &cli.Command{
		Name: "unlabel", Usage: "take a label away from the checkpoint that has it",
		ArgsUsage:   "<label>",
		Description: "Examples:\n  retcon snapshots unlabel start",
		Action: func(ctx *cli.Context) error {
			label := strings.TrimPrefix(ctx.Args().First(), "~")
			return c.note(ctx.Context, "~"+label, "unlabelled", "", func(w *retcon.Workspace, _ retcon.Ref) error {
				return w.Unlabel(ctx.Context, label)
			})
		},
	}
}

func (c *console) pinCommand(pin bool) *cli.Command {
	verb, usage, done := "pin", "keep a checkpoint whatever retention says", "pinned"
	if !pin {
		verb, usage, done = "unpin", "let retention decide about a checkpoint again", "unpinned"
	}
	return &cli.Command{
		Name: verb, Usage: usage,
		ArgsUsage:   "<checkpoint>",
		Description: "Examples:\n  retcon snapshots " + verb + " c1",
		Action: func(ctx *cli.Context) error {
			return c.note(ctx.Context, ctx.Args().First(), done, "", func(w *retcon.Workspace, ref retcon.Ref) error {
				return w.Pin(ctx.Context, ref, pin)
			})
		},
	}
}

func (c *console) forgetCommand() *cli.Command {
	return &cli.Command{
		Name: "forget", Usage: "delete checkpoints; what they took comes back with retcon gc",
		ArgsUsage: "<checkpoint>...",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}},
		Description: `What undo needs, what has a label and what is pinned is not forgotten.

Examples:
  retcon snapshots forget c3 --yes`,
		Action: func(ctx *cli.Context) error {
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				var going []taken
				var refs []retcon.Ref
				var names []string
				for _, arg := range ctx.Args().Slice() {
					p, err := w.Resolve(ctx.Context, retcon.Ref(arg))
					if err != nil {
						return err
					}
					going, refs, names = append(going, newTaken(p)), append(refs, retcon.Ref(p.Ref)), append(names, p.Ref)
				}
				if !ctx.Bool("yes") {
					if err := c.confirm(fmt.Sprintf("forget %s for good?", strings.Join(names, ", ")), c.again("--yes")); err != nil {
						return err
					}
				}
				if err := w.Forget(ctx.Context, refs); err != nil {
					return err
				}
				return c.answer(noted{Action: "forgot", Checkpoints: going})
			})
		},
	}
}
