package vcs

import (
	"context"
	"fmt"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// Kinds of conflict.
const (
	ConflictContent      = "content"        // both changed the same lines
	ConflictBinary       = "binary"         // both changed it, and it has no lines or too many
	ConflictMode         = "mode"           // both changed the permission bits
	ConflictDeleteModify = "delete/modify"  // one removed what the other changed
	ConflictAddAdd       = "add/add"        // both made it, differently
	ConflictFileDir      = "file/directory" // a directory on one side only
	ConflictLink         = "link"           // a symbolic link on one side, or on both
	ConflictRepository   = "repository"     // both moved the HEAD of a repository inside
	ConflictNotCaptured  = "not-captured"   // what one side has is not in its commit
)

// Conflict is a path on which two sides do not agree. The merge has what Ours
// has there.
type Conflict struct {
	Path   string
	Kind   string
	Side   int   // which of the sides is Theirs; Ours is the merge of those before it
	Base   State // KindAbsent where there was nothing
	Ours   State
	Theirs State
}

// MergeOptions say what stands where sides do not agree. The zero value leaves
// what the first side has.
type MergeOptions struct {
	// Markers writes both versions of the lines that conflict into a text,
	// between lines that say whose they are.
	Markers bool
	// Labels name the sides in those lines, in the order of the sides.
	Labels []string
	// Lines takes of a text in which lines conflict those of the first side, and
	// merges the rest of it. Such a text is a conflict all the same.
	Lines bool
	// Sync has what the merge comes to survive a power cut, as of a Capture.
	Sync bool
}

func (o *MergeOptions) label(side int) string {
	if side < len(o.Labels) {
		return o.Labels[side]
	}
	return fmt.Sprintf("side %d", side+1)
}

// Merged is what a merge came to.
type Merged struct {
	Commit    Commit
	Tree      string // as git names it
	Conflicts []Conflict
}

// Merge brings together what sides made of base, each of them in turn into the
// first, without looking at a worktree. A path that one side changed is as that
// side has it; a text that several changed is merged by lines, as git
// merge-file does; permission bits are merged on their own; the rest is a
// conflict. There is no notion of a rename.
//
// HEAD, index and what was ignored or not captured are those of the first side:
// a side without an ignored file has not removed it.
//
// Hold Shared from before the call until the commit is recorded, as for a
// Capture. It fails with ErrNoCommit, ErrMissing or ErrDamaged.
func (w *Worktree) Merge(ctx context.Context, base Commit, sides []Commit, opt MergeOptions) (*Merged, error) {
	if len(sides) == 0 {
		return nil, fmt.Errorf("BUG: nothing to merge")
	}
	tree, err := w.TreeOf(sides[0])
	if err != nil {
		return nil, err
	}
	all := &Merged{Commit: sides[0], Tree: tree}
	for i := 1; i < len(sides); i++ {
		if err := w.mergeInto(ctx, all, base, sides[i], i, &opt); err != nil {
			return nil, fmt.Errorf("merge %s: %w", sides[i], err)
		}
	}
	return all, nil
}

// mergeInto merges one more side into what there is.
func (w *Worktree) mergeInto(ctx context.Context, all *Merged, base, theirs Commit, side int, opt *MergeOptions) error {
	b, err := w.readCommit(base)
	if err != nil {
		return err
	}
	o, err := w.readCommit(all.Commit)
	if err != nil {
		return err
	}
	t, err := w.readCommit(theirs)
	if err != nil {
		return err
	}
	wr := w.store.NewWriter()
	defer wr.Abort()
	m := &merger{w: w, ctx: ctx, wr: wr, side: side, opt: opt,
		base: b.meta.Modes, ours: o.meta.Modes, theirs: t.meta.Modes}
	m.add(-1, "", pick(b.meta.Root, o.meta.Root, t.meta.Root), 0)
	if err := m.level("", b.top, o.top, t.top, 0); err != nil {
		return err
	}
	build := &builder{s: &scanner{dirs: m.dirs, store: w.store, writer: wr}, modes: o.meta.Modes}
	if err := build.build(); err != nil {
		return err
	}
	git := gitFacts{Operation: o.meta.Operation, Sparse: o.meta.Sparse, Extra: o.meta.Extra, Degraded: o.meta.Degraded}
	if o.meta.Head != nil {
		git.Head = *o.meta.Head
	}
	if !o.index.IsZero() {
		git.Tree = o.index.String()
	}
	all.Commit, all.Tree, err = build.commit(git, all.Commit)
	if err != nil {
		return err
	}
	all.Conflicts = append(all.Conflicts, m.conflicts...)
	return wr.Commit(opt.Sync)
}

// pick is the value that a three-way merge takes, ours where both changed it.
func pick[T comparable](base, ours, theirs T) T {
	if ours == base {
		return theirs
	}
	return ours
}

// maxMerge is the size up to which a text is merged by lines.
const maxMerge = 16 << 20

// text returns the content of a blob that has lines.
func (m *merger) text(id object.ID) (data []byte, ok bool, err error) {
	if id.IsZero() {
		return nil, true, nil
	}
	_, size, err := m.w.store.Header(id)
	if err != nil || size > maxMerge {
		return nil, false, err
	}
	_, data, err = m.w.store.ReadVerified(id, nil)
	return data, err == nil && !isBinary(data), err
}

// isBinary is git's guess.
func isBinary(data []byte) bool {
	for _, c := range data[:min(len(data), 8000)] {
		if c == 0 {
			return true
		}
	}
	return false
}
