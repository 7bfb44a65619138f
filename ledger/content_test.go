package ledger

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

// noise does not compress.
func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestContents(t *testing.T) {
	b := newBook(t, Options{})
	for name, c := range map[string]struct {
		body  []byte
		codec int
	}{
		"empty": {[]byte{}, codecRaw}, "nothing": {nil, codecRaw}, "small": {[]byte("aaaaaaaaaaaaaaaaaaa"), codecRaw},
		"text": {bytes.Repeat([]byte("text "), 1000), codecZstd}, "noise": {noise(5000), codecRaw}, "large": {bytes.Repeat(noise(100), 10_000), codecZstd},
	} {
		p := Prepare(c.body)
		assert.Equal(t, c.codec, p.codec, name)
		b.update(func(tx *Tx) error {
			h, err := tx.PutContent(p)
			assert.Equal(t, p.Hash, h)
			return err
		})
		b.update(func(tx *Tx) error { _, err := tx.PutContent(p); return err })
		b.view(func(tx *Tx) error {
			body, err := tx.Content(p.Hash)
			assert.Equal(t, string(c.body), string(body), name)
			return err
		})
	}
	b.view(func(tx *Tx) error {
		_, err := tx.Content(sum(1))
		require.ErrorIs(t, err, ErrNotFound)
		return nil
	})
	require.ErrorIs(t, b.db.View(bg, func(tx *Tx) error { _, err := tx.PutContent(Prepare(nil)); return err }), ErrView)
	b.update(func(tx *Tx) error { return tx.PutExternal(sum(7), 300_000, "abc") })
	b.view(func(tx *Tx) error {
		_, err := tx.Content(sum(7))
		external := new(*ExternalError)
		require.ErrorAs(t, err, external)
		assert.Equal(t, &ExternalError{Hash: sum(7), ID: "abc", Size: 300_000}, *external)
		var ids []string
		require.NoError(t, tx.LiveExternal(func(id string) error { ids = append(ids, id); return nil }))
		assert.Equal(t, []string{"abc"}, ids)
		return nil
	})
}

// Whatever is damaged is found by the one who reads it.
func TestContentsAreVerified(t *testing.T) {
	for name, statement := range map[string]string{
		"another body": `UPDATE content SET body = CAST('the bodY' AS BLOB)`, "codec": `UPDATE content SET codec = 1`,
		"unknown codec": `UPDATE content SET codec = 9`, "size": `UPDATE content SET size = size + 1`,
	} {
		b := &book{TB: t}
		b.db = open(t, t.TempDir()+"/ledger.db", Options{})
		p := Prepare([]byte("the body"))
		b.update(func(tx *Tx) error { _, err := tx.PutContent(p); return err })
		b.update(func(tx *Tx) error { _, err := tx.exec(statement); return err })
		corrupt := new(*CorruptError)
		require.ErrorAs(t, b.db.View(bg, func(tx *Tx) error { _, err := tx.Content(p.Hash); return err }), corrupt, name)
		problems := b.problems()
		require.Len(t, problems, 1, name)
		assert.Equal(t, ProblemContent, problems[0].Kind, name)
	}
}

