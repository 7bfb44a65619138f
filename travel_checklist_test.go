package retcon_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

// look reads the ledger as another process would.
func (f *flow) look(do func(tx *ledger.Tx) error) {
	f.t.Helper()
	db, err := ledger.Open(f.Folder()+"/ledger.db", ledger.Options{ReadOnly: true})
	require.NoError(f.t, err)
	defer db.Close()
	require.NoError(f.t, db.View(ctx, do))
}

// change writes to the ledger as another process would.
func (f *flow) change(do func(tx *ledger.Tx) error) {
	f.t.Helper()
	db, err := ledger.Open(f.Folder()+"/ledger.db", ledger.Options{})
	require.NoError(f.t, err)
	defer db.Close()
	require.NoError(f.t, db.Update(ctx, do))
}

func (f *flow) ops() (n int) {
	f.look(func(tx *ledger.Tx) error {
		ops, err := tx.Ops(ledger.OpQuery{})
		n = len(ops)
		return err
	})
	return n
}

// T69: what came after the frame is out of sight, and the audit tells of it.
func TestT69WhatCameAfterIsGone(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err)
	tree, err := f.Timeline(ctx, retcon.TimelineOptions{Run: "r1"})
	require.NoError(t, err)
	assert.Len(t, tree.Frames, 2)
	assert.Empty(t, tree.Archived)
	tree, err = f.Timeline(ctx, retcon.TimelineOptions{Run: "r1", All: true})
	require.NoError(t, err)
	assert.Len(t, tree.Archived, 1, "it is kept, for those who ask")
	f.look(func(tx *ledger.Tx) error {
		rows, err := tx.AuditRows(ledger.AuditQuery{})
		said := ""
		for _, r := range rows {
			said += r.Action + " "
		}
		assert.Contains(t, said, "op.begin")
		assert.Contains(t, said, "op.finish")
		return err
	})
}

// T70, T72: a run or a frame that is not there is a typed error, and nothing is
// written.
func TestT70NothingIsWritten(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	f.exec("other", func() {})
	var run *retcon.RunError
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r99", Frame: 1})
	require.ErrorAs(t, err, &run)
	var point *timeline.NoPointError
	for _, frame := range []int64{-1, 4} {
		_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: frame})
		require.ErrorAs(t, err, &point, frame)
	}
	var none *timeline.NoFramesError
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r2", Frame: 0})
	require.ErrorAs(t, err, &none)
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, Confirm: func(*retcon.Plan) (bool, error) { return false, nil }})
	require.ErrorIs(t, err, timeline.ErrDeclined)
	assert.Zero(t, f.ops())
}

// T71: going where one is does nothing, and succeeds.
func TestT71NewestFrameIsANoOp(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	r, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 3})
	require.NoError(t, err)
	assert.True(t, r.NothingToDo)
	assert.Zero(t, f.ops())
}

// T73: to the start, and before anything the run did.
func TestT73ToTheStart(t *testing.T) {
	f := newFlow(t)
	f.write("own", "there before")
	require.Equal(t, "ok", f.run(threeSteps).Status)
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 0})
	require.NoError(t, err)
	assert.Equal(t, "own=there before", f.files())
	require.Equal(t, "ok", f.resume("r1").Status)
	assert.Equal(t, "build.txt=2 log=plan+build+test own=there before plan.txt=1 test.txt=3", f.files())
}

const spanning = `
def side(name):
    sh("echo %s >> $COUNT; echo %s > %s.txt" % (name, name, name), name="one").out()
    sh("echo %s2 >> $COUNT; echo more >> %s.txt" % (name, name), name="two").out()

def main(ctx):
    sh("echo base >> $COUNT; echo 0 > base", name="base").out()
    parallel({"a": lambda: side("a"), "b": lambda: side("b")})
    sh("echo end >> $COUNT; cat a.txt b.txt > end", name="end").out()
`

