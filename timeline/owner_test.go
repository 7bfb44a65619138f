package timeline_test

import (
	"testing"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
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
