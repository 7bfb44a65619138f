package timeline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
)

// book is a ledger with runs made by hand.
type book struct {
	*testing.T
	db *ledger.DB
	wt int64
}

func newBook(t *testing.T) *book {
	b := &book{T: t, db: ledgertest.Open(t)}
	b.update(func(tx *ledger.Tx) error {
		row, err := tx.EnsureWorktree(ledger.Worktree{Path: "/w", Kind: "git", Dev: 1, Ino: 1, Host: "h"})
		b.wt = row.ID
		return err
	})
	return b
}

func (b *book) update(f func(*ledger.Tx) error) {
	b.Helper()
	require.NoError(b, b.db.Update(context.Background(), f))
}

// run makes a run with frames 0 to n, each settling a task: t1, t2, …
func (b *book) run(name string, n int) (run ledger.Run) {
	b.update(func(tx *ledger.Tx) (err error) {
		if run, err = tx.CreateRun(ledger.Run{Source: "workflow", Kind: "workflow", Name: name, WorktreeID: b.wt}); err != nil {
			return err
		}
		if _, err = tx.CreateBranch(run.ID); err != nil {
			return err
		}
		return b.grow(tx, &run, 0, n)
	})
	return run
}

// fork makes a run that begins at a frame of another, and has n frames of its
// own.
func (b *book) fork(parent ledger.Run, seq int64, n int) (run ledger.Run) {
	b.update(func(tx *ledger.Tx) (err error) { run, err = b.forked(tx, parent, seq, n); return err })
	return run
}

func (b *book) forked(tx *ledger.Tx, parent ledger.Run, seq int64, n int) (run ledger.Run, err error) {
	p, err := tx.Run(parent.ID)
	if err != nil {
		return run, err
	}
	run, err = tx.CreateRun(ledger.Run{Source: "workflow", Kind: "workflow", WorktreeID: b.wt, Parent: p.ID, Lineage: p.Lineage})
	if err != nil {
		return run, err
	}
	if _, err = tx.Fork(p.HeadBranch, seq, run.ID, "try"); err != nil {
		return run, err
	}
	return run, b.grow(tx, &run, int(seq)+1, n-1)
}

func (b *book) grow(tx *ledger.Tx, run *ledger.Run, from, more int) error {
	now, err := tx.Run(run.ID)
	if err != nil {
		return err
	}
	*run = now
	head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest)
	if err != nil {
		return err
	}
	for i := from; i <= from+more; i++ {
		f := ledger.NewFrame{Kind: "outcome", Put: []snapshot.Row{{Key: fmt.Sprintf("t%d~0123456789ab", i), Kind: "pure", State: snapshot.Done, Attempt: 1}}}
		if i == 0 {
			f.Kind = "start"
		}
		if i == 2 {
			f.Note = "two"
		}
		f.Events = []ledger.Event{{Type: "settled", Task: f.Put[0].Key}}
		if _, err := tx.AppendFrame(head, f); err != nil {
			return err
		}
	}
	return nil
}

func (b *book) read(q timeline.Query) (*timeline.Tree, error) {
	return (&timeline.Reader{Ledger: b.db}).Read(context.Background(), q)
}

// drawn is a tree as text: "r1: 2 1 0", a fork behind the frame it begins at.
func drawn(t *timeline.Tree) string {
	var s strings.Builder
	fmt.Fprintf(&s, "r%d:", t.Run.ID)
	for _, f := range t.Frames {
		fmt.Fprintf(&s, " %d", f.Seq)
		for _, fork := range f.Forks {
			fmt.Fprintf(&s, " (%s)", drawn(fork))
		}
	}
	for _, cut := range t.Archived {
		fmt.Fprintf(&s, " [%s]", drawn(cut))
	}
	if t.More {
		s.WriteString(" …")
	}
	return s.String()
}

