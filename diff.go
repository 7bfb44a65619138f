package retcon

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/vcs"
)

// What vcs says about paths, under the names the doors know.
type (
	FileChange   = vcs.FileChange
	State        = vcs.State
	FileStat     = vcs.FileStat
	PatchOptions = vcs.PatchOptions
	Head         = vcs.Head
	Missing      = vcs.Missing
)

// Kinds of a State.
const (
	KindAbsent  = vcs.KindAbsent
	KindFile    = vcs.KindFile
	KindLink    = vcs.KindLink
	KindDir     = vcs.KindDir
	KindRepo    = vcs.KindRepo
	KindGitlink = vcs.KindGitlink
	KindSpecial = vcs.KindSpecial
	KindUnknown = vcs.KindUnknown
	KindIgnored = vcs.KindIgnored
)

// DiffOptions say what is compared.
type DiffOptions struct {
	From  Ref      // the newest checkpoint when empty
	To    Ref      // the worktree as it is when empty
	Paths []string // relative to Options.Dir; only these and what lies below
}

// worktreeName stands for a reference where the worktree itself is compared.
const worktreeName = "worktree"

// Diff is what differs between two states of the worktree.
type Diff struct {
	From       string       `json:"from"` // "c3"
	To         string       `json:"to"`   // "c4", or "worktree"
	FromCommit string       `json:"from_commit"`
	ToCommit   string       `json:"to_commit"`
	FromHead   Head         `json:"from_head"`
	ToHead     Head         `json:"to_head"`
	Changes    []FileChange `json:"changes"`
}

// Diff compares two states. Where directories came or went with what is in
// them, and where something ignored did, that is not told; an empty directory
// is.
func (w *Workspace) Diff(ctx context.Context, o DiffOptions) (*Diff, error) {
	paths, err := w.rel(o.Paths)
	if err != nil {
		return nil, err
	}
	if o.From == "" {
		o.From = "last"
	}
	from, err := w.side(ctx, o.From)
	if err != nil {
		return nil, err
	}
	unlock, err := w.vcs.Shared(ctx) // what is captured to be compared has no row
	if err != nil {
		return nil, err
	}
	defer unlock()
	to, err := w.side(ctx, o.To)
	if err != nil {
		return nil, err
	}
	d := &Diff{From: from.name, To: to.name, FromCommit: string(from.commit), ToCommit: string(to.commit)}
	if d.FromHead, _, err = w.vcs.Describe(from.commit); err != nil {
		return nil, err
	}
	if d.ToHead, _, err = w.vcs.Describe(to.commit); err != nil {
		return nil, err
	}
	changes, err := w.vcs.Diff(ctx, from.commit, to.commit)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", from.name, to.name, err)
	}
	d.Changes = slices.DeleteFunc(checkpoint.Shown(changes), func(c FileChange) bool { return !below(paths, c.Path) })
	if d.Changes == nil {
		d.Changes = []FileChange{}
	}
	return d, nil
}

type side struct {
	name   string
	commit vcs.Commit
}

// side resolves one side of a comparison, capturing the worktree if it is meant.
func (w *Workspace) side(ctx context.Context, ref Ref) (side, error) {
	if ref == "" || ref == Now {
		c, err := w.vcs.Capture(ctx, vcs.CaptureOptions{Progress: func(done int) { w.progress("scan", done, 0) }})
		if err != nil {
			return side{}, fmt.Errorf("capture: %w", err)
		}
		return side{worktreeName, c.Commit}, nil
	}
	c, err := w.resolve(ctx, ref)
	return side{fmt.Sprintf("c%d", c.ID), vcs.Commit(c.Commit)}, err
}

// Patch writes a difference as a unified diff in git's format. Of binary files
// it says only that they differ.
func (w *Workspace) Patch(_ context.Context, to io.Writer, d *Diff, o PatchOptions) error {
	return w.vcs.Patch(to, d.Changes, o)
}

// Stat counts the lines of a difference.
func (w *Workspace) Stat(_ context.Context, d *Diff) ([]FileStat, error) {
	return w.vcs.LineStats(d.Changes)
}

// below tells that a path is one of paths or lies below one; nil is all.
func below(paths []string, path string) bool {
	return paths == nil || slices.ContainsFunc(paths, func(p string) bool {
		return p == "" || p == path || strings.HasPrefix(path, p+"/")
	})
}
