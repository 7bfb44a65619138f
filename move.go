package retcon

import (
	"context"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// What timeline says about moves, under the names the doors know.
type (
	Plan      = timeline.Plan
	Result    = timeline.Result
	Recovered = timeline.Recovered
)

// RestoreOptions say what is put back, and how.
type RestoreOptions struct {
	Ref       Ref
	Paths     []string // relative to Options.Dir; only these and what lies below
	Exact     bool     // whoever changed it since
	Conflicts string   // of paths changed by the run and from outside: "" refuses, "theirs" takes the checkpoint's, "mine" keeps
	Head      bool     // HEAD, its branch and the index too
	Index     bool     // the index too
	DryRun    bool
	Steal     bool                      // although a run is going on
	PlanID    string                    // refuse any plan but this one
	RequestID string                    // carry the same request out once
	Reason    string                    // why; an agent is told
	Confirm   func(*Plan) (bool, error) // nil is yes
}

// Restore puts the worktree back to a checkpoint.
func (w *Workspace) Restore(ctx context.Context, o RestoreOptions) (*Result, error) {
	r, err := w.restore(ctx, o)
	if !o.DryRun {
		err = w.rejected(ctx, rejection{Verb: "restore", Target: string(o.Ref)}, err)
	}
	return r, err
}

func (w *Workspace) restore(ctx context.Context, o RestoreOptions) (*Result, error) {
	paths, err := w.rel(o.Paths)
	if err != nil {
		return nil, err
	}
	to, err := w.resolve(ctx, o.Ref)
	if err == nil {
		err = w.refuseSelf(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	m, err := w.mover(ctx)
	if err != nil {
		return nil, err
	}
	return m.Move(ctx, timeline.Request{Verb: "restore", Target: fmt.Sprintf("c%d", to.ID), To: to, Paths: paths, Exact: o.Exact,
		Conflicts: o.Conflicts, Head: o.Head, Index: o.Index, DryRun: o.DryRun, Steal: o.Steal, PlanID: o.PlanID,
		RequestID: o.RequestID, Reason: o.Reason, Confirm: o.Confirm})
}

// MoveOptions say how a move is taken back.
type MoveOptions struct {
	Op        int64 // refuse when another would be taken back; 0 for whichever is next
	Conflicts string
	DryRun    bool
	Steal     bool
	PlanID    string
	RequestID string
	Reason    string
	Confirm   func(*Plan) (bool, error)
}

func (o MoveOptions) request() timeline.Request {
	return timeline.Request{Conflicts: o.Conflicts, DryRun: o.DryRun, Steal: o.Steal, PlanID: o.PlanID,
		RequestID: o.RequestID, Reason: o.Reason, Confirm: o.Confirm}
}

// Undo takes back the newest move.
func (w *Workspace) Undo(ctx context.Context, o MoveOptions) (*Result, error) {
	r, err := w.undo(ctx, o)
	if !o.DryRun {
		err = w.rejected(ctx, rejection{Verb: ledger.VerbUndo, Target: numbered("op ", o.Op)}, err)
	}
	return r, err
}

func (w *Workspace) undo(ctx context.Context, o MoveOptions) (*Result, error) {
	m, err := w.mover(ctx)
	if err == nil {
		err = w.next(ctx, o.Op, "the newest move", (*ledger.Tx).UndoTarget)
	}
	if err == nil {
		err = w.refuseSelfBack(ctx, (*ledger.Tx).UndoTarget)
	}
	if err != nil {
		return nil, err
	}
	return m.Undo(ctx, o.request())
}

// Redo does again what the newest undo took back.
func (w *Workspace) Redo(ctx context.Context, o MoveOptions) (*Result, error) {
	r, err := w.redo(ctx, o)
	if !o.DryRun {
		err = w.rejected(ctx, rejection{Verb: ledger.VerbRedo, Target: numbered("op ", o.Op)}, err)
	}
	return r, err
}

func (w *Workspace) redo(ctx context.Context, o MoveOptions) (*Result, error) {
	m, err := w.mover(ctx)
	if err == nil {
		err = w.next(ctx, o.Op, "the newest undo", (*ledger.Tx).RedoTarget)
	}
	if err == nil {
		err = w.refuseSelfBack(ctx, (*ledger.Tx).RedoTarget)
	}
	if err != nil {
		return nil, err
	}
	return m.Redo(ctx, o.request())
}

// next refuses an operation that is not the one to be taken back.
func (w *Workspace) next(ctx context.Context, op int64, what string, target func(*ledger.Tx, int64) (ledger.Op, error)) error {
	if op == 0 {
		return nil
	}
	return w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		if _, err := tx.Op(op); errors.Is(err, ledger.ErrNotFound) {
			return &OpError{ID: op}
		}
		is, err := target(tx, row.ID)
		if err == nil && is.ID != op {
			err = &ledger.UndoneError{Op: op, Reason: fmt.Sprintf("is not %s; that is op %d", what, is.ID)}
		}
		return err
	})
}

// Recover settles moves whose process died.
func (w *Workspace) Recover(ctx context.Context) ([]Recovered, error) {
	m, err := w.mover(ctx)
	if err != nil {
		return nil, err
	}
	done, err := m.Recover(ctx)
	if done == nil {
		done = []Recovered{}
	}
	return done, err
}

// mover returns what moves this worktree.
func (w *Workspace) mover(ctx context.Context) (*timeline.Mover, error) {
	db, err := w.ledger()
	if err != nil {
		return nil, err
	}
	if err := w.settleDead(ctx, db); err != nil {
		return nil, err
	}
	r := w.recorder(db)
	var row ledger.Worktree
	err = db.Update(ctx, func(tx *ledger.Tx) (err error) {
		row, err = r.Ensure(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	actor, err := w.actor(ctx)
	if err != nil {
		return nil, err
	}
	return &timeline.Mover{W: w.vcs, DB: db, WorktreeID: row.ID, Actor: actor, Owner: w.owner(),
		Alive: checkpoint.Alive, Now: w.opt.Now, Progress: w.progress, Handlers: w.handlers(), Strays: w.strays}, nil
}