func TestSweep(t *testing.T) {
	b := newBook(t, Options{})
	_, h := b.start()
	put := func(text string) (hash snapshot.Hash) {
		t.Helper()
		b.update(func(tx *Tx) (err error) { hash, err = tx.PutContent(Prepare([]byte(text))); return err })
		return hash
	}
	var names []string
	there := map[string]snapshot.Hash{}
	for _, name := range []string{"input", "def", "attempt", "event", "signal", "cell out", "cell view", "row", "old row", "nobody", "named late"} {
		names = append(names, name)
		there[name] = put(name)
	}
	r := b.run(Run{Input: there["input"], Def: there["def"]})
	b.put(h, snapshot.Row{Key: "x", Out: there["old row"]})
	b.put(h, snapshot.Row{Key: "x", Out: there["row"]})
	b.update(func(tx *Tx) error {
		a, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: "x"})
		require.NoError(t, err)
		require.NoError(t, tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK, Out: there["attempt"]}))
		require.NoError(t, tx.AppendEvents(h.Branch, []Event{{Type: "x", Content: there["event"]}}))
		_, err = tx.PutSignal(Signal{RunID: r.ID, Name: "s", Hash: there["signal"]})
		require.NoError(t, err)
		_, err = tx.AppendCell(Cell{RunID: r.ID, Op: "sh", Out: there["cell out"], ViewHash: there["cell view"]})
		return err
	})
	sweep := func() (n int64) {
		t.Helper()
		s, err := b.db.SweepContents(bg, b.now.Add(time.Hour))
		require.NoError(t, err)
		return s.Contents
	}
	assert.Zero(t, sweep(), "all are young")
	b.now = b.now.Add(MinSweepAge + time.Minute)
	late := put("named late")
	assert.Equal(t, int64(1), sweep())
	b.view(func(tx *Tx) error {
		for _, name := range names {
			ok, err := tx.HasContent(there[name])
			require.NoError(t, err)
			assert.Equal(t, name != "nobody", ok, name)
		}
		return nil
	})
	b.now = b.now.Add(MinSweepAge + time.Minute)
	b.update(func(tx *Tx) error { return tx.AppendEvents(h.Branch, []Event{{Type: "late", Content: late}}) })
	b.view(func(tx *Tx) error {
		var used int64
		require.NoError(t, tx.get(`SELECT ref_ms FROM content WHERE hash=?`, []any{late[:]}, &used))
		assert.Equal(t, b.now.UnixMilli(), used, "what is named is fresh")
		return nil
	})
	for i := range 2*sweepChunk + 1 {
		b.update(func(tx *Tx) error { _, err := tx.PutContent(Prepare(noise(i + 100))); return err })
	}
	b.now = b.now.Add(MinSweepAge + time.Minute)
	assert.Equal(t, int64(2*sweepChunk+1), sweep())
}

// What is named between the look and the sweep stays.
func TestSweepAndNaming(t *testing.T) {
	b := newBook(t, Options{})
	_, h := b.start()
	p := Prepare([]byte("content"))
	b.update(func(tx *Tx) error { _, err := tx.PutContent(p); return err })
	b.now = b.now.Add(2 * time.Hour)
	cutoff := b.now.Add(-MinSweepAge)
	var dead []content
	b.view(func(tx *Tx) (err error) { dead, err = tx.unnamed(cutoff); return err })
	require.Len(t, dead, 1)
	b.update(func(tx *Tx) error { return tx.AppendEvents(h.Branch, []Event{{Type: "x", Content: p.Hash}}) })
	s, err := b.db.sweep(bg, dead, cutoff)
	require.NoError(t, err)
	assert.Zero(t, s)
}

// A row that can't be read stops the sweep: it may name anything.
func TestSweepFailsClosed(t *testing.T) {
	b := &book{TB: t, now: time.UnixMilli(1e12)}
	b.db = open(t, t.TempDir()+"/ledger.db", Options{Now: func() time.Time { return b.now }})
	b.update(func(tx *Tx) error {
		w, err := tx.EnsureWorktree(Worktree{Path: "/w", Kind: KindPlain})
		b.worktree = w.ID
		return err
	})
	_, h := b.start()
	b.put(h, task("x", snapshot.Done, 1))
	b.update(func(tx *Tx) error { _, err := tx.PutContent(Prepare([]byte("nobody's"))); return err })
	b.update(func(tx *Tx) error { _, err := tx.exec(`UPDATE frame SET delta = x'0100'`); return err })
	b.now = b.now.Add(3 * time.Hour)
	corrupt := new(*CorruptError)
	_, err := b.db.SweepContents(bg, b.now)
	require.ErrorAs(t, err, corrupt)
	b.view(func(tx *Tx) error {
		ok, err := tx.HasContent(Prepare([]byte("nobody's")).Hash)
		assert.True(t, ok)
		return err
	})
}

