package ledger

import (
	"fmt"
	"strings"

	"github.com/retcon-dev/retcon/internal/crash"
)

// Regraft moves what leads to the frame that comes next on one branch of a run
// to another of its branches: the events from the place idx on, and the
// attempts and effects that have to do with the task from. The task is called
// to there. It is for what began on a branch that turned out not to be the one
// the run goes on with.
func (tx *Tx) Regraft(old, next Branch, idx int, from, to string) error {
	if err := tx.regraft(old, next, idx, from, to); err != nil {
		return fmt.Errorf("from branch %d to %d: %w", old.ID, next.ID, err)
	}
	crash.Point("ledger.regraft")
	return nil
}

func (tx *Tx) regraft(old, next Branch, idx int, from, to string) error {
	events, err := all(tx, readEvent, `SELECT `+eventColumns+` FROM event WHERE branch_id=? AND seq=? AND idx>=? ORDER BY idx`,
		old.ID, old.HeadSeq+1, idx)
	if err != nil {
		return err
	}
	attempts, err := all(tx, readAttempt, `SELECT `+attemptColumns+` FROM `+attemptTable+`
		WHERE run_id=? AND branch_id=? AND coalesce(start_seq, 0)=? ORDER BY attempt.id`, old.RunID, old.ID, old.HeadSeq)
	if err != nil {
		return err
	}
	if _, err := tx.exec(`DELETE FROM event WHERE branch_id=? AND seq=? AND idx>=?`, old.ID, old.HeadSeq+1, idx); err != nil {
		return err
	}
	for i := range events {
		events[i].Task = renamed(events[i].Task, from, to)
	}
	if err := tx.insertEvents(next.ID, next.HeadSeq+1, events); err != nil {
		return err
	}
	for _, a := range attempts {
		if a.Task != from && !strings.HasPrefix(a.Task, from+"/") {
			continue
		}
		task := renamed(a.Task, from, to)
		_, err := tx.exec(`UPDATE attempt SET branch_id=?, start_seq=?, task=?,
			number=(SELECT coalesce(max(number), 0) + 1 FROM attempt WHERE run_id=? AND task=?) WHERE id=?`,
			next.ID, ref(next.HeadSeq), task, a.RunID, task, a.ID)
		if err != nil {
			return err
		}
		_, err = tx.exec(`UPDATE effect SET branch_id=?, seq=?, task=? WHERE attempt_id=?`, next.ID, next.HeadSeq+1, task, a.ID)
		if err != nil {
			return err
		}
		_, err = tx.exec(`UPDATE cell SET branch_id=? WHERE attempt_id=? AND branch_id IS NOT NULL`, next.ID, a.ID)
		if err != nil {
			return err
		}
	}
	return nil
}

// renamed is a task, or a part of it, under the task's other name.
func renamed(task, from, to string) string {
	if task == from {
		return to
	}
	if rest, ok := strings.CutPrefix(task, from+"/"); ok {
		return to + "/" + rest
	}
	return task
}
