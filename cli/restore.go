package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "put the worktree, or some paths, back as they were in a checkpoint",
		Category:  "moves",
		ArgsUsage: "<checkpoint> [<path>...]",
		Flags: append(moveFlags(),
			&cli.BoolFlag{Name: "exact", Usage: "make everything as it was, whoever changed it"},
			&cli.BoolFlag{Name: "head", Usage: "put back where HEAD and its branch were, too"},
			&cli.BoolFlag{Name: "index", Usage: "put back git's index, too"},
		),
		Description: `A checkpoint made by hand is restored as it was. One that belongs to a run takes
back what the run changed, and keeps what you changed meanwhile. Ignored files
and files that were not captured are left alone.

What is replaced goes into a safety checkpoint first; retcon undo brings it
back. Without --yes the plan is shown and retcon asks; without a terminal to ask
on it refuses.

Examples:
  retcon restore c1 --dry-run
  retcon restore c1
  retcon restore c1 main.go --yes
  retcon restore start --yes
  retcon restore r1@before --yes`,
		Action: func(ctx *cli.Context) error {
			o := retcon.RestoreOptions{
				Ref: retcon.Ref(ctx.Args().First()), Paths: ctx.Args().Tail(),
				Exact: ctx.Bool("exact"), Head: ctx.Bool("head"), Index: ctx.Bool("index"),
				DryRun: ctx.Bool("dry-run"), RequestID: ctx.String("request-id"), Reason: ctx.String("reason"),
				Steal: ctx.Bool("steal"), Confirm: c.ask(ctx.Bool("yes")),
			}
			var err error
			if o.Conflicts, err = policy(ctx); err != nil {
				return err
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				return c.finish(w.Restore(ctx.Context, o))
			})
		},
	}
}
