package retcon

import (
	"context"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// CollectOptions say what of the past is given up; zero is what the Config says.
type CollectOptions struct {
	Full      bool          // pack anew what was packed before
	DryRun    bool          // only say what would be given up
	KeepTools time.Duration // how long all that tools and watchers made is kept
	Budget    int64         // bytes the store may take: history is thinned sooner to keep to it
}

// Collected is what came of it.
type Collected struct {
	DryRun      bool     `json:"dry_run"`
	Checkpoints []string `json:"checkpoints"` // given up
	Ops         []int64  `json:"ops"`         // operations that can't be undone any more; nothing could reach them
	Kept        int      `json:"kept"`        // checkpoints
	Rescues     []string `json:"rescues"`     // checkpoints of what was written to files after a move had displaced them
	Objects     int      `json:"objects"`     // that are needed
	FreedBytes  int64    `json:"freed_bytes"`
	SizeBytes   int64    `json:"size_bytes"`   // of the store now
	SharedBytes int64    `json:"shared_bytes"` // of files that are the repository's as well
	Packs       int      `json:"packs"`
	OverBudget  bool     `json:"over_budget"` // what must be kept is more than the budget
}

// Collect gives up what the policy does not keep, and frees the space of what
// nothing needs. What undo or redo can reach always stays.
func (w *Workspace) Collect(ctx context.Context, o CollectOptions) (*Collected, error) {
	c := w.opt.Config
	if o.KeepTools > 0 {
		c.KeepTools = o.KeepTools
	}
	if o.Budget > 0 {
		c.Budget = o.Budget
	}
	c = c.or(Defaults())
	out := &Collected{DryRun: o.DryRun, Checkpoints: []string{}, Ops: []int64{}, Rescues: []string{}}
	for keep := c.KeepTools; ; keep /= 2 {
		before := len(out.Checkpoints)
		if err := w.collect(ctx, o, keep, out); err != nil {
			return out, err
		}
		out.OverBudget = c.Budget > 0 && out.SizeBytes > c.Budget
		nothing := keep != c.KeepTools && len(out.Checkpoints) == before
		if o.DryRun || !out.OverBudget || keep <= time.Hour || nothing && keep < 24*time.Hour {
			return out, nil
		}
	}
}

func (w *Workspace) collect(ctx context.Context, o CollectOptions, keep time.Duration, out *Collected) error {
	db, err := w.settled(ctx)
	if err != nil {
		return err
	}
	w.progress("prune", 0, 0)
	pruned, err := checkpoint.Prune(ctx, db, checkpoint.Policy{KeepTools: keep, DryRun: o.DryRun, Actor: w.opt.Actor})
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	for _, id := range pruned.Checkpoints {
		out.Checkpoints = append(out.Checkpoints, checkpointRef(id))
	}
	out.Ops, out.Kept = append(out.Ops, pruned.Ops...), pruned.Kept
	if !o.DryRun {
		if w.vcs.HasDisplaced() {
			if err := w.sweepDisplaced(ctx, out); err != nil {
				return fmt.Errorf("displaced files: %w", err)
			}
		}
		if err := forget(ctx, db, w.opt.Now().Add(-keep)); err != nil {
			return err
		}
		got, err := w.vcs.Collect(ctx, vcs.CollectOptions{Roots: checkpoint.Live(ctx, db), Full: o.Full, Progress: w.progress})
		if err != nil {
			return err
		}
		out.Objects, out.FreedBytes = got.Live, out.FreedBytes+got.Freed
	}
	out.SizeBytes, out.SharedBytes, out.Packs, err = w.vcs.StoreSize()
	return err
}

// sweepDisplaced removes what moves have displaced.
func (w *Workspace) sweepDisplaced(ctx context.Context, out *Collected) error {
	m, err := w.mover(ctx)
	if err != nil {
		return err
	}
	rescues, removed, err := m.SweepDisplaced(ctx)
	out.Rescues, out.FreedBytes = append(out.Rescues, rescues...), out.FreedBytes+removed
	return err
}

// forget deletes from the ledger what nothing can come back to: branches that
// were cut off before a time by moves that can't be undone any more, and the
// bodies that no row names.
func forget(ctx context.Context, db *ledger.DB, before time.Time) error {
	if _, err := db.PurgeBranches(ctx, before); err != nil {
		return err
	}
	_, err := db.SweepContents(ctx, before)
	return err
}
