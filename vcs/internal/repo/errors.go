package repo

import (
	"errors"
	"fmt"
)

// Errors of finding a repository.
var (
	// ErrNotRepository: neither the directory nor any of its parents on the
	// same filesystem is a git worktree. Treat it as a plain folder.
	ErrNotRepository = errors.New("not a git repository")

	// ErrBare: the directory belongs to a repository without a worktree, or
	// lies inside a git directory. There is nothing to capture here.
	ErrBare = errors.New("no worktree here: bare repository or git directory")

	// ErrGitFile: a .git file was found that leads nowhere. git refuses to
	// look further up, and so do we; the user has to repair or remove it.
	ErrGitFile = errors.New("broken .git file")
)

// Errors of reading and writing.
var (
	// ErrBadRef: a ref's name or content is not one git would accept.
	ErrBadRef = errors.New("bad ref")

	// ErrIndex: the index is truncated or corrupt. Scan without it.
	ErrIndex = errors.New("bad index")

	// ErrRefMoved: HEAD or the branch no longer has the value the caller
	// saw. Nothing was written; look again and decide again.
	ErrRefMoved = errors.New("ref has moved")

	// ErrIndexChanged: the index is not the one the caller read. Nothing was
	// written.
	ErrIndexChanged = errors.New("index has changed")

	// ErrFilesOnly: the repository's format forbids writing; see
	// [Repo.FilesOnly].
	ErrFilesOnly = errors.New("repository format not supported for writing")
)

// LockExistsError says that somebody else holds a lock file, or died holding
// it. Nothing was written. Path is the lock to wait for or, if no git process
// is alive, to remove.
type LockExistsError struct{ Path string }

func (e *LockExistsError) Error() string { return fmt.Sprintf("lock exists: %s", e.Path) }

// BranchInUseError says that a branch is checked out, or being rebased, in
// another worktree. Moving it would change that worktree behind its back.
type BranchInUseError struct {
	Ref    string
	GitDir string // of the other worktree
}

func (e *BranchInUseError) Error() string {
	return fmt.Sprintf("%s is in use by the worktree of %s", e.Ref, e.GitDir)
}

// Warning is something in a repository's files that was skipped rather than
// allowed to stop us. Line is 0 when the whole file is meant.
type Warning struct {
	File   string
	Line   int
	Reason string
}

func (w Warning) String() string {
	if w.Line == 0 {
		return fmt.Sprintf("%s: %s", w.File, w.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Reason)
}
