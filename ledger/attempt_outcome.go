package ledger

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/snapshot"
)

// AttemptOutcome is an attempt with what a replay asks of it: who carried it out
// and when is left out, and so is all that another attempt would not begin with.
// The fields are those of [Attempt].
type AttemptOutcome struct {
	ID      int64
	RunID   int64
	Task    string
	Number  int
	Outcome string
	Branch  int64
	Input   snapshot.Hash
	Out     snapshot.Hash
	*AttemptFiles

	inline    string
	hasInline bool
}

// AttemptFiles are the files of an attempt: checkpoints before and after, the
// worktree it ran in, and the tree it left; 0 and "" for what it has not.
type AttemptFiles struct {
	Before, After, Worktree int64
	TreeOut                 string
}

// noFiles are those of most attempts.
var noFiles AttemptFiles

// Inline is the outcome of an attempt that is short, and was read with it; Out is
// its hash, computed then. What is not is for [Tx.OutcomeBody].
func (a *AttemptOutcome) Inline() (string, bool) { return a.inline, a.hasInline }

// OutcomeBody returns the outcome, see [Tx.AttemptOutput].
func (tx *Tx) OutcomeBody(a *AttemptOutcome) ([]byte, error) {
	whole := Attempt{ID: a.ID, Out: a.Out}
	if a.hasInline {
		whole.output = []byte(a.inline)
	}
	return tx.AttemptOutput(whole)
}

// Outcomes returns the attempts of a run in the order they began.
//
// Most attempts have nothing to do with files, so what these have is read
// apart: of thousands of rows, every column costs.
func (tx *Tx) Outcomes(run int64) ([]*AttemptOutcome, error) {
	as, ofFiles, err := tx.outcomes(run)
	if err == nil && ofFiles {
		err = tx.outcomesOfFiles(run, as)
	}
	if err != nil {
		return nil, fmt.Errorf("outcomes of r%d: %w", run, err)
	}
	return as, nil
}

// outcomes looks rows up by their numbers: ordering them would carry all that
// they have about.
func (tx *Tx) outcomes(run int64) (as []*AttemptOutcome, ofFiles bool, err error) {
	a := AttemptOutcome{AttemptFiles: &noFiles}
	var number, outcome, files int64
	var text textIn
	dest := []any{intIn{&a.ID}, &a.Task, intIn{&number}, intIn{&outcome}, intIn{&a.Branch}, intIn{&files},
		hashIn{&a.Input}, hashIn{&a.Out}, &text}
	var rows []AttemptOutcome // one allocation for many
	read := func(s scanner) (*AttemptOutcome, error) {
		if err := s.Scan(dest...); err != nil {
			return nil, err
		}
		a.RunID, a.Number, a.Outcome, a.inline, a.hasInline = run, int(number), outcomes[outcome], text.text, text.some
		if a.hasInline {
			a.Out = text.hash
		}
		if len(rows) == 0 {
			rows = make([]AttemptOutcome, 46) // 8 KiB
		}
		kept := &rows[0]
		*kept, rows = a, rows[1:]
		ofFiles = ofFiles || files != 0
		return kept, nil
	}
	return as, ofFiles, each(tx, read, func(a *AttemptOutcome) error { as = append(as, a); return nil },
		`SELECT id, task, number, CASE outcome WHEN 'ok' THEN 1 WHEN 'failed' THEN 2 WHEN 'interrupted' THEN 3 ELSE 0 END,
			coalesce(branch_id, 0), coalesce(before_id, after_id, worktree_id, tree_out) IS NOT NULL, input,
			CASE WHEN output IS NULL THEN out END, CAST(output AS TEXT)
		FROM attempt WHERE id IN (SELECT id FROM attempt WHERE run_id=?) ORDER BY id`, run)
}

// outcomes are the words of the numbers they are read as.
var outcomes = [...]string{"", OutcomeOK, OutcomeFailed, OutcomeInterrupted}

func (tx *Tx) outcomesOfFiles(run int64, as []*AttemptOutcome) error {
	read := func(s scanner) (a AttemptOutcome, err error) {
		a.AttemptFiles = &AttemptFiles{}
		err = s.Scan(&a.ID, &a.Before, &a.After, &a.Worktree, &a.TreeOut)
		return a, err
	}
	return each(tx, read, func(files AttemptOutcome) error {
		i, ok := slices.BinarySearchFunc(as, files.ID, func(a *AttemptOutcome, id int64) int { return cmp.Compare(a.ID, id) })
		if ok {
			as[i].AttemptFiles = files.AttemptFiles
		}
		return nil
	}, `SELECT id, coalesce(before_id, 0), coalesce(after_id, 0), coalesce(worktree_id, 0), coalesce(tree_out, '')
		FROM attempt WHERE run_id=? AND coalesce(before_id, after_id, worktree_id, tree_out) IS NOT NULL`, run)
}

// intIn is a number to be scanned into. database/sql takes other numbers through
// their text.
type intIn struct{ n *int64 }

func (in intIn) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a %T is not a number", v)
	}
	*in.n = n
	return nil
}

// textIn is a text to be scanned into, and its hash. A text, unlike a blob, is
// the reader's to keep.
type textIn struct {
	text string
	some bool
	hash snapshot.Hash
}

func (in *textIn) Scan(v any) error {
	in.text, in.some = v.(string)
	if in.some {
		in.hash = sha256.Sum256(bytesIn(in.text))
		return nil
	}
	if v != nil {
		return fmt.Errorf("a %T is not a text", v)
	}
	return nil
}
