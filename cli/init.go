package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) initCommand() *cli.Command {
	return &cli.Command{
		Name:     "init",
		Usage:    "begin to keep checkpoints of this folder",
		Category: "capture",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "even if it is a home directory, or holds one"},
			&cli.BoolFlag{Name: "adopt", Usage: "go on with the history of another directory that stood at this path"},
		},
		Description: `A git repository needs no init: its store is made with the first checkpoint,
inside the git folder. In a folder outside git the store is .retcon. Nothing is
captured yet, and doing it again does no harm.

Examples:
  retcon init`,
		Action: func(ctx *cli.Context) error {
			o := retcon.Options{Create: true, AllowWide: ctx.Bool("force"), Adopt: ctx.Bool("adopt")}
			return c.use(ctx.Context, o, func(w *retcon.Workspace) error {
				if _, err := w.Recover(ctx.Context); err != nil { // which makes the ledger as well
					return err
				}
				return c.answer(begun{Root: w.Root(), Kind: w.Kind(), Folder: w.Folder()})
			})
		},
	}
}

// begun is a workspace that can be used.
type begun struct {
	Root   string `json:"root"`
	Kind   string `json:"kind"`
	Folder string `json:"folder"`
}

func (b begun) Text(p *page) {
	p.printf("ready: %s\n", name(b.Root))
	p.printf("store: %s\n", name(b.Folder))
	p.printf("next:  retcon checkpoint\n")
}
