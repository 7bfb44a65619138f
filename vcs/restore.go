package vcs

import (
	"context"
	"fmt"
	"os"
	"strconv"
)

// Restore makes the worktree what target says, by one held, captured, staged,
// swapped and verified move without a ledger. It returns the commit of the
// worktree as it was. Paths that target does not know the content of are left
// alone, as are ignored ones. When somebody writes to one of the paths meanwhile,
// all is taken back.
func (w *Worktree) Restore(ctx context.Context, target Commit) (before Commit, changed int, err error) {
	release, err := w.Hold(ctx)
	if err != nil {
		return "", 0, err
	}
	defer release()
	c, err := w.Capture(ctx, CaptureOptions{Sync: true, NoCaps: true, Quick: true})
	if err != nil {
		return "", 0, err
	}
	changes, err := w.Diff(ctx, c.Commit, target)
	if err != nil {
		return c.Commit, 0, err
	}
	changes, _ = Restorable(changes)
	s, err := w.Stage(ctx, strconv.Itoa(os.Getpid()), changes)
	if err != nil {
		return c.Commit, 0, err
	}
	defer s.Discard()
	if err := s.Swap(ctx); err != nil {
		return c.Commit, 0, err
	}
	n, err := s.Verify(ctx)
	if err != nil {
		return c.Commit, n, err
	}
	rescued, paths, err := s.Rescue(ctx, false)
	if err == nil && rescued != "" { // there is nobody to tell what it is called
		err = fmt.Errorf("restore %s: somebody has written to it meanwhile", paths[0])
	}
	if err != nil {
		return c.Commit, 0, s.TakeBack(err)
	}
	return c.Commit, n, s.Settle()
}

// Restorable splits changes into those that going from Old to New can carry out,
// and the rest: a content is not known, the path is ignored or kept off the
// disk on one side, or it belongs to a nested repository that only one side
// has. Changes are sorted by path, as Diff returns them.
func Restorable(changes []FileChange) (do, rest []FileChange) {
	passed := make(map[string]bool) // directories whose content is passed over
	for _, c := range changes {
		switch {
		case len(passed) > 0 && below(c.Path, passed):
			rest = append(rest, c)
		case c.Old.Kind == KindRepo && c.New.Kind != KindRepo && c.New.Kind != KindDir:
			passed[c.Path] = true
			rest = append(rest, c)
		case !known(c.Old) || !known(c.New):
			// What is in a directory that one side could not look into, or did
			// not, is not absent there.
			if !mayHold(c.Old) || !mayHold(c.New) {
				passed[c.Path] = true
			}
			rest = append(rest, c)
		case c.Old.Kind == KindDir && c.New.Kind == KindRepo && c.Old.Mode == c.New.Mode:
			rest = append(rest, c)
		case !c.Old.Is(c.New):
			do = append(do, c)
		}
	}
	return do, rest
}

// below tells that a path lies in one of dirs. Between "a" and "a/b" there may
// be an "a-b".
func below(path string, dirs map[string]bool) bool {
	for i := range len(path) {
		if path[i] == '/' && dirs[path[:i]] {
			return true
		}
	}
	return false
}

// mayHold tells that what is below a path is told by changes of its own.
func mayHold(s State) bool {
	return s.Kind == KindAbsent || s.Kind == KindDir || s.Kind == KindRepo
}

func known(s State) bool {
	switch s.Kind {
	case KindAbsent, KindFile, KindLink, KindDir, KindRepo:
		return !s.Ignored && !s.Sparse
	}
	return false
}