func TestRead(t *testing.T) {
	b := newBook(t)
	first := b.run("first", 3)
	second := b.fork(first, 1, 2)
	b.fork(second, 2, 1)
	b.fork(first, 1, 1)
	empty := b.fork(first, 3, 0)
	for _, test := range []struct {
		name string
		q    timeline.Query
		want string
	}{
		{"flat", timeline.Query{Run: first.ID}, "r1: 3 2 1 0"},
		{"the tree, forks on their frames", timeline.Query{Run: first.ID, Forks: true}, "r1: 3 (r5:) 2 1 (r2: 3 2 (r3: 3)) (r4: 2) 0"},
		{"a page", timeline.Query{Run: first.ID, Limit: 2}, "r1: 3 2 …"},
		{"the page before, with its forks", timeline.Query{Run: first.ID, Limit: 2, Before: 2, Forks: true}, "r1: 1 (r2: 3 2 (r3: 3)) (r4: 2) 0"},
		{"a page of one", timeline.Query{Run: first.ID, Limit: 1, Before: 1}, "r1: 0"},
		{"a fork begins with its ancestors", timeline.Query{Run: second.ID, Forks: true}, "r2: 3 2 (r3: 3) 1 0"},
		{"a fork without frames of its own", timeline.Query{Run: empty.ID}, "r5: 3 2 1 0"},
		{"one task", timeline.Query{Run: first.ID, Task: "t2~0123456789ab"}, "r1: 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := b.read(test.q)
			require.NoError(t, err)
			assert.Equal(t, test.want, drawn(got))
		})
	}
	got, err := b.read(timeline.Query{Run: second.ID})
	require.NoError(t, err)
	assert.Equal(t, &timeline.Base{Run: first.ID, Frame: 1}, got.Base)
	assert.Equal(t, []int64{second.ID, second.ID, first.ID, first.ID}, []int64{got.Frames[0].Run, got.Frames[1].Run, got.Frames[2].Run, got.Frames[3].Run})
	f := got.Frames[1]
	assert.Equal(t, "two", f.Label)
	assert.Equal(t, "t2~0123456789ab", f.Settled)
	assert.Equal(t, 1, f.Events)
	assert.Equal(t, []timeline.TaskChange{{ID: "t2~0123456789ab", Kind: "pure", New: "done", Attempt: 1}}, f.Changes)

	_, err = b.read(timeline.Query{Run: 99})
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, err = b.read(timeline.Query{Run: first.ID, Task: "none"})
	var none *timeline.NoPointError
	require.ErrorAs(t, err, &none)
}

// What a move has cut off stays visible when asked for, with its forks.
func TestReadArchived(t *testing.T) {
	b := newBook(t)
	run := b.run("", 3)
	b.fork(run, 3, 1)
	b.update(func(tx *ledger.Tx) error {
		if _, err := tx.Rewind(run.ID, 1, 0); err != nil {
			return err
		}
		return b.grow(tx, &run, 2, 0)
	})
	got, err := b.read(timeline.Query{Run: run.ID, Forks: true})
	require.NoError(t, err)
	assert.Equal(t, "r1: 2 1 0", drawn(got))
	assert.Nil(t, got.Base)
	got, err = b.read(timeline.Query{Run: run.ID, Forks: true, Archived: true})
	require.NoError(t, err)
	assert.Equal(t, "r1: 2 1 0 [r1: 3 (r2: 4) 2 1 0]", drawn(got))
}

func TestReadWithoutFrames(t *testing.T) {
	b := newBook(t)
	var run ledger.Run
	b.update(func(tx *ledger.Tx) (err error) {
		run, err = tx.CreateRun(ledger.Run{Source: "exec", WorktreeID: b.wt})
		return err
	})
	_, err := b.read(timeline.Query{Run: run.ID})
	var none *timeline.NoFramesError
	require.ErrorAs(t, err, &none)

	b.update(func(tx *ledger.Tx) error { _, err := tx.CreateBranch(run.ID); return err })
	got, err := b.read(timeline.Query{Run: run.ID, Forks: true, Archived: true})
	require.NoError(t, err)
	assert.Empty(t, got.Frames)
}

// Forks of forks end somewhere.
func TestReadTooDeep(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	first := b.run("", 0)
	last := first
	b.update(func(tx *ledger.Tx) (err error) {
		for i := range int64(100) {
			if last, err = b.forked(tx, last, i, 1); err != nil {
				return err
			}
		}
		return nil
	})
	_, err := b.read(timeline.Query{Run: first.ID, Forks: true})
	require.NoError(t, err)
	b.fork(last, 100, 1)
	_, err = b.read(timeline.Query{Run: first.ID, Forks: true})
	var deep *timeline.DepthError
	require.ErrorAs(t, err, &deep)
}

// A thousand frames and a hundred forks are read in well under a second.
func TestReadManyFrames(t *testing.T) {
	b := newBook(t)
	run := b.run("", 999)
	b.update(func(tx *ledger.Tx) error {
		for i := range int64(100) {
			if _, err := b.forked(tx, run, i*10, 3); err != nil {
				return err
			}
		}
		return nil
	})
	began := time.Now()
	got, err := b.read(timeline.Query{Run: run.ID, Forks: true, Limit: 1000})
	took := time.Since(began)
	require.NoError(t, err)
	assert.Len(t, got.Frames, 1000)
	forks := 0
	for _, f := range got.Frames {
		forks += len(f.Forks)
	}
	assert.Equal(t, 100, forks)
	assert.Less(t, took, time.Second)
}

