package retcon

import (
	"context"
	"fmt"
	"strings"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/workflow"
)

// TravelOptions say where along a run a move goes. Run is needed; the rest
// depends on the verb.
type TravelOptions struct {
	Run     string // an id, the beginning of one, a name, or "last"
	Frame   int64
	Inside  int64  // of a rewind: a checkpoint behind Frame; see Workspace.Point
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
	Reason       string // why; an agent is told
	Confirm      func(*Plan) (bool, error)
}

// Rewind takes a run, and its worktree, back to a frame.
func (w *Workspace) Rewind(ctx context.Context, o TravelOptions) (*Result, error) {
	return w.travel(ctx, timeline.VerbRewind, o)
}

// Point finds what a place behind an @ means to a rewind: a frame, and, where it
// lies between that and the next one, the checkpoint that the worktree goes to;
// 0 for the frame's own.
//
// It fails with *RunError, *snapshot.AddressError, or as timeline.Locate does.
func (w *Workspace) Point(ctx context.Context, run, point string) (frame, inside int64, err error) {
	a, err := snapshot.ParseAddress(run + "@" + point)
	if err != nil {
		return 0, 0, err
	}
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		r, err := findRun(tx, row, run)
		if err != nil {
			return err
		}
		at, err := timeline.Locate(tx, r, a.Point)
		if err != nil {
			return err
		}
		if frame = at.Frame; frame >= 0 {
			return nil
		}
		if at.Checkpoint.ID == 0 {
			return &timeline.NotRecordedError{Run: r.ID, Point: point, Reason: "the files were not recorded there"}
		}
		if frame, err = timeline.Enclosing(tx, r, at.Checkpoint); err != nil {
			return err
		}
		f, err := tx.FrameAt(r.HeadBranch, frame, false)
		if f.Checkpoint != at.Checkpoint.ID {
			inside = at.Checkpoint.ID
		}
		return err
	})
	return frame, inside, err
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
	r, err := w.travelTo(ctx, verb, o)
	if !o.DryRun {
		err = w.rejected(ctx, rejection{Verb: verb, Run: o.Run, Target: o.point(verb)}, err)
	}
	return r, err
}

// point is where a move goes, as it was asked for.
func (o *TravelOptions) point(verb string) string {
	switch {
	case verb == timeline.VerbRewind:
		return fmt.Sprint(o.Frame)
	case verb == timeline.VerbRerun:
		return strings.Join(o.Tasks, ",")
	case o.Attempt != 0:
		return fmt.Sprintf("%s#%d", o.Task, o.Attempt)
	}
	return o.Task
}

func (w *Workspace) travelTo(ctx context.Context, verb string, o TravelOptions) (*Result, error) {
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
	return m.Travel(ctx, timeline.Travel{Run: run.ID, Frame: o.Frame, Inside: o.Inside, Task: o.Task, Attempt: o.Attempt, Tasks: o.Tasks,
		From: o.From, Failed: o.Failed, After: o.After, Before: o.Before, Only: o.Only, Cascade: o.Cascade, KeepFiles: o.KeepFiles,
		LedgerOnly: o.LedgerOnly, Reapply: o.Reapply, Again: w.again(run),
		Request: timeline.Request{Verb: verb, Exact: o.Exact, Conflicts: o.Conflicts, Head: o.Head, Index: o.Head, DryRun: o.DryRun,
			Steal: o.Steal, NoCompensate: o.NoCompensate, Force: o.Force, PlanID: o.PlanID, RequestID: o.RequestID, Reason: o.Reason, Confirm: o.Confirm}})
}

// again says, by rendering a workflow's run without running anything, which
// effects would be made again when tasks of it are.
func (w *Workspace) again(run ledger.Run) func(context.Context, []string) (will, may []int64, err error) {
	if run.Kind != workflow.Source {
		return nil
	}
	return func(ctx context.Context, tasks []string) (will, may []int64, err error) {
		db, err := w.ledger()
		if err != nil {
			return nil, nil, err
		}
		seen, err := workflow.Look(ctx, w.engine(db, RunOptions{}), run.ID, workflow.ResumeOptions{Forced: tasks})
		if err != nil {
			return nil, nil, ctx.Err() // it can't be known before; the run stops before such a task by itself
		}
		for _, t := range seen.Tasks {
			for _, e := range t.Stands {
				if t.What == MayRun {
					may = append(may, e.ID)
				} else {
					will = append(will, e.ID)
				}
			}
		}
		return will, may, nil
	}
}