// T74, T98: at every frame of a run with branches side by side, the state after
// a rewind is the frame's, and from there the run comes to the same end.
func TestT74StateIsTheFrames(t *testing.T) {
	f := newFlow(t)
	r := f.run(spanning)
	require.Equal(t, "ok", r.Status)
	end := f.files()
	roots := map[int64]string{}
	f.look(func(tx *ledger.Tx) error {
		b, err := tx.RunHead(1)
		if err != nil {
			return err
		}
		frames, err := tx.Frames(b.ID, ledger.FrameQuery{})
		for _, fr := range frames {
			roots[fr.Seq] = fr.Root.String()
		}
		return err
	})
	for frame := r.Frame - 1; frame >= 0; frame-- {
		_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: frame})
		require.NoError(t, err, frame)
		assert.Equal(t, roots[frame], f.root(), frame)
		require.Equal(t, "ok", f.resume("r1").Status, frame)
		assert.Equal(t, end, f.files(), frame)
		_, err = f.Undo(ctx, retcon.MoveOptions{Conflicts: timeline.Theirs})
		require.NoError(t, err, frame)
		assert.Equal(t, end, f.files(), frame)
	}
}

// T76: a loop goes on with the iteration it was in.
func TestT76LoopIteration(t *testing.T) {
	f := newFlow(t)
	body := `
def main(ctx):
    def step(i):
        sh("echo i%d >> $COUNT; echo %d >> steps" % (i, i), name="step").out()
        return True if i == 3 else None
    loop(step)
`
	require.Equal(t, "ok", f.run(body).Status)
	f.ran()
	_, err := f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "step#3"})
	if err != nil { // several tasks are called step: by frame, then
		_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 2})
	}
	require.NoError(t, err)
	assert.Equal(t, "steps=0+1", f.files())
	var iterations uint32
	f.look(func(tx *ledger.Tx) error {
		b, err := tx.RunHead(1)
		if err != nil {
			return err
		}
		h, err := tx.LoadFrame(b.ID, ledger.Newest)
		if err == nil {
			row, _ := h.Set.Get("~loop/loop")
			iterations = row.Iter
		}
		return err
	})
	assert.Equal(t, uint32(2), iterations)
	require.Equal(t, "ok", f.resume("r1").Status)
	assert.Equal(t, "steps=0+1+2+3", f.files())
}

const asking = `
def main(ctx):
    plan = sh("echo plan >> $COUNT; echo %s", name="plan")
    if signal("approve", of=plan).out():
        return sh("echo ship >> $COUNT; echo 1 > shipped", name="ship").out()
`

// T77, D51: an answer given after the frame is given again when the question is
// the same, and asked for again when it is not, or when that is wanted.
func TestT77Signals(t *testing.T) {
	f := newFlow(t)
	start := func(word string) string { return strings.Replace(asking, "%s", word, 1) }
	require.Equal(t, "waiting", f.run(start("one")).Status)
	_, err := f.Signal(ctx, retcon.SignalOptions{Run: "r1", Name: "approve", Value: []byte("true")})
	require.NoError(t, err)
	require.Equal(t, "ok", f.resume("r1").Status)

	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 0})
	require.NoError(t, err)
	require.Equal(t, "ok", f.resume("r1").Status, "the same question: the answer holds")

	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 0, Reapply: timeline.ReapplyNone})
	require.NoError(t, err)
	require.Equal(t, "waiting", f.resume("r1").Status, "asked again")

	_, err = f.Signal(ctx, retcon.SignalOptions{Run: "r1", Name: "approve", Value: []byte("true")})
	require.NoError(t, err)
	require.Equal(t, "ok", f.resume("r1").Status)
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 0})
	require.NoError(t, err)
	f.ran()
	r, err := f.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: "r1", File: f.body(start("two"))})
	require.NoError(t, err)
	assert.Equal(t, "waiting", r.Status, "another plan is another question")
	assert.Equal(t, "plan", f.ran())
}

// A task that has nothing to do with files is gone back to with the files of
// that moment.
func TestTravelToAPureTask(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(`
def main(ctx):
    sh("echo 1 > a", name="first").out()
    pure(lambda: 1, name="think").out()
    sh("echo 2 > b", name="last").out()
`).Status)
	_, err := f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "think"})
	require.NoError(t, err)
	assert.Equal(t, "a=1", f.files())
}