func TestPurge(t *testing.T) {
	b := newBook(t, Options{keyframes: 200})
	r, h := b.start()
	for i := range 60 {
		b.append(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, i)}, Events: []Event{{Type: "x"}}})
	}
	child := b.run(Run{Parent: r.ID})
	var fork Branch
	b.update(func(tx *Tx) (err error) { fork, err = tx.Fork(h.Branch, 40, child.ID, ""); return err })
	fh := b.load(fork.ID, Newest)
	b.put(fh, task("x", snapshot.Failed, 1))

	_, first := b.rewind(r.ID, 10) // cuts 11 to 59, of which the fork needs up to 40
	one := b.load(b.head(r.ID).ID, Newest)
	b.put(one, task("x", snapshot.Running, 2))
	b.put(one, task("x", snapshot.Running, 3))
	two, second := b.rewind(r.ID, 11) // cuts one of two
	b.put(b.load(two.ID, Newest), task("x", snapshot.Running, 4))
	_, third := b.rewind(r.ID, 10) // cuts all after 10, and nothing needs them

	purge := func() Purged {
		t.Helper()
		p, err := b.db.PurgeBranches(bg, b.now)
		require.NoError(t, err)
		require.Empty(t, b.problems())
		return p
	}
	b.now = b.now.Add(time.Hour)
	assert.Zero(t, purge(), "all moves can be undone")
	for _, op := range []int64{first, second, third} {
		b.update(func(tx *Tx) error { return tx.PruneOp(op, "me") })
	}
	early, err := b.db.PurgeBranches(bg, b.now.Add(-2*time.Hour))
	require.NoError(t, err)
	assert.Zero(t, early, "all are young")
	assert.Equal(t, Purged{Branches: 2, Frames: 19 + 2 + 1, Events: 19}, purge())
	assert.Zero(t, purge())
	b.view(func(tx *Tx) error {
		branches, err := tx.Branches(r.ID)
		require.NoError(t, err)
		require.Len(t, branches, 2)
		assert.Equal(t, BranchPurged, branches[0].State)
		assert.Equal(t, int64(40), branches[0].HeadSeq)
		return nil
	})
	require.ErrorAs(t, b.db.Update(bg, func(tx *Tx) error { return tx.AppendLate(h.Branch, []Event{{Type: "x"}}) }), new(*ArchivedError))
	o := b.op()
	require.ErrorAs(t, b.db.Update(bg, func(tx *Tx) error { _, err := tx.Unrewind(first, o.ID); return err }), new(*UndoneError))
	b.finish(o)
	got, _ := b.load(fork.ID, Newest).Set.Get("x")
	assert.Equal(t, snapshot.Failed, got.State)

	b.update(func(tx *Tx) error { return tx.DeleteRun(child.ID, "me") })
	assert.Equal(t, Purged{Frames: 30, Events: 30}, purge(), "the fork needs them no more, the head does")
}

func (b *book) head(run int64) (branch Branch) {
	b.Helper()
	b.view(func(tx *Tx) (err error) { branch, err = tx.RunHead(run); return err })
	return branch
}

// A branch larger than a chunk goes in steps, each of which leaves all whole.
func TestPurgeInChunks(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.update(func(tx *Tx) error {
		for i := range 2*purgeChunk + 10 {
			if _, err := tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, i)}}); err != nil {
				return err
			}
		}
		return nil
	})
	_, op := b.rewind(r.ID, 4)
	b.update(func(tx *Tx) error { return tx.PruneOp(op, "me") })
	b.now = b.now.Add(time.Hour)
	steps := 0
	for more := true; more; steps++ {
		b.update(func(tx *Tx) (err error) {
			var did Purged
			did, more, err = tx.purgeSome(b.now)
			assert.LessOrEqual(t, did.Frames, int64(purgeChunk))
			return err
		})
		if steps == 1 {
			require.Empty(t, b.problems(), "stopped between two steps")
		}
	}
	assert.Equal(t, 4, steps)
}
