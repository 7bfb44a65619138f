package retcon

import (
	"context"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// TravelOptions say where along a run a move goes. Run is needed; the rest
// depends on the verb.
type TravelOptions struct {
	Run     string // an id, the beginning of one, a name, or "last"
	Frame   int64
	Task    string // an id, the beginning of one, or a name
	Attempt int    // 0 for the newest
	Tasks   []string
	From    string
	Failed  bool

	After      bool // where the attempt ended
	Before     bool // of a revert: where it began
	Only       bool // of a revert: only what that attempt changed
	Cascade    bool // what depends on the task runs again, too
	KeepFiles  bool
	LedgerOnly bool
	Reapply    string // of signals taken since: "" sends them again, "none" does not

	Exact        bool
	Conflicts    string
	Head         bool
	DryRun       bool
	Steal        bool
	NoCompensate bool // what could be undone outside is in the way
	Force        bool // move past what can't be undone outside, and leave it
	PlanID       string
	RequestID    string
	Confirm      func(*Plan) (bool, error)
}

// Rewind takes a run, and its worktree, back to a frame.
func (w *Workspace) Rewind(ctx context.Context, o TravelOptions) (*Result, error) {
	return w.travel(ctx, timeline.VerbRewind, o)
}

// TimeTravel takes a run, and its worktree, to where an attempt of a task began,
// so that it runs again.
func (w *Workspace) TimeTravel(ctx context.Context, o TravelOptions) (*Result, error) {
	return w.travel(ctx, timeline.VerbTimeTravel, o)
}

// Revert puts the worktree to what an attempt left, and leaves the record alone.
func (w *Workspace) Revert(ctx context.Context, o TravelOptions) (*Result, error) {
	return w.travel(ctx, timeline.VerbRevert, o)
}

// RetryTask lets a task run again with the files it began with; nothing is cut
// off.
func (w *Workspace) RetryTask(ctx context.Context, o TravelOptions) (*Result, error) {
	return w.travel(ctx, timeline.VerbRetry, o)
}

// Rerun opens a new generation of a run, in which the named tasks run again.
func (w *Workspace) Rerun(ctx context.Context, o TravelOptions) (*Result, error) {
	return w.travel(ctx, timeline.VerbRerun, o)
}

func (w *Workspace) travel(ctx context.Context, verb string, o TravelOptions) (*Result, error) {
	var run ledger.Run
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) (err error) {
		run, err = findRun(tx, row, o.Run)
		return err
	})
	if err == nil {
		err = w.refuseSelf(ctx, run.ID)
	}
	if err != nil {
		return nil, err
	}
	m, err := w.mover(ctx)
	if err != nil {
		return nil, err
	}
	return m.Travel(ctx, timeline.Travel{Run: run.ID, Frame: o.Frame, Task: o.Task, Attempt: o.Attempt, Tasks: o.Tasks,
		From: o.From, Failed: o.Failed, After: o.After, Before: o.Before, Only: o.Only, Cascade: o.Cascade, KeepFiles: o.KeepFiles,
		LedgerOnly: o.LedgerOnly, Reapply: o.Reapply,
		Request: timeline.Request{Verb: verb, Exact: o.Exact, Conflicts: o.Conflicts, Head: o.Head, Index: o.Head, DryRun: o.DryRun,
			Steal: o.Steal, NoCompensate: o.NoCompensate, Force: o.Force, PlanID: o.PlanID, RequestID: o.RequestID, Confirm: o.Confirm}})
}
