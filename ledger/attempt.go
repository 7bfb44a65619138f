package ledger

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/snapshot"
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

	Call string // the tool call it is of, as its client names it, see Tx.LastOfCall; "" for none

	Branch      int64 // where it began; 0 for a run without frames
	Generation  int
	Worktree    int64         // the worktree it ran in; 0 for the run's
	Decl        snapshot.Hash // what was declared
	Input       snapshot.Hash // what it was given; results are found by it
	Out         snapshot.Hash // of the outcome; see Tx.AttemptOutput
	TreeIn      string        // the trees it found and left; "" for none
	TreeOut     string
	StartSeq    int64 // the frame after which it began
	EndSeq      int64 // the frame that has its outcome; 0 for none
	AtLeastOnce bool  // it may have been carried out before, under the same number
	Truncated   bool  // part of its output was not kept
	Compensated bool  // what it did outside was undone
	CarriedFrom int64 // the attempt whose outcome this is; 0 when it is its own

	output []byte // where it is short
}

// attemptTable brings attempts together with the processes that carried them
// out; attemptColumns are columns of it.
const (
	attemptTable   = `attempt LEFT JOIN process ON process.id = attempt.process_id`
	attemptColumns = `attempt.id, run_id, task, number, outcome, exit_code, before_id, after_id, started_ms, ended_ms, ` +
		`branch_id, generation, worktree_id, decl, input, out, output, tree_in, tree_out, start_seq, end_seq, ` +
		`at_least_once, truncated, compensated, carried_from, call, ` +
		`coalesce(owner, ''), coalesce(pid, 0), coalesce(pid_start, 0), coalesce(boot, ''), coalesce(host, '')`
)

func readAttempt(s scanner) (a Attempt, err error) {
	var outcome sql.NullString
	var treeIn, treeOut, call sql.NullString
	var exit, before, after, ended, branch, worktree, start, end, carried sql.NullInt64
	var started int64
	var out []byte
	err = s.Scan(append([]any{&a.ID, &a.RunID, &a.Task, &a.Number, &outcome, &exit, &before, &after, &started, &ended,
		&branch, &a.Generation, &worktree, hashIn{&a.Decl}, hashIn{&a.Input}, &out, &a.output, &treeIn, &treeOut, &start, &end,
		&a.AtLeastOnce, &a.Truncated, &a.Compensated, &carried, &call}, a.Owner.dest()...)...)
	a.Outcome, a.Before, a.After, a.Call = outcome.String, before.Int64, after.Int64, call.String
	a.Branch, a.Worktree, a.CarriedFrom = branch.Int64, worktree.Int64, carried.Int64
	a.StartSeq, a.EndSeq, a.TreeIn, a.TreeOut = start.Int64, end.Int64, treeIn.String, treeOut.String
	a.Started, a.Ended = fromMillis(started), maybeMillis(ended)
	if exit.Valid {
		code := int(exit.Int64)
		a.ExitCode = &code
	}
	switch {
	case err != nil || out == nil:
	case a.output != nil:
		a.Out = sha256.Sum256(a.output)
	default:
		err = hashIn{&a.Out}.Scan(out)
	}
	return a, err
}

// outRef is the hash of an outcome as an attempt has it: all of it names a
// content, and of one that is in the row itself eight bytes tell whether it is
// damaged.
func outRef(inline []byte, out snapshot.Hash) any {
	if inline != nil {
		return out[:8]
	}
	return hashRef(out)
}

// nextAttempt is the number of the next attempt in the ledger. A run has
// thousands of them, so they are counted by what is there, and only deleting
// some writes down how far they went: a number is never given twice.
const nextAttempt = `SELECT coalesce(max(given), 0) + 1 FROM
	(SELECT max(id) AS given FROM attempt UNION ALL SELECT value FROM counter WHERE name='attempt') AS attempts`

