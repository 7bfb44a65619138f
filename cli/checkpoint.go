package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) checkpointCommand() *cli.Command {
	return &cli.Command{
		Name:     "checkpoint",
		Usage:    "capture the worktree as it is now",
		Category: "capture",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "m", Aliases: []string{"note"}, Usage: "say why, in a `text` for people"},
			&cli.StringFlag{Name: "label", Usage: "call it `name`; it is then found as ~name, and kept"},
			&cli.BoolFlag{Name: "move", Usage: "take the label from the checkpoint that has it"},
			&cli.BoolFlag{Name: "pin", Usage: "keep it whatever retention says"},
		},
		Description: `The first line of the answer is the reference of the checkpoint, such as c17.
Files that could not be captured are listed: too large, unreadable, changing
while they were read. They are never deleted by a restore.

Examples:
  retcon checkpoint
  retcon checkpoint -m 'before the big rename'
  retcon checkpoint --label before-rename --pin`,
		Action: func(ctx *cli.Context) error {
			o := retcon.CheckpointOptions{
				Label: ctx.String("label"), MoveLabel: ctx.Bool("move"),
				Note: ctx.String("m"), Pin: ctx.Bool("pin"),
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				c.unread(w)
				p, err := w.Checkpoint(ctx.Context, o)
				if err != nil {
					return err
				}
				return c.answer(newTaken(p))
			})
		},
	}
}
