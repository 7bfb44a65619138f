package ledger

import (
	"fmt"
	"strings"
)

// ThinCheckpoint deletes a checkpoint as [Tx.DeleteCheckpoint] does, and one
// between two tool calls of the same prompt as well: the windows of the calls
// that end and begin there become one, in which either may have made each
// change. What is told apart by windows, the work of a session from that of
// others, stays told apart. Everything else that needs a checkpoint refuses it
// likewise.
func (tx *Tx) ThinCheckpoint(id int64, actor string) error {
	c, err := tx.Checkpoint(id)
	if err != nil {
		return err
	}
	calls, err := all(tx, readAttempt, `SELECT `+attemptColumns+` FROM `+attemptTable+`
		WHERE before_id = ? OR after_id = ? ORDER BY attempt.id`, id, id)
	if err != nil {
		return fmt.Errorf("c%d: %w", id, err)
	}
	lo, hi, ok := between(c, calls)
	if !ok {
		return tx.DeleteCheckpoint(id, actor)
	}
	if err := tx.deletable(c, c.RunID); err != nil { // the run's own frames are looked for below
		return err
	}
	var frames int64
	if err := tx.get(`SELECT count(*) FROM frame WHERE checkpoint_id = ?`, []any{id}, &frames); err != nil {
		return fmt.Errorf("c%d: %w", id, err)
	}
	if frames > 0 {
		return &ReferencedError{What: fmt.Sprintf("c%d", id), By: fmt.Sprintf("%d frames", frames)}
	}
	for _, a := range calls {
		from, to := a.Before, a.After
		switch {
		case from == id && to == id: // it changed nothing
			from, to = lo, lo
		case from == id:
			from = lo
		default:
			to = hi
		}
		if _, err := tx.exec(`UPDATE attempt SET before_id=?, after_id=? WHERE id=?`, from, to, a.ID); err != nil {
			return fmt.Errorf("c%d: attempt %d: %w", id, a.ID, err)
		}
	}
	return tx.DeleteCheckpoint(id, actor)
}

// between tells that a checkpoint stands between calls of one prompt, with
// nothing else about it, and where their windows begin and end.
func between(c Checkpoint, calls []Attempt) (lo, hi int64, ok bool) {
	prompt := ""
	for _, a := range calls {
		of, _, call := strings.Cut(a.Task, "/")
		switch {
		case a.Call == "" || !call || a.RunID != c.RunID || a.Outcome == "" || a.Before == 0 || a.After == 0:
			return 0, 0, false
		case prompt != "" && prompt != of:
			return 0, 0, false
		}
		prompt = of
		if a.After == c.ID && a.Before != c.ID && (lo == 0 || a.Before < lo) {
			lo = a.Before
		}
		if a.Before == c.ID && a.After > hi && a.After != c.ID {
			hi = a.After
		}
	}
	return lo, hi, lo != 0 && hi != 0
}
