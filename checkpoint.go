package retcon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
)

// Why a checkpoint was taken.
const (
	TierTool   = ledger.TierTool   // around a tool call or a command
	TierWatch  = ledger.TierWatch  // by a watcher
	TierManual = ledger.TierManual // by hand
	TierSafety = ledger.TierSafety // before a move
	TierRescue = ledger.TierRescue // what somebody wrote during a move
)

// Checkpoint is a captured state of the worktree, and why it was captured.
type Checkpoint struct {
	ID          int64     `json:"id"`
	Ref         string    `json:"ref"` // "c17"
	Commit      string    `json:"commit"`
	Tree        string    `json:"tree"`
	Tier        string    `json:"tier"`
	Run         string    `json:"run,omitempty"`  // "r3"
	Edge        string    `json:"edge,omitempty"` // before or after an attempt of the run
	Label       string    `json:"label,omitempty"`
	Pinned      bool      `json:"pinned"`
	Note        string    `json:"note,omitempty"`
	Actor       string    `json:"actor"`
	Created     time.Time `json:"created"`
	Partial     bool      `json:"partial"` // something was not captured
	NotCaptured []Missing `json:"not_captured"`
	Special     []string  `json:"special"` // sockets, FIFOs, devices
	Head        Head      `json:"head"`
	Operation   string    `json:"operation,omitempty"` // what git was in the middle of
	Files       int       `json:"files"`
	Changed     int       `json:"changed"` // paths that differ from the checkpoint before; -1 when not known
	Unchanged   bool      `json:"unchanged"`
}

func shown(c ledger.Checkpoint) (*Checkpoint, error) {
	f, err := checkpoint.FactsOf(c)
	if err != nil {
		return nil, err
	}
	return withFacts(c, f), nil
}

func withFacts(c ledger.Checkpoint, f checkpoint.Facts) *Checkpoint {
	out := &Checkpoint{ID: c.ID, Ref: fmt.Sprintf("c%d", c.ID), Commit: c.Commit, Tree: c.Tree, Tier: c.Tier, Edge: c.Edge,
		Label: c.Label, Pinned: c.Pinned, Note: c.Note, Actor: c.Actor, Created: c.Created.UTC(), Partial: c.Partial,
		NotCaptured: f.NotCaptured, Special: f.Special, Head: f.Head, Operation: f.Operation,
		Files: f.Files, Changed: f.Changed, Unchanged: f.Unchanged}
	if c.RunID != 0 {
		out.Run = fmt.Sprintf("r%d", c.RunID)
	}
	if out.NotCaptured == nil {
		out.NotCaptured = []Missing{}
	}
	if out.Special == nil {
		out.Special = []string{}
	}
	return out
}

// CheckpointOptions say how a checkpoint is kept.
type CheckpointOptions struct {
	Label     string
	Note      string
	Pin       bool   // never delete it
	Tier      string // TierManual when empty
	MoveLabel bool   // take the label from the checkpoint that has it
}

// Checkpoint records the worktree as it is now.
//
// It fails with *ledger.LabelError when the label is taken, before anything is
// captured.
func (w *Workspace) Checkpoint(ctx context.Context, o CheckpointOptions) (*Checkpoint, error) {
	if o.Tier == "" {
		o.Tier = TierManual
	}
	return w.record(ctx, checkpoint.What{Tier: o.Tier, Label: o.Label, Note: o.Note, Pin: o.Pin, MoveLabel: o.MoveLabel})
}

// record settles what was left open, and records.
func (w *Workspace) record(ctx context.Context, what checkpoint.What) (*Checkpoint, error) {
	db, err := w.settled(ctx)
	if err != nil {
		return nil, err
	}
	what.Actor = w.opt.Actor
	what.Progress = func(done int) { w.progress("scan", done, 0) }
	r, err := w.recorder(db).Record(ctx, what)
	if err != nil || r.Checkpoint.ID == 0 {
		return nil, err
	}
	return withFacts(r.Checkpoint, r.Facts), nil
}

