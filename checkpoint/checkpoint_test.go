package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
	"github.com/retcon-dev/retcon/vcs"
)

var ctx = context.Background()

// place is a plain folder with a ledger, and a clock that a test moves.
type place struct {
	testing.TB
	*checkpoint.Recorder
	root  string
	clock time.Time
}

func newPlace(t testing.TB) *place {
	t.Helper()
	p := &place{TB: t, root: filepath.Join(t.TempDir(), "work"), clock: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	require.NoError(t, os.Mkdir(p.root, 0o755))
	p.open(p.root)
	return p
}

// open opens the folder, wherever it is now, as another process would.
func (p *place) open(root string) {
	p.Helper()
	w, err := vcs.Open(root, vcs.Options{Create: true})
	require.NoError(p, err)
	db := ledgertest.OpenAt(p, filepath.Join(w.Folder(), "ledger.db"), ledger.Options{Now: func() time.Time { return p.clock }})
	p.Cleanup(func() { w.Close() })
	p.root, p.Recorder = root, &checkpoint.Recorder{Ledger: db, Worktree: w, Host: "here"}
}

func (p *place) write(path, content string) {
	p.Helper()
	require.NoError(p, os.WriteFile(filepath.Join(p.root, path), []byte(content), 0o644))
}

func (p *place) record(what checkpoint.What) checkpoint.Recorded {
	p.Helper()
	r, err := p.Record(ctx, what)
	require.NoError(p, err)
	return r
}

func (p *place) rows() (all []ledger.Checkpoint) {
	p.Helper()
	require.NoError(p, p.Ledger.View(ctx, func(tx *ledger.Tx) (err error) {
		all, err = tx.Checkpoints(ledger.CheckpointQuery{})
		return err
	}))
	return all
}

func (p *place) numbers() (ids []int64) {
	for _, c := range p.rows() {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestRecord(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("\xff", "not UTF-8")
	first := p.record(checkpoint.What{Tier: ledger.TierManual, Label: "start", Note: "n", Actor: "me", Pin: true})
	assert.Equal(t, int64(1), first.Checkpoint.ID)
	assert.Equal(t, checkpoint.Unknown, first.Facts.Changed)
	assert.Equal(t, 2, first.Facts.Files)

	p.write("a", "2")
	require.NoError(t, os.Mkdir(filepath.Join(p.root, "d"), 0o755))
	p.write("d/b", "2")
	second := p.record(checkpoint.What{Tier: ledger.TierTool})
	assert.Equal(t, 2, second.Facts.Changed, "a and d/b; d came with what is in it")
	assert.False(t, second.Facts.Unchanged)

	third := p.record(checkpoint.What{Tier: ledger.TierTool})
	assert.True(t, third.Facts.Unchanged)
	assert.Zero(t, third.Facts.Changed)
	assert.Equal(t, second.Checkpoint.Commit, third.Checkpoint.Commit)

	none := p.record(checkpoint.What{Tier: ledger.TierWatch, OnlyChanges: true})
	assert.Zero(t, none.Checkpoint.ID)

	rows := p.rows()
	require.Len(t, rows, 3)
	got := rows[2]
	assert.Equal(t, "start n me true manual", fmt.Sprint(got.Label, " ", got.Note, " ", got.Actor, " ", got.Pinned, " ", got.Tier))
	facts, err := checkpoint.FactsOf(rows[1])
	require.NoError(t, err)
	assert.Equal(t, second.Facts, facts, "what a row says is what was recorded")
}

func TestFactsKeepNamesThatAreNotText(t *testing.T) {
	p := newPlace(t)
	w, err := vcs.Open(p.root, vcs.Options{MaxFile: 3})
	require.NoError(t, err)
	defer w.Close()
	p.Worktree = w
	p.write("big\xff", "larger than three")
	r := p.record(checkpoint.What{Tier: ledger.TierTool})
	assert.True(t, r.Checkpoint.Partial)
	facts, err := checkpoint.FactsOf(p.rows()[0])
	require.NoError(t, err)
	assert.Equal(t, []vcs.Missing{{Path: "big\xff", Reason: "size", Size: 17}}, facts.NotCaptured)

	safety := p.record(checkpoint.What{Tier: ledger.TierSafety})
	assert.False(t, safety.Checkpoint.Partial, "what guards a move has no cap")
}

func TestFailedCaptureLeavesNoRow(t *testing.T) {
	p := newPlace(t)
	broken := errors.New("broken")
	_, err := p.Record(ctx, checkpoint.What{Tier: ledger.TierTool,
		Capture: func(context.Context, vcs.CaptureOptions) (*vcs.Capture, error) { return nil, broken }})
	require.ErrorIs(t, err, broken)
	assert.Empty(t, p.rows())
	require.NoError(t, p.Ledger.View(ctx, func(tx *ledger.Tx) error {
		rows, err := tx.Worktrees()
		assert.Empty(t, rows)
		return err
	}))
}

func TestTakenLabelIsRefusedBeforeCapturing(t *testing.T) {
	p := newPlace(t)
	p.record(checkpoint.What{Tier: ledger.TierManual, Label: "l"})
	looked := false
	what := checkpoint.What{Tier: ledger.TierManual, Label: "l",
		Capture: func(ctx context.Context, o vcs.CaptureOptions) (*vcs.Capture, error) {
			looked = true
			return p.Worktree.Capture(ctx, o)
		}}
	_, err := p.Record(ctx, what)
	var taken *ledger.LabelError
	require.ErrorAs(t, err, &taken)
	assert.Equal(t, int64(1), taken.Holder)
	assert.False(t, looked)

	what.MoveLabel = true
	moved := p.record(what)
	assert.Equal(t, "l", moved.Checkpoint.Label)
	rows := p.rows()
	assert.Equal(t, "l", rows[0].Label)
	assert.Empty(t, rows[1].Label)
}

func TestCheckLabel(t *testing.T) {
	for _, good := range []string{"before-merge", "v1.2", "größe", "c", "r", "c17a", "restart", "a/b", "beef"} {
		assert.NoError(t, checkpoint.CheckLabel(good), good)
	}
	for _, bad := range []string{"", "c17", "r3", "last", "now", "-1", "a b", "a\n", "a@b", "~a", "\xff", strings.Repeat("x", 201)} {
		var e *checkpoint.LabelSyntaxError
		assert.ErrorAs(t, checkpoint.CheckLabel(bad), &e, "%q", bad)
	}
}

func TestMovedFolderKeepsItsHistory(t *testing.T) {
	p := newPlace(t)
	first := p.record(checkpoint.What{Tier: ledger.TierManual})
	require.NoError(t, p.Ledger.Close())
	to := p.root + "-moved"
	require.NoError(t, os.Rename(p.root, to))
	t.Cleanup(func() { assert.NoError(t, os.Rename(to, p.root)) }) // where p looks for its ledger
	q := &place{TB: t, clock: p.clock}
	q.open(to)
	second := q.record(checkpoint.What{Tier: ledger.TierManual})
	assert.Equal(t, first.Checkpoint.WorktreeID, second.Checkpoint.WorktreeID)
	assert.True(t, second.Facts.Unchanged)
	require.NoError(t, q.Ledger.View(ctx, func(tx *ledger.Tx) error {
		rows, err := tx.Worktrees()
		require.Len(t, rows, 1)
		assert.Equal(t, to, rows[0].Path)
		return err
	}))
}

// P61: the path leads to another directory now.
func TestAnotherDirectoryAtTheSamePath(t *testing.T) {
	p := newPlace(t)
	first := p.record(checkpoint.What{Tier: ledger.TierManual})
	aside := p.root + "-aside"
	require.NoError(t, os.Rename(p.root, aside))
	require.NoError(t, os.Mkdir(p.root, 0o755))
	require.NoError(t, os.Rename(filepath.Join(aside, ".retcon"), filepath.Join(p.root, ".retcon")))
	p.write("other", "")
	w, err := vcs.Open(p.root, vcs.Options{})
	require.NoError(t, err)
	defer w.Close()
	p.Worktree = w

	_, err = p.Record(ctx, checkpoint.What{Tier: ledger.TierManual})
	var changed *ledger.RootChangedError
	require.ErrorAs(t, err, &changed)
	assert.Len(t, p.rows(), 1)

	p.Adopt = true
	second := p.record(checkpoint.What{Tier: ledger.TierManual})
	assert.Equal(t, first.Checkpoint.WorktreeID, second.Checkpoint.WorktreeID)
	p.Adopt = false
	p.record(checkpoint.What{Tier: ledger.TierManual})
}

func TestPrune(t *testing.T) {
	p := newPlace(t)
	n := 0
	record := func(what checkpoint.What) int64 {
		n++
		p.write("f", fmt.Sprint(n))
		return p.record(what).Checkpoint.ID
	}
	tool := checkpoint.What{Tier: ledger.TierTool}
	start := p.clock
	// Two in one hour, one in the next: an hour's newest stays.
	a1, a2 := record(tool), record(tool)
	p.clock = start.Add(time.Hour)
	a3 := record(tool)
	manual := record(checkpoint.What{Tier: ledger.TierManual})
	pinned := record(checkpoint.What{Tier: ledger.TierTool, Pin: true})
	labelled := record(checkpoint.What{Tier: ledger.TierWatch, Label: "keep"})
	rescue := record(checkpoint.What{Tier: ledger.TierRescue})
	a4 := record(tool)

	prune := func(policy checkpoint.Policy) []int64 {
		t.Helper()
		got, err := checkpoint.Prune(ctx, p.Ledger, policy)
		require.NoError(t, err)
		return got.Checkpoints
	}
	assert.Empty(t, prune(checkpoint.Policy{}), "nothing is old")
	p.clock = start.Add(40 * 24 * time.Hour)
	newest := record(tool)
	assert.Equal(t, []int64{a1, a3}, prune(checkpoint.Policy{DryRun: true}))
	assert.Len(t, p.rows(), 9, "a dry run deletes nothing")
	assert.Equal(t, []int64{a1, a3}, prune(checkpoint.Policy{}))
	assert.Empty(t, prune(checkpoint.Policy{}), "again")
	p.clock = start.Add(100 * 24 * time.Hour)
	assert.Equal(t, []int64{a2}, prune(checkpoint.Policy{}), "after three times as long, one a day")
	assert.Equal(t, []int64{newest, a4, rescue, labelled, pinned, manual}, p.numbers())
}

func TestPruneKeepsWhatUndoReaches(t *testing.T) {
	p := newPlace(t)
	var ops []ledger.Op
	var safeties []int64
	row := p.record(checkpoint.What{Tier: ledger.TierManual}).Checkpoint.WorktreeID
	move := func(verb, result string, undoes int64) ledger.Op {
		t.Helper()
		p.write("f", fmt.Sprint(len(ops)))
		safety := p.record(checkpoint.What{Tier: ledger.TierSafety}).Checkpoint
		safeties = append(safeties, safety.ID)
		var op ledger.Op
		require.NoError(t, p.Ledger.Commit(ctx, func(tx *ledger.Tx) (err error) {
			op, err = tx.BeginOp(ledger.Op{Verb: verb, Undoes: undoes, Plan: "{}",
				Worktrees: []ledger.OpWorktree{{WorktreeID: row, Safety: safety.Commit}}}, nil)
			if err != nil {
				return err
			}
			op, err = tx.FinishOp(op.ID, op.Token, result, "")
			return err
		}))
		ops = append(ops, op)
		return op
	}
	move("restore", ledger.ResultAborted, 0)      // 1: changed nothing
	undone := move("restore", ledger.ResultOK, 0) // 2
	move(ledger.VerbUndo, ledger.ResultOK, undone.ID)
	move("restore", ledger.ResultOK, 0) // 4: clears the way to redo 2
	again := move("restore", ledger.ResultOK, 0)
	move(ledger.VerbUndo, ledger.ResultOK, again.ID) // 6: can be redone
	p.clock = p.clock.Add(40 * 24 * time.Hour)
	would, err := checkpoint.Prune(ctx, p.Ledger, checkpoint.Policy{DryRun: true})
	require.NoError(t, err)
	got, err := checkpoint.Prune(ctx, p.Ledger, checkpoint.Policy{})
	require.NoError(t, err)
	assert.Equal(t, would, got)
	assert.Equal(t, []int64{ops[0].ID, ops[1].ID, ops[2].ID}, got.Ops)
	assert.Equal(t, safeties[:3], got.Checkpoints, "only what the others need is left")
	require.NoError(t, p.Ledger.View(ctx, func(tx *ledger.Tx) error {
		op, err := tx.RedoTarget(row)
		assert.Equal(t, ops[5].ID, op.ID)
		assert.NoError(t, err)
		op, err = tx.UndoTarget(row)
		assert.Equal(t, ops[3].ID, op.ID)
		return err
	}))
}

func TestLive(t *testing.T) {
	p := newPlace(t)
	want := map[vcs.Commit]bool{}
	for i := range 3 {
		p.write("f", fmt.Sprint(i))
		want[vcs.Commit(p.record(checkpoint.What{Tier: ledger.TierTool}).Checkpoint.Commit)] = true
	}
	got := map[vcs.Commit]bool{}
	require.NoError(t, checkpoint.Live(ctx, p.Ledger)(func(c vcs.Commit) error { got[c] = true; return nil }))
	assert.Equal(t, want, got)
	stop := errors.New("stop")
	require.ErrorIs(t, checkpoint.Live(ctx, p.Ledger)(func(vcs.Commit) error { return stop }), stop)
}

func TestShown(t *testing.T) {
	s := func(kind string) vcs.State { return vcs.State{Kind: kind} }
	ch := func(path, old, new string) vcs.FileChange {
		return vcs.FileChange{Path: path, Old: s(old), New: s(new)}
	}
	got := checkpoint.Shown([]vcs.FileChange{
		ch("a", "absent", "dir"), ch("a-b", "absent", "file"), ch("a/b", "absent", "dir"), ch("a/b/c", "absent", "file"),
		ch("empty", "absent", "dir"), ch("gone", "dir", "absent"), ch("gone/x", "link", "absent"),
		ch("mode", "dir", "dir"), ch("mode/x", "file", "file"), ch("node_modules", "absent", "ignored"),
		ch("swap", "dir", "file"), ch("swap/x", "file", "absent"), ch("was", "file", "ignored"),
	})
	var paths []string
	for _, c := range got {
		paths = append(paths, c.Path)
	}
	assert.Equal(t, "a-b a/b/c empty gone/x mode mode/x swap swap/x was", strings.Join(paths, " "))
}

func TestAlive(t *testing.T) {
	me := checkpoint.Self("me")
	assert.True(t, checkpoint.Alive(me))
	for name, change := range map[string]func(*ledger.Owner){
		"another boot":         func(o *ledger.Owner) { o.Boot += "x" },
		"no process":           func(o *ledger.Owner) { o.PID = 1 << 30 },
		"a later one's number": func(o *ledger.Owner) { o.Start++ },
		"nobody":               func(o *ledger.Owner) { *o = ledger.Owner{} },
	} {
		o := me
		change(&o)
		assert.False(t, checkpoint.Alive(o), name)
	}
	far := me
	far.Host, far.PID = me.Host+"x", 1<<30
	assert.True(t, checkpoint.Alive(far), "of another host nothing is known")
}

// Between a capture and its row nothing else knows that the commit is needed.
func TestCollectWaitsForTheRow(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	other, err := vcs.Open(p.root, vcs.Options{})
	require.NoError(t, err)
	defer other.Close()
	what := checkpoint.What{Tier: ledger.TierTool, Capture: func(ctx context.Context, o vcs.CaptureOptions) (*vcs.Capture, error) {
		c, err := p.Worktree.Capture(ctx, o)
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(filepath.Join(p.Worktree.Folder(), "statcache")))
		require.NoError(t, os.Mkdir(filepath.Join(p.Worktree.Folder(), "statcache"), 0o700))
		soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err = other.Collect(soon, vcs.CollectOptions{Roots: checkpoint.Live(ctx, p.Ledger)})
		assert.Error(t, err)
		return c, nil
	}}
	r := p.record(what)
	fresh, err := vcs.Open(p.root, vcs.Options{})
	require.NoError(t, err)
	defer fresh.Close()
	_, err = fresh.Collect(ctx, vcs.CollectOptions{Roots: checkpoint.Live(ctx, p.Ledger)})
	require.NoError(t, err)
	require.NoError(t, fresh.Complete(ctx, vcs.Commit(r.Checkpoint.Commit)))
}
