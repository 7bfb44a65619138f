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
		Description: `A git repository needs no init: its store is made with the first checkpoint,
inside the git folder. In a folder outside git the store is .retcon. Nothing is
captured yet, and doing it again does no harm.

Examples:
  retcon init
  retcon init -C pkg`,
		Action: func(ctx *cli.Context) error {
			return c.use(ctx.Context, retcon.Options{Create: true}, func(w *retcon.Workspace) error {
				s, err := w.Status(ctx.Context)
				if err != nil {
					return err
				}
				return c.answer(begun{Root: newPlace(s.Root).Path, Kind: string(s.Kind), Store: newPlace(s.Store).Path})
			})
		},
	}
}

// begun is a workspace that can be used.
type begun struct {
	Root  string `json:"root"`
	Kind  string `json:"kind"`
	Store string `json:"store"`
}

func (b begun) Text(p *page) {
	p.printf("ready: %s\n", name(b.Root))
	p.printf("store: %s\n", name(b.Store))
	p.printf("next:  retcon checkpoint\n")
}
