package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

func (c *console) undoCommand() *cli.Command {
	return c.mover("undo", "take back the newest move", `Puts back what the move replaced. Work done since the move is not lost: what
undo would overwrite is a conflict that is shown.

Examples:
  retcon undo
  retcon undo --yes
  retcon undo --dry-run`,
		func(w *retcon.Workspace, ctx *cli.Context, o retcon.MoveOptions) (*timeline.Result, error) {
			return w.Undo(ctx.Context, o)
		})
}

func (c *console) redoCommand() *cli.Command {
	return c.mover("redo", "do again what undo took back", `A move made after the undo leaves nothing to do again.

Examples:
  retcon redo
  retcon redo --yes`,
		func(w *retcon.Workspace, ctx *cli.Context, o retcon.MoveOptions) (*timeline.Result, error) {
			return w.Redo(ctx.Context, o)
		})
}
