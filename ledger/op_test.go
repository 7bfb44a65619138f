package ledger_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
)

func begin(db *ledger.DB, o ledger.Op) (ledger.Op, error) {
	err := db.Commit(ctx, func(tx *ledger.Tx) (err error) { o, err = tx.BeginOp(o, dead); return err })
	return o, err
}

func finish(t *testing.T, db *ledger.DB, o ledger.Op, result string) {
	t.Helper()
	require.NoError(t, db.Commit(ctx, func(tx *ledger.Tx) error { _, err := tx.FinishOp(o.ID, o.Token, result, ""); return err }))
}

func on(w ledger.Worktree) []ledger.OpWorktree { return []ledger.OpWorktree{{WorktreeID: w.ID}} }

func TestOp(t *testing.T) {
	db := ledgertest.Open(t)
	w, other := plain(t, db, "/w"), plain(t, db, "/o")
	owner, rescuer := ledger.Owner{Name: "restore", PID: 3}, ledger.Owner{Name: "recover", PID: 4}
	o, err := begin(db, ledger.Op{Verb: "restore", Actor: "me", Owner: owner, Plan: `{"a":1}`, RequestKey: "k", RequestDigest: "d",
		Worktrees: []ledger.OpWorktree{{WorktreeID: w.ID, From: hash(1), Target: hash(2)}}})
	require.NoError(t, err)

	var open *ledger.InProgressError
	_, err = begin(db, ledger.Op{Verb: "restore", Worktrees: on(w)})
	require.ErrorAs(t, err, &open)
	assert.Equal(t, []any{o.ID, owner}, []any{open.Op, open.Owner})
	_, err = begin(db, ledger.Op{Verb: "restore", RequestKey: "k", RequestDigest: "d", Worktrees: on(other)})
	require.ErrorAs(t, err, &open, "by its key")
	_, err = begin(db, ledger.Op{Verb: "restore", RequestKey: "k", RequestDigest: "e", Worktrees: on(other)})
	var reuse *ledger.RequestKeyReuseError
	require.ErrorAs(t, err, &reuse)

	problems, err := db.Check(ctx)
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.Equal(t, ledger.ProblemOpenMove, problems[0].Kind)
	assert.Equal(t, []any{o.ID, owner, []int64{w.ID}}, []any{problems[0].Op, problems[0].Owner, problems[0].Worktrees})

	advance := func(token int64, phase int, change func(*ledger.Op) error) error {
		return db.Update(ctx, func(tx *ledger.Tx) error { _, err := tx.AdvanceOp(o.ID, token, phase, change); return err })
	}
	require.NoError(t, advance(o.Token, 2, func(o *ledger.Op) error {
		o.Worktrees[0].Safety, o.Detail = hash(3), `{"safe":true}`
		return nil
	}))
	require.Error(t, advance(o.Token, 1, nil), "phases do not go back")
	failure := errors.New("changed my mind")
	require.ErrorIs(t, advance(o.Token, 4, func(*ledger.Op) error { return failure }), failure)
	require.Error(t, advance(o.Token, 4, func(o *ledger.Op) error { o.Worktrees[0].Rescue = "zz"; return nil }))

	var taken ledger.Op
	require.NoError(t, db.Commit(ctx, func(tx *ledger.Tx) (err error) { taken, err = tx.TakeOp(o.ID, rescuer); return err }))
	require.ErrorIs(t, advance(o.Token, 3, nil), ledger.ErrFenced)
	require.ErrorIs(t, db.Commit(ctx, func(tx *ledger.Tx) error {
		_, err := tx.FinishOp(o.ID, o.Token, ledger.ResultOK, "")
		return err
	}), ledger.ErrFenced)
	require.NoError(t, advance(taken.Token, 3, func(o *ledger.Op) error { o.Worktrees[0].Done = true; return nil }))
	finish(t, db, taken, ledger.ResultOK)
	require.ErrorIs(t, advance(taken.Token, 3, nil), ledger.ErrFenced)

	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		got, err := tx.RequestByKey("k", "d")
		require.NoError(t, err)
		assert.Equal(t, []any{3, "ok", `{"safe":true}`, `{"a":1}`, rescuer},
			[]any{got.Phase, got.Result, got.Detail, got.Plan, got.Owner})
		assert.Equal(t, []ledger.OpWorktree{{WorktreeID: w.ID, From: hash(1), Safety: hash(3), Target: hash(2), Done: true}}, got.Worktrees)
		leases, err := tx.Leases()
		require.NoError(t, err)
		assert.Empty(t, leases)
		openOps, err := tx.OpenOps()
		assert.Empty(t, openOps)
		require.NoError(t, err)
		ops, err := tx.Ops(ledger.OpQuery{Worktree: w.ID})
		assert.Len(t, ops, 1)
		require.NoError(t, err)
		ops, err = tx.Ops(ledger.OpQuery{Worktree: other.ID})
		assert.Empty(t, ops)
		return err
	}))
	_, err = begin(db, ledger.Op{Verb: "restore", RequestKey: "k", RequestDigest: "d", Worktrees: on(w)})
	var repeated *ledger.RepeatedError
	require.ErrorAs(t, err, &repeated)
	assert.Equal(t, o.ID, repeated.Op.ID)
}

