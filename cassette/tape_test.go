package cassette_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/cassette"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
)

var ctx = context.Background()

// newTape returns a tape on an empty ledger, with a run that is recorded.
func newTape(t *testing.T) (*cassette.Tape, int64) {
	t.Helper()
	tape := &cassette.Tape{DB: ledgertest.Open(t), Key: []byte("0123456789abcdef0123456789abcdef")}
	return tape, newRun(t, tape.DB, true)
}

func newRun(t *testing.T, db *ledger.DB, recorded bool) int64 {
	t.Helper()
	var r ledger.Run
	update(t, db, func(tx *ledger.Tx) error {
		w, err := tx.EnsureWorktree(ledger.Worktree{Path: "/w", Dev: 1, Ino: 1, Kind: ledger.KindPlain, Host: "h"})
		if err != nil {
			return err
		}
		r, err = tx.CreateRun(ledger.Run{Source: "test", WorktreeID: w.ID, Tape: recorded})
		return err
	})
	return r.ID
}

// newAttempt begins an attempt and returns its number in the ledger.
func newAttempt(t *testing.T, db *ledger.DB, run int64) int64 {
	t.Helper()
	var a ledger.Attempt
	update(t, db, func(tx *ledger.Tx) (err error) {
		a, err = tx.StartAttempt(ledger.Attempt{RunID: run, Task: "task"})
		return err
	})
	return a.ID
}

func update(t *testing.T, db *ledger.DB, fn func(*ledger.Tx) error) {
	t.Helper()
	require.NoError(t, db.Update(ctx, fn))
}

func record(t *testing.T, tape *cassette.Tape, c cassette.Call) ledger.Cell {
	t.Helper()
	cell, err := tape.Record(ctx, c)
	require.NoError(t, err)
	return cell
}

// content reads what a cell holds.
func content(t *testing.T, db *ledger.DB, c ledger.Cell) (view, output string) {
	t.Helper()
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		v, err := tx.CellView(c)
		require.NoError(t, err)
		o, err := tx.CellOutput(c)
		view, output = string(v), string(o)
		return err
	}))
	return view, output
}

func cells(t *testing.T, db *ledger.DB, run int64) (all []ledger.Cell) {
	t.Helper()
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) (err error) {
		all, err = tx.Cells(run, ledger.CellQuery{Limit: 1 << 20})
		return err
	}))
	return all
}

func TestRecord(t *testing.T) {
	tape, run := newTape(t)
	exit, attempt := 3, newAttempt(t, tape.DB, run)
	put := record(t, tape, cassette.Call{Run: run, Attempt: attempt, Op: "sh", Args: map[string]any{"n": 1, "cmd": "a<b"}, Exit: &exit,
		Output: []byte("out"), Failed: true, Denied: true, TreeIn: "aa", TreeOut: "bb", Took: 5 * time.Millisecond, Actor: "me"})
	got := cells(t, tape.DB, run)
	require.Len(t, got, 1)
	c := got[0]
	assert.Equal(t, put.ID, c.ID)
	view, output := content(t, tape.DB, c)
	assert.Equal(t, []any{`{"cmd":"a<b","n":1}`, "out"}, []any{view, output})
	assert.Equal(t, []any{int64(1), "sh", 3, int64(3), "aa", "bb", 5 * time.Millisecond, "me", attempt},
		[]any{c.Seq, c.Op, *c.Exit, c.OutSize, c.TreeIn, c.TreeOut, c.Took, c.Actor, c.AttemptID})
	assert.Equal(t, ledger.CellError|ledger.CellDenied, c.Flags)
	assert.Nil(t, c.HMAC, "nothing was redacted")
	assert.True(t, c.OutHash.IsZero(), "the output is whole")
}

