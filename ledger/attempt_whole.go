package ledger

import (
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"
)

// ErrNumber: an attempt is not the next of its task. Somebody else carries the
// run on.
var ErrNumber = errors.New("it is not the next of its task")

// RecordAttempt adds an attempt that has ended already, for one so short that
// nobody could have seen it go on. It is StartAttempt and FinishAttempt in one
// statement; the run's time is left alone. a.Number is the next of its task;
// ErrNumber says that it is not.
func (tx *Tx) RecordAttempt(a Attempt, f Finish) (Attempt, error) {
	err := f.check()
	if err == nil {
		err = tx.follows(a)
	}
	if err == nil {
		a, err = tx.recordAttempt(a, f)
	}
	if err != nil {
		return Attempt{}, fmt.Errorf("attempt %d of %s in r%d: %w", a.Number, a.Task, a.RunID, err)
	}
	return a, nil
}

func (tx *Tx) recordAttempt(a Attempt, f Finish) (Attempt, error) {
	process, err := tx.process(a.Owner)
	if err != nil {
		return a, err
	}
	inline, out, err := tx.keep(f.Output, f.Out)
	if err != nil {
		return a, err
	}
	a.Outcome, a.Out, a.EndSeq, a.Truncated = f.Outcome, out, f.EndSeq, f.Truncated
	a.Started = tx.Now()
	a.Ended = a.Started
	a.ID, err = tx.insertID(`INSERT INTO attempt(id, run_id, task, number, outcome, process_id, started_ms, ended_ms,
			branch_id, generation, decl, input, out, output, start_seq, end_seq, truncated)
		VALUES((`+nextAttempt+`), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.RunID, a.Task, a.Number, a.Outcome, process, millis(a.Started), millis(a.Ended),
		ref(a.Branch), a.Generation, hashRef(a.Decl), hashRef(a.Input), outRef(inline, out), inline, ref(a.StartSeq), ref(f.EndSeq), f.Truncated)
	return a, err
}

// follows refuses a number that is not the next. That of a first attempt is
// held to by the table.
func (tx *Tx) follows(a Attempt) error {
	var last int
	if a.Number != 1 {
		err := tx.get(`SELECT coalesce(max(number), 0) FROM attempt WHERE run_id=? AND task=?`, []any{a.RunID, a.Task}, &last)
		if err != nil {
			return err
		}
	}
	if a.Number != last+1 {
		return ErrNumber
	}
	return nil
}

// insertID runs a statement that inserts an attempt, and returns its number in
// the ledger. ErrNumber when its task has one like it.
func (tx *Tx) insertID(query string, args ...any) (int64, error) {
	if !tx.writes {
		return 0, ErrView
	}
	r, err := tx.tx.ExecContext(tx.ctx, query, args...)
	var e sqlite3.Error
	if errors.As(err, &e) && e.ExtendedCode == sqlite3.ErrConstraintUnique {
		return 0, ErrNumber
	}
	if err != nil {
		return 0, tx.db.explain(err)
	}
	id, err := r.LastInsertId()
	return id, tx.db.explain(err)
}

// check refuses what is no outcome.
func (f Finish) check() error {
	switch f.Outcome {
	case OutcomeOK, OutcomeFailed, OutcomeInterrupted:
		return nil
	}
	return fmt.Errorf("%q is no outcome", f.Outcome)
}