func TestRequestKeyIsFreeAfterAbort(t *testing.T) {
	db := ledgertest.Open(t)
	w := plain(t, db, "/w")
	for _, result := range []string{ledger.ResultAborted, ledger.ResultRolledBack, ledger.ResultFailed} {
		o, err := begin(db, ledger.Op{Verb: "restore", RequestKey: "k", RequestDigest: "d", Worktrees: on(w)})
		require.NoError(t, err, result)
		finish(t, db, o, result)
	}
	_, err := begin(db, ledger.Op{Verb: "restore", RequestKey: "k", RequestDigest: "d", Worktrees: on(w)})
	var repeated *ledger.RepeatedError
	require.ErrorAs(t, err, &repeated)
}

func TestBeginOpRespectsALiveLease(t *testing.T) {
	db := ledgertest.Open(t)
	w := plain(t, db, "/w")
	var l ledger.Lease
	update(t, db, func(tx *ledger.Tx) (err error) {
		l, err = tx.Acquire(ledger.WorktreeResource(w.ID), ledger.Owner{PID: 9}, 0, nil)
		return err
	})
	err := db.Commit(ctx, func(tx *ledger.Tx) error {
		_, err := tx.BeginOp(ledger.Op{Verb: "restore", Worktrees: on(w)}, alive)
		return err
	})
	var locked *ledger.LockedError
	require.ErrorAs(t, err, &locked)
	update(t, db, func(tx *ledger.Tx) error {
		ops, err := tx.Ops(ledger.OpQuery{})
		assert.Empty(t, ops, "a refused operation leaves no row")
		require.NoError(t, err)
		return tx.Release(l)
	})
}

// walker moves through states by the ledger's word alone: a state is the
// commit an operation left, and undo goes to the state before it.
type walker struct {
	t     *testing.T
	db    *ledger.DB
	w     ledger.Worktree
	state int
	from  map[int64]int // operation -> state before
}

func (k *walker) move(verb string, to int, undoes int64) {
	k.t.Helper()
	o, err := begin(k.db, ledger.Op{Verb: verb, Worktrees: on(k.w), Undoes: undoes})
	require.NoError(k.t, err)
	finish(k.t, k.db, o, ledger.ResultOK)
	k.from[o.ID] = k.state
	k.state = to
}

// back takes back what target finds, and reports whether there was anything.
func (k *walker) back(verb string, target func(*ledger.Tx, int64) (ledger.Op, error)) bool {
	k.t.Helper()
	var o ledger.Op
	err := k.db.View(ctx, func(tx *ledger.Tx) (err error) { o, err = target(tx, k.w.ID); return err })
	if errors.Is(err, ledger.ErrNotFound) {
		return false
	}
	require.NoError(k.t, err)
	k.move(verb, k.from[o.ID], o.ID)
	return true
}

func TestUndoRedo(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps string // digit: move there; u, r: undo, redo; U, R: there must be nothing to undo, redo
		want  int
	}{
		{"nothing", "UR", 0},
		{"one", "1uU", 0},
		{"ten deep", "123456789uuuuuuuuu", 0},
		{"ten deep and back", "123456789uuuuuuuuuUrrrrrrrrrR", 9},
		{"there, back, there, back", "123uuurrruuurrr", 3},
		{"half way", "1234uuruur", 2},
		{"a move clears redo", "12u3R", 3},
		{"a cleared redo stays cleared", "12u3urR", 3},
		{"undo over a cleared redo", "12u3uu", 0},
		{"redo of an undone redo", "1urur", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := ledgertest.Open(t)
			k := &walker{t: t, db: db, w: plain(t, db, "/w"), from: map[int64]int{}}
			elsewhere := plain(t, db, "/elsewhere")
			for i, s := range c.steps {
				switch s {
				case 'u':
					require.True(t, k.back(ledger.VerbUndo, (*ledger.Tx).UndoTarget), "step %d", i)
				case 'U':
					require.False(t, k.back(ledger.VerbUndo, (*ledger.Tx).UndoTarget), "step %d", i)
				case 'r':
					require.True(t, k.back(ledger.VerbRedo, (*ledger.Tx).RedoTarget), "step %d", i)
				case 'R':
					require.False(t, k.back(ledger.VerbRedo, (*ledger.Tx).RedoTarget), "step %d", i)
				default:
					k.move("restore", int(s-'0'), 0)
				}
				for w, result := range map[int64]string{k.w.ID: ledger.ResultAborted, elsewhere.ID: ledger.ResultOK} {
					o, err := begin(db, ledger.Op{Verb: "restore", Worktrees: []ledger.OpWorktree{{WorktreeID: w}}})
					require.NoError(t, err)
					finish(t, db, o, result) // neither counts here
				}
			}
			assert.Equal(t, c.want, k.state)
		})
	}
}

