package ledger

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/retcon-dev/retcon/snapshot"
)

var bg = context.Background()

// book is a ledger for tests, with one worktree; it is checked in the end.
type book struct {
	testing.TB
	db       *DB
	worktree int64
	now      time.Time
}

func newBook(t testing.TB, o Options) *book {
	t.Helper()
	b := &book{TB: t, now: time.UnixMilli(1_000_000_000_000).UTC()}
	o.Now = func() time.Time { return b.now }
	db, err := Open(filepath.Join(t.TempDir(), "ledger.db"), o)
	require.NoError(t, err)
	b.db = db
	t.Cleanup(func() {
		assert.Empty(t, b.problems())
		db.Close()
	})
	b.update(func(tx *Tx) error {
		w, err := tx.EnsureWorktree(Worktree{Path: "/w", Kind: KindPlain})
		b.worktree = w.ID
		return err
	})
	return b
}

func (b *book) problems() []Problem {
	b.Helper()
	problems, err := b.db.Check(bg)
	require.NoError(b, err)
	return problems
}

func (b *book) update(fn func(*Tx) error) {
	b.Helper()
	require.NoError(b, b.db.Update(bg, fn))
}

func (b *book) view(fn func(*Tx) error) {
	b.Helper()
	require.NoError(b, b.db.View(bg, fn))
}

func (b *book) run(r Run) (run Run) {
	b.Helper()
	r.Source, r.WorktreeID = "test", b.worktree
	b.update(func(tx *Tx) (err error) { run, err = tx.CreateRun(r); return err })
	return run
}

// start makes a run and its first branch.
func (b *book) start() (Run, *Head) {
	b.Helper()
	r := b.run(Run{})
	var h *Head
	b.update(func(tx *Tx) (err error) { h, err = tx.CreateBranch(r.ID); return err })
	return r, h
}

func (b *book) append(h *Head, f NewFrame) (frame Frame) {
	b.Helper()
	b.update(func(tx *Tx) (err error) { frame, err = tx.AppendFrame(h, f); return err })
	return frame
}

func (b *book) put(h *Head, rows ...snapshot.Row) Frame {
	b.Helper()
	return b.append(h, NewFrame{Put: rows, Kind: "test"})
}

func (b *book) load(branch, seq int64) (h *Head) {
	b.Helper()
	b.view(func(tx *Tx) (err error) { h, err = tx.LoadFrame(branch, seq); return err })
	return h
}

func (b *book) checkpoint() int64 {
	b.Helper()
	var c Checkpoint
	commit := fmt.Sprintf("%040x", 1)
	b.update(func(tx *Tx) (err error) {
		c, err = tx.AppendCheckpoint(Checkpoint{WorktreeID: b.worktree, Tier: TierManual, Commit: commit, Tree: commit})
		return err
	})
	return c.ID
}

// op opens an operation.
func (b *book) op() (o Op) {
	b.Helper()
	b.update(func(tx *Tx) (err error) {
		o, err = tx.BeginOp(Op{Verb: "rewind", Actor: "me", Worktrees: []OpWorktree{{WorktreeID: b.worktree}}}, nil)
		return err
	})
	return o
}

func (b *book) finish(o Op) {
	b.Helper()
	b.update(func(tx *Tx) error { _, err := tx.FinishOp(o.ID, o.Token, ResultOK, ""); return err })
}

// rewind is a whole operation.
func (b *book) rewind(run, seq int64) (branch Branch, op int64) {
	b.Helper()
	o := b.op()
	b.update(func(tx *Tx) (err error) { branch, err = tx.Rewind(run, seq, o.ID); return err })
	b.finish(o)
	return branch, o.ID
}

func sum(n int) (h snapshot.Hash) {
	copy(h[:], fmt.Sprintf("hash %d", n))
	return h
}

func task(key string, state snapshot.State, n int) snapshot.Row {
	return snapshot.Row{Key: key, Kind: "sh", State: state, Attempt: uint32(n % 3), Decl: sum(1), Out: sum(n)}
}

