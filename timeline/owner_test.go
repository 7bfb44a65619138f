package timeline_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/stretchr/testify/require"
)

// What a move of ours did is nobody's change: after an undo the run's changes
// are the run's again.
func TestOwnerAfterUndo(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	start := p.run(func() { p.write("a", "agent") })
	for range 3 {
		p.restore(timeline.Request{To: start})
		p.is("a", "1")
		p.undo()
		p.is("a", "agent")
	}
}

// A path that only moves have changed since goes back: what they put there is
// recorded, and nobody wrote it.
func TestOwnerOfAMove(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("b", "older")
	older := p.checkpoint()
	p.write("b", "1")
	start := p.run(func() { p.write("a", "agent") })
	p.restore(timeline.Request{To: older})
	p.is("b", "older")
	p.restore(timeline.Request{To: start})
	p.is("a", "1")
	p.is("b", "1")
}

// What somebody wrote over it after the move is theirs again.
func TestOwnerAfterAMove(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("b", "older")
	older := p.checkpoint()
	p.write("b", "1")
	start := p.run(func() { p.write("a", "agent") })
	p.restore(timeline.Request{To: older})
	p.write("b", "mine")
	p.restore(timeline.Request{To: start})
	p.is("b", "mine")
}

// What changes while an attempt of the run is open is the run's.
func TestOwnerOfAnOpenAttempt(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	var run ledger.Run
	var at ledger.Attempt
	p.update(func(tx *ledger.Tx) (err error) {
		if run, err = tx.CreateRun(ledger.Run{Source: "exec", Status: "running", WorktreeID: p.m.WorktreeID}); err != nil {
			return err
		}
		at, err = tx.StartAttempt(ledger.Attempt{RunID: run.ID, Task: "main", Number: 1, Owner: p.m.Owner})
		return err
	})
	start := p.mark(ledger.Checkpoint{Tier: ledger.TierTool, RunID: run.ID, AttemptID: at.ID, Edge: ledger.EdgeBefore})
	p.update(func(tx *ledger.Tx) error { return tx.SetAttemptBefore(at.ID, start.ID) })
	p.write("a", "agent, still at it")
	p.restore(timeline.Request{To: start, Steal: true})
	p.is("a", "1")
	p.update(func(tx *ledger.Tx) error { return tx.FinishAttempt(at.ID, ledger.Finish{Outcome: "interrupted"}) })
}

// Where the calls of two sessions overlap, nobody saw whose change it was:
// rewinding one does not take the other's work silently.
func TestOverlappingSessions(t *testing.T) {
	p := openPlace(t, t.TempDir())
	ctx := context.Background()
	r := &checkpoint.Recorder{Ledger: p.db, Worktree: p.w, Host: "test"}
	point := func(run int64) ledger.Checkpoint {
		c, err := r.Record(ctx, checkpoint.What{Tier: ledger.TierTool, Run: run})
		require.NoError(t, err)
		return c.Checkpoint
	}
	p.update(func(tx *ledger.Tx) error {
		for range 2 {
			if _, err := tx.CreateRun(ledger.Run{Source: "claude", Kind: "session", WorktreeID: p.m.WorktreeID}); err != nil {
				return err
			}
		}
		return nil
	})
	call := func(run, before, after int64) {
		p.update(func(tx *ledger.Tx) error {
			a, err := tx.StartAttempt(ledger.Attempt{RunID: run, Task: fmt.Sprintf("prompt-1/Bash[%d]", before), Before: before, Owner: p.m.Owner})
			if err != nil {
				return err
			}
			return tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeOK, After: after})
		})
	}
	p.write("alone", "0")
	p.write("shared", "0")
	start := point(1)
	p.write("alone", "1")
	one := point(1) // only the first session's call goes on up to here
	p.write("shared", "1")
	two := point(2)
	end := point(1)
	call(1, start.ID, end.ID)
	call(2, one.ID, two.ID)
	_, err := p.m.Move(ctx, timeline.Request{To: start, Target: "c1"})
	var conflict *timeline.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Len(t, conflict.Plan.Conflicts, 1)
	require.Equal(t, "shared", conflict.Plan.Conflicts[0].Path)
}

// A move whose process died, and that was carried to its end since, is a move
// like any other: what it put there is nobody's.
func TestOwnerAfterARecoveredMove(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("b", "older")
	older := p.checkpoint()
	p.write("b", "1")
	start := p.run(func() { p.write("a", "agent") })
	crash.Hook = func(name string) {
		if name == "move.restored" {
			panic("dies here")
		}
	}
	t.Cleanup(func() { crash.Hook = nil })
	require.Panics(t, func() { _, _ = p.m.Move(context.Background(), timeline.Request{To: older}) })
	crash.Hook = nil
	done, err := p.m.Recover(context.Background())
	require.NoError(t, err)
	require.Len(t, done, 1)
	require.Equal(t, ledger.ResultOK, done[0].Result)
	p.is("b", "older")
	p.restore(timeline.Request{To: start})
	p.is("a", "1")
	p.is("b", "1")
}

// What another run has changed is not the run's, also where both are commands.
func TestOwnerIsTheRun(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("b", "1")
	start := p.run(func() { p.write("a", "one") })
	p.run(func() { p.write("a", "two"); p.write("b", "two") })
	_, err := p.m.Move(context.Background(), timeline.Request{To: start, Target: "c1"})
	var conflict *timeline.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Len(t, conflict.Plan.Conflicts, 1)
	require.Equal(t, "a", conflict.Plan.Conflicts[0].Path)
	require.Len(t, conflict.Plan.Kept, 1)
	require.Equal(t, "b", conflict.Plan.Kept[0].Path)
}
