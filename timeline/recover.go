package timeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Recovered is a move that was settled.
type Recovered struct {
	Op      int64    `json:"op"`
	Verb    string   `json:"verb"`
	Result  string   `json:"result"`            // ok: carried to its end; aborted: nothing had been touched; rolled-back
	Stopped string   `json:"stopped,omitempty"` // the effect that could not be undone; nothing else was touched
	Rescue  string   `json:"rescue,omitempty"`
	Rescued []string `json:"rescued,omitempty"`
}

// Recover settles moves whose process died. A move that is going on is left
// alone: its process holds the lock.
func (m *Mover) Recover(ctx context.Context) ([]Recovered, error) {
	unlock, err := m.W.LockMove(m.Owner.String(), m.Now())
	var busy *vcs.LockedError
	if errors.As(err, &busy) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	return m.recoverLocked(ctx)
}

// recoverLocked does it under the move lock: whoever had an open move is dead.
func (m *Mover) recoverLocked(ctx context.Context) ([]Recovered, error) {
	var open []ledger.Op
	err := m.DB.View(ctx, func(tx *ledger.Tx) error {
		ops, err := tx.OpenOps()
		for _, o := range ops {
			if slices.ContainsFunc(o.Worktrees, func(w ledger.OpWorktree) bool { return w.WorktreeID == m.WorktreeID }) {
				open = append(open, o)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var done []Recovered
	for _, o := range open {
		r, err := m.settle(ctx, o)
		if err != nil {
			return done, fmt.Errorf("recover op %d: %w", o.ID, err)
		}
		done = append(done, r)
	}
	// A process that died after its commit point left what it no longer needed; one
	// that changed files for a run may have left what somebody else wrote.
	return done, m.W.DiscardStages(ctx, func(c vcs.Commit, paths []string) error {
		_, err := m.keepLate(ctx, c, paths)
		return err
	})
}

// SweepDisplaced removes what moves have displaced and what nobody writes to any
// more. What was written to it since the move is kept in rescue checkpoints, whose
// references it returns, with the number of bytes removed. While a move goes on it
// does nothing.
func (m *Mover) SweepDisplaced(ctx context.Context) (rescues []string, removed int64, err error) {
	rescues = []string{}
	unlock, err := m.W.LockMove(m.Owner.String(), m.Now())
	var busy *vcs.LockedError
	if errors.As(err, &busy) {
		return rescues, 0, nil
	}
	if err != nil {
		return rescues, 0, err
	}
	defer unlock()
	removed, err = m.W.SweepDisplaced(ctx, func(c vcs.Commit, paths []string) error {
		ref, err := m.keepLate(ctx, c, paths)
		rescues = append(rescues, ref)
		return err
	})
	return rescues, removed, err
}

// keepLate records what was written to files that no move needs any more.
func (m *Mover) keepLate(ctx context.Context, c vcs.Commit, paths []string) (ref string, err error) {
	err = m.DB.Commit(ctx, func(tx *ledger.Tx) error {
		row, err := checkpoint.AppendRescue(tx, m.W, m.WorktreeID, c, paths, "written to files that had been put away", m.Actor)
		ref = fmt.Sprintf("c%d", row.ID)
		return err
	})
	return ref, err
}

func (m *Mover) settle(ctx context.Context, o ledger.Op) (Recovered, error) {
	r := Recovered{Op: o.ID, Verb: o.Verb}
	crash.Point("recover.begin")
	err := m.DB.Commit(ctx, func(tx *ledger.Tx) (err error) {
		o, err = tx.TakeOp(o.ID, m.Owner)
		return err
	})
	if err != nil {
		return r, err
	}
	crash.Point("recover.taken")
	p, err := decodePlan(o.Plan)
	if err != nil {
		return r, err
	}
	if o.Phase == phaseCompensating {
		err := m.goOn(ctx, &o, p)
		var stopped *CompensationError
		if errors.As(err, &stopped) {
			if err := m.discardStage(o); err != nil {
				return r, err
			}
			r.Result, r.Stopped = ledger.ResultFailed, stopped.Error()
			return r, m.finish(o, r.Result, &Result{})
		}
		if err != nil {
			return r, err
		}
	}
	if o.Phase < phaseRestoring {
		if err := m.discardStage(o); err != nil {
			return r, err
		}
		crash.Point("recover.back")
		r.Result = ledger.ResultAborted
		return r, m.finish(o, r.Result, &Result{})
	}
	release, err := m.W.Hold(ctx)
	if err != nil {
		return r, err
	}
	defer release()
	unshare, err := m.W.Shared(ctx)
	if err != nil {
		return r, err
	}
	defer unshare()
	res := &Result{}
	if res.Safety, err = m.safetyOf(ctx, o); err != nil {
		return r, err
	}
	if err := m.rescueStage(ctx, &o, res); err != nil {
		return r, err
	}
	res.Plan = p
	r.Result = ledger.ResultOK
	if err := m.forward(ctx, &o, p, p.TargetCommit, res); err != nil {
		var stuck *vcs.RollbackError
		if errors.As(err, &stuck) {
			return r, err
		}
		// The target cannot be reached: the state before can.
		if berr := m.forward(ctx, &o, p, vcs.Commit(o.Worktrees[0].Safety), res); berr != nil {
			return r, errors.Join(err, berr)
		}
		r.Result = ledger.ResultRolledBack
	} else if p.Head || p.Index {
		err := m.putGit(p)
		if err != nil {
			return r, err
		}
	}
	crash.Point("recover.forward")
	r.Rescue, r.Rescued = res.Rescue, res.Rescued
	return r, m.finish(o, r.Result, res)
}

// safetyOf is the checkpoint that an open move took of the worktree before it
// began: of its kind the newest, as one move at a time is open.
func (m *Mover) safetyOf(ctx context.Context, o ledger.Op) (ref string, err error) {
	err = m.DB.View(ctx, func(tx *ledger.Tx) error {
		newest, err := tx.Checkpoints(ledger.CheckpointQuery{Worktree: m.WorktreeID, Tier: ledger.TierSafety, Limit: 1})
		if err == nil && len(newest) == 1 && newest[0].Commit == o.Worktrees[0].Safety {
			ref = fmt.Sprintf("c%d", newest[0].ID)
		}
		return err
	})
	return ref, err
}

// goOn undoes what is left to undo outside. The worktree is as it was.
func (m *Mover) goOn(ctx context.Context, o *ledger.Op, p *Plan) error {
	if err := m.compensate(ctx, o, p); err != nil {
		return err
	}
	err := m.DB.Commit(ctx, func(tx *ledger.Tx) (err error) {
		*o, err = tx.AdvanceOp(o.ID, o.Token, phaseRestoring, nil)
		return err
	})
	crash.Point("recover.compensated")
	return err
}

func (m *Mover) discardStage(o ledger.Op) error {
	left, err := m.W.OpenStage(o.UID)
	if err != nil || left == nil {
		return err
	}
	return left.Discard()
}

// rescueStage keeps what lies in the dead process's stage and nowhere else.
func (m *Mover) rescueStage(ctx context.Context, o *ledger.Op, res *Result) error {
	left, err := m.W.OpenStage(o.UID)
	if err != nil || left == nil {
		return err
	}
	if err := m.rescue(ctx, o, left, true, res); err != nil {
		return err
	}
	crash.Point("recover.rescued")
	return left.Discard()
}

// forward makes the planned paths what target says. Whatever of them is neither
// as it was before the move nor as it should be after was written since the
// crash, and is kept in a rescue checkpoint first.
func (m *Mover) forward(ctx context.Context, o *ledger.Op, p *Plan, target vcs.Commit, res *Result) error {
	now, err := m.W.Capture(ctx, vcs.CaptureOptions{Sync: true, NoCaps: true, Quick: true})
	if err != nil {
		return err
	}
	changes, err := m.W.Diff(ctx, now.Commit, target)
	if err != nil {
		return err
	}
	planned := make(map[string]Step, len(p.Changes))
	for _, s := range p.Changes {
		planned[s.Path] = s
	}
	var do []vcs.FileChange
	var strange []string
	for _, c := range changes {
		s, ok := planned[c.Path]
		if !ok {
			continue
		}
		if c.Old.Kind != vcs.KindAbsent && c.Old.Kind != vcs.KindDir && !c.Old.Is(s.Old) && !c.Old.Is(s.New) {
			strange = append(strange, c.Path)
		}
		c.Old.Ignored, c.New.Ignored = false, false
		do = append(do, c)
	}
	do, _ = vcs.Restorable(do)
	made, blocked := folders(do, changes)
	for _, up := range blocked { // since the crash: it goes to the rescue, and makes room
		if !slices.Contains(strange, up) {
			strange = append(strange, up)
		}
		i, _ := slices.BinarySearchFunc(changes, up, func(c vcs.FileChange, path string) int { return strings.Compare(c.Path, path) })
		made = append(made, changes[i])
	}
	do = append(do, dedupe(made)...)
	if len(strange) > 0 {
		if res.Rescue, err = m.keepRescue(ctx, o, now.Commit, strange); err != nil {
			return err
		}
		res.Rescued = append(res.Rescued, strange...)
	}
	staged, err := m.W.Stage(ctx, o.UID, do)
	if err != nil {
		return err
	}
	crash.Point("recover.staged")
	if err = staged.Swap(ctx); err == nil {
		res.Verified, err = staged.Verify(ctx)
	}
	if err == nil {
		if rerr := m.rescue(ctx, o, staged, false, res); rerr != nil {
			err = staged.TakeBack(rerr)
		}
	}
	if err == nil {
		err = staged.Settle()
	} else {
		err = m.keepDisplaced(ctx, o, staged, res, err)
	}
	var stuck *vcs.RollbackError
	if errors.As(err, &stuck) {
		return err // the next recovery finds in the stage what was displaced
	}
	return errors.Join(err, staged.Discard())
}

// dedupe drops repeated paths.
func dedupe(changes []vcs.FileChange) []vcs.FileChange {
	seen := make(map[string]bool)
	return slices.DeleteFunc(changes, func(c vcs.FileChange) bool {
		was := seen[c.Path]
		seen[c.Path] = true
		return was
	})
}
