package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
	"github.com/retcon-dev/retcon/scripts/bench/internal/peer"
	"github.com/retcon-dev/retcon/scripts/bench/internal/tree"
)

const gitName = "git add -A, write-tree"

// captures are the rows of one field.
type captures struct {
	*ground.Ground
	f *ground.Field

	ours, theirs string        // a copy each, made on first use
	index        string        // the temporary index of theirs
	last         peer.Captured // what the driver said last
	lastTree     string        // what git said last
	version      int           // of the files changed last
}

// copies makes the copies that most rows work on.
func (c *captures) copies(ctx context.Context) (err error) {
	if c.ours != "" {
		return nil
	}
	if c.ours, err = c.f.Copy(ctx, "ours"); err != nil {
		return err
	}
	if c.theirs, err = c.f.Copy(ctx, "theirs"); err != nil {
		return err
	}
	c.index, err = c.Git.In(c.theirs).TempIndex()
	return err
}

// retcon is our side, in dir, before which k files are changed.
func (c *captures) retcon(dir string, k int, flags ...string) bench.Side {
	return bench.Side{Name: "retcon", Prepare: c.edit(dir, k), Run: func(ctx context.Context) (u bench.Usage, err error) {
		c.last, u, err = c.Driver.Capture(ctx, dir, flags...)
		return u, err
	}}
}

// git is git with a temporary index that it keeps from round to round, before
// which k files are changed.
func (c *captures) git(k int) bench.Side {
	return bench.Side{Name: gitName, Prepare: c.edit(c.theirs, k), Run: func(ctx context.Context) (u bench.Usage, err error) {
		c.lastTree, u, err = c.Git.In(c.theirs).Indexed(c.index).Capture(ctx)
		return u, err
	}, Check: c.agree}
}

func (c *captures) edit(dir string, k int) func(int) error {
	from := c.version
	return func(round int) error {
		c.version = from + round + 1
		return tree.Edit(dir, c.f.Paths[:k], c.version)
	}
}

// agree checks that both sides captured the same. A real repository may have
// filters, which we do not apply.
func (c *captures) agree() error {
	if c.f.Generated && c.last.Tree != c.lastTree {
		return fmt.Errorf("captured %s, git %s", c.last.Tree, c.lastTree)
	}
	return nil
}

// clean is the first capture of a clone in which nothing is changed.
func (c *captures) clean(ctx context.Context) error {
	if err := c.copies(ctx); err != nil {
		return err
	}
	ours, theirs := c.retcon(c.ours, 0), c.git(0)
	ours.Prepare = func(int) error { return c.f.Remove(filepath.Join(c.ours, ".git", "retcon")) }
	ours.Check = func() error {
		if c.f.Generated && (c.last.Hashed > 0 || c.last.Bytes > 0) {
			return fmt.Errorf("read %d files that the index vouches for", c.last.Hashed)
		}
		return nil
	}
	theirs.Prepare = func(int) (err error) { c.index, err = c.Git.In(c.theirs).TempIndex(); return err }
	return c.Play(ctx, ground.Race{Case: c.f.Case("first, clean clone"), Goal: c.f.Goal(1, 20000), Ours: ours, Theirs: theirs})
}

// steady are captures with nothing and ever more changed since the last one.
func (c *captures) steady(ctx context.Context) error {
	for _, row := range []struct {
		changed int
		goal    float64
	}{{0, 0.5}, {1, 0.45}, {10, 0.45}, {1000, 0.7}} {
		name := c.f.Case(fmt.Sprintf("%d changed", row.changed))
		if row.changed == 0 {
			name = c.f.Case("unchanged")
		}
		if row.changed > len(c.f.Paths) {
			if err := c.Skip(name, gitName, c.f.Goal(row.goal, 20000), "the tree is too small"); err != nil {
				return err
			}
			continue
		}
		race := ground.Race{Case: name, Goal: c.f.Goal(row.goal, 20000), Ours: c.retcon(c.ours, row.changed), Theirs: c.git(row.changed)}
		if row.changed == 1 {
			race.Memory, race.MemGoal = "peak memory, "+name, c.f.Goal(1.5, 100000)
		}
		if err := c.Play(ctx, race); err != nil {
			return err
		}
	}
	return nil
}