// T90: what does not depend on the task is left as it was.
func TestT90SiblingsAreUntouched(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(spanning).Status)
	f.ran()
	_, err := f.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "p0.a/one"})
	require.NoError(t, err)
	require.Equal(t, "ok", f.resume("r1").Status)
	assert.Equal(t, "a", f.ran(), "the same files come out: what follows is kept, the other branch too")
}

// T96: failed attempts can be gone back to.
func TestT96FailedAttempts(t *testing.T) {
	f := newFlow(t)
	r := f.run(`
def main(ctx):
    sh("echo first > a", name="first").out()
    sh("echo broken > b; exit 1", name="second").out()
`)
	require.Equal(t, "failed", r.Status)
	assert.Equal(t, "a=first b=broken", f.files())
	_, err := f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "second"})
	require.NoError(t, err)
	assert.Equal(t, "a=first", f.files())
	_, err = f.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	_, err = f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "second", After: true})
	require.NoError(t, err)
	assert.Equal(t, "a=first b=broken", f.files())
}

// T126, T129, T130, T139: one at a time moves or runs in a worktree, and who is
// in the way is told.
func TestT139LiveOwnerRefuses(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	owner := checkpoint.Self("somebody else") // another of this process: it is alive
	var lease ledger.Lease
	f.change(func(tx *ledger.Tx) error {
		rows, err := tx.Worktrees()
		if err != nil {
			return err
		}
		lease, err = tx.Acquire(ledger.WorkflowResource(rows[0].ID), owner, 0, checkpoint.Alive)
		return err
	})
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	var live *timeline.LiveRunError
	require.ErrorAs(t, err, &live)
	assert.Equal(t, owner.PID, live.Owner.PID)
	var locked *ledger.LockedError
	_, err = f.RunWorkflow(ctx, retcon.RunOptions{File: f.body(threeSteps)})
	require.ErrorAs(t, err, &locked)
	f.change(func(tx *ledger.Tx) error { return tx.Release(lease) })
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err)
}

// T131, T132: an agent's eleventh move within an hour is refused, with the time
// of the next; what changed nothing does not count.
func TestT131RateLimit(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	dir := f.dir
	require.NoError(t, f.Close())
	agent, err := retcon.Open(ctx, retcon.Options{Dir: dir, Now: func() time.Time { return f.clock }, Actor: "claude", Create: true})
	require.NoError(t, err)
	defer agent.Close()
	for i := range 10 {
		here := int64(3 - 2*(i%2))
		_, err := agent.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: here}) // nothing to do
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = agent.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
		} else {
			_, err = agent.Undo(ctx, retcon.MoveOptions{})
		}
		require.NoError(t, err, i)
	}
	_, err = agent.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	var limited *timeline.RateLimitError
	require.ErrorAs(t, err, &limited)
	assert.Equal(t, f.clock.Add(3600e9), limited.Retry)
	_, err = agent.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, DryRun: true})
	require.NoError(t, err, "looking is free")
}

