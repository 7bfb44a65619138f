package retcon_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// within opens a place as somebody who works in a run.
func (p *place) within(run string) *retcon.Workspace {
	p.t.Helper()
	w, err := retcon.Open(ctx, retcon.Options{Dir: p.dir, Now: func() time.Time { return p.clock }, OwnRun: run})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, w.Close()) })
	return w
}

// verbs are those that a run can't use on what it stands on; r1 is their target,
// where they have one.
func verbs(w *retcon.Workspace) map[string]func() error {
	travel := retcon.TravelOptions{Run: "r1", Task: "build", Steal: true, DryRun: true}
	run := func(_ any, err error) error { return err }
	return map[string]func() error{
		"rewind":     func() error { return run(w.Rewind(ctx, travel)) },
		"timetravel": func() error { return run(w.TimeTravel(ctx, travel)) },
		"revert":     func() error { return run(w.Revert(ctx, travel)) },
		"retry":      func() error { return run(w.RetryTask(ctx, travel)) },
		"rerun": func() error {
			o := travel
			o.Tasks = []string{"build"}
			return run(w.Rerun(ctx, o))
		},
		"restore": func() error { return run(w.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Steal: true, DryRun: true})) },
		"undo":    func() error { return run(w.Undo(ctx, retcon.MoveOptions{Steal: true, DryRun: true})) },
		"redo":    func() error { return run(w.Redo(ctx, retcon.MoveOptions{Steal: true, DryRun: true})) },
		"resume":  func() error { return run(w.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: "r1"})) },
		"cancel":  func() error { return run(w.CancelRun(ctx, retcon.CancelOptions{Run: "r1"})) },
	}
}

// A run that goes on can't move the worktree it works in, nor runs there, not
// even by force. Whoever is outside of it, or in another workspace's run, is not
// stopped by that; and it may when it has ended.
func TestRunCantMoveItsWorktree(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	denied := func(own string) (denied []string) {
		for name, do := range verbs(f.within(own)) {
			err := do()
			if self := new(retcon.SelfOperationError); errors.As(err, &self) {
				denied = append(denied, name)
				assert.Equal(t, "r2 goes on and can't move the worktree it works in", err.Error(), name)
				told := retcon.Explain(err)
				assert.Equal(t, "SELF_OPERATION_DENIED", told.Code)
				assert.Equal(t, []string{"retcon show r2"}, told.Hints)
			}
		}
		return denied
	}
	f.exec("agent", func() { // r2
		assert.Len(t, denied("r2"), len(verbs(f.Workspace)))
		for _, own := range []string{"", "r1", "r99", "7f", "rr"} {
			assert.Empty(t, denied(own), own)
		}
	})
	assert.Empty(t, denied("r2"), "it has ended")
	require.Equal(t, "build.txt=2 log=plan+build+test plan.txt=1 test.txt=3", f.files())
}

