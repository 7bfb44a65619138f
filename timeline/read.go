package timeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/vcs"
)

// Reader reads recorded time. Worktree may be nil: then files are not counted.
type Reader struct {
	Ledger   *ledger.DB
	Worktree *vcs.Worktree
}

// Query says what is read of a run. Run is needed.
type Query struct {
	Run      int64
	Branch   int64 // another of the run's branches than the one it goes on with
	Before   int64 // only frames before this one; 0 for all
	Limit    int   // of frames, in the run and in each fork; 200 when zero
	Forks    bool  // with the forks on the frames, and theirs
	Archived bool  // with the branches that moves have cut off
	Task     string
}

// page is how many frames are read when nothing else is said.
const page = 200

func (q Query) limit() int {
	if q.Limit <= 0 {
		return page
	}
	return q.Limit
}

// Tree is a run with frames, and what begins at them.
type Tree struct {
	Run      ledger.Run
	Branch   ledger.Branch
	Base     *Base // where it was forked or cut from; nil for a run of its own
	Frames   []Frame
	Archived []*Tree // branches that were cut off, newest first
	More     bool    // there are frames before the first of these
	Live     bool    // said to be going on

	CutVerb, CutActor string // of the operation that cut the branch off

	// Filled in by the caller: what somebody has to look at in the run, what of
	// it was not recorded, and how its conversation went on.
	Attention []string
	Missed    []string
	Edges     []Edge
}

// Base is the frame that a branch begins at.
type Base struct {
	Run   int64
	Frame int64
}

// Frame is a frame as the timeline shows it.
type Frame struct {
	Seq        int64
	Run        int64 // that owns it: an ancestor's, where it was before the fork
	At         time.Time
	Kind       string
	Label      string
	Changes    []TaskChange
	Settled    string        // the first of the tasks that settled; "" for none
	Took       time.Duration // the longest attempt of those
	Files      *Files        // against the frame before; nil when not known
	Checkpoint int64         // 0 for none
	Commit     string
	Restorable bool
	Events     int
	Forks      []*Tree
}

// TaskChange is what a frame has changed of a task.
type TaskChange struct {
	ID      string
	Kind    string
	Old     string // state; "" for a new one
	New     string // "" for one that is gone
	Attempt int
	Carried bool
}

// Files counts paths that differ.
type Files struct{ Added, Changed, Removed int }

// maxDepth is how many forks may stand one on another.
const maxDepth = 100