func TestLocate(t *testing.T) {
	b := newBook(t)
	run := b.run("", 3)
	other := b.run("", 0)
	b.update(func(tx *ledger.Tx) (err error) {
		hex := strings.Repeat("0123456789", 4)
		keep := func(run, attempt int64, edge, label string) (ledger.Checkpoint, error) {
			return tx.AppendCheckpoint(ledger.Checkpoint{WorktreeID: b.wt, RunID: run, AttemptID: attempt, Edge: edge, Tier: ledger.TierTool,
				Commit: hex, Tree: hex, Label: label, Stats: "{}"})
		}
		const task = "t1~0123456789ab"
		first, err := tx.StartAttempt(ledger.Attempt{RunID: run.ID, Task: task, Branch: run.HeadBranch})
		if err != nil {
			return err
		}
		c, err := keep(run.ID, first.ID, ledger.EdgeBefore, "mine")
		if err != nil {
			return err
		}
		if err = tx.SetAttemptBefore(first.ID, c.ID); err != nil {
			return err
		}
		if err = tx.FinishAttempt(first.ID, ledger.Finish{Outcome: ledger.OutcomeFailed, After: c.ID}); err != nil {
			return err
		}
		if _, err = tx.StartAttempt(ledger.Attempt{RunID: run.ID, Task: task, Branch: run.HeadBranch}); err != nil {
			return err
		}
		if _, err = keep(other.ID, 0, "", "theirs"); err != nil {
			return err
		}
		head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest)
		if err != nil {
			return err
		}
		_, err = tx.AppendFrame(head, ledger.NewFrame{Kind: "outcome", Checkpoint: c.ID, Put: []snapshot.Row{
			{Key: "p0.a/make~1111111111aa", Kind: "sh", State: snapshot.Done}, {Key: "p0.b/make~2222222222bb", Kind: "sh", State: snapshot.Done},
			{Key: "p0.a/maker[x]", Kind: "sh"}, {Key: "build[linux]", Kind: "sh"}, {Key: "ask#2", Kind: "signal"}}})
		return err
	})
	for _, test := range []struct {
		point string
		want  string // frame, task, checkpoint; or the error
	}{
		{"last", "4  c1"},
		{"0", "0  "},
		{"start", "0  "},
		{"-1", "3  "},
		{"4", "4  c1"},
		{"5", "r1@5: there is no such frame; there is 0 to 4"},
		{"-9", "r1@-9: there is no such frame; there is 0 to 4"},
		{"~two", "2  "},
		{"~mine", "-1  c1"},
		{"~theirs", "r1@~theirs: the label is on c2, which is not of this run"},
		{"~none", "r1@~none: there is no such label; there is ~two"},
		{"c1", "-1 t1~0123456789ab#1 c1"},
		{"c2", "r1@c2: the checkpoint is not of this run"},
		{"c9", "r1@c9: there is no such checkpoint"},
		{"t3", "3 t3~0123456789ab "},
		{"t3~0123", "3 t3~0123456789ab "},
		{"t1#1", "1 t1~0123456789ab#1 c1"},
		{"t1#1.before", "-1 t1~0123456789ab#1 c1"},
		{"t1#2.before", "-1 t1~0123456789ab#2 "},
		{"t1#3", "r1@t1#3: t1~0123456789ab has no such attempt; there is #1 to #2"},
		{"t2#1", "r1@t2#1: the task was never tried"},
		{"before", "-1 t1~0123456789ab#2 "},
		{"p0.a/make", "4 p0.a/make~1111111111aa c1"},
		{"make", "r1@make is ambiguous: p0.a/make~1111111111aa, p0.b/make~2222222222bb"},
		{"make~1", "4 p0.a/make~1111111111aa c1"},
		{"build[linux]", "4 build[linux] c1"},
		{"build", "4 build[linux] c1"},
		{"ask#2", "4 ask#2 c1"},
		{"mak", "r1@mak is ambiguous: p0.a/maker[x], p0.a/make~1111111111aa, p0.b/make~2222222222bb"},
		{"t", "r1@t is ambiguous: t0~0123456789ab, t1~0123456789ab, t2~0123456789ab, t3~0123456789ab"},
		{"bld", "r1@bld: there is no such task; there is ask, build, p0.a/maker, p0.a/make, p0.b/make, t0, t1, t2"},
	} {
		t.Run(test.point, func(t *testing.T) {
			a, err := snapshot.ParseAddress("r1@" + test.point)
			require.NoError(t, err)
			var got string
			err = b.db.View(context.Background(), func(tx *ledger.Tx) error {
				at, err := timeline.Locate(tx, run, a.Point)
				if err != nil {
					return err
				}
				got = fmt.Sprintf("%d %s", at.Frame, at.Task)
				if at.Attempt != nil {
					got += fmt.Sprintf("#%d", at.Attempt.Number)
				}
				got += " "
				if at.Checkpoint.ID != 0 {
					got += fmt.Sprintf("c%d", at.Checkpoint.ID)
				}
				return nil
			})
			if err != nil {
				got = err.Error()
			}
			assert.Equal(t, test.want, got)
		})
	}
}
