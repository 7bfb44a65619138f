package checkpoint

import (
	"encoding/json"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// AppendRescue adds a row for what somebody wrote to some paths while files were
// put in their place. The commit holds those paths and nothing else.
func AppendRescue(tx *ledger.Tx, w *vcs.Worktree, worktree int64, c vcs.Commit, paths []string, note, actor string) (ledger.Checkpoint, error) {
	tree, err := w.TreeOf(c)
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	about := make([][]byte, len(paths)) // base64: names are bytes
	for i, p := range paths {
		about[i] = []byte(p)
	}
	stats, err := json.Marshal(map[string]any{"paths": about})
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	return tx.AppendCheckpoint(ledger.Checkpoint{WorktreeID: worktree, Tier: ledger.TierRescue, Commit: string(c), Tree: tree,
		Note: note, Actor: actor, Stats: string(stats)})
}
