// Package vcs captures a worktree as a commit, puts it back, compares two of
// them and watches for changes.
//
// A commit is one state of a worktree: bytes, modes, symbolic links and empty
// directories as they are on disk, beside what git thinks of it (HEAD, index).
// It is stored in an object store of our own that git can read, and it is named
// by its content: two captures of the same state are the same Commit.
//
// The user's branch, index, stash, refs and objects are left alone: nothing
// here writes below the user's git directory except into the store's own
// folder, and, only when a move asks for it by name, HEAD and the index.
//
// The package does not know what a run, a checkpoint or an operation is, and
// has no SQL.
package vcs