func TestFrames(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	assert.Equal(t, int64(-1), h.Seq)
	first, second := b.checkpoint(), b.checkpoint()
	x, y := task("x", snapshot.Pending, 0), task("y", snapshot.Pending, 0)
	f0 := b.append(h, NewFrame{Put: []snapshot.Row{y, x}, Kind: "start", Checkpoint: first})
	b.now = b.now.Add(time.Second)
	x2 := task("x", snapshot.Done, 5)
	f1 := b.append(h, NewFrame{Put: []snapshot.Row{x2}, Kind: "task", Note: "x is done"})
	f2 := b.append(h, NewFrame{Delete: []string{"y"}, Kind: "task", Checkpoint: second})

	assert.Equal(t, Frame{Branch: h.Branch, Seq: 0, At: time.UnixMilli(1_000_000_000_000).UTC(), Kind: "start", Root: f0.Root, Checkpoint: first,
		Changed: []snapshot.Change{{Key: "x", New: &x}, {Key: "y", New: &y}}}, f0)
	assert.Equal(t, Frame{Branch: h.Branch, Seq: 1, At: b.now, Kind: "task", Note: "x is done", Root: f1.Root, Checkpoint: first,
		Changed: []snapshot.Change{{Key: "x", Old: &x, New: &x2}}}, f1)
	assert.Equal(t, []snapshot.Change{{Key: "y", Old: &y}}, f2.Changed)

	b.view(func(tx *Tx) error {
		frames, err := tx.Frames(h.Branch, FrameQuery{Changed: true})
		require.NoError(t, err)
		assert.Equal(t, []Frame{f2, f1, f0}, frames)
		page, err := tx.Frames(h.Branch, FrameQuery{Before: 2, Limit: 1})
		require.NoError(t, err)
		require.Len(t, page, 1)
		assert.Equal(t, first, page[0].Checkpoint, "of the frame before the page")
		assert.Nil(t, page[0].Changed)
		one, err := tx.FrameAt(h.Branch, 1, true)
		require.NoError(t, err)
		assert.Equal(t, f1, one)
		history, err := tx.TaskHistory(h.Branch, "x", FrameQuery{})
		require.NoError(t, err)
		f0.Changed = f0.Changed[:1]
		assert.Equal(t, []Frame{f1, f0}, history)

		at1, err := tx.LoadFrame(h.Branch, 1)
		require.NoError(t, err)
		got, _ := at1.Set.Get("x")
		assert.Equal(t, x2, got)
		assert.Equal(t, f1.Root, at1.Set.Root())
		for _, seq := range []int64{-1, 3, 1 << 40} {
			_, err := tx.LoadFrame(h.Branch, seq)
			require.ErrorIs(t, err, ErrNotFound, seq)
			_, err = tx.FrameAt(h.Branch, seq, false)
			require.ErrorIs(t, err, ErrNotFound, seq)
		}
		_, err = tx.LoadFrame(99, Newest)
		require.ErrorIs(t, err, ErrNotFound)
		head, err := tx.RunHead(r.ID)
		require.NoError(t, err)
		assert.Equal(t, Branch{ID: h.Branch, RunID: r.ID, BaseSeq: -1, HeadSeq: 2, HeadRoot: f2.Root, State: BranchLive, Created: first0}, head)
		_, err = tx.AppendFrame(at1, NewFrame{})
		require.ErrorIs(t, err, ErrView)
		return nil
	})
}

var first0 = time.UnixMilli(1_000_000_000_000).UTC()

// A head that can't be appended to is told from one that has moved, and stays as
// it is.
func TestAppendIsGuarded(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("x", snapshot.Pending, 0))
	refused := func(h *Head, as any) {
		t.Helper()
		before, set := *h, h.Set.Root()
		err := b.db.Update(bg, func(tx *Tx) error {
			_, err := tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, 1)}})
			return err
		})
		if target, ok := as.(error); ok {
			require.ErrorIs(t, err, target)
		} else {
			require.ErrorAs(t, err, as)
		}
		assert.Equal(t, before, *h)
		assert.Equal(t, set, h.Set.Root())
	}
	other := b.load(h.Branch, Newest)
	b.put(h, task("x", snapshot.Running, 0))
	refused(other, ErrStale)
	refused(b.load(h.Branch, 0), ErrStale)
	err := b.db.Update(bg, func(tx *Tx) error { _, err := tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{{}}}); return err })
	require.ErrorContains(t, err, "without a key")

	o := b.op()
	b.update(func(tx *Tx) error { return tx.Gate(h.Branch, o.ID) })
	gated := new(*GatedError)
	refused(h, gated)
	assert.Equal(t, &GatedError{Branch: h.Branch, Op: o.ID}, *gated)
	require.ErrorAs(t, b.db.Update(bg, func(tx *Tx) error { return tx.AppendEvents(h.Branch, []Event{{Type: "x"}}) }), gated)
	b.update(func(tx *Tx) error { return tx.AppendLate(h.Branch, []Event{{Type: "late"}}) })
	b.update(func(tx *Tx) error { return tx.Ungate(h.Branch, o.ID+1) })
	refused(h, gated)
	b.update(func(tx *Tx) error { return tx.Ungate(h.Branch, o.ID) })
	b.put(h, task("x", snapshot.Done, 2))

	b.update(func(tx *Tx) error { return tx.Gate(h.Branch, o.ID) })
	b.finish(o) // opens what it has closed
	b.put(h, task("x", snapshot.Done, 3))
	require.ErrorIs(t, b.db.Update(bg, func(tx *Tx) error { return tx.Gate(h.Branch, o.ID) }), ErrFinished)
	require.ErrorIs(t, b.db.Update(bg, func(tx *Tx) error { return tx.Gate(h.Branch, 99) }), ErrNotFound)

	_, op := b.rewind(r.ID, 0)
	archived := new(*ArchivedError)
	refused(h, archived)
	assert.Equal(t, &ArchivedError{Branch: h.Branch, By: op}, *archived)
	require.ErrorAs(t, b.db.Update(bg, func(tx *Tx) error { return tx.AppendEvents(h.Branch, []Event{{Type: "x"}}) }), archived)
	b.update(func(tx *Tx) error { return tx.AppendLate(h.Branch, []Event{{Type: "late"}}) })
	o = b.op()
	require.ErrorAs(t, b.db.Update(bg, func(tx *Tx) error { return tx.Gate(h.Branch, o.ID) }), archived)
	b.finish(o)
}

