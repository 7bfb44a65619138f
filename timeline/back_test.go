package timeline_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// A move of whose work nothing is left can be taken back all the same: those
// before it are behind it.
func TestUndoOfNothingLeft(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	one := p.checkpoint()
	p.write("a", "2")
	p.restore(timeline.Request{To: one})
	p.write("a", "3")
	p.restore(timeline.Request{To: one})
	p.write("a", "3") // by hand, as it was
	res := p.undo()
	assert.Empty(t, res.Plan.Changes)
	assert.NotZero(t, res.Op)
	p.is("a", "3")
	_, err := p.m.Undo(context.Background(), timeline.Request{Conflicts: timeline.Theirs})
	require.NoError(t, err)
	p.is("a", "2")
	_, err = p.m.Redo(context.Background(), timeline.Request{})
	require.NoError(t, err)
	p.is("a", "3")
	p.redo()
	p.is("a", "3")
}

// Where a folder is to become the file that it was, what somebody has put into it
// since is a conflict, and no failure on the way.
func TestFolderInTheWay(t *testing.T) {
	for _, policy := range []string{timeline.Refuse, timeline.Mine, timeline.Theirs} {
		p := newPlace(t)
		p.write("b", "1")
		one := p.checkpoint()
		p.write("turns", "a file")
		p.write("b", "2")
		p.restore(timeline.Request{To: one, Exact: true})
		p.is("turns", "")
		p.write("turns/mine", "later")
		_, err := p.m.Undo(context.Background(), timeline.Request{Conflicts: policy})
		switch policy {
		case timeline.Refuse:
			var conflict *timeline.ConflictError
			require.ErrorAs(t, err, &conflict)
			assert.Equal(t, []timeline.Note{{Path: "turns", Why: "is a folder now, with turns/mine in it, which is not this run's"}}, conflict.Plan.Conflicts)
			p.is("b", "1")
			p.is("turns/mine", "later")
		case timeline.Mine:
			require.NoError(t, err)
			p.is("b", "2")
			p.is("turns/mine", "later")
		case timeline.Theirs:
			require.NoError(t, err)
			p.is("b", "2")
			p.is("turns", "a file")
			p.redo()
			p.is("turns/mine", "later")
		}
	}
}

// An answer that a rewind takes from the frames that are cut off is theirs again
// when they come back.
func TestUndoGivesSignalsBack(t *testing.T) {
	root := runScene(t, "rewind")
	p := openPlace(t, root)
	p.update(func(tx *ledger.Tx) error {
		for _, frame := range []int64{0, 2} {
			g, err := tx.PutSignal(ledger.Signal{RunID: 1, Name: "go", Value: []byte("true"), Actor: "user"})
			if err != nil {
				return err
			}
			if err := tx.MarkSignal(g.ID, frame); err != nil {
				return err
			}
		}
		return nil
	})
	taken := func() (by []int64) {
		require.NoError(t, p.db.View(context.Background(), func(tx *ledger.Tx) error {
			sent, err := tx.Signals(1)
			for _, g := range sent {
				by = append(by, g.Delivered)
			}
			return err
		}))
		return by
	}
	require.NoError(t, travelChild(p, "rewind"))
	assert.Equal(t, []int64{0, -1}, taken())
	p.undo()
	assert.Equal(t, []int64{0, 2}, taken())
	p.redo()
	assert.Equal(t, []int64{0, -1}, taken())
	p.update(func(tx *ledger.Tx) error { return tx.MarkSignal(2, 1) }) // taken again, by another frame
	p.undo()
	assert.Equal(t, []int64{0, 2}, taken())
	p.redo()
	assert.Equal(t, []int64{0, 1}, taken())
}
