package ledger

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

func TestAttemptFields(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	owner := Owner{Name: "engine", PID: 7, Start: 8, Boot: "b", Host: "h"}
	var a Attempt
	b.update(func(tx *Tx) (err error) {
		a, err = tx.StartAttempt(Attempt{RunID: r.ID, Task: "x", Owner: owner, Branch: h.Branch, Generation: 2, Worktree: b.worktree,
			Decl: sum(1), Input: sum(2), TreeIn: "ab", StartSeq: 3, AtLeastOnce: true, Number: 9, Outcome: "ok"})
		return err
	})
	want := Attempt{ID: a.ID, RunID: r.ID, Task: "x", Number: 1, Owner: owner, Started: b.now, Branch: h.Branch, Generation: 2,
		Worktree: b.worktree, Decl: sum(1), Input: sum(2), TreeIn: "ab", StartSeq: 3, AtLeastOnce: true}
	assert.Equal(t, want, a)
	b.view(func(tx *Tx) error {
		got, err := tx.Attempt(a.ID)
		assert.Equal(t, want, got)
		return err
	})
	long := bytes.Repeat([]byte("long "), 100)
	for name, f := range map[string]Finish{
		"short": {Outcome: OutcomeOK, Output: []byte("short"), TreeOut: "cd", EndSeq: 5},
		"empty": {Outcome: OutcomeFailed, Output: []byte{}},
		"long":  {Outcome: OutcomeOK, Output: long, Truncated: true},
		"named": {Outcome: OutcomeOK, Out: Prepare(long).Hash},
		"none":  {Outcome: OutcomeInterrupted},
	} {
		b.update(func(tx *Tx) (err error) {
			require.NoError(t, func() error { _, err := tx.PutContent(Prepare(long)); return err }())
			a, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: name, Owner: owner, CarriedFrom: a.ID})
			require.NoError(t, err)
			require.NoError(t, tx.SetAttemptInput(a.ID, sum(3), "ef", true))
			require.NoError(t, tx.FinishAttempt(a.ID, f))
			require.ErrorIs(t, tx.SetAttemptInput(a.ID, sum(4), "", false), ErrFinished)
			as, err := tx.AttemptsOf(r.ID, name)
			require.NoError(t, err)
			require.Len(t, as, 1)
			got := as[0]
			assert.Equal(t, []any{f.Outcome, f.TreeOut, f.EndSeq, f.Truncated, a.CarriedFrom, sum(3), "ef", true},
				[]any{got.Outcome, got.TreeOut, got.EndSeq, got.Truncated, got.CarriedFrom, got.Input, got.TreeIn, got.AtLeastOnce}, name)
			out, err := tx.AttemptOutput(got)
			switch {
			case f.Output != nil:
				assert.Equal(t, f.Output, out, name)
			case !f.Out.IsZero():
				assert.Equal(t, long, out, name)
			default:
				assert.Nil(t, out, name)
				assert.True(t, got.Out.IsZero())
				return err
			}
			assert.Equal(t, Prepare(out).Hash, got.Out, name)
			return err
		})
	}
	b.update(func(tx *Tx) error {
		require.ErrorIs(t, tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK, Out: sum(9)}), ErrNotFound, "a content that is not there")
		require.ErrorContains(t, tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK, Out: sum(9), Output: []byte("x")}), "is not")
		require.ErrorIs(t, tx.SetCompensated(99), ErrNotFound)
		var processes int
		require.NoError(t, tx.get(`SELECT count(*) FROM process`, nil, &processes))
		assert.Equal(t, 1, processes)
		return nil
	})
}

// A process whose first transaction came to nothing is still known by the next.
func TestProcessOfAFailedTransaction(t *testing.T) {
	b := newBook(t, Options{})
	r, _ := b.start()
	attempt := func(tx *Tx) error {
		_, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: "x", Owner: Owner{Name: "engine", PID: 7}})
		return err
	}
	require.ErrorIs(t, b.db.Update(bg, func(tx *Tx) error { require.NoError(t, attempt(tx)); return ErrStale }), ErrStale)
	b.update(attempt)
	b.view(func(tx *Tx) error {
		a, err := tx.Attempts(r.ID)
		assert.Equal(t, "engine", a[0].Owner.Name)
		return err
	})
}

