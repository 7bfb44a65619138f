package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
)

var ctx = context.Background()

// hash is a commit a test can tell from others.
func hash(n int) string { return fmt.Sprintf("%040x", n) }

func update(t *testing.T, db *ledger.DB, fn func(tx *ledger.Tx) error) {
	t.Helper()
	require.NoError(t, db.Update(ctx, fn))
}

func plain(t *testing.T, db *ledger.DB, path string) ledger.Worktree {
	t.Helper()
	var w ledger.Worktree
	update(t, db, func(tx *ledger.Tx) (err error) {
		w, err = tx.EnsureWorktree(ledger.Worktree{Path: path, Dev: 1, Ino: 1<<64 - 1, Kind: ledger.KindPlain, Host: "h"})
		return err
	})
	return w
}

func appendCheckpoint(t *testing.T, db *ledger.DB, c ledger.Checkpoint) ledger.Checkpoint {
	t.Helper()
	if c.Tier == "" {
		c.Tier = ledger.TierManual
	}
	if c.Tree == "" {
		c.Tree = hash(1)
	}
	update(t, db, func(tx *ledger.Tx) (err error) { c, err = tx.AppendCheckpoint(c); return err })
	return c
}

func dead(ledger.Owner) bool  { return false }
func alive(ledger.Owner) bool { return true }

func TestWorktree(t *testing.T) {
	db := ledgertest.Open(t)
	first := plain(t, db, "/w/\xff name")
	assert.Equal(t, first, plain(t, db, "/w/\xff name"), "the same row again")
	other := plain(t, db, "/w/other")
	assert.NotEqual(t, first.ID, other.ID)

	moved := first
	moved.Ino = 7
	err := db.Update(ctx, func(tx *ledger.Tx) error { _, err := tx.EnsureWorktree(moved); return err })
	var changed *ledger.RootChangedError
	require.ErrorAs(t, err, &changed)
	assert.Equal(t, ledger.RootID{Dev: 1, Ino: 1<<64 - 1}, changed.Old)
	assert.Equal(t, ledger.RootID{Dev: 1, Ino: 7}, changed.New)

	moved.Adopt = true
	update(t, db, func(tx *ledger.Tx) error {
		w, err := tx.EnsureWorktree(moved)
		assert.Equal(t, uint64(7), w.Ino)
		return err
	})
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		ws, err := tx.Worktrees()
		assert.Len(t, ws, 2)
		assert.Equal(t, "/w/\xff name", ws[0].Path)
		assert.Equal(t, uint64(7), ws[0].Ino)
		rows, err2 := tx.AuditRows(ledger.AuditQuery{})
		require.Len(t, rows, 1)
		assert.Equal(t, "worktree.adopt", rows[0].Action)
		require.NoError(t, err2)
		return err
	}))
}