// When a transaction comes to nothing, the heads that moved in it move back.
func TestHeadMovesBack(t *testing.T) {
	b := newBook(t, Options{})
	_, h := b.start()
	b.put(h, task("x", snapshot.Pending, 0))
	before, root := *h, h.Set.Root()
	failure := fmt.Errorf("no")
	require.ErrorIs(t, b.db.Update(bg, func(tx *Tx) error {
		for n := range 3 {
			_, err := tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, n)}})
			require.NoError(t, err)
		}
		assert.Equal(t, int64(3), h.Seq)
		return failure
	}), failure)
	assert.Equal(t, before, *h)
	assert.Equal(t, root, h.Set.Root())
	canceled, cancel := context.WithCancel(bg)
	require.Error(t, b.db.Update(canceled, func(tx *Tx) error {
		_, err := tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, 1)}})
		cancel() // the commit fails
		return err
	}))
	assert.Equal(t, before, *h)
	b.put(h, task("x", snapshot.Done, 1))
}

// model is what a ledger should hold: for every branch the states of all its
// frames, from the first of its lineage.
type model struct {
	*book
	t        *rapid.T
	heads    map[int64]*Head // of runs
	lines    map[int64][]*snapshot.Set
	undoable map[int64][]int64 // of runs: operations, newest last
	runs     []int64
	n        int
}

func (m *model) pickRun() int64 { return rapid.SampledFrom(m.runs).Draw(m.t, "run") }

func (m *model) appendTo(run int64) {
	h := m.heads[run]
	var f NewFrame
	for range rapid.IntRange(0, 3).Draw(m.t, "rows") {
		m.n++
		key := fmt.Sprintf("t%d", rapid.IntRange(0, 20).Draw(m.t, "key"))
		if slices.ContainsFunc(f.Put, func(r snapshot.Row) bool { return r.Key == key }) || slices.Contains(f.Delete, key) {
			continue
		}
		if rapid.IntRange(0, 6).Draw(m.t, "delete") == 0 {
			f.Delete = append(f.Delete, key)
		} else {
			f.Put = append(f.Put, task(key, snapshot.State(m.n%7), m.n))
		}
	}
	m.append(h, f)
	m.lines[h.Branch] = append(m.lines[h.Branch], h.Set.Clone())
}

func (m *model) fork(run int64) {
	line := m.lines[m.heads[run].Branch]
	seq := rapid.IntRange(0, len(line)-1).Draw(m.t, "seq")
	child := m.run(Run{Parent: run, Lineage: m.runs[0]})
	var b Branch
	m.update(func(tx *Tx) (err error) {
		b, err = tx.Fork(m.heads[run].Branch, int64(seq), child.ID, "try")
		return err
	})
	m.runs = append(m.runs, child.ID)
	m.heads[child.ID] = m.load(b.ID, Newest)
	m.lines[b.ID] = slices.Clone(line[:seq+1])
}

func (m *model) back(run int64) {
	line := m.lines[m.heads[run].Branch]
	seq := rapid.IntRange(0, len(line)-1).Draw(m.t, "seq")
	b, op := m.rewind(run, int64(seq))
	m.undoable[run] = append(m.undoable[run], op)
	m.heads[run] = m.load(b.ID, Newest)
	m.lines[b.ID] = slices.Clone(line[:seq+1])
}

