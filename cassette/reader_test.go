package cassette_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/cassette"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
)

func open(t *testing.T, tape *cassette.Tape, run int64, o cassette.ReadOptions) *cassette.Reader {
	t.Helper()
	r, err := tape.Open(ctx, run, o)
	require.NoError(t, err)
	return r
}

// serve asks for a call and returns its output.
func serve(t *testing.T, r *cassette.Reader, op string, args any) string {
	t.Helper()
	_, output, err := r.Next(ctx, op, args)
	require.NoError(t, err)
	return string(output)
}

func TestServe(t *testing.T) {
	tape, run := newTape(t)
	for i, args := range []string{"a", "b", "a"} {
		record(t, tape, cassette.Call{Run: run, Op: "sh", Args: args, Output: []byte{byte('0' + i)}})
	}
	record(t, tape, cassette.Call{Run: newRun(t, tape.DB, true), Op: "sh", Args: "c", Output: []byte("another run's")})

	r := open(t, tape, run, cassette.ReadOptions{})
	assert.Equal(t, "1", serve(t, r, "sh", "b"), "before one that was recorded earlier")
	assert.Equal(t, "0", serve(t, r, "sh", "a"))
	served, all := r.Served()
	assert.Equal(t, []int{2, 3}, []int{served, all})
	left := r.Unserved()
	require.Len(t, left, 1)
	assert.Equal(t, int64(3), left[0].Seq)
	assert.Equal(t, "2", serve(t, r, "sh", "a"), "each once, in order")
	assert.Empty(t, r.Unserved())

	var miss *cassette.MissError
	_, _, err := r.Next(ctx, "sh", "c")
	require.ErrorAs(t, err, &miss)
	assert.Equal(t, `sh "c" is not on the tape of r1`, miss.Error())
}

func TestServeAPart(t *testing.T) {
	tape, run := newTape(t)
	attempts := []int64{newAttempt(t, tape.DB, run), newAttempt(t, tape.DB, run)}
	update(t, tape.DB, func(tx *ledger.Tx) error {
		for i := range 450 { // more than a page
			p, err := tape.Prepare(cassette.Call{Run: run, Attempt: attempts[i%2], Op: "sh", Args: i})
			require.NoError(t, err)
			if _, err := p.Append(tx); err != nil {
				return err
			}
		}
		return nil
	})
	r := open(t, tape, run, cassette.ReadOptions{Range: cassette.Range{After: 10, To: 440}})
	served, all := r.Served()
	assert.Equal(t, []int{0, 430}, []int{served, all})
	serve(t, r, "sh", 439)
	_, _, err := r.Next(ctx, "sh", 440)
	require.Error(t, err, "beyond the end")
	_, _, err = open(t, tape, run, cassette.ReadOptions{Range: cassette.Range{After: 10}}).Next(ctx, "sh", 9)
	require.Error(t, err, "before the beginning")

	r = open(t, tape, run, cassette.ReadOptions{Range: cassette.Range{Attempt: attempts[1]}})
	serve(t, r, "sh", 1)
	_, _, err = r.Next(ctx, "sh", 2)
	require.Error(t, err, "another attempt's")
}

// What was redacted is found by what it looks like, and told apart by what it
// was.
func TestServeRedacted(t *testing.T) {
	tape, run := newTape(t)
	login := func(password any) any { return map[string]any{"user": "me", "password": password} }
	record(t, tape, cassette.Call{Run: run, Op: "login", Args: login("one"), Output: []byte("1")})
	record(t, tape, cassette.Call{Run: run, Op: "login", Args: login(2), Output: []byte("2")})
	record(t, tape, cassette.Call{Run: run, Op: "login", Args: login("[redacted]"), Output: []byte("3")})

	r := open(t, tape, run, cassette.ReadOptions{})
	assert.Equal(t, "2", serve(t, r, "login", login(2)), "the other one is not taken for it")
	assert.Equal(t, "1", serve(t, r, "login", login("one")))
	assert.Equal(t, "3", serve(t, r, "login", login("one")), "a cell without the keyed hash has its look alone")
	assert.Equal(t, "1", serve(t, open(t, tape, run, cassette.ReadOptions{}), "login", login("[redacted]")), "from the tape's own words")

	_, _, err := open(t, tape, run, cassette.ReadOptions{Range: cassette.Range{To: 2}}).Next(ctx, "login", login("three"))
	var miss *cassette.MissError
	require.ErrorAs(t, err, &miss)
	assert.True(t, miss.Secret)
	assert.Equal(t, int64(1), miss.Near.Seq)
	assert.NotContains(t, miss.View+miss.Error(), "three")
	assert.Contains(t, miss.Error(), "differs from cell 1 of r1 in what is redacted")

	keyless := &cassette.Tape{DB: tape.DB}
	assert.Equal(t, "1", serve(t, open(t, keyless, run, cassette.ReadOptions{}), "login", login("three")), "nothing to tell them apart by")
}

// A secret that became known after the recording does not hide the cell.
func TestServeSecretKnownLater(t *testing.T) {
	tape, run := newTape(t)
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "say hunter2", Output: []byte("1")})
	later := &cassette.Tape{DB: tape.DB, Key: tape.Key, Secrets: []string{"hunter2"}}
	r := open(t, later, run, cassette.ReadOptions{})
	assert.Equal(t, "1", serve(t, r, "sh", "say hunter2"))
	_, _, err := r.Next(ctx, "sh", "say hunter2")
	require.Error(t, err, "once")
}

