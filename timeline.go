package retcon

import (
	"context"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
)

// TimelineOptions say what is read of a run. Run is needed.
type TimelineOptions struct {
	Run    string
	Before int64 // only frames before this one; 0 for all
	Limit  int   // of frames; 200 when zero
	Tree   bool  // with the forks on the frames, and theirs
	All    bool  // with the branches that moves have cut off
	Task   string
}

// Timeline reads the frames of a run, newest first, with what begins at them.
//
// It fails with *RunError, *timeline.NoFramesError, *timeline.NoPointError or
// *timeline.AmbiguousPointError for a task, *timeline.CycleError or
// *timeline.DepthError.
func (w *Workspace) Timeline(ctx context.Context, o TimelineOptions) (*timeline.Tree, error) {
	db, err := w.ledger()
	if err != nil {
		return nil, err
	}
	q := timeline.Query{Before: o.Before, Limit: o.Limit, Forks: o.Tree, Archived: o.All}
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		run, err := findRun(tx, row, o.Run)
		if err != nil {
			return err
		}
		q.Run = run.ID
		if o.Task == "" {
			return nil
		}
		at, err := timeline.Locate(tx, run, snapshot.Point{Kind: snapshot.AtTask, Text: o.Task, Task: o.Task})
		q.Task = at.Task
		return err
	})
	if err != nil {
		return nil, err
	}
	r := timeline.Reader{Ledger: db, Worktree: w.vcs}
	t, err := r.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	t.Missed = w.missedBy(t.Run)
	return t, w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error { return living(tx, t) })
}

// living finds out which of the runs that are said to be going on have a
// process, and which of all need attention.
func living(tx *ledger.Tx, t *timeline.Tree) (err error) {
	if t.Attention, err = attention(tx, t.Run.ID); err != nil {
		return err
	}
	if t.Branch.ID == t.Run.HeadBranch {
		if t.Edges, err = edgesOf(tx, t.Run, true); err != nil {
			return err
		}
	}
	if t.Live && t.Run.Kind != KindSession {
		id, _, err := livingRun(tx, t.Run.WorktreeID)
		if err != nil {
			return err
		}
		t.Live = id == t.Run.ID
	}
	for _, f := range t.Frames {
		for _, fork := range f.Forks {
			if err := living(tx, fork); err != nil {
				return err
			}
		}
	}
	for _, cut := range t.Archived {
		if err := living(tx, cut); err != nil {
			return err
		}
	}
	return nil
}
