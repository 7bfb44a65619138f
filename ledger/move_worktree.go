package ledger

import "fmt"

// MoveWorktree records that a worktree is found at another path now, and
// returns its row. Its history goes with it. It is an error when there is a row
// for that path.
func (tx *Tx) MoveWorktree(id int64, path string) (Worktree, error) {
	w, err := tx.Worktree(id)
	if err != nil || w.Path == path {
		return w, err
	}
	old := w.Path
	if _, err := tx.exec(`UPDATE worktree SET path=? WHERE id=?`, []byte(path), id); err != nil {
		return Worktree{}, fmt.Errorf("worktree %q: %w", path, err)
	}
	w.Path = path
	return w, tx.Audit("", "worktree.move", detail{"worktree": id, "old": []byte(old), "new": []byte(path)}.String())
}