// whole is what a user waits for: the command, with its ledger.
func (c *captures) whole(ctx context.Context) error {
	name := c.f.Case("1 changed, retcon checkpoint")
	if why := c.Driver.Verb(ctx, "checkpoint"); why != "" {
		return c.Skip(name, gitName, nil, why)
	}
	ours, theirs := c.retcon(c.ours, 1), c.git(1)
	ours.Run = func(ctx context.Context) (bench.Usage, error) {
		_, u, err := c.Driver.Retcon(ctx, "-C", c.ours, "checkpoint")
		return u, err
	}
	theirs.Check = nil
	return c.Play(ctx, ground.Race{Case: name, Ours: ours, Theirs: theirs})
}

// watched is a capture in a process that has watched the worktree meanwhile.
func (c *captures) watched(ctx context.Context) error {
	name, goal := c.f.Case("1 changed, watched"), c.f.Goal(0.01, 100000)
	if !c.Wants(name) {
		return nil
	}
	w, err := c.Driver.Watch(ctx, c.ours)
	if err != nil {
		return c.Report.Add(c.Report.Row(name, gitName, goal).Fail(err))
	}
	ours, theirs := c.retcon(c.ours, 1), c.git(1)
	ours.Run = func(context.Context) (bench.Usage, error) { return w.Capture() }
	theirs.Check = nil
	err = c.Play(ctx, ground.Race{Case: name, Goal: goal, Ours: ours, Theirs: theirs})
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return err
}

// jj snapshots the working copy before whatever it is asked.
func (c *captures) jj(ctx context.Context) error {
	const rival = "jj status"
	name, goal := c.f.Case("1 changed"), c.f.Goal(0.5, 20000)
	if c.NoJJ != nil {
		return c.Skip(name, rival, goal, c.NoJJ.Error())
	}
	if !c.Wants(name) {
		return nil
	}
	dir, err := c.f.Plain("jj")
	if err != nil {
		return err
	}
	defer c.f.Remove(dir)
	jj := c.JJ.In(dir)
	if err := jj.Init(ctx); err != nil {
		return c.Report.Add(c.Report.Row(name, rival, goal).Fail(err))
	}
	theirs := bench.Side{Name: rival, Prepare: c.edit(dir, 1), Run: func(ctx context.Context) (bench.Usage, error) {
		_, u, err := jj.Run(ctx, "status")
		return u, err
	}}
	return c.Play(ctx, ground.Race{Case: name, Goal: goal, Ours: c.retcon(c.ours, 1), Theirs: theirs})
}

func (c *captures) gogit(ctx context.Context) error {
	name := c.f.Case("1 changed")
	if !c.Wants(name) {
		return nil
	}
	dir, err := c.f.Copy(ctx, "gogit")
	if err != nil {
		return err
	}
	defer c.f.Remove(dir)
	theirs := bench.Side{Name: "go-git Status", Prepare: c.edit(dir, 1), Run: func(ctx context.Context) (bench.Usage, error) {
		return c.Driver.GoGitStatus(ctx, dir)
	}}
	return c.Play(ctx, ground.Race{Case: name, Goal: c.f.Goal(0.15, 20000), Ours: c.retcon(c.ours, 1), Theirs: theirs})
}

// plain is the first capture of a folder that git knows nothing of.
func (c *captures) plain(ctx context.Context) error {
	name := c.f.Case("first, plain folder")
	memory := "peak memory, " + name
	if !c.Wants(name) && !c.Wants(memory) {
		return nil
	}
	ours, err := c.f.Plain("plain-ours")
	if err != nil {
		return err
	}
	theirs, err := c.f.Plain("plain-theirs")
	if err != nil {
		return err
	}
	defer c.f.Remove(ours, theirs)
	a := c.retcon(ours, 0, "--create")
	a.Prepare = func(int) error { return c.f.Remove(filepath.Join(ours, ".retcon")) }
	git := c.Git.In(theirs)
	b := bench.Side{Name: "git init, add -A, write-tree", Check: c.agree,
		Prepare: func(int) error { return c.f.Remove(filepath.Join(theirs, ".git")) },
		Run: func(ctx context.Context) (bench.Usage, error) {
			_, init, err := git.Run(ctx, "init", "-q")
			if err != nil {
				return init, err
			}
			var u bench.Usage
			c.lastTree, u, err = git.Capture(ctx)
			return init.Then(u), err
		}}
	return c.Play(ctx, ground.Race{Case: name, Goal: c.f.Goal(0.7, 20000), Memory: memory, MemGoal: c.f.Goal(1.5, 100000), Ours: a, Theirs: b, Cold: true})
}