func TestResultByInput(t *testing.T) {
	b := newBook(t, Options{})
	r, _ := b.start()
	child, stranger := b.run(Run{Parent: r.ID, Lineage: r.ID}), b.run(Run{})
	resumed := b.run(Run{Parent: child.ID, Lineage: 0}) // no fork: another lineage
	for _, a := range []struct {
		task    string
		run     int64
		gen     int
		outcome string
		cut     bool
		undone  bool
	}{
		{task: "parent", run: r.ID, outcome: OutcomeOK},
		{task: "old", run: child.ID, outcome: OutcomeOK},
		{task: "new", run: child.ID, gen: 1, outcome: OutcomeOK},
		{task: "newer", run: child.ID, gen: 1, outcome: OutcomeOK},
		{task: "older, later", run: child.ID, outcome: OutcomeOK},
		{task: "stranger", run: stranger.ID, outcome: OutcomeOK},
		{task: "failed", run: child.ID, outcome: OutcomeFailed},
		{task: "open", run: child.ID},
		{task: "cut", run: child.ID, outcome: OutcomeOK, cut: true},
		{task: "undone", run: child.ID, outcome: OutcomeOK, undone: true},
	} {
		b.update(func(tx *Tx) error {
			at, err := tx.StartAttempt(Attempt{RunID: a.run, Task: a.task, Generation: a.gen, Input: sum(1)})
			require.NoError(t, err)
			if a.outcome == "" {
				return nil
			}
			require.NoError(t, tx.FinishAttempt(at.ID, Finish{Outcome: a.outcome, Truncated: a.cut}))
			if a.undone {
				return tx.SetCompensated(at.ID)
			}
			return nil
		})
	}
	b.view(func(tx *Tx) error {
		lineage, err := tx.Lineage(child.ID)
		require.NoError(t, err)
		as, err := tx.ResultByInput(lineage, sum(1))
		require.NoError(t, err)
		var tasks []string
		for _, a := range as {
			tasks = append(tasks, a.Task)
		}
		assert.Equal(t, []string{"newer", "new", "older, later", "old", "parent"}, tasks)
		for _, h := range []snapshot.Hash{sum(2), {}} {
			as, err = tx.ResultByInput(lineage, h)
			require.NoError(t, err)
			assert.Empty(t, as)
		}
		lineage, err = tx.Lineage(resumed.ID)
		require.NoError(t, err)
		assert.Equal(t, []int64{resumed.ID}, lineage)
		_, err = tx.Lineage(99)
		require.ErrorIs(t, err, ErrNotFound)
		return nil
	})
}

func TestRunFields(t *testing.T) {
	b := newBook(t, Options{})
	input := Prepare([]byte("input"))
	require.ErrorIs(t, b.db.Update(bg, func(tx *Tx) error {
		_, err := tx.CreateRun(Run{Source: "test", WorktreeID: b.worktree, Input: input.Hash})
		return err
	}), ErrNotFound, "a content that is not there")
	b.update(func(tx *Tx) error { _, err := tx.PutContent(input); return err })
	r := b.run(Run{Kind: "workflow", Input: input.Hash, Seed: sum(3), Tape: true})
	assert.Equal(t, r.ID, r.Lineage)
	b.update(func(tx *Tx) error {
		got, err := tx.Run(r.ID)
		require.NoError(t, err)
		assert.Equal(t, r, got)
		g, err := tx.NextGeneration(r.ID)
		require.NoError(t, err)
		assert.Equal(t, 1, g)
		_, err = tx.NextGeneration(99)
		require.ErrorIs(t, err, ErrNotFound)
		require.ErrorIs(t, tx.SetRunDef(r.ID, sum(4)), ErrNotFound)
		require.NoError(t, tx.SetRunDef(r.ID, input.Hash))
		got, err = tx.Run(r.ID)
		assert.Equal(t, input.Hash, got.Def)
		assert.Equal(t, 1, got.Generation)
		return err
	})
}