// T133: whoever is refused, for a limit, a lock or for moving what they stand on,
// is in the audit, with what they asked for; who only looks is not. Where the
// ledger can't be written they are refused all the same.
func TestT133RefusalsAreAudited(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	type row struct{ Actor, Verb, Target, Run, Code, Message string }
	var seen int64
	rejected := func() (rows []row) {
		f.look(func(tx *ledger.Tx) error {
			all, err := tx.AuditRows(ledger.AuditQuery{})
			for _, a := range slices.Backward(all) {
				if a.ID > seen && a.Action == "op.rejected" {
					r := row{Actor: a.Actor}
					require.NoError(t, json.Unmarshal([]byte(a.Detail), &r))
					rows = append(rows, r)
				}
			}
			if len(all) > 0 {
				seen = all[0].ID
			}
			return err
		})
		return rows
	}
	as := func(o retcon.Options) *retcon.Workspace {
		o.Dir, o.Now = f.dir, func() time.Time { return f.clock }
		w, err := retcon.Open(ctx, o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, w.Close()) })
		return w
	}

	holder, err := vcs.Open(f.dir, vcs.Options{})
	require.NoError(t, err)
	defer holder.Close()
	since := f.clock.Add(-time.Minute)
	unlock, err := holder.LockMove("somebody (pid 7)", since)
	require.NoError(t, err)
	var locked *vcs.LockedError
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, "somebody (pid 7)", locked.Holder)
	assert.Equal(t, since, locked.Since)
	_, err = f.Restore(ctx, retcon.RestoreOptions{Ref: "r1@plan", DryRun: true})
	require.ErrorAs(t, err, &locked)
	_, err = f.Restore(ctx, retcon.RestoreOptions{Ref: "r1@plan"})
	require.ErrorAs(t, err, &locked)
	said := "the worktree is locked by somebody (pid 7) since 2030-01-01T11:59:00Z"
	assert.Equal(t, []row{{"user", "rewind", "1", "r1", "LOCKED", said}, {"user", "restore", "r1@plan", "", "LOCKED", said}}, rejected())

	// The ledger is being written, and goes on being.
	writing, written := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	other, err := ledger.Open(f.Folder()+"/ledger.db", ledger.Options{})
	require.NoError(t, err)
	defer other.Close()
	retry := as(retcon.Options{})
	_, err = retry.Undo(ctx, retcon.MoveOptions{}) // nothing to undo; all is opened that has to be
	require.ErrorIs(t, err, ledger.ErrNotFound)
	require.Empty(t, rejected())
	go func() {
		done <- other.Update(ctx, func(*ledger.Tx) error { close(writing); <-written; return nil })
	}()
	<-writing
	self := as(retcon.Options{OwnRun: "r2"})
	close(written)
	require.NoError(t, <-done)
	unlock()

	f.exec("agent", func() { // r2
		_, err = self.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "build", Attempt: 1, Steal: true})
		assert.ErrorAs(t, err, new(*retcon.SelfOperationError))
		said := "r2 goes on and can't move the worktree it works in"
		assert.Equal(t, []row{{"user", "retry-task", "build#1", "r1", "SELF_OPERATION_DENIED", said}}, rejected())

		writing, written = make(chan struct{}), make(chan struct{})
		go func() {
			done <- other.Update(ctx, func(*ledger.Tx) error { close(writing); <-written; return nil })
		}()
		<-writing
		_, err = self.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "build", Steal: true})
		assert.ErrorAs(t, err, new(*retcon.SelfOperationError), "no row, and the same refusal")
		close(written)
		require.NoError(t, <-done)
		assert.Empty(t, rejected())

		_, err = f.Undo(ctx, retcon.MoveOptions{}) // nothing to undo is no refusal
		assert.ErrorIs(t, err, ledger.ErrNotFound)
		assert.Empty(t, rejected())
		_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
		assert.ErrorAs(t, err, new(*timeline.LiveRunError))
		if rows := rejected(); assert.Len(t, rows, 1) {
			assert.Equal(t, "LOCKED", rows[0].Code)
		}
	})

	claude := as(retcon.Options{Actor: "claude"})
	for i := range 11 {
		frame := int64(3 - 2*((i+1)%2))
		_, err = claude.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: frame, Exact: true})
		if frame == 3 {
			_, err = claude.Undo(ctx, retcon.MoveOptions{})
		}
		if err != nil {
			break
		}
	}
	require.ErrorAs(t, err, new(*timeline.RateLimitError))
	if rows := rejected(); assert.Len(t, rows, 1) {
		assert.Equal(t, "claude", rows[0].Actor)
		assert.Equal(t, "RATE_LIMITED", rows[0].Code)
		assert.Contains(t, rows[0].Message, "again at")
	}
}

// T150: a finished run is not run again; one whose files are not what it left
// goes on only with what is done anew.
func TestT150FinishedRun(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	f.ran()
	_, err := f.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: "r1"})
	require.Error(t, err)
	assert.Empty(t, f.ran())
}

// Two moves that begin with the same files are told apart: what each of them did
// is its own.
func TestMovesFromTheSameFiles(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	back := func() {
		t.Helper()
		_, err := f.Undo(ctx, retcon.MoveOptions{})
		require.NoError(t, err)
	}
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, LedgerOnly: true})
	require.NoError(t, err)
	back()
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 0})
	require.NoError(t, err)
	back()
	_, err = f.Restore(ctx, retcon.RestoreOptions{Ref: "r1@start"})
	require.NoError(t, err)
	assert.Equal(t, "", f.files())
}