// ListOptions select checkpoints.
type ListOptions struct {
	Before int64 // only older than this number
	Limit  int   // 50 when zero
	Run    Ref   // only of this run
	Tier   string
	All    bool // those that moves take for themselves, too
}

// Snapshots lists the checkpoints of this worktree, newest first.
func (w *Workspace) Snapshots(ctx context.Context, o ListOptions) ([]Checkpoint, error) {
	if o.Limit <= 0 {
		o.Limit = 50
	}
	out := []Checkpoint{}
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		q := ledger.CheckpointQuery{Worktree: row.ID, Before: o.Before, Tier: o.Tier}
		if o.Run != "" {
			run, err := look{tx, row.ID, o.Run}.run(string(o.Run))
			if errors.Is(err, ledger.ErrNotFound) {
				return &RefError{Ref: o.Run, Reason: "no such run"}
			}
			if err != nil {
				return err
			}
			q.Run = run.ID
		}
		if row.ID == 0 {
			return nil
		}
		for len(out) < o.Limit {
			page, err := tx.Checkpoints(q)
			if err != nil || len(page) == 0 {
				return err
			}
			for _, c := range page {
				q.Before = c.ID
				if ofMoves(c.Tier) && !o.All && o.Tier == "" {
					continue
				}
				s, err := shown(c)
				if err != nil {
					return err
				}
				if out = append(out, *s); len(out) == o.Limit {
					break
				}
			}
		}
		return nil
	})
	return out, err
}

// Label gives a checkpoint a label. One that is taken is a *ledger.LabelError,
// unless move is set: then it is taken away from the other.
func (w *Workspace) Label(ctx context.Context, ref Ref, label string, move bool) error {
	if err := checkpoint.CheckLabel(label); err != nil {
		return err
	}
	return w.change(ctx, ref, func(tx *ledger.Tx, id int64) error {
		if move {
			return tx.MoveLabel(id, label, w.opt.Actor)
		}
		return tx.Label(id, label, w.opt.Actor)
	})
}

// Unlabel takes a label away from the checkpoint that has it.
func (w *Workspace) Unlabel(ctx context.Context, label string) error {
	return w.change(ctx, Ref("~"+label), func(tx *ledger.Tx, id int64) error { return tx.Unlabel(id, w.opt.Actor) })
}

// Pin keeps a checkpoint from being deleted, or lets it go.
func (w *Workspace) Pin(ctx context.Context, ref Ref, pinned bool) error {
	return w.change(ctx, ref, func(tx *ledger.Tx, id int64) error { return tx.SetPinned(id, pinned, w.opt.Actor) })
}

// Forget deletes checkpoints and, where a reference is a run's number, runs with
// all of theirs; all of them or, when one is pinned or needed, none. Their space
// comes back at the next Collect.
func (w *Workspace) Forget(ctx context.Context, refs []Ref) error {
	var runs, ids []int64
	for _, ref := range refs {
		if run, ok := runNumber(ref); ok {
			runs = append(runs, run)
			continue
		}
		c, err := w.resolve(ctx, ref)
		if err != nil {
			return err
		}
		if !slices.Contains(ids, c.ID) {
			ids = append(ids, c.ID)
		}
	}
	return w.update(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		for _, id := range ids {
			if err := tx.DeleteCheckpoint(id, w.opt.Actor); err != nil {
				return err
			}
		}
		for _, id := range runs {
			err := tx.DeleteRun(id, w.opt.Actor)
			if errors.Is(err, ledger.ErrNotFound) {
				err = &RefError{Ref: Ref(runRef(id)), Reason: "no such run"}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// change does something to the row of a checkpoint.
func (w *Workspace) change(ctx context.Context, ref Ref, do func(tx *ledger.Tx, id int64) error) error {
	c, err := w.resolve(ctx, ref)
	if err != nil {
		return err
	}
	return w.update(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error { return do(tx, c.ID) })
}
