package ledger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

func TestEvents(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	events := func(branch int64, q EventQuery) (types string) {
		t.Helper()
		b.view(func(tx *Tx) error {
			es, err := tx.Events(branch, q)
			for _, e := range es {
				types += e.Type
			}
			return err
		})
		return types
	}
	add := func(branch int64, types ...string) {
		t.Helper()
		b.update(func(tx *Tx) error {
			var es []Event
			for _, e := range types {
				es = append(es, Event{Type: e})
			}
			return tx.AppendEvents(branch, es)
		})
	}
	add(h.Branch, "a", "b")
	assert.Equal(t, "ab", events(h.Branch, EventQuery{}), "before there is a frame")
	b.append(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, 0)}, Events: []Event{{Type: "c"}}})
	b.put(h, task("x", snapshot.Done, 1))
	b.append(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, 2)}, Events: []Event{{Type: "d", Task: "x"}, {Type: "e"}}})
	add(h.Branch, "f")
	assert.Equal(t, "abcdef", events(h.Branch, EventQuery{}))
	assert.Equal(t, "def", events(h.Branch, EventQuery{From: 1}))
	assert.Equal(t, "ef", events(h.Branch, EventQuery{From: 2, FromIdx: 1}))
	assert.Equal(t, "abcde", events(h.Branch, EventQuery{To: 2}))
	assert.Equal(t, "abc", events(h.Branch, EventQuery{To: 1}))
	assert.Equal(t, "bd", events(h.Branch, EventQuery{Types: []string{"d", "b"}}))
	assert.Equal(t, "d", events(h.Branch, EventQuery{Task: "x"}))
	assert.Equal(t, "abc", events(h.Branch, EventQuery{Limit: 3}))

	branch, _ := b.rewind(r.ID, 1)
	assert.Equal(t, "abc", events(branch.ID, EventQuery{}), "what was cut off is not seen")
	add(branch.ID, "g")
	assert.Equal(t, "abcg", events(branch.ID, EventQuery{}))
	two, _ := b.rewind(r.ID, 0)
	assert.Equal(t, "abc", events(two.ID, EventQuery{}))
	b.update(func(tx *Tx) error { return tx.AppendLate(h.Branch, []Event{{Type: "h"}}) })
	assert.Equal(t, "abc", events(two.ID, EventQuery{}))
	assert.Equal(t, "abcdefh", events(h.Branch, EventQuery{}))
	require.ErrorIs(t, b.db.View(bg, func(tx *Tx) error { _, err := tx.Events(99, EventQuery{}); return err }), ErrNotFound)
	require.ErrorIs(t, b.db.View(bg, func(tx *Tx) error { return tx.AppendEvents(two.ID, nil) }), ErrView)
}

func TestEventFields(t *testing.T) {
	b := newBook(t, Options{})
	_, h := b.start()
	long := []byte(`"` + strings.Repeat("long ", 200) + `"`)
	put := Prepare([]byte(`{"put":"before"}`))
	e := Event{At: b.now.Add(-1000), Type: "tool", Task: "x", ExtID: "use-1", Actor: "claude", Body: []byte(`{"n":1}`)}
	b.update(func(tx *Tx) error {
		require.NoError(t, tx.AppendEvents(h.Branch, []Event{e, e}), "the second is a repetition")
		require.NoError(t, tx.AppendEvents(h.Branch, []Event{e, {Type: "other", ExtID: "use-1", Body: long}}))
		require.ErrorIs(t, tx.AppendEvents(h.Branch, []Event{{Type: "x", Content: sum(4)}}), ErrNotFound, "a content that is not there")
		require.ErrorContains(t, tx.AppendEvents(h.Branch, []Event{{Type: "x", Body: long, Content: sum(4)}}), "is not")
		hash, err := tx.PutContent(put)
		require.NoError(t, err)
		return tx.AppendEvents(h.Branch, []Event{{Type: "named", Content: hash}, {Type: "none"}})
	})
	b.view(func(tx *Tx) error {
		es, err := tx.Events(h.Branch, EventQuery{})
		require.NoError(t, err)
		require.Len(t, es, 4)
		e.Branch, e.At = h.Branch, e.At.Truncate(1e6)
		assert.Equal(t, e, es[0])
		assert.Equal(t, 1, es[1].Idx)
		assert.Nil(t, es[1].Body)
		for i, want := range [][]byte{e.Body, long, []byte(`{"put":"before"}`), nil} {
			body, err := tx.EventBody(es[i])
			require.NoError(t, err)
			assert.Equal(t, want, body)
		}
		return nil
	})
}
