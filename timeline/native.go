package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Native is a rewind that a person made inside a client: its conversation went
// on from an earlier place. Nothing is left to do but to say so in the record.
type Native struct {
	Run    int64
	Branch int64 // that the run went on with, and its newest frame, when it was found out
	Head   int64
	Frame  int64 // from which it goes on
	Now    ledger.Checkpoint

	// Then is called in the transaction that records it, with both branches.
	Then func(tx *ledger.Tx, old, next ledger.Branch, op ledger.Op) error
}

// RecordNative records a rewind that was made inside a client as an operation:
// what came after the frame is archived as a branch, and undo brings it back.
// The worktree is left as the client left it. What of it the client has put
// back counts as put back; all else that changed is whose it was.
//
// It fails with *StaleHistoryError when the run has gone on, and as
// [ledger.Tx.BeginOp] does.
func (m *Mover) RecordNative(ctx context.Context, n Native) (op ledger.Op, err error) {
	var before, target ledger.Checkpoint
	err = m.DB.View(ctx, func(tx *ledger.Tx) error {
		run, err := tx.Run(n.Run)
		if err == nil {
			target, err = frameCheckpoint(tx, run, n.Frame)
		}
		if err == nil {
			before, err = m.before(tx, run, n)
		}
		return err
	})
	if err != nil {
		return op, err
	}
	put, err := m.putBack(ctx, before, n.Now, target)
	if err != nil {
		return op, err
	}
	detail, err := json.Marshal(stored{Safety: fmt.Sprintf("c%d", before.ID)})
	if err != nil {
		return op, err
	}
	err = m.DB.Update(ctx, func(tx *ledger.Tx) error {
		run, err := tx.Run(n.Run)
		if err != nil {
			return err
		}
		p := &Plan{Verb: ledger.VerbNative, Root: m.W.Root(), Target: fmt.Sprintf("r%d@%d", n.Run, n.Frame),
			TargetCommit: vcs.Commit(n.Now.Commit), Base: vcs.Commit(before.Commit), Changes: put}
		if p.History, err = cut(tx, run, n.Frame, ReapplyNone); err != nil {
			return err
		}
		if p.History.Branch != n.Branch || p.History.Head != n.Head {
			return &StaleHistoryError{Run: n.Run}
		}
		p.History.Becomes, p.History.Had, p.History.Left = run.Status, 0, 0
		p.seal()
		op, err = m.adopt(tx, n, p, before, string(detail))
		return err
	})
	return op, err
}

// adopt writes down an operation that has happened.
func (m *Mover) adopt(tx *ledger.Tx, n Native, p *Plan, before ledger.Checkpoint, detail string) (op ledger.Op, err error) {
	plan, err := json.Marshal(p)
	if err != nil {
		return op, err
	}
	op, err = tx.BeginOp(ledger.Op{Verb: p.Verb, Actor: m.Actor, Owner: m.Owner, Plan: string(plan), Worktrees: []ledger.OpWorktree{
		{WorktreeID: m.WorktreeID, From: before.Commit, Safety: before.Commit, Target: n.Now.Commit, Done: true}}}, m.Alive)
	if err != nil {
		return op, err
	}
	old, err := tx.BranchByID(n.Branch)
	if err != nil {
		return op, err
	}
	next, err := tx.Rewind(n.Run, n.Frame, op.ID)
	if err == nil {
		err = n.Then(tx, old, next, op)
	}
	if err != nil {
		return op, err
	}
	return tx.FinishOp(op.ID, op.Token, ledger.ResultOK, detail)
}

// before is the checkpoint of the worktree that comes before the one that shows
// what the client left; that one itself, where it shows what was there already.
func (m *Mover) before(tx *ledger.Tx, run ledger.Run, n Native) (ledger.Checkpoint, error) {
	head, err := frameCheckpoint(tx, run, n.Head)
	if err != nil || head.ID >= n.Now.ID {
		return n.Now, err
	}
	for q := (ledger.CheckpointQuery{Worktree: m.WorktreeID, Before: n.Now.ID, Limit: 20}); ; {
		page, err := tx.Checkpoints(q)
		if err != nil || len(page) == 0 {
			return n.Now, err
		}
		for _, c := range page {
			if c.Tier != ledger.TierRescue { // holds a few paths, not a state
				return c, nil
			}
			q.Before = c.ID
		}
	}
}

// putBack are the changes between two checkpoints that lead to what a third one
// holds. Where that was not recorded there are none.
func (m *Mover) putBack(ctx context.Context, before, now, target ledger.Checkpoint) (put []Step, err error) {
	put = []Step{}
	if target.ID == 0 || before.Commit == now.Commit {
		return put, nil
	}
	changes, err1 := m.W.Diff(ctx, vcs.Commit(before.Commit), vcs.Commit(now.Commit))
	other, err2 := m.W.Diff(ctx, vcs.Commit(now.Commit), vcs.Commit(target.Commit))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	differs := map[string]bool{}
	for _, c := range other {
		differs[c.Path] = true
	}
	for _, c := range changes {
		if !differs[c.Path] {
			put = append(put, Step{FileChange: c, Action: action(c), Owner: Moved})
		}
	}
	return put, nil
}
