package ledger

import (
	"database/sql"
	"fmt"
	"time"
)

// Attempt is one try of a task in a run.
type Attempt struct {
	ID       int64
	RunID    int64
	Task     string
	Number   int    // counted from 1 in (run, task)
	Outcome  string // "" while it runs
	ExitCode *int
	Before   int64 // checkpoint when it began; 0 for none
	After    int64 // checkpoint when it ended; 0 for none
	Owner    Owner
	Started  time.Time
	Ended    time.Time // zero while it runs
}

const attemptColumns = `id, run_id, task, number, outcome, exit_code, before_id, after_id, started_ms, ended_ms, ` + ownerColumns

func readAttempt(s scanner) (a Attempt, err error) {
	var outcome sql.NullString
	var exit, before, after, ended sql.NullInt64
	var started int64
	err = s.Scan(append([]any{&a.ID, &a.RunID, &a.Task, &a.Number, &outcome, &exit, &before, &after, &started, &ended},
		a.Owner.dest()...)...)
	a.Outcome, a.Before, a.After = outcome.String, before.Int64, after.Int64
	a.Started, a.Ended = fromMillis(started), maybeMillis(ended)
	if exit.Valid {
		code := int(exit.Int64)
		a.ExitCode = &code
	}
	return a, err
}

// StartAttempt adds the next attempt of a.Task in a.RunID and returns it. Only
// run, task, owner and, if it is known, Before are taken from a.
func (tx *Tx) StartAttempt(a Attempt) (Attempt, error) {
	if err := tx.touchRun(a.RunID); err != nil {
		return Attempt{}, err
	}
	id, err := tx.next("attempt")
	if err != nil {
		return Attempt{}, err
	}
	var last sql.NullInt64
	if err := tx.get(`SELECT max(number) FROM attempt WHERE run_id=? AND task=?`, []any{a.RunID, a.Task}, &last); err != nil {
		return Attempt{}, fmt.Errorf("attempt of %s in r%d: %w", a.Task, a.RunID, err)
	}
	a = Attempt{ID: id, RunID: a.RunID, Task: a.Task, Number: int(last.Int64) + 1, Before: a.Before, Owner: a.Owner, Started: tx.Now()}
	_, err = tx.exec(`INSERT INTO attempt(`+attemptColumns+`) VALUES(?, ?, ?, ?, NULL, NULL, ?, NULL, ?, NULL, ?, ?, ?, ?, ?)`,
		append([]any{a.ID, a.RunID, a.Task, a.Number, ref(a.Before), millis(a.Started)}, a.Owner.values()...)...)
	if err != nil {
		return Attempt{}, fmt.Errorf("attempt of %s in r%d: %w", a.Task, a.RunID, err)
	}
	return a, nil
}

// SetAttemptBefore records the checkpoint an open attempt began at, for one
// that was taken after the attempt had its number. ErrFinished when the attempt
// has ended.
func (tx *Tx) SetAttemptBefore(id, checkpoint int64) error {
	n, err := tx.exec(`UPDATE attempt SET before_id=? WHERE id=? AND outcome IS NULL`, checkpoint, id)
	return tx.openAttempt(id, n, err)
}

// Finish is how an attempt ended.
type Finish struct {
	Outcome  string // OutcomeOK, OutcomeFailed or OutcomeInterrupted
	ExitCode *int
	After    int64 // 0 for none
}

// FinishAttempt ends an attempt. ErrFinished when it has ended before: the
// first outcome stands.
func (tx *Tx) FinishAttempt(id int64, f Finish) error {
	switch f.Outcome {
	case OutcomeOK, OutcomeFailed, OutcomeInterrupted:
	default:
		return fmt.Errorf("attempt %d: %q is no outcome", id, f.Outcome)
	}
	var exit any
	if f.ExitCode != nil {
		exit = *f.ExitCode
	}
	n, err := tx.exec(`UPDATE attempt SET outcome=?, exit_code=?, after_id=?, ended_ms=? WHERE id=? AND outcome IS NULL`,
		f.Outcome, exit, ref(f.After), millis(tx.Now()), id)
	if err := tx.openAttempt(id, n, err); err != nil {
		return err
	}
	a, err := tx.Attempt(id)
	if err != nil {
		return err
	}
	return tx.touchRun(a.RunID)
}

// openAttempt says why an update that wants an open attempt found none.
func (tx *Tx) openAttempt(id, n int64, err error) error {
	if err != nil {
		return fmt.Errorf("attempt %d: %w", id, err)
	}
	if n > 0 {
		return nil
	}
	if _, err := tx.Attempt(id); err != nil {
		return err
	}
	return fmt.Errorf("attempt %d: %w", id, ErrFinished)
}

func (tx *Tx) touchRun(id int64) error {
	n, err := tx.exec(`UPDATE run SET updated_ms=? WHERE id=?`, millis(tx.Now()), id)
	return found(n, err, "r%d", id)
}

// Attempt returns the attempt with this number, or ErrNotFound.
func (tx *Tx) Attempt(id int64) (Attempt, error) {
	a, err := one(tx, readAttempt, `SELECT `+attemptColumns+` FROM attempt WHERE id=?`, id)
	if err != nil {
		return Attempt{}, fmt.Errorf("attempt %d: %w", id, err)
	}
	return a, nil
}

// Attempts returns the attempts of a run in the order they began.
func (tx *Tx) Attempts(run int64) ([]Attempt, error) {
	return all(tx, readAttempt, `SELECT `+attemptColumns+` FROM attempt WHERE run_id=? ORDER BY id`, run)
}

// OpenAttempts returns the attempts in a worktree that have no outcome yet: the
// live ones and those whose owner has died.
func (tx *Tx) OpenAttempts(worktree int64) ([]Attempt, error) {
	return all(tx, readAttempt, `SELECT `+attemptColumns+` FROM attempt
		WHERE outcome IS NULL AND run_id IN (SELECT id FROM run WHERE worktree_id=?) ORDER BY id`, worktree)
}
