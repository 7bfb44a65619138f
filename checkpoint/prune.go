package checkpoint

import (
	"context"
	"errors"
	"time"

	"github.com/retcon-dev/retcon/ledger"
)

// Policy says what of the past is given up. What was made by hand, has a label
// or a pin, holds what somebody wrote during a move, is an edge of an attempt or
// is needed by a move that undo or redo can reach is kept whatever it says, and
// so is the newest checkpoint of every worktree. Of the calls in a prompt of a
// session, only the first and the last are such edges: what lies between may go,
// see [ledger.Tx.ThinCheckpoint].
type Policy struct {
	// KeepTools is how long every checkpoint that a tool or a watcher made is
	// kept; DefaultKeepTools when zero. After it one an hour is kept, and after
	// three times as long one a day.
	KeepTools time.Duration

	DryRun bool // only say what would be given up
	Actor  string
}

// DefaultKeepTools is the KeepTools of the zero Policy.
const DefaultKeepTools = 30 * 24 * time.Hour

// Pruned is what was given up.
type Pruned struct {
	Checkpoints []int64
	Ops         []int64 // their rows stay, their commits may go
	Kept        int     // checkpoints that are left
}

// Prune gives up, in the ledger, what the policy does not keep. The bytes come
// back when the store is collected. It works in steps, so that others can
// record in between, and may be stopped and repeated at any time.
func Prune(ctx context.Context, db *ledger.DB, p Policy) (Pruned, error) {
	if p.KeepTools <= 0 {
		p.KeepTools = DefaultKeepTools
	}
	var out Pruned
	var going, ops []int64
	err := db.View(ctx, func(tx *ledger.Tx) error {
		rows, err := tx.Worktrees()
		if err != nil {
			return err
		}
		for _, row := range rows {
			thin, total, err := thinned(tx, row.ID, p.KeepTools)
			if err != nil {
				return err
			}
			going, out.Kept = append(going, thin...), out.Kept+total
		}
		ops, err = unreachable(tx, tx.Now().Add(-p.KeepTools))
		return err
	})
	if err != nil {
		return Pruned{}, err
	}
	// Operations first: one that goes lets checkpoints go.
	var steps []step
	for _, id := range ops {
		steps = append(steps, func(tx *ledger.Tx, done *Pruned) error {
			done.Ops = append(done.Ops, id)
			return tx.PruneOp(id, p.Actor)
		})
	}
	for _, id := range going {
		steps = append(steps, func(tx *ledger.Tx, done *Pruned) error {
			ok, err := deleted(tx.ThinCheckpoint(id, p.Actor))
			if ok {
				done.Checkpoints = append(done.Checkpoints, id)
			}
			return err
		})
	}
	err = take(ctx, db, p.DryRun, steps, &out)
	out.Kept -= len(out.Checkpoints)
	return out, err
}

// thinned returns the checkpoints of a worktree that may go, oldest first, and
// how many there are in all.
func thinned(tx *ledger.Tx, worktree int64, keep time.Duration) (going []int64, total int, err error) {
	now := tx.Now()
	type slot struct {
		width time.Duration
		n     int64
	}
	newest := map[slot]int64{} // in each hour or day: the one that is kept so far
	var last int64
	err = tx.CheckpointsAfter(worktree, 0, func(c ledger.Checkpoint) error {
		total++
		last = c.ID
		if !mayGo(c) {
			return nil
		}
		age := now.Sub(c.Created)
		width := time.Hour
		switch {
		case age <= keep:
			return nil
		case age > 3*keep:
			width = 24 * time.Hour
		}
		s := slot{width, c.Created.Unix() / int64(width/time.Second)}
		if older, ok := newest[s]; ok {
			going = append(going, older)
		}
		newest[s] = c.ID
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if n := len(going); n > 0 && going[n-1] == last {
		going = going[:n-1]
	}
	return going, total, nil
}

// mayGo tells that no property of a checkpoint itself keeps it. The ledger
// knows who else needs it.
func mayGo(c ledger.Checkpoint) bool {
	switch c.Tier {
	case ledger.TierTool, ledger.TierWatch, ledger.TierSafety:
		return !c.Pinned && c.Label == "" && c.AttemptID == 0
	}
	return false
}

// unreachable returns the operations, oldest first, that ended before a time
// and that neither undo nor redo can come to: they changed nothing, or they were
// undone (or are an undo) and a later move has cleared the way to redo them.
func unreachable(tx *ledger.Tx, before time.Time) ([]int64, error) {
	var found []int64
	moved := map[int64]bool{} // worktrees in which a later move was made
	for at := int64(0); ; {
		page, err := tx.Ops(ledger.OpQuery{Before: at})
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, op := range page {
			at = op.ID
			if op.Result == "" {
				continue
			}
			changedNothing := op.Result != ledger.ResultOK
			cleared := len(op.Worktrees) > 0
			for _, w := range op.Worktrees {
				cleared = cleared && moved[w.WorktreeID]
			}
			takenBack := op.Verb == ledger.VerbUndo || op.UndoneBy != 0
			if !op.Pruned && op.Finished.Before(before) && (changedNothing || takenBack && cleared) {
				found = append(found, op.ID)
			}
			if !changedNothing && op.Verb != ledger.VerbUndo && op.Verb != ledger.VerbRedo {
				for _, w := range op.Worktrees {
					moved[w.WorktreeID] = true
				}
			}
		}
	}
	for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
		found[i], found[j] = found[j], found[i]
	}
	return found, nil
}

// step gives one row up, and notes that it did.
type step func(tx *ledger.Tx, done *Pruned) error

// errDry takes a dry run back.
var errDry = errors.New("dry run")

// take takes steps, a few to a transaction; all in one that is taken back when
// dry.
func take(ctx context.Context, db *ledger.DB, dry bool, steps []step, out *Pruned) error {
	const few = 256
	for len(steps) > 0 {
		n := min(few, len(steps))
		if dry {
			n = len(steps)
		}
		var done Pruned
		err := db.Update(ctx, func(tx *ledger.Tx) error {
			done = Pruned{}
			for _, s := range steps[:n] {
				if err := s(tx, &done); err != nil {
					return err
				}
			}
			if dry {
				return errDry
			}
			return nil
		})
		if err != nil && !errors.Is(err, errDry) {
			return err
		}
		out.Ops, out.Checkpoints = append(out.Ops, done.Ops...), append(out.Checkpoints, done.Checkpoints...)
		steps = steps[n:]
	}
	return nil
}

// deleted makes of a refusal, or of a row that somebody else has deleted, no
// error: it was not done.
func deleted(err error) (bool, error) {
	var pinned *ledger.PinnedError
	var referenced *ledger.ReferencedError
	switch {
	case errors.As(err, &pinned), errors.As(err, &referenced), errors.Is(err, ledger.ErrNotFound):
		return false, nil
	}
	return err == nil, err
}
