package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Phases of an operation. Before restoring the worktree is as it was, and a
// crash is settled by going back; from compensating on by going forward.
const (
	phaseBegun        = 1
	phaseCompensating = 2 // something outside may have been undone
	phaseRestoring    = 4
)

// apply carries a request out: base, unless empty, is what the plan that was
// agreed to was made for.
func (m *Mover) apply(ctx context.Context, r Request, base vcs.Commit) (res *Result, err error) {
	err = m.captured(ctx, !r.DryRun, func(now *vcs.Capture) error {
		res, err = m.applyTo(ctx, r, base, now)
		return err
	})
	return res, err
}

func (m *Mover) applyTo(ctx context.Context, r Request, base vcs.Commit, now *vcs.Capture) (*Result, error) {
	p, err := m.plan(ctx, r, now)
	if err != nil {
		return nil, err
	}
	res := &Result{Verb: r.Verb, Plan: p, DryRun: r.DryRun}
	switch {
	case r.DryRun:
		return res, nil
	case base != "" && base != p.Base, r.PlanID != "" && r.PlanID != p.ID:
		return res, &BaseMovedError{Plan: p}
	case len(p.Conflicts) > 0:
		return res, &ConflictError{Plan: p}
	case len(p.blocked()) > 0:
		return res, m.reject(p)
	case p.Empty():
		res.NothingToDo = true
		return res, nil
	}
	op, safety, err := m.begin(ctx, r, p, now)
	if err != nil {
		return res, err
	}
	crash.Point("move.begun")
	res.Op, res.Safety = op.ID, fmt.Sprintf("c%d", safety.ID)
	staged, err := m.W.Stage(ctx, op.UID, p.files())
	if err != nil {
		return res, errors.Join(err, m.finish(op, ledger.ResultFailed, res))
	}
	err = m.carryOut(ctx, &op, staged, res)
	var stuck *vcs.RollbackError
	if errors.As(err, &stuck) {
		// Neither old nor new: the operation stays open, and recovery finds
		// in the stage what was displaced.
		return res, err
	}
	return res, errors.Join(err, staged.Discard())
}

// begin journals the move: from here a crash is noticed.
func (m *Mover) begin(ctx context.Context, r Request, p *Plan, now *vcs.Capture) (op ledger.Op, safety ledger.Checkpoint, err error) {
	plan, err := json.Marshal(p)
	if err != nil {
		return op, safety, err
	}
	facts := checkpoint.Known(ctx, m.W, now, "")
	err = m.DB.Commit(ctx, func(tx *ledger.Tx) error {
		safety, err = checkpoint.Append(tx, m.WorktreeID, now, facts, checkpoint.What{Tier: ledger.TierSafety,
			Note: "before " + p.Verb + " " + p.Target, Actor: m.Actor})
		if err != nil {
			return err
		}
		o := ledger.Op{Verb: p.Verb, Actor: m.Actor, Owner: m.Owner, Plan: string(plan), Undoes: p.Undoes,
			Worktrees: []ledger.OpWorktree{{WorktreeID: m.WorktreeID, From: string(now.Commit), Safety: string(now.Commit), Target: string(p.TargetCommit)}}}
		if r.RequestID != "" {
			o.RequestKey, o.RequestDigest = r.RequestID, requestDigest(r)
		}
		if op, err = tx.BeginOp(o, m.Alive); err != nil {
			return err
		}
		if err := m.stillGuarded(tx, r, p); err != nil {
			return err
		}
		return p.History.close(tx, op.ID)
	})
	return op, safety, err
}

