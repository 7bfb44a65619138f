package checkpoint

import (
	"errors"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Row returns the ledger's row of the worktree, without writing.
// ledger.ErrNotFound when nothing was recorded here yet, and a
// *ledger.RootChangedError when it was recorded about another directory.
//
// A repository that was moved keeps its row. The main worktree, or a plain
// folder, is the one the store lies in: whatever its path, there is one. A
// linked worktree is known by its root directory.
func (r *Recorder) Row(tx *ledger.Tx) (ledger.Worktree, error) {
	row, _, err := r.row(tx)
	return row, err
}

// Ensure is Row, and makes or updates the row.
func (r *Recorder) Ensure(tx *ledger.Tx) (ledger.Worktree, error) {
	row, moved, err := r.row(tx)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return ledger.Worktree{}, err
	}
	is := r.is()
	if moved {
		if row, err = tx.MoveWorktree(row.ID, is.Path); err != nil {
			return ledger.Worktree{}, err
		}
	}
	// What row let pass, and a directory that was copied to another path with
	// its store, is the worktree although the identity may differ.
	is.Adopt = err == nil
	return tx.EnsureWorktree(is)
}

// is describes the worktree as it stands.
func (r *Recorder) is() ledger.Worktree {
	dev, ino := r.Worktree.Identity()
	return ledger.Worktree{Path: r.Worktree.Root(), Dev: dev, Ino: ino, GitDir: r.Worktree.GitDir(),
		Kind: kindOf(r.Worktree), Host: r.Host}
}

// kindOf is what the ledger calls a worktree. One of our own is linked to the
// store as one of git's is: it is known by its root directory, too.
func kindOf(w *vcs.Worktree) string {
	if w.Kind() == vcs.Owned {
		return string(vcs.Linked)
	}
	return string(w.Kind())
}

func (r *Recorder) row(tx *ledger.Tx) (row ledger.Worktree, moved bool, err error) {
	is := r.is()
	row, err = tx.WorktreeAt(is.Path)
	if err == nil {
		if !r.Adopt && !sameRoot(row, is) {
			return ledger.Worktree{}, false, &ledger.RootChangedError{Path: is.Path,
				Old: ledger.RootID{Dev: row.Dev, Ino: row.Ino}, New: ledger.RootID{Dev: is.Dev, Ino: is.Ino}}
		}
		return row, false, nil
	}
	if !errors.Is(err, ledger.ErrNotFound) {
		return ledger.Worktree{}, false, err
	}
	all, lerr := tx.Worktrees()
	if lerr != nil {
		return ledger.Worktree{}, false, lerr
	}
	linked := string(vcs.Linked)
	for _, old := range all {
		switch {
		case is.Kind != linked && old.Kind != linked,
			is.Kind == linked && old.Kind == linked && old.Dev == is.Dev && old.Ino == is.Ino:
			return old, true, nil
		}
	}
	return ledger.Worktree{}, false, err
}

// lowInodes are those that the roots of file systems have: they tell nothing
// about which one it is.
const lowInodes = 1024

// sameRoot tells that a directory is the recorded one. Devices are numbered
// anew when a machine starts; inodes are not.
func sameRoot(row, is ledger.Worktree) bool {
	return row.Ino == is.Ino && (row.Dev == is.Dev || is.Ino > lowInodes)
}
