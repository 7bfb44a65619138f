package checkpoint

import (
	"context"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Live returns every commit that the ledger needs, in the form vcs.Collect
// takes them. It fails closed: what can't be read is an error, and then nothing
// may be deleted.
func Live(ctx context.Context, db *ledger.DB) func(yield func(vcs.Commit) error) error {
	return func(yield func(vcs.Commit) error) error {
		return db.View(ctx, func(tx *ledger.Tx) error {
			return tx.LiveCommits(func(commit string) error { return yield(vcs.Commit(commit)) })
		})
	}
}