func TestRunsAndAttempts(t *testing.T) {
	db := ledgertest.Open(t)
	w := plain(t, db, "/w")
	var r, child ledger.Run
	var a ledger.Attempt
	owner := ledger.Owner{Name: "exec", PID: 12, Start: 99, Boot: "b", Host: "h"}
	update(t, db, func(tx *ledger.Tx) (err error) {
		r, err = tx.CreateRun(ledger.Run{Source: "exec", ExtID: "session-1", Name: "build", WorktreeID: w.ID, Command: "make\x00\xff"})
		require.NoError(t, err)
		child, err = tx.CreateRun(ledger.Run{Source: "exec", ExtID: "session-2", WorktreeID: w.ID, Parent: r.ID})
		require.NoError(t, err)
		_, err = tx.StartAttempt(ledger.Attempt{RunID: 77, Task: "t"})
		require.ErrorIs(t, err, ledger.ErrNotFound)
		a, err = tx.StartAttempt(ledger.Attempt{RunID: r.ID, Task: "t", Owner: owner})
		return err
	})
	c := appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: w.ID, RunID: r.ID, AttemptID: a.ID, Edge: ledger.EdgeBefore, Tier: ledger.TierTool, Commit: hash(5)})
	code := 3
	update(t, db, func(tx *ledger.Tx) error {
		open, err := tx.OpenAttempts(w.ID)
		require.NoError(t, err)
		require.Len(t, open, 1)
		assert.Equal(t, owner, open[0].Owner)
		require.NoError(t, tx.SetAttemptBefore(a.ID, c.ID))
		require.Error(t, tx.FinishAttempt(a.ID, ledger.Finish{Outcome: "well"}))
		require.NoError(t, tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeFailed, ExitCode: &code, After: c.ID}))
		require.ErrorIs(t, tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeOK}), ledger.ErrFinished)
		require.ErrorIs(t, tx.SetAttemptBefore(a.ID, c.ID), ledger.ErrFinished)
		second, err := tx.StartAttempt(ledger.Attempt{RunID: r.ID, Task: "t"})
		require.NoError(t, err)
		assert.Equal(t, 2, second.Number)
		require.NoError(t, tx.FinishAttempt(second.ID, ledger.Finish{Outcome: ledger.OutcomeInterrupted}))
		return tx.SetRunStatus(r.ID, ledger.OutcomeFailed)
	})
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		as, err := tx.Attempts(r.ID)
		require.NoError(t, err)
		require.Len(t, as, 2)
		assert.Equal(t, []any{"failed", 3, c.ID, c.ID}, []any{as[0].Outcome, *as[0].ExitCode, as[0].Before, as[0].After})
		assert.Nil(t, as[1].ExitCode)
		for _, what := range []string{"r1", "build", r.UID, "session-1"} {
			got, err := tx.FindRun(what)
			require.NoError(t, err, what)
			assert.Equal(t, r.ID, got.ID, what)
			assert.Equal(t, "make\x00\xff", got.Command)
			assert.Equal(t, "failed", got.Status)
		}
		_, err = tx.FindRun("session")
		var ambiguous *ledger.AmbiguousError
		require.ErrorAs(t, err, &ambiguous)
		assert.Equal(t, []string{"r2", "r1"}, ambiguous.Matches)
		for _, what := range []string{"", "r9", "nothing"} {
			_, err = tx.FindRun(what)
			require.ErrorIs(t, err, ledger.ErrNotFound, what)
		}
		got, err := tx.RunByExt("exec", "session-2")
		require.NoError(t, err)
		assert.Equal(t, r.ID, got.Parent)
		rs, err := tx.Runs(ledger.RunQuery{Worktree: w.ID, Limit: 1})
		require.Len(t, rs, 1)
		assert.Equal(t, child.ID, rs[0].ID)
		rs, _ = tx.Runs(ledger.RunQuery{Before: child.ID, Status: ledger.OutcomeFailed})
		require.Len(t, rs, 1)
		return err
	}))

	var ref *ledger.ReferencedError
	err := db.Update(ctx, func(tx *ledger.Tx) error { return tx.DeleteCheckpoint(c.ID, "me") })
	require.ErrorAs(t, err, &ref)
	assert.Contains(t, ref.By, "attempt 1 of t in r1")
	err = db.Update(ctx, func(tx *ledger.Tx) error { return tx.DeleteRun(r.ID, "me") })
	require.ErrorAs(t, err, &ref)
	assert.Equal(t, "r2", ref.By)
	update(t, db, func(tx *ledger.Tx) error {
		require.NoError(t, tx.DeleteRun(child.ID, "me"))
		require.NoError(t, tx.DeleteRun(r.ID, "me"))
		_, err := tx.Checkpoint(c.ID)
		require.ErrorIs(t, err, ledger.ErrNotFound)
		return nil
	})
	next := appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: w.ID, Commit: hash(6)})
	assert.Equal(t, c.ID+1, next.ID, "the number of a deleted checkpoint is not given again")
}

func TestCheckpoints(t *testing.T) {
	db := ledgertest.Open(t)
	w, other := plain(t, db, "/w"), plain(t, db, "/o")
	for i := 1; i <= 5; i++ {
		appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: w.ID, Commit: hash(100 + i), Partial: i == 2, Stats: `{"files":1}`})
	}
	appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: w.ID, Commit: hash(101), Tier: ledger.TierSafety})
	appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: other.ID, Commit: hash(101)})

	ids := func(cs []ledger.Checkpoint, err error) (ids []int64) {
		require.NoError(t, err)
		for _, c := range cs {
			ids = append(ids, c.ID)
		}
		return ids
	}
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		assert.Equal(t, []int64{7, 6, 5, 4, 3, 2, 1}, ids(tx.Checkpoints(ledger.CheckpointQuery{})))
		assert.Equal(t, []int64{4, 3}, ids(tx.Checkpoints(ledger.CheckpointQuery{Worktree: w.ID, Before: 5, Limit: 2})))
		assert.Equal(t, []int64{6}, ids(tx.Checkpoints(ledger.CheckpointQuery{Tier: ledger.TierSafety})))
		latest, err := tx.LatestCheckpoint(w.ID)
		require.NoError(t, err)
		assert.Equal(t, int64(6), latest.ID)
		var after []ledger.Checkpoint
		require.NoError(t, tx.CheckpointsAfter(w.ID, 4, func(c ledger.Checkpoint) error { after = append(after, c); return nil }))
		assert.Equal(t, []int64{5, 6}, ids(after, nil))
		c, err := tx.CheckpointByCommit(w.ID, hash(101))
		require.NoError(t, err)
		assert.Equal(t, int64(6), c.ID, "the newest of those with the commit")
		_, err = tx.CheckpointByCommit(w.ID, "000")
		var ambiguous *ledger.AmbiguousError
		require.ErrorAs(t, err, &ambiguous)
		assert.Len(t, ambiguous.Matches, 5)
		_, err = tx.CheckpointByCommit(w.ID, "f")
		require.ErrorIs(t, err, ledger.ErrNotFound)
		second, err := tx.Checkpoint(2)
		assert.True(t, second.Partial)
		assert.Equal(t, `{"files":1}`, second.Stats)
		return err
	}))
	for _, bad := range []ledger.Checkpoint{
		{WorktreeID: w.ID, Tier: "tool", Commit: "xyz", Tree: hash(1)},
		{WorktreeID: w.ID, Tier: "tool", Commit: hash(1), Tree: hash(1), Stats: "{"},
		{WorktreeID: w.ID, Tier: "why", Commit: hash(1), Tree: hash(1)},
		{WorktreeID: 99, Tier: "tool", Commit: hash(1), Tree: hash(1)},
	} {
		require.Error(t, db.Update(ctx, func(tx *ledger.Tx) error { _, err := tx.AppendCheckpoint(bad); return err }))
	}
}

