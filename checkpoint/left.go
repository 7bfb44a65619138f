package checkpoint

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/ledger"
)

// Left is the checkpoint of what a run has last made of its own worktree, by
// running or by being moved. What differs from it somebody else has done.
// ledger.ErrNotFound when none is left.
func Left(tx *ledger.Tx, run ledger.Run) (ledger.Checkpoint, error) {
	newest, err := newestOf(tx, run)
	if err != nil || run.HeadOp == 0 {
		return newest, err
	}
	op, err := tx.Op(run.HeadOp)
	if err != nil {
		return newest, err
	}
	var detail struct{ Safety string }
	var plan struct{ History struct{ Left int64 } }
	if err := json.Unmarshal([]byte(op.Detail), &detail); err != nil {
		return newest, fmt.Errorf("op %d: detail: %w", op.ID, err)
	}
	if err := json.Unmarshal([]byte(op.Plan), &plan); err != nil {
		return newest, fmt.Errorf("op %d: plan: %w", op.ID, err)
	}
	safety, _ := strconv.ParseInt(strings.TrimPrefix(detail.Safety, "c"), 10, 64)
	if plan.History.Left == 0 || safety < newest.ID {
		return newest, nil
	}
	return tx.Checkpoint(plan.History.Left)
}

// newestOf is the newest checkpoint that a run has recorded of its own worktree.
func newestOf(tx *ledger.Tx, run ledger.Run) (ledger.Checkpoint, error) {
	q := ledger.CheckpointQuery{Run: run.ID}
	for {
		page, err := tx.Checkpoints(q)
		if err != nil {
			return ledger.Checkpoint{}, err
		}
		if len(page) == 0 {
			return ledger.Checkpoint{}, fmt.Errorf("a checkpoint of r%d: %w", run.ID, ledger.ErrNotFound)
		}
		for _, c := range page {
			if c.WorktreeID == run.WorktreeID && c.Tier == ledger.TierTool {
				return c, nil
			}
			q.Before = c.ID
		}
	}
}
