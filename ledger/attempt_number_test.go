package ledger

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

// Attempts are counted by what is there, and deleting the newest of them does
// not give their numbers away, however an attempt is added.
func TestNumbersOfAttemptsAreGivenOnce(t *testing.T) {
	b := newBook(t, Options{})
	kept, gone := b.run(Run{}), b.run(Run{})
	whole := func(run int64, number int) (id int64) {
		b.update(func(tx *Tx) error {
			a, err := tx.RecordAttempt(Attempt{RunID: run, Task: "whole", Number: number}, Finish{Outcome: OutcomeOK})
			id = a.ID
			return err
		})
		return id
	}
	begun := func(run int64) (id int64) {
		b.update(func(tx *Tx) error {
			a, err := tx.StartAttempt(Attempt{RunID: run, Task: "begun"})
			require.NoError(t, err)
			id = a.ID
			return tx.FinishAttempt(id, Finish{Outcome: OutcomeOK})
		})
		return id
	}
	assert.Equal(t, []int64{1, 2, 3, 4}, []int64{whole(kept.ID, 1), begun(kept.ID), whole(gone.ID, 1), begun(gone.ID)})
	b.update(func(tx *Tx) error { return tx.DeleteRun(gone.ID, "me") })
	assert.Equal(t, []int64{5, 6}, []int64{begun(kept.ID), whole(kept.ID, 2)})

	older := b.run(Run{})
	assert.Equal(t, []int64{7, 8}, []int64{whole(older.ID, 1), whole(kept.ID, 3)})
	b.update(func(tx *Tx) error { return tx.DeleteRun(older.ID, "me") })
	assert.Equal(t, int64(9), whole(kept.ID, 4), "what was deleted is not the newest")

	newest := b.run(Run{})
	assert.Equal(t, int64(10), whole(newest.ID, 1))
	b.update(func(tx *Tx) error { return tx.DeleteRun(newest.ID, "me") })
	assert.Equal(t, int64(11), whole(kept.ID, 5), "and this one is, again")
}

// An attempt that is carried out again may run in another worktree. Where it
// began in the first does not count any more, and where it began in the same
// does.
func TestRestartInAnotherWorktree(t *testing.T) {
	b := newBook(t, Options{})
	r, _ := b.start()
	c := b.checkpoint()
	var a Attempt
	b.update(func(tx *Tx) error {
		other, err := tx.EnsureWorktree(Worktree{Path: "/other", Kind: KindPlain})
		require.NoError(t, err)
		a, err = tx.StartAttempt(Attempt{RunID: r.ID, Task: "t", Before: c})
		require.NoError(t, err)
		again, err := tx.RestartAttempt(a.ID, 0, Owner{})
		require.NoError(t, err)
		assert.Equal(t, []int64{0, c}, []int64{again.Worktree, again.Before})
		again, err = tx.RestartAttempt(a.ID, other.ID, Owner{})
		require.NoError(t, err)
		assert.Equal(t, []int64{other.ID, 0}, []int64{again.Worktree, again.Before})
		return tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK})
	})
}

// Beside an outcome that stands in its attempt is no more of its hash than tells
// damage; what is read has all of it. One that stands elsewhere is named in full.
func TestHashBesideAnInlineOutcome(t *testing.T) {
	b := newBook(t, Options{})
	r, _ := b.start()
	short, long := []byte("short"), bytes.Repeat([]byte("long"), InlineMax)
	b.update(func(tx *Tx) error {
		for i, out := range [][]byte{short, long} {
			_, err := tx.RecordAttempt(Attempt{RunID: r.ID, Task: "t", Number: i + 1}, Finish{Outcome: OutcomeOK, Output: out})
			require.NoError(t, err)
		}
		return nil
	})
	b.view(func(tx *Tx) error {
		as, err := tx.Attempts(r.ID)
		require.NoError(t, err)
		outcomes, err := tx.Outcomes(r.ID)
		require.NoError(t, err)
		for i, want := range []struct {
			body   []byte
			stored int
		}{{short, 8}, {long, 32}} {
			hash := Prepare(want.body).Hash
			assert.Equal(t, []snapshot.Hash{hash, hash}, []snapshot.Hash{as[i].Out, outcomes[i].Out})
			var n int
			require.NoError(t, tx.get(`SELECT length(out) FROM attempt WHERE id=?`, []any{as[i].ID}, &n))
			assert.Equal(t, want.stored, n)
		}
		return nil
	})
}