// StartAttempt adds the next attempt of a.Task in a.RunID and returns it. What
// is known only at the end and the number are not taken from a. It began at
// a.Started; now, when that is not set.
func (tx *Tx) StartAttempt(a Attempt) (Attempt, error) {
	if err := tx.touchRun(a.RunID); err != nil {
		return Attempt{}, err
	}
	process, err := tx.process(a.Owner)
	if err != nil {
		return Attempt{}, err
	}
	if a.Started.IsZero() {
		a.Started = tx.Now()
	}
	a = Attempt{RunID: a.RunID, Task: a.Task, Before: a.Before, Owner: a.Owner, Started: fromMillis(a.Started.UnixMilli()),
		Call: a.Call, Branch: a.Branch, Generation: a.Generation, Worktree: a.Worktree, Decl: a.Decl, Input: a.Input, TreeIn: a.TreeIn,
		StartSeq: a.StartSeq, AtLeastOnce: a.AtLeastOnce, CarriedFrom: a.CarriedFrom}
	err = tx.insert(`INSERT INTO attempt(id, run_id, task, number, before_id, process_id, started_ms,
			branch_id, generation, worktree_id, decl, input, tree_in, start_seq, at_least_once, carried_from, call)
		SELECT (`+nextAttempt+`), ?, ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM attempt WHERE run_id=? AND task=?
		RETURNING id, number`,
		[]any{a.RunID, a.Task, ref(a.Before), process, millis(a.Started),
			ref(a.Branch), a.Generation, ref(a.Worktree), hashRef(a.Decl), hashRef(a.Input), word(a.TreeIn),
			ref(a.StartSeq), a.AtLeastOnce, ref(a.CarriedFrom), word(a.Call), a.RunID, a.Task}, &a.ID, &a.Number)
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

// SetAttemptInput records what an open attempt is given, for one whose input is
// known only after it has its number, or that is carried out once more.
func (tx *Tx) SetAttemptInput(id int64, input snapshot.Hash, treeIn string, atLeastOnce bool) error {
	n, err := tx.exec(`UPDATE attempt SET input=?, tree_in=?, at_least_once=? WHERE id=? AND outcome IS NULL`,
		hashRef(input), word(treeIn), atLeastOnce, id)
	return tx.openAttempt(id, n, err)
}

// Finish is how an attempt ended.
type Finish struct {
	Outcome   string // OutcomeOK, OutcomeFailed or OutcomeInterrupted
	ExitCode  *int
	After     int64         // 0 for none
	Output    []byte        // the outcome; nil when it is in Out
	Out       snapshot.Hash // its hash; a content that was put before, when there is no Output
	TreeOut   string
	EndSeq    int64
	Truncated bool
}

// FinishAttempt ends an attempt. ErrFinished when it has ended before: the
// first outcome stands. An output longer than InlineMax becomes a content; put
// it beforehand, and name it by Out, where others may be waiting. What nobody knows
// of the effects of an interrupted one stays unknown.
func (tx *Tx) FinishAttempt(id int64, f Finish) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("attempt %d: %w", id, err)
	}
	var exit any
	if f.ExitCode != nil {
		exit = *f.ExitCode
	}
	inline, out, err := tx.keep(f.Output, f.Out)
	if err != nil {
		return fmt.Errorf("attempt %d: %w", id, err)
	}
	n, err := tx.exec(`UPDATE attempt SET outcome=?, exit_code=?, after_id=?, ended_ms=?,
		output=?, out=?, tree_out=?, end_seq=?, truncated=? WHERE id=? AND outcome IS NULL`,
		f.Outcome, exit, ref(f.After), millis(tx.Now()), inline, outRef(inline, out), word(f.TreeOut), ref(f.EndSeq), f.Truncated, id)
	if err := tx.openAttempt(id, n, err); err != nil {
		return err
	}
	if f.Outcome == OutcomeInterrupted {
		if err := tx.lose(id); err != nil {
			return err
		}
	}
	_, err = tx.exec(`UPDATE run SET updated_ms=? WHERE id = (SELECT run_id FROM attempt WHERE id=?)`, millis(tx.Now()), id)
	return err
}

// SetCompensated records that what an attempt did outside was undone: its
// result is not carried any more.
func (tx *Tx) SetCompensated(id int64) error {
	n, err := tx.exec(`UPDATE attempt SET compensated=1 WHERE id=?`, id)
	return found(n, err, "attempt %d", id)
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
	a, err := one(tx, readAttempt, `SELECT `+attemptColumns+` FROM `+attemptTable+` WHERE attempt.id=?`, id)
	if err != nil {
		return Attempt{}, fmt.Errorf("attempt %d: %w", id, err)
	}
	return a, nil
}