// carryOut does what may not be interrupted by a cancelled context any more:
// from the point of no return on, the move ends in the new state or the old.
func (m *Mover) carryOut(ctx context.Context, op *ledger.Op, staged *vcs.Staged, res *Result) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(err, m.finish(*op, ledger.ResultAborted, res))
	}
	ctx = context.WithoutCancel(ctx)
	err := m.compensate(ctx, op, res.Plan)
	var stopped *CompensationError
	if errors.As(err, &stopped) {
		return errors.Join(err, m.finish(*op, ledger.ResultFailed, res))
	}
	if err != nil {
		return err
	}
	err = m.DB.Commit(ctx, func(tx *ledger.Tx) (err error) {
		*op, err = tx.AdvanceOp(op.ID, op.Token, phaseRestoring, nil)
		return err
	})
	if err != nil {
		return err
	}
	crash.Point("move.restoring")
	m.progress("restore", 0, staged.Count())
	if err := staged.Swap(ctx); err != nil {
		return m.givenUp(ctx, op, staged, res, err)
	}
	if res.Verified, err = staged.Verify(ctx); err != nil {
		return m.givenUp(ctx, op, staged, res, err)
	}
	res.Left = staged.Kept()
	if err := m.rescue(ctx, op, staged, false, res); err != nil {
		// Keeping those bytes comes before the move.
		return m.givenUp(ctx, op, staged, res, staged.TakeBack(err))
	}
	crash.Point("move.restored")
	if res.Plan.Head || res.Plan.Index {
		if err := m.putGit(res.Plan); err != nil {
			return m.givenUp(ctx, op, staged, res, staged.TakeBack(err))
		}
		crash.Point("move.head")
	}
	if err := staged.Settle(); err != nil {
		return err
	}
	return m.finish(*op, ledger.ResultOK, res)
}

// givenUp ends a move that was taken back because of cause, after keeping what
// somebody wrote to the paths meanwhile. One that could not be taken back is
// left open.
func (m *Mover) givenUp(ctx context.Context, op *ledger.Op, staged *vcs.Staged, res *Result, cause error) error {
	cause = m.keepDisplaced(ctx, op, staged, res, cause)
	var stuck *vcs.RollbackError
	if errors.As(cause, &stuck) {
		return cause
	}
	return errors.Join(cause, m.finish(*op, ledger.ResultRolledBack, res))
}

// keepDisplaced keeps what somebody wrote to the paths of a move that was taken
// back because of cause, which it returns. Where that can't be kept, or not all
// was taken back, it is a *vcs.RollbackError: the stage stays.
func (m *Mover) keepDisplaced(ctx context.Context, op *ledger.Op, staged *vcs.Staged, res *Result, cause error) error {
	var stuck *vcs.RollbackError
	if errors.As(cause, &stuck) {
		return cause
	}
	if err := m.rescue(ctx, op, staged, true, res); err != nil {
		return &vcs.RollbackError{Cause: cause, Err: err}
	}
	return cause
}

// putGit puts back HEAD and index as a plan says. It can be called again.
func (m *Mover) putGit(p *Plan) error {
	return m.W.PutGit(p.TargetCommit, p.Base, vcs.PutOptions{Head: p.Head, Index: p.Index,
		Message: "retcon: " + p.Verb + " " + p.Target, Now: m.Now()})
}

// rescue keeps what somebody wrote between the capture and the swap.
func (m *Mover) rescue(ctx context.Context, op *ledger.Op, staged *vcs.Staged, all bool, res *Result) error {
	c, paths, err := staged.Rescue(ctx, all)
	if err != nil || c == "" {
		return err
	}
	row, err := m.keepRescue(ctx, op, c, paths)
	res.Rescue, res.Rescued = row, append(res.Rescued, paths...)
	return err
}

func (m *Mover) keepRescue(ctx context.Context, op *ledger.Op, c vcs.Commit, paths []string) (ref string, err error) {
	err = m.DB.Commit(ctx, func(tx *ledger.Tx) error {
		row, err := checkpoint.AppendRescue(tx, m.W, m.WorktreeID, c, paths, fmt.Sprintf("written during op %d", op.ID), m.Actor)
		if err != nil {
			return err
		}
		ref = fmt.Sprintf("c%d", row.ID)
		*op, err = tx.AdvanceOp(op.ID, op.Token, op.Phase, func(o *ledger.Op) error {
			o.Worktrees[0].Rescue = string(c)
			return nil
		})
		return err
	})
	return ref, err
}

// finish is the commit point.
func (m *Mover) finish(op ledger.Op, result string, res *Result) error {
	detail, err := json.Marshal(stored{Safety: res.Safety, Rescue: res.Rescue, Rescued: res.Rescued, Left: res.Left, Verified: res.Verified})
	if err != nil {
		return err
	}
	crash.Point("move.finish")
	err = m.DB.Commit(context.Background(), func(tx *ledger.Tx) error {
		if result == ledger.ResultOK && res.Plan != nil {
			if err := res.Plan.History.carryOut(tx, op); err != nil {
				return err
			}
			if err := res.Plan.cross(tx, op); err != nil {
				return err
			}
		}
		_, err := tx.FinishOp(op.ID, op.Token, result, string(detail))
		return err
	})
	crash.Point("move.finished")
	return err
}
