package ledger

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

// What is recorded whole is as if it had been started and finished.
func TestRecordAttempt(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	owner := Owner{Name: "engine", PID: 7, Start: 8, Boot: "b", Host: "h"}
	for name, f := range map[string]Finish{
		"short":  {Outcome: OutcomeOK, Output: []byte("short"), EndSeq: 5},
		"long":   {Outcome: OutcomeOK, Output: bytes.Repeat([]byte("long "), 100), Truncated: true},
		"failed": {Outcome: OutcomeFailed, Output: []byte{}},
		"none":   {Outcome: OutcomeInterrupted},
	} {
		a := Attempt{RunID: r.ID, Task: "whole " + name, Number: 1, Owner: owner, Branch: h.Branch, Generation: 2, Decl: sum(1), Input: sum(2)}
		b.update(func(tx *Tx) error {
			whole, err := tx.RecordAttempt(a, f)
			require.NoError(t, err, name)
			a.Task = "parts " + name
			parts, err := tx.StartAttempt(a)
			require.NoError(t, err, name)
			require.NoError(t, tx.FinishAttempt(parts.ID, f), name)
			assert.Equal(t, whole.ID+1, parts.ID, "of the same sequence")

			got, err := tx.Attempt(whole.ID)
			require.NoError(t, err, name)
			returned := got
			returned.output = nil
			assert.Equal(t, whole, returned, name)
			want, err := tx.Attempt(parts.ID)
			require.NoError(t, err, name)
			want.ID, want.Task = got.ID, got.Task
			assert.Equal(t, want, got, name)
			out, err := tx.AttemptOutput(got)
			assert.Equal(t, f.Output, out, name)
			return err
		})
	}
}

func TestRecordAttemptNumbers(t *testing.T) {
	b := newBook(t, Options{})
	r, _ := b.start()
	ok := Finish{Outcome: OutcomeOK}
	record := func(tx *Tx, number int) error {
		_, err := tx.RecordAttempt(Attempt{RunID: r.ID, Task: "x", Number: number}, ok)
		return err
	}
	b.update(func(tx *Tx) error {
		assert.ErrorIs(t, record(tx, 2), ErrNumber, "there is no first")
		assert.ErrorIs(t, record(tx, 0), ErrNumber)
		require.NoError(t, record(tx, 1))
		assert.ErrorIs(t, record(tx, 1), ErrNumber, "it is there")
		assert.ErrorIs(t, record(tx, 3), ErrNumber, "there is no second")
		require.NoError(t, record(tx, 2))
		a, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: "x"})
		assert.Equal(t, 3, a.Number)
		_, bad := tx.RecordAttempt(Attempt{RunID: r.ID, Task: "y", Number: 1}, Finish{Outcome: "well"})
		assert.ErrorContains(t, bad, `"well" is no outcome`)
		return err
	})
	b.view(func(tx *Tx) error {
		assert.ErrorIs(t, record(tx, 4), ErrView)
		return nil
	})
}

// Outcomes say of an attempt what a replay asks, and that is what Attempts says.
func TestOutcomes(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	other := b.run(Run{})
	c := b.checkpoint()
	b.update(func(tx *Tx) error {
		for i := range 100 {
			_, err := tx.RecordAttempt(Attempt{RunID: r.ID, Task: fmt.Sprint("t", i), Number: 1, Branch: h.Branch, Input: sum(i)},
				Finish{Outcome: OutcomeOK, Output: bytes.Repeat([]byte("x"), i*10)})
			require.NoError(t, err)
		}
		a, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: "files", Branch: h.Branch, Worktree: b.worktree, Before: c, Input: sum(7)})
		require.NoError(t, err)
		require.NoError(t, tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeFailed, After: c, TreeOut: "ab"}))
		_, err = tx.StartAttempt(Attempt{RunID: r.ID, Task: "open", Branch: h.Branch})
		require.NoError(t, err)
		_, err = tx.StartAttempt(Attempt{RunID: other.ID, Task: "another run's"})
		return err
	})
	b.view(func(tx *Tx) error {
		all, err := tx.Attempts(r.ID)
		require.NoError(t, err)
		got, err := tx.Outcomes(r.ID)
		require.Len(t, got, len(all))
		for i, a := range all {
			want := AttemptOutcome{ID: a.ID, RunID: a.RunID, Task: a.Task, Number: a.Number, Outcome: a.Outcome, Branch: a.Branch,
				AttemptFiles: &AttemptFiles{Before: a.Before, After: a.After, Worktree: a.Worktree, TreeOut: a.TreeOut},
				Input:        a.Input, Out: a.Out, inline: string(a.output), hasInline: a.output != nil}
			assert.Equal(t, want, *got[i], a.Task)
			short, inline := got[i].Inline()
			assert.Equal(t, a.output != nil, inline, a.Task)
			assert.Equal(t, string(a.output), short, a.Task)
			whole, err := tx.AttemptOutput(a)
			require.NoError(t, err)
			out, err := tx.OutcomeBody(got[i])
			require.NoError(t, err)
			assert.Equal(t, whole, out, a.Task)
		}
		return err
	})
}

// The index knows the beginning of an input only.
func TestResultsOfLikeInputs(t *testing.T) {
	b := newBook(t, Options{})
	r, _ := b.start()
	x, y := sum(1), sum(1)
	y[31]++
	b.update(func(tx *Tx) error {
		for i, in := range []snapshot.Hash{x, y, x} {
			_, err := tx.RecordAttempt(Attempt{RunID: r.ID, Task: "t", Number: i + 1, Input: in}, Finish{Outcome: OutcomeOK})
			require.NoError(t, err)
		}
		for in, want := range map[snapshot.Hash][]int{x: {3, 1}, y: {2}, sum(2): nil} {
			as, err := tx.ResultByInput([]int64{r.ID}, in)
			require.NoError(t, err)
			var got []int
			for _, a := range as {
				got = append(got, a.Number)
			}
			assert.Equal(t, want, got)
		}
		return nil
	})
}

// Frames of a state that only grows are hardly longer than its keyframes: few
// are written, and what is read stays in proportion to the state.
func TestFewKeyframesWhileAStateGrows(t *testing.T) {
	const keyframes = 4 << 10
	b := newBook(t, Options{keyframes: keyframes})
	_, h := b.start()
	for i := range 1000 {
		out := snapshot.Hash(sha256.Sum256([]byte{byte(i), byte(i >> 8)})) // not to be compressed
		b.put(h, snapshot.Row{Key: fmt.Sprintf("task-%04d", i), Kind: "sh", Out: out})
		whole := h.keyframe + h.grown()
		require.LessOrEqual(t, h.keyframe+h.since, keyframes+2*whole+frameCost*4, "frame %d", h.Seq)
	}
	var n int
	b.view(func(tx *Tx) error { return tx.get(`SELECT count(*) FROM keyframe`, nil, &n) })
	assert.Positive(t, n)
	assert.LessOrEqual(t, n, 8)
	loaded := b.load(h.Branch, Newest)
	assert.Equal(t, []int{h.keyframe, h.rows, h.since}, []int{loaded.keyframe, loaded.rows, loaded.since}, "appending goes on as it would have")
}