// Attempts returns the attempts of a run in the order they began.
func (tx *Tx) Attempts(run int64) ([]Attempt, error) {
	return all(tx, readAttempt, `SELECT `+attemptColumns+` FROM `+attemptTable+` WHERE run_id=? ORDER BY attempt.id`, run)
}

// OpenAttempts returns the attempts in a worktree that have no outcome yet: the
// live ones and those whose owner has died. It looks at open ones alone, however
// many there are of others, and of runs.
func (tx *Tx) OpenAttempts(worktree int64) ([]Attempt, error) {
	return all(tx, readAttempt, `SELECT `+attemptColumns+` FROM attempt INDEXED BY attempt_open LEFT JOIN process ON process.id = attempt.process_id
		WHERE outcome IS NULL AND (SELECT worktree_id FROM run WHERE run.id = run_id)=? ORDER BY attempt.id`, worktree)
}

// Open tells whether an attempt of a run has no outcome yet.
func (tx *Tx) Open(run int64) (open bool, err error) {
	err = tx.get(`SELECT EXISTS(SELECT 1 FROM attempt WHERE run_id=? AND outcome IS NULL)`, []any{run}, &open)
	return open, err
}

// LastOfCall returns the newest attempt of a tool call in a run, or ErrNotFound.
// It does not matter how many others the run has.
func (tx *Tx) LastOfCall(run int64, call string) (Attempt, error) {
	a, err := one(tx, readAttempt, `SELECT `+attemptColumns+` FROM `+attemptTable+`
		WHERE run_id=? AND call=? ORDER BY attempt.id DESC LIMIT 1`, run, call)
	if err != nil {
		return Attempt{}, fmt.Errorf("call %s of r%d: %w", call, run, err)
	}
	return a, nil
}

// AttemptsSince returns the attempts of all runs that ended with a later
// checkpoint than this one, and those that have no outcome yet, in the order they
// began. It looks at those alone, however many there are of others.
func (tx *Tx) AttemptsSince(checkpoint int64) ([]Attempt, error) {
	return all(tx, readAttempt, attemptsSince, checkpoint)
}

const attemptsSince = `SELECT ` + attemptColumns + ` FROM ` + attemptTable + ` WHERE attempt.id IN (
	SELECT id FROM attempt WHERE after_id > ? UNION ALL SELECT id FROM attempt WHERE outcome IS NULL) ORDER BY attempt.id`

// AttemptsOf returns the attempts of a task in a run in the order they began.
func (tx *Tx) AttemptsOf(run int64, task string) ([]Attempt, error) {
	return all(tx, readAttempt, `SELECT `+attemptColumns+` FROM `+attemptTable+` WHERE run_id=? AND task=? ORDER BY number`, run, task)
}

// ResultByInput returns the attempts with an input that may stand for being
// carried out again: they succeeded, nothing of their output was cut off, and
// nothing they did was undone. Only attempts of the given runs count, those of
// an earlier one before those of a later, see [Tx.Lineage]; within a run the
// newest generation comes first, and in it the newest attempt.
func (tx *Tx) ResultByInput(lineage []int64, input snapshot.Hash) ([]Attempt, error) {
	if input.IsZero() {
		return nil, nil
	}
	as, err := all(tx, readAttempt, `SELECT `+attemptColumns+` FROM `+attemptTable+`
		WHERE substr(input, 1, 8)=? AND input=? AND outcome='ok' AND truncated=0 AND compensated=0 ORDER BY generation DESC, attempt.id DESC`, input[:8], input[:])
	if err != nil {
		return nil, fmt.Errorf("results of input %s: %w", input.Short(), err)
	}
	var results []Attempt
	for _, run := range lineage {
		for _, a := range as {
			if a.RunID == run {
				results = append(results, a)
			}
		}
	}
	return results, nil
}

// AttemptOutput returns the outcome of an attempt, nil when it has none. An
// *ExternalError tells where one is that is kept elsewhere.
func (tx *Tx) AttemptOutput(a Attempt) ([]byte, error) {
	b, err := tx.body(a.output, a.Out)
	if err != nil {
		return nil, fmt.Errorf("attempt %d: %w", a.ID, err)
	}
	return b, nil
}
