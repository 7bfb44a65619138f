// Command restore measures guarded restores against git.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
	"github.com/retcon-dev/retcon/scripts/bench/internal/tree"
)

func main() { os.Exit(ground.Main("restore", os.Args[1:], run)) }

func run(ctx context.Context, g *ground.Ground) error {
	return g.Fields(ctx, true, func(f *ground.Field) error {
		r := &restores{Ground: g, f: f}
		var err error
		if r.ours, err = f.Copy(ctx, "ours"); err != nil {
			return err
		}
		if r.theirs, err = f.Copy(ctx, "theirs"); err != nil {
			return err
		}
		c, _, err := g.Driver.Capture(ctx, r.ours)
		if err != nil {
			return err
		}
		r.commit = c.Commit
		for _, part := range []func(context.Context) error{r.differing, r.tree, r.command, r.rewind} {
			if err := part(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// restores are the rows of one field.
type restores struct {
	*ground.Ground
	f            *ground.Field
	ours, theirs string
	commit       string // to go back to
}

// differing are restores after some files were changed. Ours looks at every
// file, captures what it is about to overwrite, and verifies what it wrote;
// git's does not.
func (r *restores) differing(ctx context.Context) error {
	for _, row := range []struct {
		files int
		goal  float64
	}{{10, 0.9}, {1000, 0.7}} {
		name, goal := r.f.Case(fmt.Sprintf("%d differing", row.files)), r.f.Goal(row.goal, 20000)
		if row.files > len(r.f.Paths) {
			if err := r.Skip(name, "git read-tree -u --reset", goal, "the tree is too small"); err != nil {
				return err
			}
			continue
		}
		paths := r.f.Paths[:row.files]
		edit := func(dir string) func(int) error {
			return func(round int) error { return tree.Edit(dir, paths, round+1) }
		}
		race := ground.Race{Case: name, Goal: goal, Ours: r.retcon(edit(r.ours), paths), Theirs: r.git(edit(r.theirs), paths, "read-tree -u --reset HEAD")}
		if err := r.Play(ctx, race); err != nil {
			return err
		}
	}
	return nil
}

// tree is a restore of everything into an emptied folder.
func (r *restores) tree(ctx context.Context) error {
	empty := func(dir string) func(int) error { return func(int) error { return r.f.Empty(dir) } }
	return r.Play(ctx, ground.Race{Case: r.f.Case("whole tree"), Goal: r.f.Goal(1.2, 20000), Memory: "peak memory, " + r.f.Case("whole tree"),
		Ours: r.retcon(empty(r.ours), r.f.Paths), Theirs: r.git(empty(r.theirs), r.f.Paths, "checkout -q -f HEAD -- ."), Cold: true})
}

func (r *restores) retcon(prepare func(int) error, paths []string) bench.Side {
	return bench.Side{Name: "retcon", Prepare: prepare,
		Run:   func(ctx context.Context) (bench.Usage, error) { return r.Driver.Restore(ctx, r.ours, r.commit) },
		Check: func() error { return r.f.Same(r.ours, paths) }}
}

func (r *restores) git(prepare func(int) error, paths []string, command string) bench.Side {
	return bench.Side{Name: "git " + strings.TrimSuffix(command, " HEAD"), Prepare: prepare,
		Run: func(ctx context.Context) (bench.Usage, error) {
			_, u, err := r.Git.In(r.theirs).Run(ctx, strings.Fields(command)...)
			return u, err
		},
		Check: func() error { return r.f.Same(r.theirs, paths) }}
}

// command is what a user waits for: the command, with its ledger.
func (r *restores) command(ctx context.Context) error {
	const rival = "git read-tree -u --reset"
	name := r.f.Case("10 differing, retcon restore")
	for _, verb := range []string{"checkpoint", "restore"} {
		if why := r.Driver.Verb(ctx, verb); why != "" {
			return r.Skip(name, rival, nil, why)
		}
	}
	if !r.Wants(name) {
		return nil
	}
	ref, _, err := r.Driver.Retcon(ctx, "-C", r.ours, "checkpoint")
	if err != nil {
		return r.Skip(name, rival, nil, err.Error())
	}
	ref, _, _ = strings.Cut(ref, "\n")
	paths := r.f.Paths[:10]
	edit := func(dir string) func(int) error {
		return func(round int) error { return tree.Edit(dir, paths, round+1) }
	}
	ours := r.retcon(edit(r.ours), paths)
	ours.Run = func(ctx context.Context) (bench.Usage, error) {
		_, u, err := r.Driver.Retcon(ctx, "-C", r.ours, "restore", "--yes", ref)
		return u, err
	}
	return r.Play(ctx, ground.Race{Case: name, Ours: ours, Theirs: r.git(edit(r.theirs), paths, "read-tree -u --reset HEAD")})
}