// The same arguments are the same cell, however they are written, and other
// ones are not.
func TestKey(t *testing.T) {
	tape, run := newTape(t)
	key := func(op string, args any) string {
		return record(t, tape, cassette.Call{Run: run, Op: op, Args: args}).Key.String()
	}
	type arguments struct {
		B string `json:"b"`
		A int    `json:"a"`
	}
	same := key("sh", map[string]any{"a": 1, "b": "x"})
	assert.Equal(t, same, key("sh", json.RawMessage(" {\"b\":\"\\u0078\",\n \"a\":1}")))
	assert.Equal(t, same, key("sh", arguments{"x", 1}))
	for _, other := range []string{
		key("sh", json.RawMessage(`{"a":1.0,"b":"x"}`)),
		key("sh", json.RawMessage(`{"a":"1","b":"x"}`)),
		key("sh ", map[string]any{"a": 1, "b": "x"}),
		key("sh", nil),
	} {
		assert.NotEqual(t, same, other)
	}
	assert.NotEqual(t, key("sh", 12), key("sh1", 2))
	_, err := tape.Prepare(cassette.Call{Run: run, Op: "sh", Args: json.RawMessage(`{"a":`)})
	require.Error(t, err)
	_, err = tape.Prepare(cassette.Call{Run: run, Op: "sh", Args: json.RawMessage(`{"a":1} {"b":2}`)})
	require.Error(t, err, "two documents")
}

func TestRedacted(t *testing.T) {
	tape, run := newTape(t)
	tape.Secrets = []string{"81726354", `q"x\y`, "zebra7"}
	args := map[string]any{"cmd": "x --token abc123", "pin": 81726354, "n": 1, "zebra7": `q"x\y`}
	c := record(t, tape, cassette.Call{Run: run, Op: "sh", Args: args,
		Output: []byte("PASSWORD=hunter2\n{\"a\":\"q\\\"x\\\\y\",\"pin\":8.1726354e7}\n")})
	view, output := content(t, tape.DB, c)
	assert.Equal(t, `{"[redacted]":"[redacted]","cmd":"x --token [redacted]","n":1,"pin":"[redacted]"}`, view)
	assert.Equal(t, "PASSWORD=[redacted]\n{\"a\":\"[redacted]\",\"pin\":\"[redacted]\"}\n", output)
	assert.Equal(t, int64(len(output)), c.OutSize, "the size is that of what is redacted")

	raw := `{"cmd":"x --token abc123","n":1,"pin":81726354,"zebra7":"q\"x\\y"}`
	h := hmac.New(sha256.New, tape.Key)
	h.Write([]byte(raw))
	assert.Equal(t, h.Sum(nil), c.HMAC)
	plain := record(t, tape, cassette.Call{Run: run, Op: "sh", Args: json.RawMessage(view)})
	assert.Equal(t, c.Key, plain.Key, "the key is that of the redacted arguments")
	assert.Nil(t, plain.HMAC)

	keyless := &cassette.Tape{DB: tape.DB}
	c = record(t, keyless, cassette.Call{Run: run, Op: "sh", Args: map[string]any{"password": "x"}})
	assert.Nil(t, c.HMAC, "without a key it would be a hash to be guessed")
}

func TestCap(t *testing.T) {
	tape, run := newTape(t)
	tape.Max = 8
	for _, test := range []struct{ name, output, kept string }{
		{"below", "abcdefg", "abcdefg"},
		{"just", "abcdefgh", "abcdefgh"},
		{"above", "abcdefghi", "abcdefgh"},
		{"within a character", "abcdefgäh", "abcdefg"},
		{"within a long character", "abcde😀f", "abcde"},
		{"after a character", "abcdefäh", "abcdefä"},
		{"no text", "\x80\x81\x82\x83\x84\x85\x86\x87\x88", "\x80\x81\x82\x83\x84\x85\x86\x87"},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "x", Output: []byte(test.output)})
			_, kept := content(t, tape.DB, c)
			assert.Equal(t, test.kept, kept)
			assert.Equal(t, int64(len(test.output)), c.OutSize)
			cut := len(test.kept) < len(test.output)
			assert.Equal(t, cut, c.Flags.Has(ledger.CellTruncated))
			assert.Equal(t, cut, !c.OutHash.IsZero())
			if cut {
				assert.Equal(t, sha256.Sum256([]byte(test.output)), [32]byte(c.OutHash), "of the whole")
			}
		})
	}

	tape.Max = 0
	c := record(t, tape, cassette.Call{Run: run, Op: "sh", Output: make([]byte, cassette.DefaultMax+1)})
	assert.True(t, c.Flags.Has(ledger.CellTruncated), "where nothing is set")
}