func TestLabelsAndPins(t *testing.T) {
	db := ledgertest.Open(t)
	w, o := plain(t, db, "/w"), plain(t, db, "/o")
	a := appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: w.ID, Commit: hash(1), Label: "good"})
	b := appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: w.ID, Commit: hash(2)})
	appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: o.ID, Commit: hash(2), Label: "good"})

	holder := func(label string) int64 {
		var c ledger.Checkpoint
		require.NoError(t, db.View(ctx, func(tx *ledger.Tx) (err error) { c, err = tx.CheckpointByLabel(w.ID, label); return err }))
		return c.ID
	}
	var taken *ledger.LabelError
	try := func(fn func(tx *ledger.Tx) error) error { return db.Update(ctx, fn) }
	require.ErrorAs(t, try(func(tx *ledger.Tx) error { return tx.Label(b.ID, "good", "me") }), &taken)
	assert.Equal(t, a.ID, taken.Holder)
	require.ErrorAs(t, try(func(tx *ledger.Tx) error { return tx.Label(a.ID, "fine", "me") }), &taken)
	assert.Equal(t, "good", taken.Has)
	require.Error(t, try(func(tx *ledger.Tx) error { return tx.Label(b.ID, "a\nb", "me") }))
	assert.Equal(t, a.ID, holder("good"))
	update(t, db, func(tx *ledger.Tx) error { return tx.MoveLabel(b.ID, "good", "me") })
	assert.Equal(t, b.ID, holder("good"))

	var ref *ledger.ReferencedError
	require.ErrorAs(t, try(func(tx *ledger.Tx) error { return tx.DeleteCheckpoint(b.ID, "me") }), &ref)
	update(t, db, func(tx *ledger.Tx) error {
		require.NoError(t, tx.Unlabel(b.ID, "me"))
		return tx.SetPinned(b.ID, true, "me")
	})
	var pinned *ledger.PinnedError
	require.ErrorAs(t, try(func(tx *ledger.Tx) error { return tx.DeleteCheckpoint(b.ID, "me") }), &pinned)
	update(t, db, func(tx *ledger.Tx) error {
		require.NoError(t, tx.SetPinned(b.ID, false, "me"))
		return tx.DeleteCheckpoint(b.ID, "me")
	})
	require.ErrorIs(t, try(func(tx *ledger.Tx) error { return tx.DeleteCheckpoint(b.ID, "me") }), ledger.ErrNotFound)
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		rows, err := tx.AuditRows(ledger.AuditQuery{})
		var actions []string
		for _, r := range rows {
			actions = append(actions, r.Action)
		}
		assert.Equal(t, "checkpoint.delete checkpoint.pin checkpoint.pin checkpoint.label checkpoint.label checkpoint.label", strings.Join(actions, " "))
		return err
	}))
}

func TestLease(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	db := ledgertest.OpenAt(t, filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{Now: func() time.Time { return now }})
	me, you := ledger.Owner{Name: "me", PID: 1}, ledger.Owner{Name: "you", PID: 2}
	update(t, db, func(tx *ledger.Tx) error {
		l, err := tx.Acquire("x", me, time.Second, alive)
		require.NoError(t, err)
		var locked *ledger.LockedError
		_, err = tx.Acquire("x", you, 0, alive)
		require.ErrorAs(t, err, &locked)
		assert.Equal(t, me, locked.Owner)
		assert.Equal(t, l.Acquired, locked.Since)
		_, err = tx.Acquire("x", you, 0, nil)
		require.ErrorAs(t, err, &locked, "not expired")
		now = now.Add(900 * time.Millisecond)
		l, err = tx.Renew(l, time.Second)
		require.NoError(t, err)
		now = now.Add(900 * time.Millisecond)
		_, err = tx.Acquire("x", you, 0, nil)
		require.ErrorAs(t, err, &locked, "renewed")
		now = now.Add(time.Hour)
		_, err = tx.Acquire("x", you, 0, alive)
		require.ErrorAs(t, err, &locked, "the living keep it at any age")
		taken, err := tx.Acquire("x", you, 0, dead)
		require.NoError(t, err)
		assert.Greater(t, taken.Token, l.Token)
		_, err = tx.Renew(l, time.Second)
		require.ErrorIs(t, err, ledger.ErrFenced)
		require.ErrorIs(t, tx.Release(l), ledger.ErrFenced)
		require.NoError(t, tx.Release(taken))
		again, err := tx.Acquire("x", me, 0, alive)
		assert.Greater(t, again.Token, taken.Token)
		require.NoError(t, err)
		return tx.Release(again)
	})
}
