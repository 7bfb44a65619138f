package ledger

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

func TestForkAndRewind(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	for i := range 6 {
		b.put(h, task("x", snapshot.Done, i))
	}
	first := h.Branch
	child := b.run(Run{Parent: r.ID, Lineage: r.Lineage})
	var fork Branch
	b.update(func(tx *Tx) (err error) { fork, err = tx.Fork(first, 4, child.ID, "try"); return err })
	assert.Equal(t, Branch{ID: fork.ID, RunID: child.ID, Parent: first, BaseSeq: 4, HeadSeq: 4, HeadRoot: b.load(first, 4).Set.Root(),
		State: BranchLive, Label: "try", Created: b.now}, fork)
	fh := b.load(fork.ID, Newest)
	assert.Equal(t, int64(5), b.put(fh, task("x", snapshot.Failed, 9)).Seq, "frames are numbered on")

	// Rewound to frames of its own and of its parent, a branch's parent is the
	// one that owns the frame.
	two, op2 := b.rewind(child.ID, 5)
	assert.Equal(t, fork.ID, two.Parent)
	three, op3 := b.rewind(child.ID, 2)
	assert.Equal(t, first, three.Parent)
	b.view(func(tx *Tx) error {
		children, err := tx.Children(first)
		require.NoError(t, err)
		assert.Equal(t, []int64{three.ID, fork.ID}, []int64{children[0].ID, children[1].ID})
		branches, err := tx.Branches(child.ID)
		require.NoError(t, err)
		require.Len(t, branches, 3)
		assert.Equal(t, op2, branches[0].ArchivedBy)
		assert.Equal(t, BranchArchived, branches[1].State)
		assert.Equal(t, op3, branches[1].ArchivedBy)
		assert.Equal(t, b.now, branches[1].Archived)
		lineage, err := tx.Lineage(child.ID)
		require.NoError(t, err)
		assert.Equal(t, []int64{child.ID, r.ID}, lineage)
		parents, err := tx.Branches(r.ID)
		require.NoError(t, err)
		assert.Equal(t, int64(5), parents[0].HeadSeq, "the parent is as it was")
		return err
	})

	o := b.op()
	err := b.db.Update(bg, func(tx *Tx) error { _, err := tx.Unrewind(op2, o.ID); return err })
	require.ErrorIs(t, err, ErrStale, "moved again since")
	b.update(func(tx *Tx) error {
		back, err := tx.Unrewind(op3, o.ID)
		require.NoError(t, err)
		require.Len(t, back, 1)
		assert.Equal(t, two.ID, back[0].ID)
		head, err := tx.RunHead(child.ID)
		assert.Equal(t, back[0], head)
		return err
	})
	b.finish(o)
	redo := b.op()
	b.update(func(tx *Tx) error {
		back, err := tx.Unrewind(o.ID, redo.ID)
		assert.Equal(t, three.ID, back[0].ID)
		return err
	})
	b.finish(redo)

	for name, try := range map[string]func(tx *Tx) error{
		"a frame that is not there":  func(tx *Tx) error { _, err := tx.Fork(first, 6, b.run2(tx), ""); return err },
		"before the first frame":     func(tx *Tx) error { _, err := tx.Fork(first, -1, b.run2(tx), ""); return err },
		"a branch that is not there": func(tx *Tx) error { _, err := tx.Fork(77, 0, b.run2(tx), ""); return err },
		"a run that is not there":    func(tx *Tx) error { _, err := tx.Fork(first, 0, 77, ""); return err },
		"rewind to no frame":         func(tx *Tx) error { _, err := tx.Rewind(r.ID, 6, op2); return err },
		"rewind no run":              func(tx *Tx) error { _, err := tx.Rewind(77, 0, op2); return err },
		"label no branch":            func(tx *Tx) error { return tx.SetBranchLabel(77, "x") },
	} {
		require.ErrorIs(t, b.db.Update(bg, try), ErrNotFound, name)
	}
	require.ErrorContains(t, b.db.Update(bg, func(tx *Tx) error { _, err := tx.Fork(first, 0, child.ID, ""); return err }), "already")
	require.ErrorContains(t, b.db.Update(bg, func(tx *Tx) error { _, err := tx.CreateBranch(child.ID); return err }), "already")
	b.view(func(tx *Tx) error {
		branches, err := tx.Branches(r.ID)
		assert.Len(t, branches, 1, "nothing was left of what was refused")
		return err
	})
}

func (b *book) run2(tx *Tx) int64 {
	r, err := tx.CreateRun(Run{Source: "test", WorktreeID: b.worktree})
	require.NoError(b, err)
	return r.ID
}

// The operation that has closed a branch may move it; others may not.
func TestRewindThroughAGate(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("x", snapshot.Done, 1))
	b.put(h, task("x", snapshot.Done, 2))
	o := b.op()
	b.update(func(tx *Tx) error { return tx.Gate(h.Branch, o.ID) })
	gated := new(*GatedError)
	require.ErrorAs(t, b.db.Update(bg, func(tx *Tx) error { _, err := tx.Rewind(r.ID, 0, o.ID+1); return err }), gated)
	b.update(func(tx *Tx) error {
		branch, err := tx.Rewind(r.ID, 0, o.ID)
		require.NoError(t, err)
		marked, err := tx.LoadFrame(branch.ID, Newest)
		require.NoError(t, err)
		_, err = tx.AppendFrame(marked, NewFrame{Kind: "rewind"})
		require.NoError(t, err, "the new branch is open")
		_, err = tx.FinishOp(o.ID, o.Token, ResultOK, "")
		return err
	})
}

// What a run needs goes with it, and what others need stays.
func TestDeleteRunWithFrames(t *testing.T) {
	b := newBook(t, Options{keyframes: 100})
	r, h := b.start()
	c := b.checkpoint()
	for i := range 10 {
		b.append(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, i)}, Checkpoint: c, Events: []Event{{Type: "x"}}})
	}
	child := b.run(Run{})
	b.update(func(tx *Tx) error { _, err := tx.Fork(h.Branch, 3, child.ID, ""); return err })
	b.update(func(tx *Tx) error {
		_, err1 := tx.PutSignal(Signal{RunID: r.ID, Name: "go"})
		_, err2 := tx.AppendCell(Cell{RunID: r.ID, Op: "sh"})
		require.NoError(t, err1)
		return err2
	})
	del := func(id int64) error { return b.db.Update(bg, func(tx *Tx) error { return tx.DeleteRun(id, "me") }) }
	referenced := new(*ReferencedError)
	require.ErrorAs(t, del(r.ID), referenced)
	assert.Equal(t, &ReferencedError{What: "r1", By: "r2"}, *referenced)
	require.ErrorAs(t, b.db.Update(bg, func(tx *Tx) error { return tx.DeleteCheckpoint(c, "me") }), referenced)
	assert.Equal(t, "frame 0 of r1", (*referenced).By)

	_, op := b.rewind(child.ID, 2)
	require.ErrorAs(t, del(child.ID), referenced, "the move can be undone")
	b.update(func(tx *Tx) error { return tx.PruneOp(op, "me") })
	require.NoError(t, del(child.ID))
	require.NoError(t, del(r.ID))
	b.update(func(tx *Tx) error { return tx.DeleteCheckpoint(c, "me") })
	b.view(func(tx *Tx) error {
		for _, table := range []string{"run", "branch", "frame", "keyframe", "event", "signal", "cell"} {
			var n int
			require.NoError(t, tx.get(`SELECT count(*) FROM `+table, nil, &n))
			assert.Zero(t, n, table)
		}
		return nil
	})
}
