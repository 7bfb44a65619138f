package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/scripts/bench/internal/peer"
	"github.com/retcon-dev/retcon/scripts/bench/internal/tree"
)

// steps of a session whose bytes are counted.
const steps = 1000

// session counts what 1,000 checkpoints take on disk, and what the same trees
// take in a git repository: both tightly packed, packs and their indexes
// counted, references not. What the store shares with the clone counts as its
// own, although it costs nothing while the clone has it.
//
// The rows without a goal tell what was added to a first checkpoint and to the
// clone it was taken of. Of that ours is more, by choice: the clone's pack stays
// shared, and a delta cannot be against what lies in another pack. With that
// pack copied into one of ours it would be as little as git's, and the disk would
// hold the clone twice.
func (c *captures) session(ctx context.Context) error {
	const rival = "git repack -adf"
	all, bare, commits := c.f.Case("bytes a checkpoint"), c.f.Case("bytes added a checkpoint"), c.f.Case("bytes added a checkpoint, git's commits counted")
	kept := c.f.Case("bytes added a checkpoint, the clone's pack kept by both")
	goal := c.f.Goal(1.2, 20000)
	if !c.Wants(all) && !c.Wants(bare) && !c.Wants(commits) && !c.Wants(kept) {
		return nil
	}
	c.Say("a session of %d checkpoints, %s", steps, c.f.Name)
	ours, theirs, err := c.grow(ctx)
	if err != nil {
		return c.Report.Add(c.Report.Row(all, rival, goal).Fail(err))
	}
	per := func(bytes int64) float64 { return float64(bytes) / steps }
	added := ours.After - ours.Before
	for _, row := range []struct {
		name         string
		goal         *float64
		ours, theirs int64
	}{{all, goal, ours.After, theirs.all}, {bare, nil, added, theirs.trees}, {commits, nil, added, theirs.commits}, {kept, nil, added, theirs.kept}} {
		if err := c.Report.Add(c.Report.Row(row.name, rival, row.goal).Compare(per(row.ours), per(row.theirs), "B")); err != nil {
			return err
		}
	}
	return nil
}

// grown is how many bytes git's objects are, and by how many they grew: with the
// trees alone, with a commit for each, and with the trees alone when the pack
// that was there stays as it is, as ours must while we share it.
type grown struct{ all, trees, commits, kept int64 }

func (c *captures) grow(ctx context.Context) (ours peer.Grown, theirs grown, err error) {
	list := filepath.Join(filepath.Dir(c.f.Base), "paths")
	if err := os.WriteFile(list, []byte(strings.Join(c.f.Paths, "\n")+"\n"), 0o600); err != nil {
		return ours, theirs, err
	}
	dir, err := c.f.Copy(ctx, "session-ours")
	if err != nil {
		return ours, theirs, err
	}
	defer c.f.Remove(dir)
	ours, err = c.Driver.Session(ctx, dir, steps, list)
	if err != nil {
		return ours, theirs, err
	}
	theirs, trees, err := c.imported(ctx)
	if err != nil {
		return ours, theirs, err
	}
	if c.f.Generated && !slices.Equal(ours.Trees[1:], trees) {
		return ours, theirs, fmt.Errorf("the session passed other trees than git's")
	}
	return ours, theirs, nil
}

// imported brings the session's trees into a git repository: first each held by
// a commit, then each by a reference of its own.
func (c *captures) imported(ctx context.Context) (g grown, trees []string, err error) {
	dir, err := c.f.Copy(ctx, "session-theirs")
	if err != nil {
		return g, nil, err
	}
	defer c.f.Remove(dir)
	git := c.Git.In(dir)
	packed := func(how string) (int64, error) {
		if err := git.Do(ctx, how); err != nil {
			return 0, err
		}
		return tree.Bytes(filepath.Join(dir, ".git", "objects"))
	}
	before, err := packed("repack -adq") // a field is packed with -f already
	if err != nil {
		return g, nil, err
	}
	stream, err := c.stream(ctx, git)
	if err != nil {
		return g, nil, err
	}
	if err := git.Feed(ctx, stream, "fast-import", "--quiet"); err != nil {
		return g, nil, err
	}
	if g.commits, err = packed("repack -adfq"); err != nil {
		return g, nil, err
	}
	log, _, err := git.Run(ctx, "log", "--reverse", "--format=%T", "HEAD..bench")
	if err != nil {
		return g, nil, err
	}
	trees = strings.Fields(log)
	var refs bytes.Buffer
	for i, id := range trees {
		fmt.Fprintf(&refs, "create refs/trees/%d %s\n", i, id)
	}
	fmt.Fprintln(&refs, "delete refs/heads/bench")
	if err := git.Feed(ctx, refs.Bytes(), "update-ref", "--stdin"); err != nil {
		return g, nil, err
	}
	// The deltas have just been searched for; this drops the commits.
	if g.trees, err = packed("repack -adq"); err != nil {
		return g, nil, err
	}
	if err := c.keepPacks(dir); err != nil {
		return g, nil, err
	}
	if g.kept, err = packed("repack -adfq"); err != nil {
		return g, nil, err
	}
	g.all = g.trees
	g.trees, g.commits, g.kept = g.trees-before, g.commits-before, g.kept-before
	return g, trees, nil
}

// keepPacks puts the packs of the field back into a copy, to stay there.
func (c *captures) keepPacks(dir string) error {
	const at = ".git/objects/pack"
	files, err := filepath.Glob(filepath.Join(c.f.Base, at, "pack-*"))
	if err != nil {
		return err
	}
	for _, from := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, at, filepath.Base(from))
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return err
		}
		if base, ok := strings.CutSuffix(to, ".pack"); ok {
			if err := os.WriteFile(base+".keep", nil, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// stream is the session as git fast-import reads it.
func (c *captures) stream(ctx context.Context, git peer.Git) ([]byte, error) {
	head, _, err := git.Run(ctx, "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	text := map[string][]byte{}
	var out bytes.Buffer
	for i, step := range tree.Session(c.f.Paths, steps) {
		fmt.Fprintf(&out, "commit refs/heads/bench\ncommitter bench <bench@example.invalid> %d +0000\ndata 0\n", 1700000001+i)
		if i == 0 {
			fmt.Fprintf(&out, "from %s\n", head)
		}
		for _, path := range step.Paths {
			if text[path] == nil {
				if text[path], err = os.ReadFile(filepath.Join(c.f.Base, path)); err != nil {
					return nil, err
				}
			}
			text[path] = tree.Changed(text[path], path, step.Version)
			fmt.Fprintf(&out, "M %s inline %s\ndata %d\n%s\n", c.mode(path), quoted(path), len(text[path]), text[path])
		}
	}
	return out.Bytes(), nil
}

func (c *captures) mode(path string) string {
	if fi, err := os.Stat(filepath.Join(c.f.Base, path)); err == nil && fi.Mode()&0o100 != 0 {
		return "100755"
	}
	return "100644"
}

func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
