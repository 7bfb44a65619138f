// Command capture measures captures against git, jj and go-git.
package main

import (
	"context"
	"os"

	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
)

func main() { os.Exit(ground.Main("capture", os.Args[1:], run)) }

func run(ctx context.Context, g *ground.Ground) error {
	err := g.Fields(ctx, false, func(f *ground.Field) error {
		c := &captures{Ground: g, f: f}
		for _, part := range []func(context.Context) error{c.clean, c.steady, c.whole, c.watched, c.jj, c.gogit, c.plain, c.session} {
			if err := part(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return large(ctx, g)
}