func (m *model) unrewind(run int64) {
	ops := m.undoable[run]
	if len(ops) == 0 {
		return
	}
	o := m.op()
	var bs []Branch
	m.update(func(tx *Tx) (err error) { bs, err = tx.Unrewind(ops[len(ops)-1], o.ID); return err })
	m.finish(o)
	require.Len(m.t, bs, 1)
	m.undoable[run] = []int64{o.ID} // to be undone itself: a redo
	m.heads[run] = m.load(bs[0].ID, Newest)
}

// Whatever is done, every frame of every branch can be loaded and is as it was,
// and all ways to ask for differences agree.
func TestLedgerAgainstModel(t *testing.T) {
	b := newBook(t, Options{keyframes: 600})
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{book: b, t: rt, heads: map[int64]*Head{}, lines: map[int64][]*snapshot.Set{}, undoable: map[int64][]int64{}}
		r, h := m.start()
		m.runs, m.heads[r.ID] = []int64{r.ID}, h
		m.appendTo(r.ID)
		for range rapid.IntRange(10, 40).Draw(rt, "steps") {
			run := m.pickRun()
			switch rapid.IntRange(0, 12).Draw(rt, "step") {
			case 0:
				m.fork(run)
			case 1:
				m.back(run)
			case 2:
				m.unrewind(run)
			default:
				m.appendTo(run)
			}
		}
		m.view(func(tx *Tx) error {
			for branch, line := range m.lines {
				m.compare(tx, branch, line)
			}
			m.diffs(tx)
			return nil
		})
	})
}

func (m *model) compare(tx *Tx, branch int64, line []*snapshot.Set) {
	frames, err := tx.Frames(branch, FrameQuery{Limit: 1000, Changed: true})
	require.NoError(m.t, err)
	require.Len(m.t, frames, len(line))
	histories := map[string][]int64{}
	before := snapshot.NewSet()
	for seq, set := range line {
		f := frames[len(line)-1-seq]
		require.Equal(m.t, int64(seq), f.Seq)
		require.Equal(m.t, set.Root(), f.Root)
		require.Equal(m.t, snapshot.Diff(before, set), append([]snapshot.Change(nil), f.Changed...), "frame %d of branch %d", seq, branch)
		h, err := tx.LoadFrame(branch, int64(seq))
		require.NoError(m.t, err)
		require.Equal(m.t, set.Keyframe(int64(seq)), h.Set.Keyframe(int64(seq)))
		for _, c := range f.Changed {
			if c.Old == nil {
				histories[c.Key] = nil
			}
			histories[c.Key] = append(histories[c.Key], int64(seq))
		}
		before = set
	}
	for key, want := range histories {
		if _, ok := before.Get(key); !ok {
			continue
		}
		history, err := tx.TaskHistory(branch, key, FrameQuery{})
		require.NoError(m.t, err)
		var got []int64
		for _, f := range slices.Backward(history) {
			got = append(got, f.Seq)
			require.Equal(m.t, line[f.Seq].Root(), f.Root)
			at, ok := line[f.Seq].Get(key)
			require.True(m.t, ok)
			require.Equal(m.t, at, *f.Changed[0].New)
		}
		require.Equal(m.t, want, got)
	}
}

func (m *model) diffs(tx *Tx) {
	var all []Position
	for branch, line := range m.lines {
		for seq := range line {
			all = append(all, Position{branch, int64(seq)})
		}
	}
	slices.SortFunc(all, func(a, b Position) int { return int(a.Branch-b.Branch)*1000 + int(a.Seq-b.Seq) })
	for range 20 {
		a, b := rapid.SampledFrom(all).Draw(m.t, "a"), rapid.SampledFrom(all).Draw(m.t, "b")
		want := snapshot.Diff(m.lines[a.Branch][a.Seq], m.lines[b.Branch][b.Seq])
		got, err := tx.DiffFrames(a, b)
		require.NoError(m.t, err)
		require.Equal(m.t, want, append([]snapshot.Change(nil), got...), "%v to %v", a, b)
	}
}