// Arguments over the cap leave their size and hash; the cell is served all the
// same.
func TestLongArguments(t *testing.T) {
	tape, run := newTape(t)
	tape.Max = 1000
	for _, n := range []int{10, 500, 2000} {
		args := map[string]any{"content": strings.Repeat("x", n)}
		c := record(t, tape, cassette.Call{Run: run, Op: "write", Args: args, Output: []byte(fmt.Sprint(n))})
		view, _ := content(t, tape.DB, c)
		if n < 1000 {
			assert.Equal(t, fmt.Sprintf(`{"content":"%s"}`, args["content"]), view)
		} else {
			whole := fmt.Sprintf(`{"content":"%s"}`, args["content"])
			assert.Equal(t, fmt.Sprintf(`{"sha256":"%x","size":%d}`, sha256.Sum256([]byte(whole)), len(whole)), view)
		}
		assert.False(t, c.Flags.Has(ledger.CellTruncated))
		r, err := tape.Open(ctx, run, cassette.ReadOptions{})
		require.NoError(t, err)
		_, output, err := r.Next(ctx, "write", args)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(n), string(output))
	}
}

func TestOff(t *testing.T) {
	tape, _ := newTape(t)
	off := newRun(t, tape.DB, false)
	assert.Zero(t, record(t, tape, cassette.Call{Run: off, Op: "sh", Args: "x"}), "the run's row decides")
	cell, err := tape.Record(ctx, cassette.Call{Run: off, Op: "sh", Args: func() {}})
	require.NoError(t, err, "nothing was to be recorded")
	assert.Zero(t, cell)
	assert.Empty(t, cells(t, tape.DB, off))
	_, err = tape.Open(ctx, off, cassette.ReadOptions{})
	require.ErrorIs(t, err, cassette.ErrTapeOff)
	require.ErrorIs(t, whole(tape, off, cassette.Range{}), cassette.ErrTapeOff)
}

// A tape that is switched off while a run is being recorded leaves holes.
func TestOffInTheMidst(t *testing.T) {
	tape, run := newTape(t)
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "a"})
	off := &cassette.Tape{DB: tape.DB, Off: true}
	c := record(t, off, cassette.Call{Run: run, Op: "sh", Args: "PASSWORD=x", Output: []byte("secret")})
	assert.True(t, c.Flags.Has(ledger.CellHole))
	view, output := content(t, tape.DB, c)
	assert.Equal(t, `{"hole":"the tape was off"}`, view)
	assert.Empty(t, output)
	assert.Zero(t, record(t, off, cassette.Call{Run: newRun(t, tape.DB, false), Op: "sh"}))
	var hole *cassette.HoleError
	require.ErrorAs(t, whole(tape, run, cassette.Range{}), &hole)
}

func whole(tape *cassette.Tape, run int64, part cassette.Range) error {
	return tape.DB.View(ctx, func(tx *ledger.Tx) error { return cassette.Whole(tx, run, part) })
}

