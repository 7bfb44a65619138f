package retcon

import (
	"context"
	"fmt"
	"os"

	"github.com/retcon-dev/retcon/ledger"
)

// where is what an agent should know when its conversation goes on in another
// worktree than it began in: that one stays as it is, and a rewind is about it.
func (s *session) where(ctx context.Context) (note string, err error) {
	if !s.elsewhere() || !s.hears || s.event.Source != "resume" {
		return "", nil
	}
	err = s.db.View(ctx, func(tx *ledger.Tx) error {
		at, err := tx.Worktree(s.run.WorktreeID)
		if err != nil {
			return err
		}
		note = fmt.Sprintf("This conversation began in the worktree %s and goes on in %s.", at.Path, s.w.Root())
		if info, err := os.Stat(at.Path); err != nil || !info.IsDir() {
			note += " The first is not there any more: what was done in it is not in the files you see now."
		} else {
			note += " The files you changed before are in the first, and a rewind of this conversation is about those."
		}
		return nil
	})
	return note, err
}