// A keyframe may be of any frame, and is found from any branch.
func TestKeyframesAreWritten(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	for i := range 2000 {
		b.put(h, task(fmt.Sprintf("task-%02d", i%50), snapshot.Done, i))
	}
	count := func() (n int) {
		b.view(func(tx *Tx) error { return tx.get(`SELECT count(*) FROM keyframe`, nil, &n) })
		return n
	}
	assert.InDelta(t, 8, count(), 3)
	assert.Equal(t, h.Set.Root(), b.load(h.Branch, Newest).Set.Root())
	fork := b.run(Run{Parent: r.ID})
	var br Branch
	b.update(func(tx *Tx) (err error) { br, err = tx.Fork(h.Branch, 1990, fork.ID, ""); return err })
	loaded := b.load(br.ID, Newest)
	assert.Less(t, loaded.since, keyframeMin, "folded from the parent's keyframe")
	assert.NotZero(t, loaded.keyframe)
	assert.Equal(t, b.load(h.Branch, 1990).Set.Root(), loaded.Set.Root())
}

// A large change is compressed, a small one is not, and both are read.
func TestLargeDelta(t *testing.T) {
	b := newBook(t, Options{})
	_, h := b.start()
	var rows []snapshot.Row
	for i := range 500 {
		rows = append(rows, task(fmt.Sprintf("a/task/with/a/long/name-%d", i), snapshot.Pending, 1))
	}
	b.put(h, rows...)
	b.put(h, rows[0])
	b.view(func(tx *Tx) error {
		for seq, packed := range []bool{true, false} {
			var stored []byte
			require.NoError(t, tx.get(`SELECT delta FROM frame WHERE seq=?`, []any{seq}, &stored))
			assert.Equal(t, packed, slices.Equal(stored[:min(4, len(stored))], zstdMagic))
		}
		frames, err := tx.Frames(h.Branch, FrameQuery{Changed: true})
		assert.Len(t, frames[1].Changed, 500)
		return err
	})
	assert.Equal(t, h.Set.Root(), b.load(h.Branch, 1).Set.Root())
}

// Whatever is damaged is found by the one who loads it.
func TestLoadVerifies(t *testing.T) {
	for _, statement := range []string{
		`UPDATE frame SET root = zeroblob(32) WHERE seq = 5`,
		`UPDATE frame SET delta = (SELECT delta FROM frame WHERE seq = 3) WHERE seq = 5`,
		`UPDATE frame SET delta = x'00' WHERE seq = 4`,
		`UPDATE frame SET delta = x'ff' WHERE seq = 4`,
		`DELETE FROM frame WHERE seq = 4`,
		`DELETE FROM frame WHERE seq = 0`,
		`DELETE FROM frame WHERE seq >= 4 AND seq < 6; UPDATE frame SET seq = 4 WHERE seq = 6; UPDATE frame SET seq = 5 WHERE seq = 4`,
		`INSERT INTO keyframe VALUES(1, 4, x'00')`,
		`INSERT INTO keyframe SELECT 1, 5, body FROM keyframe WHERE seq = 6`,
	} {
		b := &book{TB: t, db: open(t, filepath.Join(t.TempDir(), "ledger.db"), Options{keyframes: 720})}
		b.update(func(tx *Tx) error {
			w, err := tx.EnsureWorktree(Worktree{Path: "/w", Kind: KindPlain})
			b.worktree = w.ID
			return err
		})
		_, h := b.start()
		for i := range 7 {
			b.put(h, task("x", snapshot.Done, i))
		}
		require.Equal(t, h.Set.Root(), b.load(h.Branch, Newest).Set.Root())
		var key int64
		b.view(func(tx *Tx) error { return tx.get(`SELECT seq FROM keyframe`, nil, &key) })
		require.Equal(t, int64(6), key)
		b.update(func(tx *Tx) error { _, err := tx.exec(statement); return err })
		err := b.db.View(bg, func(tx *Tx) error { _, err := tx.LoadFrame(h.Branch, 5); return err })
		require.ErrorAs(t, err, new(*CorruptError), statement)
	}
}

// The kind that nearly all frames are of takes no room, and is read like others.
func TestKindOfAFrame(t *testing.T) {
	b := newBook(t, Options{})
	_, h := b.start()
	for _, kind := range []string{"start", "", FrameOutcome} {
		f := b.append(h, NewFrame{Kind: kind})
		assert.Equal(t, kind == "start", f.Kind == "start")
	}
	b.view(func(tx *Tx) error {
		frames, err := tx.Frames(h.Branch, FrameQuery{})
		require.NoError(t, err)
		var kinds []string
		for _, f := range frames {
			kinds = append(kinds, f.Kind)
		}
		assert.Equal(t, []string{FrameOutcome, FrameOutcome, "start"}, kinds)
		var stored string
		require.NoError(t, tx.get(`SELECT kind FROM frame WHERE seq=2`, nil, &stored))
		assert.Empty(t, stored)
		return nil
	})
}
