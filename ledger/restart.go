package ledger

import "fmt"

// RestartAttempt opens an attempt again that was interrupted, under its number:
// what it did before is not known, so it counts as carried out at least once.
// It runs in a worktree, 0 for the run's; where it began, in another one, does
// not count any more. ErrFinished when it has another outcome.
func (tx *Tx) RestartAttempt(id, worktree int64, owner Owner) (Attempt, error) {
	process, err := tx.process(owner)
	if err != nil {
		return Attempt{}, err
	}
	n, err := tx.exec(`UPDATE attempt SET outcome=NULL, ended_ms=NULL, exit_code=NULL, after_id=NULL, tree_out=NULL, end_seq=NULL,
		output=NULL, out=NULL, at_least_once=1, process_id=?, started_ms=?,
		before_id = CASE WHEN coalesce(worktree_id, 0) = ? THEN before_id END, worktree_id=?
		WHERE id=? AND (outcome IS NULL OR outcome='interrupted')`, process, millis(tx.Now()), worktree, ref(worktree), id)
	if err := tx.openAttempt(id, n, err); err != nil {
		return Attempt{}, err
	}
	a, err := tx.Attempt(id)
	if err != nil {
		return Attempt{}, fmt.Errorf("restart: %w", err)
	}
	return a, nil
}
