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
	id, err := strconv.ParseInt(strings.TrimPrefix(w.opt.OwnRun, "r"), 10, 64)
	if err != nil {
		return nil // not set, or no run of ours
	}
	return w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		own, err := tx.Run(id)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		roots, err := liveRoots(tx, own)
		if err != nil || len(roots) == 0 {
			return err
		}
		what, err := ownGround(tx, own, target)
		if err == nil && what == "" && slices.Contains(roots, row.ID) {
			what = "the worktree it works in"
		}
		if err == nil && what != "" {
			err = &SelfOperationError{Run: runRef(own.ID), What: what}
		}
		return err
	})
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
	if w.opt.OwnRun == "" {
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