// Read reads a page of a run's frames, newest first, with what begins at them.
//
// It fails with ledger.ErrNotFound, *NoFramesError, *CycleError or *DepthError.
func (r *Reader) Read(ctx context.Context, q Query) (*Tree, error) {
	var t *Tree
	v := &reading{r: r, q: q, ctx: ctx, checkpoints: map[int64]ledger.Checkpoint{}, states: map[string]bool{}}
	err := r.Ledger.View(ctx, func(tx *ledger.Tx) error {
		v.tx = tx
		run, err := tx.Run(q.Run)
		if err != nil {
			return err
		}
		if run.HeadBranch == 0 {
			return &NoFramesError{Run: q.Run}
		}
		branch, err := tx.BranchByID(run.HeadBranch)
		if err == nil && q.Branch != 0 {
			if branch, err = tx.BranchByID(q.Branch); err == nil && branch.RunID != q.Run {
				err = ledger.ErrNotFound
			}
		}
		if err != nil {
			return err
		}
		t, err = v.tree(run, branch, map[int64]bool{}, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, v.count()
}

// reading is one Read under way.
type reading struct {
	r           *Reader
	q           Query
	ctx         context.Context
	tx          *ledger.Tx
	checkpoints map[int64]ledger.Checkpoint
	states      map[string]bool // commits, and whether they can be put back
	pairs       []pair
}

// pair is a frame whose files are to be counted.
type pair struct {
	frame    *Frame
	from, to ledger.Checkpoint
}

// tree reads one branch of a run. Those of forks begin where they were forked,
// the first one at the beginning of its ancestors.
func (v *reading) tree(run ledger.Run, branch ledger.Branch, above map[int64]bool, whole bool) (*Tree, error) {
	switch {
	case len(above) > maxDepth:
		return nil, &DepthError{Run: run.ID}
	case above[run.ID] && branch.ID == run.HeadBranch:
		return nil, &CycleError{Run: run.ID}
	}
	t := &Tree{Run: run, Branch: branch, Live: run.Status == ledger.StatusRunning}
	owners, err := v.owners(branch)
	if err != nil {
		return nil, err
	}
	t.Base = baseOf(run, owners)
	if branch.ID != run.HeadBranch && branch.Parent != 0 {
		t.Base = &Base{Run: owners[1].RunID, Frame: branch.BaseSeq}
	}
	if err := v.frames(t, owners, whole); err != nil {
		return nil, err
	}
	if !above[run.ID] {
		above[run.ID] = true
		defer delete(above, run.ID)
	}
	if v.q.Forks {
		if err := v.forks(t, owners, above); err != nil {
			return nil, err
		}
	}
	if v.q.Archived && branch.ID == run.HeadBranch {
		if err := v.archived(t, above); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// owners are a branch and those it descends from, nearest first.
func (v *reading) owners(b ledger.Branch) (all []ledger.Branch, err error) {
	seen := map[int64]bool{}
	for {
		if seen[b.ID] {
			return nil, &CycleError{Run: b.RunID}
		}
		seen[b.ID] = true
		all = append(all, b)
		if b.Parent == 0 {
			return all, nil
		}
		if b, err = v.tx.BranchByID(b.Parent); err != nil {
			return nil, err
		}
	}
}

// baseOf is where a run was forked from.
func baseOf(run ledger.Run, owners []ledger.Branch) *Base {
	for i, b := range owners[1:] {
		if b.RunID != run.ID {
			return &Base{Run: b.RunID, Frame: owners[i].BaseSeq}
		}
	}
	return nil
}

func (v *reading) frames(t *Tree, owners []ledger.Branch, whole bool) error {
	q := ledger.FrameQuery{Before: v.q.Before, Limit: v.q.limit() + 1, Changed: true}
	first := int64(-1) // the frame before the first that is shown
	if !whole {
		q.Before = 0 // it is the first one's pages that are turned
		if t.Base != nil {
			first = t.Base.Frame
		}
		if q.Limit = min(q.Limit, int(t.Branch.HeadSeq-first)); q.Limit <= 0 {
			return nil
		}
	}
	page, err := v.page(t, q)
	if err != nil {
		return err
	}
	runs := map[int64]int64{}
	for _, b := range owners {
		runs[b.ID] = b.RunID
	}
	for i, f := range page {
		if f.Seq <= first {
			break
		}
		if i == v.q.limit() {
			t.More = true
			break
		}
		shown, err := v.frame(t, f, runs[f.Branch])
		if err != nil {
			return err
		}
		t.Frames = append(t.Frames, shown)
	}
	for i := range t.Frames {
		if err := v.compare(&t.Frames[i], page, i); err != nil {
			return err
		}
	}
	return v.events(t)
}

// page reads the rows of a tree's frames: all, or those that changed one task.
func (v *reading) page(t *Tree, q ledger.FrameQuery) ([]ledger.Frame, error) {
	if v.q.Task == "" || t.Run.ID != v.q.Run {
		return v.tx.Frames(t.Branch.ID, q)
	}
	page, err := v.tx.TaskHistory(t.Branch.ID, v.q.Task, q)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, &NoPointError{Run: t.Run.ID, Point: v.q.Task, Reason: "there is no such task"}
	}
	return page, err
}

func (v *reading) frame(t *Tree, f ledger.Frame, owner int64) (Frame, error) {
	out := Frame{Seq: f.Seq, Run: owner, At: f.At, Kind: f.Kind, Label: f.Note, Checkpoint: f.Checkpoint}
	for _, c := range f.Changed {
		if strings.HasPrefix(c.Key, "~") {
			continue
		}
		change := TaskChange{ID: c.Key}
		if c.Old != nil {
			change.Kind, change.Old = c.Old.Kind, c.Old.State.String()
		}
		if c.New != nil {
			change.Kind, change.New, change.Attempt, change.Carried = c.New.Kind, c.New.State.String(), int(c.New.Attempt), c.New.Carried
		}
		out.Changes = append(out.Changes, change)
		if settles(c) {
			if out.Settled == "" {
				out.Settled = c.Key
			}
			took, err := v.took(owner, *c.New)
			if err != nil {
				return out, err
			}
			out.Took = max(out.Took, took)
		}
	}
	if f.Checkpoint == 0 {
		return out, nil
	}
	c, err := v.checkpoint(f.Checkpoint)
	if err != nil || c.ID == 0 {
		out.Checkpoint = c.ID
		return out, err
	}
	out.Commit, out.Restorable = c.Commit, v.restorable(c.Commit)
	return out, nil
}

// settles tells that a task has got its outcome by a change.
func settles(c snapshot.Change) bool {
	return c.New != nil && c.New.State.Settled() && (c.Old == nil || !c.Old.State.Settled() || c.Old.Out != c.New.Out)
}

// took is how long the attempt that gave a row its outcome went on.
func (v *reading) took(run int64, row snapshot.Row) (time.Duration, error) {
	if row.Attempt == 0 || row.Carried {
		return 0, nil
	}
	tried, err := v.tx.AttemptsOf(run, row.Key)
	for _, a := range slices.Backward(tried) {
		if a.Number == int(row.Attempt) && !a.Ended.IsZero() {
			return a.Ended.Sub(a.Started), err
		}
	}
	return 0, err
}

// checkpoint is the zero value for one that was forgotten.
func (v *reading) checkpoint(id int64) (ledger.Checkpoint, error) {
	if c, ok := v.checkpoints[id]; ok {
		return c, nil
	}
	c, err := v.tx.Checkpoint(id)
	if errors.Is(err, ledger.ErrNotFound) {
		c, err = ledger.Checkpoint{}, nil
	}
	v.checkpoints[id] = c
	return c, err
}

// events counts the events that lead to each frame.
func (v *reading) events(t *Tree) error {
	if len(t.Frames) == 0 {
		return nil
	}
	at := map[int64]int{}
	for i, f := range t.Frames {
		at[f.Seq] = i
	}
	const many = 5000
	from, idx := t.Frames[len(t.Frames)-1].Seq, int64(0)
	for {
		page, err := v.tx.Events(t.Branch.ID, ledger.EventQuery{From: from, FromIdx: idx, To: t.Frames[0].Seq + 1, Limit: many})
		if err != nil {
			return err
		}
		for _, ev := range page {
			if i, ok := at[ev.Seq]; ok {
				t.Frames[i].Events++
			}
		}
		if len(page) < many {
			return nil
		}
		newest := page[len(page)-1]
		from, idx = newest.Seq, int64(newest.Idx)+1
	}
}
