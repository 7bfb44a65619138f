package ledger

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSignals(t *testing.T) {
	b := newBook(t, Options{})
	r, _ := b.start()
	long := bytes.Repeat([]byte("long "), 100)
	send := func(g Signal) (Signal, error) {
		var sent Signal
		err := b.db.Update(bg, func(tx *Tx) (err error) { sent, err = tx.PutSignal(g); return err })
		return sent, err
	}
	g := Signal{RunID: r.ID, Name: "approve", Value: []byte(`true`), RequestKey: "k", RequestDigest: "d", Digest: sum(1), Actor: "me"}
	first, err := send(g)
	require.NoError(t, err)
	g.ID, g.Hash, g.Created, g.Delivered = first.ID, Prepare(g.Value).Hash, b.now, -1
	assert.Equal(t, g, first)
	again, err := send(g)
	require.NoError(t, err)
	g.Repeated = true
	assert.Equal(t, g, again)
	other := g
	other.RequestDigest = "e"
	_, err = send(other)
	assert.Equal(t, &SignalReuseError{Key: "k", Signal: first.ID}, err)
	second, err := send(Signal{RunID: r.ID, Name: "long", Value: long})
	require.NoError(t, err)
	assert.Nil(t, second.Value)
	third, err := send(Signal{RunID: b.run(Run{}).ID, Name: "other run", RequestKey: "k"})
	require.NoError(t, err)
	assert.False(t, third.Repeated, "a key is its run's")

	pending := func() (names []string) {
		b.view(func(tx *Tx) error {
			gs, err := tx.PendingSignals(r.ID)
			for _, g := range gs {
				names = append(names, g.Name)
			}
			return err
		})
		return names
	}
	assert.Equal(t, []string{"approve", "long"}, pending())
	b.update(func(tx *Tx) error {
		require.NoError(t, tx.MarkSignal(first.ID, 0))
		require.ErrorIs(t, tx.MarkSignal(first.ID, 1), ErrFinished)
		require.ErrorIs(t, tx.MarkSignal(99, 1), ErrNotFound)
		require.ErrorIs(t, tx.MarkSignal(99, -1), ErrNotFound)
		return nil
	})
	assert.Equal(t, []string{"long"}, pending())
	b.view(func(tx *Tx) error {
		all, err := tx.Signals(r.ID)
		require.NoError(t, err)
		assert.Equal(t, int64(0), all[0].Delivered)
		value, err := tx.SignalValue(all[1])
		assert.Equal(t, long, value)
		return err
	})
	b.update(func(tx *Tx) error { return tx.MarkSignal(first.ID, -1) })
	assert.Equal(t, []string{"approve", "long"}, pending(), "given again")
}

func TestCells(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	var a Attempt
	out, long := Prepare([]byte("output")), bytes.Repeat([]byte("long "), 100)
	exit := 3
	full := Cell{RunID: r.ID, Branch: h.Branch, Op: "sh", Key: sum(1), HMAC: []byte("mac"), View: []byte(`{"cmd":"x"}`), Exit: &exit, Out: out.Hash,
		OutSize: 99, OutHash: sum(2), Flags: CellTruncated | CellError, TreeIn: "ab", TreeOut: "cd", Took: 5 * time.Millisecond, Actor: "claude"}
	b.update(func(tx *Tx) (err error) {
		a, err = tx.StartAttempt(Attempt{RunID: r.ID, Task: "x"})
		require.NoError(t, err)
		full.AttemptID = a.ID
		_, err = tx.AppendCell(full)
		require.ErrorIs(t, err, ErrNotFound, "the output was not put")
		return nil
	})
	b.update(func(tx *Tx) (err error) {
		_, err = tx.PutContent(out)
		require.NoError(t, err)
		c, err := tx.AppendCell(full)
		require.NoError(t, err)
		full.ID, full.Seq, full.Created = c.ID, 1, b.now
		assert.Equal(t, full, c)
		c, err = tx.AppendCell(Cell{RunID: r.ID, Op: "pure", View: long})
		require.NoError(t, err)
		assert.Nil(t, c.View)
		return err
	})
	other := b.run(Run{})
	b.update(func(tx *Tx) error {
		c, err := tx.AppendCell(Cell{RunID: other.ID, Op: "sh"})
		assert.Equal(t, int64(1), c.Seq, "numbers are of the run")
		require.NoError(t, err)
		require.ErrorIs(t, tx.MarkCell(99, CellHole), ErrNotFound)
		return tx.MarkCell(c.ID, CellHole)
	})
	b.view(func(tx *Tx) error {
		cells, err := tx.Cells(r.ID, CellQuery{})
		require.NoError(t, err)
		require.Len(t, cells, 2)
		assert.Equal(t, full, cells[0])
		assert.True(t, cells[0].Flags.Has(CellError))
		assert.False(t, cells[0].Flags.Has(CellError|CellHole))
		view, err := tx.CellView(cells[1])
		require.NoError(t, err)
		assert.Equal(t, long, view)
		output, err := tx.CellOutput(cells[0])
		require.NoError(t, err)
		assert.Equal(t, "output", string(output))
		none, err := tx.CellOutput(cells[1])
		require.NoError(t, err)
		assert.Nil(t, none)
		for _, q := range []struct {
			q    CellQuery
			want int
		}{{CellQuery{After: 1}, 1}, {CellQuery{To: 1}, 1}, {CellQuery{Attempt: a.ID}, 1}, {CellQuery{Limit: 1}, 1}, {CellQuery{After: 2}, 0}} {
			page, err := tx.Cells(r.ID, q.q)
			require.NoError(t, err)
			assert.Len(t, page, q.want, "%+v", q.q)
		}
		marked, err := tx.CellByID(cells[1].ID + 1)
		require.NoError(t, err)
		assert.Equal(t, CellHole, marked.Flags)
		_, err = tx.CellByID(99)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = tx.AppendCell(Cell{RunID: r.ID})
		require.ErrorIs(t, err, ErrView)
		_, err = tx.PutSignal(Signal{RunID: r.ID})
		require.ErrorIs(t, err, ErrView)
		return nil
	})
	require.Error(t, b.db.Update(bg, func(tx *Tx) error { _, err := tx.AppendCell(Cell{RunID: 77, Op: "sh"}); return err }), "no such run")
}
