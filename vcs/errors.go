package vcs

import (
	"errors"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// Errors of opening a worktree.
var (
	// ErrNotWorkspace: neither a git worktree nor a folder with a store of
	// ours. Create one with Options.Create.
	ErrNotWorkspace = errors.New("not a workspace")
	// ErrBare: a git directory, without files to capture.
	ErrBare = repo.ErrBare
	// ErrIncomplete: a Checkout into the directory died half-way, or its
	// removal did. Do either again.
	ErrIncomplete = errors.New("checked out in part only")
)

// Errors of reading what was captured.
var (
	// ErrMissing: an object a commit needs is not in the store. Nothing can be
	// said about the path it belongs to, so nothing is done to it.
	ErrMissing = object.ErrMissing
	// ErrDamaged: the store does not hold what was written to it.
	ErrDamaged = object.ErrCorrupt
	// ErrNoCommit: the text is not the id of a commit in this store.
	ErrNoCommit = errors.New("no such commit")
)

// WideRootError refuses a root whose capture would take in a whole home
// directory or more. Options.AllowWide overrides it.
type WideRootError struct{ Root string }

func (e *WideRootError) Error() string {
	return fmt.Sprintf("%s is a home directory or holds one: too wide to capture", e.Root)
}

// IgnoreError says that an ignore file could not be read. Nothing is captured,
// since a guess would take in what the user keeps out.
type IgnoreError struct {
	Path string // relative to the worktree's root, or absolute
	Err  error
}

func (e *IgnoreError) Error() string { return fmt.Sprintf("ignore rules of %s: %v", e.Path, e.Err) }
func (e *IgnoreError) Unwrap() error { return e.Err }

// LockedError says that another process is at work on the worktree. Wait for it,
// or look at what it does.
type LockedError struct {
	What   string
	Holder string    // "" when not known
	Since  time.Time // zero when not known
}

func (e *LockedError) Error() string {
	said := e.What + " is locked by "
	if e.Holder == "" {
		said += "another process"
	} else {
		said += e.Holder
	}
	if !e.Since.IsZero() {
		said += " since " + e.Since.Format(time.RFC3339)
	}
	return said
}

// OutsideError refuses a path that does not lie below the root.
type OutsideError struct{ Path, Root string }

func (e *OutsideError) Error() string { return fmt.Sprintf("%s is outside %s", e.Path, e.Root) }

// OccupiedError refuses to check out into a directory that holds something.
type OccupiedError struct{ Dir string }

func (e *OccupiedError) Error() string { return fmt.Sprintf("%s is not empty", e.Dir) }

// NotOwnedError refuses to remove a directory that no Checkout of this
// workspace made.
type NotOwnedError struct{ Dir string }

func (e *NotOwnedError) Error() string {
	return fmt.Sprintf("%s was not checked out by this workspace", e.Dir)
}
