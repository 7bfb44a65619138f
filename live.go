package retcon

import (
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/workflow"
)

// holder is the process that runs a workflow in a worktree; false when nobody
// does.
func holder(tx *ledger.Tx, worktree int64) (ledger.Owner, bool, error) {
	l, err := tx.Lease(fmt.Sprintf("workflow/worktree/%d", worktree))
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Owner{}, false, nil
	}
	return l.Owner, err == nil && checkpoint.Alive(l.Owner), err
}

// running are the workflow runs of a worktree that are said to be going on,
// newest first.
func running(tx *ledger.Tx, worktree int64) ([]ledger.Run, error) {
	return tx.RunningRuns(worktree, workflow.Source)
}

// livingRun is the workflow run that goes on in a worktree, with its process:
// of those that are said to, the one that was touched last. 0 when none does.
func livingRun(tx *ledger.Tx, worktree int64) (int64, ledger.Owner, error) {
	owner, alive, err := holder(tx, worktree)
	if err != nil || !alive {
		return 0, owner, err
	}
	runs, err := running(tx, worktree)
	if err != nil || len(runs) == 0 {
		return 0, owner, err
	}
	newest := runs[0]
	for _, r := range runs[1:] {
		if r.Updated.After(newest.Updated) {
			newest = r
		}
	}
	return newest.ID, owner, nil
}

// deadRuns are the workflow runs of a worktree that are said to be going on, and
// whose process is gone.
func deadRuns(tx *ledger.Tx, worktree int64) (dead []int64, err error) {
	runs, err := running(tx, worktree)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	live, _, err := livingRun(tx, worktree)
	for _, r := range runs {
		if r.ID != live {
			dead = append(dead, r.ID)
		}
	}
	return dead, err
}