// A run in another worktree can't move itself or what it came from; the rest of
// that worktree is not its ground. That it goes on is known by an open attempt,
// or, between two, by the lease of the process that runs it.
func TestRunCantMoveWhatItCameFrom(t *testing.T) {
	p := newRepo(t)
	git(t, p.dir, "commit", "-q", "--allow-empty", "-m", "first")
	linked := filepath.Join(filepath.Dir(p.dir), "linked")
	git(t, p.dir, "worktree", "add", "-q", linked)
	other := openPlace(t, linked, retcon.Options{})
	p.checkpoint(retcon.CheckpointOptions{})
	other.checkpoint(retcon.CheckpointOptions{})
	db, err := ledger.Open(filepath.Join(p.Folder(), "ledger.db"), ledger.Options{})
	require.NoError(t, err)
	defer db.Close()

	self := checkpoint.Self("agent")
	var attempt ledger.Attempt
	require.NoError(t, db.Update(ctx, func(tx *ledger.Tx) error {
		var here, there ledger.Checkpoint
		for id, c := range map[int64]*ledger.Checkpoint{1: &here, 2: &there} {
			if *c, err = tx.Checkpoint(id); err != nil {
				return err
			}
		}
		for _, r := range []ledger.Run{
			{Source: "workflow", Kind: "workflow", WorktreeID: here.WorktreeID, Status: "failed"},
			{Source: "workflow", Kind: "workflow", WorktreeID: here.WorktreeID, Status: "failed", Parent: 1},
			{Source: "workflow", Kind: "workflow", WorktreeID: there.WorktreeID, Parent: 2},
			{Source: "workflow", Kind: "workflow", WorktreeID: here.WorktreeID, Status: "failed"},
		} {
			if _, err := tx.CreateRun(r); err != nil {
				return err
			}
		}
		attempt, err = tx.StartAttempt(ledger.Attempt{RunID: 3, Task: "build", Owner: self})
		return err
	}))
	refusals := func() (said []string) {
		for _, run := range []string{"r1", "r2", "r3", "r4"} {
			_, err := p.within("r3").Rewind(ctx, retcon.TravelOptions{Run: run, DryRun: true})
			if self := new(retcon.SelfOperationError); errors.As(err, &self) {
				said = append(said, self.What)
			}
		}
		return said
	}
	all := []string{"r1, which it came from", "r2, which it came from", "itself"}
	assert.Equal(t, all, refusals())
	_, err = p.within("r3").Restore(ctx, retcon.RestoreOptions{Ref: "c1", DryRun: true})
	require.NoError(t, err, "the other worktree is free")
	_, err = other.within("r3").Restore(ctx, retcon.RestoreOptions{Ref: "c2", DryRun: true})
	require.ErrorAs(t, err, new(*retcon.SelfOperationError))

	require.NoError(t, db.Update(ctx, func(tx *ledger.Tx) error {
		return tx.FinishAttempt(attempt.ID, ledger.Finish{Outcome: ledger.OutcomeOK})
	}))
	assert.Empty(t, refusals(), "nobody runs it")
	var lease ledger.Lease
	require.NoError(t, db.Update(ctx, func(tx *ledger.Tx) error {
		run, err := tx.Run(3)
		if err == nil {
			lease, err = tx.Acquire(ledger.WorkflowResource(run.WorktreeID), self, 0, checkpoint.Alive)
		}
		return err
	}))
	assert.Equal(t, all, refusals())
	require.NoError(t, db.Update(ctx, func(tx *ledger.Tx) error { return tx.Release(lease) }))
	assert.Empty(t, refusals())
	require.NoError(t, db.Update(ctx, func(tx *ledger.Tx) error { return tx.SetRunStatus(3, ledger.OutcomeFailed) }))
}

// Whoever was started by a process that carries out a run works in that run, and
// so does whoever finds its session in the environment. Moves of theirs are the
// agent's, who is limited.
func TestCallerIsKnownByWhatStartedIt(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a", "2")
	k := newTalker(p, agent.Claude, "s1")
	k.process = os.Getpid() // the agent: this process, seen from what it starts
	k.prompt("go back yourself")
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "call-1"})
	within := func(o retcon.Options) error {
		o.Dir, o.Now = p.dir, func() time.Time { return p.clock }
		w, err := retcon.Open(ctx, o)
		require.NoError(t, err)
		defer w.Close()
		_, err = w.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Exact: true, Steal: true})
		return err
	}
	above := func(pids ...int) retcon.Options { return retcon.Options{Above: pids} }
	named := func(agent, session string) retcon.Options {
		return retcon.Options{OwnSessions: []retcon.OwnSession{{Agent: agent, Session: session}}}
	}
	for name, o := range map[string]retcon.Options{"by its process": above(1<<30, os.Getpid()), "by its session": named(agent.Claude, "s1")} {
		var self *retcon.SelfOperationError
		if assert.ErrorAs(t, within(o), &self, name) {
			assert.Equal(t, "r1", self.Run, name)
		}
	}
	assert.Equal(t, "2", p.read("a"))
	for name, o := range map[string]retcon.Options{"another process": above(1 << 30), "another session": named(agent.Claude, "s2"),
		"another agent": named(agent.Codex, "s1")} {
		assert.NotErrorAs(t, within(o), new(*retcon.SelfOperationError), name)
		p.write("a", "2")
	}
	k.hook("PostToolUse.Bash", fields{"tool_use_id": "call-1"})
	require.NoError(t, within(named(agent.Claude, "s1")), "between its calls it may")

	ops, err := p.Ops(ctx, 0, 1)
	require.NoError(t, err)
	assert.Equal(t, agent.Claude, ops[0].Actor, "on behalf of the agent")
	for i := range 20 {
		p.write("a", fmt.Sprint("again ", i))
		if err = within(named(agent.Claude, "s1")); err != nil {
			break
		}
	}
	var limited *timeline.RateLimitError
	require.ErrorAs(t, err, &limited)
	assert.Equal(t, agent.Claude, limited.Actor)
}