func TestServeMark(t *testing.T) {
	tape, run := newTape(t)
	exit := 1
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "x", Exit: &exit, Failed: true})
	cell, output, err := open(t, tape, run, cassette.ReadOptions{}).Next(ctx, "sh", "x")
	require.NoError(t, err, "a failure is an outcome")
	assert.Equal(t, []any{1, ledger.CellError, 0}, []any{*cell.Exit, cell.Flags, len(output)})
}

func TestTruncatedIsRefused(t *testing.T) {
	for _, live := range []bool{false, true} {
		tape, run := newTape(t)
		tape.Max = 4
		record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "x", Output: []byte("12345")})
		record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "y"})
		r := open(t, tape, run, cassette.ReadOptions{Live: live})
		_, output, err := r.Next(ctx, "sh", "x")
		var cut *cassette.TruncatedError
		require.ErrorAs(t, err, &cut, "live: %v", live)
		assert.Nil(t, output)
		assert.Equal(t, []any{int64(1), "RETCON_TAPE_MAX_BYTES"}, []any{cut.Cell.Seq, cut.Setting})
		_, _, err = r.Next(ctx, "sh", "y")
		require.ErrorAs(t, err, &cut, "nothing is served after it")
		require.ErrorAs(t, r.Diverged(), &cut)
		assert.Len(t, r.Unserved(), 2)
	}
}

func TestHoleIsRefused(t *testing.T) {
	for _, live := range []bool{false, true} {
		tape, run := newTape(t)
		record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "a"})
		record(t, &cassette.Tape{DB: tape.DB, Off: true}, cassette.Call{Run: run, Op: "sh", Args: "b"})
		record(t, tape, cassette.Call{Run: run, Op: "read", Args: "c"})
		r := open(t, tape, run, cassette.ReadOptions{Live: live})
		left := r.Unserved()
		require.Len(t, left, 3)
		assert.Equal(t, int64(2), left[1].Seq, "in its place")
		serve(t, r, "sh", "a")
		serve(t, r, "read", "c")
		require.Len(t, r.Unserved(), 1, "a hole is never served")
		served, all := r.Served()
		assert.Equal(t, []int{2, 3}, []int{served, all})

		_, _, err := r.Next(ctx, "sh", "b")
		var hole *cassette.HoleError
		require.ErrorAs(t, err, &hole, "live: %v", live)
		assert.Equal(t, []any{int64(2), "the tape was off"}, []any{hole.Cell.Seq, hole.Why})
		require.ErrorAs(t, r.Diverged(), &hole)
	}
}

func TestFirstDivergenceIsKept(t *testing.T) {
	tape, run := newTape(t)
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "a", Output: []byte("1")})
	r := open(t, tape, run, cassette.ReadOptions{})
	require.NoError(t, r.Diverged())
	_, _, first := r.Next(ctx, "sh", "b")
	var miss *cassette.MissError
	require.ErrorAs(t, first, &miss)
	assert.Equal(t, `sh "b" is not on the tape of r1, where cell 1 is next`, first.Error())
	for _, args := range []string{"a", "c"} {
		_, _, err := r.Next(ctx, "sh", args)
		assert.Equal(t, first, err)
	}
	assert.Equal(t, first, r.Diverged())
}

func TestMissIsNoDivergenceWhenLive(t *testing.T) {
	tape, run := newTape(t)
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "a", Output: []byte("1")})
	r := open(t, tape, run, cassette.ReadOptions{Live: true})
	_, _, err := r.Next(ctx, "sh", "b")
	var miss *cassette.MissError
	require.ErrorAs(t, err, &miss)
	require.NoError(t, r.Diverged())
	assert.Equal(t, "1", serve(t, r, "sh", "a"))
}

// What goes wrong on our side is no divergence, and takes no cell away.
func TestServeAgainAfterAnError(t *testing.T) {
	tape, run := newTape(t)
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "a", Output: []byte("1")})
	r := open(t, tape, run, cassette.ReadOptions{})
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, _, err := r.Next(canceled, "sh", "a")
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = r.Next(ctx, "sh", json.RawMessage(`{`))
	require.Error(t, err)
	require.NoError(t, r.Diverged())
	assert.Equal(t, "1", serve(t, r, "sh", "a"))
}

// A tape is served from a ledger that can't be written, and the file is the
// same afterwards.
func TestServeWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := ledgertest.OpenAt(t, path, ledger.Options{})
	tape := &cassette.Tape{DB: db}
	run := newRun(t, db, true)
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "a", Output: []byte(strings.Repeat("1", 1000))})
	require.NoError(t, db.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	reading, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	require.NoError(t, err)
	r := open(t, &cassette.Tape{DB: reading}, run, cassette.ReadOptions{})
	assert.Equal(t, strings.Repeat("1", 1000), serve(t, r, "sh", "a"))
	_, _, err = r.Next(ctx, "sh", "b")
	require.Error(t, err)
	require.NoError(t, reading.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestOpenUnknownRun(t *testing.T) {
	tape, _ := newTape(t)
	_, err := tape.Open(ctx, 99, cassette.ReadOptions{})
	require.ErrorIs(t, err, ledger.ErrNotFound)
}