func TestHole(t *testing.T) {
	tape, run := newTape(t)
	tape.Max = 4
	attempt := newAttempt(t, tape.DB, run)
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "a"})
	_, err := tape.Record(ctx, cassette.Call{Run: run, Op: "sh", Args: make(chan int)})
	var lost *cassette.LostError
	require.ErrorAs(t, err, &lost)
	assert.Equal(t, []any{true, run, "sh", error(nil)}, []any{lost.First, lost.Run, lost.Op, lost.Mark})

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = tape.Record(canceled, cassette.Call{Run: run, Op: "read", Attempt: attempt, Args: "c"})
	require.ErrorAs(t, err, &lost)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, lost.First, "it has been said")
	assert.NoError(t, lost.Mark, "a call that was broken off leaves its hole too")
	record(t, tape, cassette.Call{Run: run, Op: "sh", Args: "d", Output: []byte("12345")})

	got := cells(t, tape.DB, run)
	require.Len(t, got, 4)
	for i, flags := range []ledger.CellFlags{0, ledger.CellHole, ledger.CellHole, ledger.CellTruncated} {
		assert.Equal(t, flags, got[i].Flags, "cell %d", i+1)
	}

	var hole *cassette.HoleError
	require.ErrorAs(t, whole(tape, run, cassette.Range{}), &hole)
	assert.Equal(t, int64(2), hole.Cell.Seq)
	assert.Contains(t, hole.Error(), "cell 2 of r1 is a hole: sh was not recorded: arguments of sh: json: unsupported type")
	require.ErrorAs(t, whole(tape, run, cassette.Range{After: 2}), &hole)
	assert.Equal(t, int64(3), hole.Cell.Seq)
	require.ErrorAs(t, whole(tape, run, cassette.Range{Attempt: attempt}), &hole)
	assert.Equal(t, int64(3), hole.Cell.Seq)
	require.NoError(t, whole(tape, run, cassette.Range{To: 1}))
	var cut *cassette.TruncatedError
	require.ErrorAs(t, whole(tape, run, cassette.Range{After: 3}), &cut)
	assert.Equal(t, "cell 4 of r1 (sh) was cut: its output has 5 bytes, more than RETCON_TAPE_MAX_BYTES", cut.Error())
	require.ErrorIs(t, whole(tape, 99, cassette.Range{}), ledger.ErrNotFound)
}

// A reason may quote what it is about.
func TestHoleIsRedacted(t *testing.T) {
	tape, run := newTape(t)
	tape.Secrets = []string{"hunter2"}
	update(t, tape.DB, func(tx *ledger.Tx) error {
		c, first, err := tape.Hole(tx, cassette.Call{Run: run, Op: "sh"}, errors.New("no hunter2 "+strings.Repeat("ä", 300)))
		assert.True(t, first)
		assert.NotContains(t, string(c.View), "hunter2")
		assert.LessOrEqual(t, len(c.View), ledger.InlineMax)
		assert.True(t, json.Valid(c.View))
		return err
	})
}

// Where the ledger can't be written at all, the caller learns that too.
func TestLostWithoutAHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := ledgertest.OpenAt(t, path, ledger.Options{})
	run := newRun(t, db, true)
	reading, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	require.NoError(t, err)
	defer reading.Close()
	_, err = (&cassette.Tape{DB: reading}).Record(ctx, cassette.Call{Run: run, Op: "sh"})
	var lost *cassette.LostError
	require.ErrorAs(t, err, &lost)
	assert.True(t, lost.First)
	require.Error(t, lost.Mark)
	var readOnly *ledger.ReadOnlyError
	require.ErrorAs(t, lost.Mark, &readOnly)
	assert.Contains(t, err.Error(), "nor marked")
}

func TestAppendTogether(t *testing.T) {
	tape, run := newTape(t)
	const writers, each = 16, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				p, err := tape.Prepare(cassette.Call{Run: run, Op: "sh", Args: []any{w, i}, Output: fmt.Appendf(nil, "%d %d", w, i)})
				assert.NoError(t, err)
				assert.NoError(t, tape.DB.Update(ctx, func(tx *ledger.Tx) error { _, err := p.Append(tx); return err }))
			}
		})
	}
	wg.Wait()
	got := cells(t, tape.DB, run)
	require.Len(t, got, writers*each)
	for i, c := range got {
		assert.Equal(t, int64(i+1), c.Seq, "without a gap")
	}

	// They are served in any order, each with its own output.
	r, err := tape.Open(ctx, run, cassette.ReadOptions{})
	require.NoError(t, err)
	for w := range writers {
		wg.Go(func() {
			for i := each - 1; i >= 0; i-- {
				_, output, err := r.Next(ctx, "sh", []any{w, i})
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("%d %d", w, i), string(output))
			}
		})
	}
	wg.Wait()
	assert.Empty(t, r.Unserved())
	require.NoError(t, r.Diverged())
}
