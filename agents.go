package retcon

import (
	"context"
	"time"

	"github.com/retcon-dev/retcon/ledger"
)

// Delivery is the newest event of an agent that has arrived.
type Delivery struct {
	Run string    `json:"run"` // "r3"
	At  time.Time `json:"at"`
}

// Deliveries tells of each agent when its hooks were last heard of in this
// repository: that hooks are installed does not say that they arrive.
func (w *Workspace) Deliveries(ctx context.Context) (map[string]Delivery, error) {
	found := map[string]Delivery{}
	err := w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		for before := int64(0); ; {
			page, err := tx.Runs(ledger.RunQuery{Before: before})
			if err != nil || len(page) == 0 {
				return err
			}
			for _, r := range page {
				before = r.ID
				if r.Kind == KindSession && r.Updated.After(found[r.Source].At) {
					found[r.Source] = Delivery{Run: runRef(r.ID), At: r.Updated.UTC()}
				}
			}
		}
	})
	return found, err
}