func TestUndoIsRefused(t *testing.T) {
	db := ledgertest.Open(t)
	w := plain(t, db, "/w")
	failed, err := begin(db, ledger.Op{Verb: "restore", Worktrees: on(w)})
	require.NoError(t, err)
	finish(t, db, failed, ledger.ResultFailed)
	ok, err := begin(db, ledger.Op{Verb: "restore", Worktrees: on(w)})
	require.NoError(t, err)
	finish(t, db, ok, ledger.ResultOK)
	undo, err := begin(db, ledger.Op{Verb: ledger.VerbUndo, Undoes: ok.ID, Worktrees: on(w)})
	require.NoError(t, err)
	finish(t, db, undo, ledger.ResultOK)
	update(t, db, func(tx *ledger.Tx) error { return tx.PruneOp(undo.ID, "gc") })

	var refused *ledger.UndoneError
	for _, id := range []int64{failed.ID, ok.ID, undo.ID} {
		_, err := begin(db, ledger.Op{Verb: ledger.VerbUndo, Undoes: id, Worktrees: on(w)})
		require.ErrorAs(t, err, &refused, "op %d", id)
	}
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		_, err := tx.RedoTarget(w.ID)
		require.ErrorIs(t, err, ledger.ErrNotFound, "its commits may be gone")
		return nil
	}))
}

func TestLiveCommits(t *testing.T) {
	db := ledgertest.Open(t)
	w := plain(t, db, "/w")
	c := appendCheckpoint(t, db, ledger.Checkpoint{WorktreeID: w.ID, Commit: hash(1)})
	o, err := begin(db, ledger.Op{Verb: "restore", Worktrees: []ledger.OpWorktree{
		{WorktreeID: w.ID, From: hash(1), Safety: hash(2), Target: hash(3), Rescue: hash(4)}}})
	require.NoError(t, err)
	live := func() map[string]bool {
		m := map[string]bool{}
		require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
			return tx.LiveCommits(func(c string) error { m[c] = true; return nil })
		}))
		return m
	}
	assert.Equal(t, map[string]bool{hash(1): true, hash(2): true, hash(3): true, hash(4): true}, live())
	var open *ledger.InProgressError
	require.ErrorAs(t, db.Update(ctx, func(tx *ledger.Tx) error { return tx.PruneOp(o.ID, "gc") }), &open)
	finish(t, db, o, ledger.ResultOK)
	var ref *ledger.ReferencedError
	require.ErrorAs(t, db.Update(ctx, func(tx *ledger.Tx) error { return tx.DeleteCheckpoint(c.ID, "gc") }), &ref)
	assert.Equal(t, "op 1", ref.By)
	update(t, db, func(tx *ledger.Tx) error { return tx.PruneOp(o.ID, "gc") })
	assert.Equal(t, map[string]bool{hash(1): true}, live())
	update(t, db, func(tx *ledger.Tx) error { return tx.DeleteCheckpoint(c.ID, "gc") })
	assert.Empty(t, live())
}

func TestCountMutations(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	db := ledgertest.OpenAt(t, filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{Now: func() time.Time { return now }})
	w := plain(t, db, "/w")
	start := now
	for _, result := range []string{ledger.ResultOK, ledger.ResultAborted, ledger.ResultFailed, ledger.ResultRolledBack} {
		for _, actor := range []string{"agent", "other"} {
			o, err := begin(db, ledger.Op{Verb: "restore", Actor: actor, Worktrees: on(w)})
			require.NoError(t, err)
			finish(t, db, o, result)
		}
		now = now.Add(time.Minute)
	}
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		n, oldest, err := tx.CountMutations("agent", start)
		require.NoError(t, err)
		assert.Equal(t, 2, n)
		assert.True(t, oldest.Equal(start))
		n, _, err = tx.CountMutations("agent", start.Add(time.Second))
		assert.Equal(t, 1, n)
		return err
	}))
}
