package retcon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
)

// CodeSelfOperation refuses a run that would move what it stands on.
const CodeSelfOperation = "SELF_OPERATION_DENIED"

// SelfOperationError refuses a run that goes on to move itself, a run it came
// from, or the worktree it works in. Once it has ended it may, and whoever is
// outside of it may at any time.
type SelfOperationError struct {
	Run  string // that asks
	What string // it would move
}

func (e *SelfOperationError) Error() string {
	return fmt.Sprintf("%s goes on and can't move %s", e.Run, e.What)
}

func explainSelf(err error, e *Explained) bool {
	var self *SelfOperationError
	if !errors.As(err, &self) {
		return false
	}
	return e.is(CodeSelfOperation, "retcon show "+self.Run)
}

// refuseSelf fails with a *SelfOperationError when the caller works in a run
// that goes on, and target, or this worktree, is what that run stands on. A
// target of 0 is no run. Options.OwnRun of another workspace is not found here,
// and refuses nothing.
func (w *Workspace) refuseSelf(ctx context.Context, target int64) error {
	if w.outside() {
		return nil
	}
	return w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		runs, err := w.ownRuns(tx)
		for _, own := range runs {
			var roots []int64
			if roots, err = liveRoots(tx, own); err != nil {
				return err
			}
			if len(roots) == 0 {
				continue
			}
			what, err := ownGround(tx, own, target)
			if err != nil {
				return err
			}
			if what == "" && slices.Contains(roots, row.ID) {
				what = "the worktree it works in"
			}
			if what != "" {
				return &SelfOperationError{Run: runRef(own.ID), What: what}
			}
		}
		return err
	})
}

// outside tells that nothing says that the caller works in a run.
func (w *Workspace) outside() bool {
	return w.opt.OwnRun == "" && len(w.opt.Above) == 0 && len(w.opt.OwnSessions) == 0
}

// ownRuns are the runs that the caller works in, as far as can be known: by the
// variable that commands of a run find, by the session that an agent names in
// their environment, and by the processes above the caller. The one said to be
// the innermost comes first.
func (w *Workspace) ownRuns(tx *ledger.Tx) (own []ledger.Run, err error) {
	add := func(run ledger.Run, err error) error {
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err == nil && !slices.ContainsFunc(own, func(r ledger.Run) bool { return r.ID == run.ID }) {
			own = append(own, run)
		}
		return err
	}
	if id, err := strconv.ParseInt(strings.TrimPrefix(w.opt.OwnRun, "r"), 10, 64); err == nil { // else not set, or no run of ours
		if err := add(tx.Run(id)); err != nil {
			return nil, err
		}
	}
	for _, s := range w.opt.OwnSessions {
		if err := add(tx.RunByExt(s.Agent, s.Session)); err != nil {
			return nil, err
		}
	}
	ids, err := w.runsAbove(tx)
	for _, id := range ids {
		if err := add(tx.Run(id)); err != nil {
			return nil, err
		}
	}
	return own, err
}

// runsAbove are the runs that a process above the caller carries out.
func (w *Workspace) runsAbove(tx *ledger.Tx) (ids []int64, err error) {
	above := w.opt.Above
	if len(above) == 0 {
		return nil, nil
	}
	places, err := tx.Worktrees()
	if err != nil {
		return nil, err
	}
	for _, at := range places {
		open, err := tx.OpenAttempts(at.ID)
		if err != nil {
			return nil, err
		}
		for _, a := range open {
			if checkpoint.Among(a.Owner, above) {
				ids = append(ids, a.RunID)
			}
		}
		run, owner, err := livingRun(tx, at.ID)
		if err != nil {
			return nil, err
		}
		if run != 0 && checkpoint.Among(owner, above) {
			ids = append(ids, run)
		}
	}
	return ids, nil
}

// actor is who moves: the agent in whose session the caller works, where nobody
// else is named. Agents are limited in how often they move, and people are not.
func (w *Workspace) actor(ctx context.Context) (name string, err error) {
	name = w.opt.Actor
	if name != User || w.outside() {
		return name, nil
	}
	err = w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		runs, err := w.ownRuns(tx)
		for _, run := range runs {
			if run.Kind == KindSession {
				name = run.Source
				break
			}
		}
		return err
	})
	return name, err
}

// ownGround says what the target is to a run: itself or one it came from; "" for
// another.
func ownGround(tx *ledger.Tx, own ledger.Run, target int64) (string, error) {
	if target == own.ID {
		return "itself", nil
	}
	for up, seen := own.Parent, map[int64]bool{}; up != 0 && !seen[up]; {
		if up == target {
			return fmt.Sprintf("%s, which it came from", runRef(up)), nil
		}
		seen[up] = true
		parent, err := tx.Run(up)
		if err != nil {
			return "", err
		}
		up = parent.Parent
	}
	return "", nil
}

// liveRoots are the worktrees a run works in; none when it does not go on.
func liveRoots(tx *ledger.Tx, run ledger.Run) (roots []int64, err error) {
	attempts, err := tx.Attempts(run.ID)
	if err != nil {
		return nil, err
	}
	for _, a := range attempts {
		if a.Outcome == "" && checkpoint.Alive(a.Owner) {
			roots = append(roots, run.WorktreeID)
			if a.Worktree != 0 {
				roots = append(roots, a.Worktree)
			}
		}
	}
	if len(roots) > 0 {
		return roots, nil
	}
	if live, _, err := livingRun(tx, run.WorktreeID); err != nil || live != run.ID {
		return nil, err
	}
	return []int64{run.WorktreeID}, nil
}

// refuseSelfBack is refuseSelf for an operation that would be taken back, or
// done again: what it moved is moved again.
func (w *Workspace) refuseSelfBack(ctx context.Context, target func(*ledger.Tx, int64) (ledger.Op, error)) error {
	if w.outside() {
		return nil
	}
	var run int64
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		op, err := target(tx, row.ID)
		if err != nil {
			return nil // whoever takes it back says so
		}
		told, err := shownOp(op, true)
		if err == nil && told.Plan.History != nil {
			run = told.Plan.History.Run
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.refuseSelf(ctx, run)
}
