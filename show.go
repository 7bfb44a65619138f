package retcon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
	"github.com/retcon-dev/retcon/workflow"
)

// ShowOptions say what is shown. At is needed.
type ShowOptions struct {
	At   string // RUN or RUN@POINT
	Task string // one task of it, as Point names it: "plan", "plan#2"
}

// Shown is a run, as it is at a place in its history.
type Shown struct {
	Run        Run             `json:"run"`
	Live       bool            `json:"live"`
	Parent     string          `json:"parent,omitempty"` // "r3@5"
	Frame      int64           `json:"frame"`            // -1 for a run without frames
	Newest     int64           `json:"newest"`           // the run's last frame
	At         time.Time       `json:"at"`
	Label      string          `json:"label,omitempty"`
	Root       string          `json:"root,omitempty"` // of the graph
	Checkpoint string          `json:"checkpoint,omitempty"`
	Commit     string          `json:"commit,omitempty"`
	Restorable bool            `json:"restorable"`
	Input      json.RawMessage `json:"input,omitempty"`
	Value      json.RawMessage `json:"value,omitempty"` // what the body returned
	Definition *Definition     `json:"definition,omitempty"`
	Waits      []string        `json:"waits"`
	Resume     []string        `json:"resume"` // commands that bring it on
	Loops      []Loop          `json:"loops"`
	Tasks      []Task          `json:"tasks"`
	Task       *ShownTask      `json:"task,omitempty"` // that was asked for
}

// Definition is what a run executes.
type Definition struct {
	Hash  string   `json:"hash"`
	Main  string   `json:"main"`
	Files []string `json:"files"`

	Program string `json:"program,omitempty"` // the Go program that executes it, and alone resumes it
}

// Loop is how far a loop is.
type Loop struct {
	Name       string `json:"name"`
	Iterations int    `json:"iterations"`
	State      string `json:"state"`
}

// ShownTask is one task with all that is known of it.
type ShownTask struct {
	Task
	Declared json.RawMessage `json:"declared,omitempty"` // kind, name, args
	Input    string          `json:"input,omitempty"`    // digest of all it depends on
	Output   json.RawMessage `json:"output,omitempty"`   // its value, or its failure
	Attempts []Attempt       `json:"attempts"`
	Calls    []Call          `json:"calls,omitempty"` // of a prompt
}

// Attempt is one try of a task.
type Attempt struct {
	Run         string     `json:"run"` // it was made in
	Number      int        `json:"number"`
	Outcome     string     `json:"outcome"` // "" while it goes on
	Exit        *int       `json:"exit,omitempty"`
	Before      string     `json:"before,omitempty"`
	After       string     `json:"after,omitempty"`
	Started     time.Time  `json:"started"`
	Ended       *time.Time `json:"ended,omitempty"`
	AtLeastOnce bool       `json:"at_least_once,omitempty"`
	Cells       []Cell     `json:"cells,omitempty"` // what the tape has of it
}

// Show tells of a run, and of the graph at one of its frames: the newest when
// there is no point. A run without frames has attempts for tasks.
//
// It fails with *snapshot.AddressError, *RunError, and what timeline.Locate fails
// with.
func (w *Workspace) Show(ctx context.Context, o ShowOptions) (*Shown, error) {
	a, err := snapshot.ParseAddress(o.At)
	if err != nil {
		return nil, err
	}
	out := &Shown{Frame: -1, Newest: -1, Waits: []string{}, Resume: []string{}, Loops: []Loop{}, Tasks: []Task{}}
	var commit string
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		run, err := findRun(tx, row, a.Run)
		if err != nil {
			return err
		}
		v := viewer{tx: tx, run: run, out: out}
		if err := v.show(a.Point, o.Task); err != nil {
			return err
		}
		commit = v.commit
		return nil
	})
	if err != nil {
		return nil, err
	}
	if commit != "" {
		out.Commit = commit
		out.Restorable = w.vcs.Complete(ctx, vcs.Commit(commit)) == nil
	}
	return out, nil
}

// viewer fills in what is shown of a run.
type viewer struct {
	tx     *ledger.Tx
	run    ledger.Run
	out    *Shown
	commit string
}

func (v *viewer) show(p snapshot.Point, task string) error {
	told, err := shownRun(v.tx, v.run)
	if err != nil {
		return err
	}
	v.out.Run = *told
	if v.out.Run.Edges, err = edgesOf(v.tx, v.run, true); err != nil {
		return err
	}
	if v.out.Parent, err = forkedFrom(v.tx, v.run); err != nil {
		return err
	}
	live, _, err := livingRun(v.tx, v.run.WorktreeID)
	if err != nil {
		return err
	}
	v.out.Live = live == v.run.ID
	at, err := timeline.Locate(v.tx, v.run, p)
	var none *timeline.NoFramesError
	if errors.As(err, &none) && p.Kind == snapshot.AtNewest {
		at, err = timeline.Place{Run: v.run, Frame: -1}, nil
	}
	if err != nil {
		return err
	}
	if at.Checkpoint.ID != 0 {
		v.out.Checkpoint, v.commit = checkpointRef(at.Checkpoint.ID), at.Checkpoint.Commit
		v.out.At = at.Checkpoint.Created.UTC()
	}
	if v.run.Kind == workflow.Source {
		if err := v.definition(); err != nil {
			return err
		}
	}
	if p.Kind == snapshot.AtTask && task == "" {
		task = p.Text
	}
	return v.graph(at, task)
}

// forkedFrom is the frame that a run began at, as it is written; "" for one that
// is no fork.
func forkedFrom(tx *ledger.Tx, run ledger.Run) (string, error) {
	branches, err := tx.Branches(run.ID)
	if err != nil || len(branches) == 0 || branches[0].Parent == 0 {
		return "", err
	}
	parent, err := tx.BranchByID(branches[0].Parent)
	return fmt.Sprintf("r%d@%d", parent.RunID, branches[0].BaseSeq), err
}

func (v *viewer) definition() (err error) {
	if v.out.Input, err = workflow.InputJSON(v.tx, v.run); err != nil {
		return err
	}
	d, err := workflow.PinnedDefinition(v.tx, v.run)
	if err != nil {
		return err
	}
	v.out.Definition = &Definition{Hash: d.Hash.String(), Main: d.Main, Files: d.Paths()}
	if d.IsGo() {
		v.out.Definition.Program = d.Name
	}
	return nil
}

// graph shows the tasks at a frame, and one of them whole.
func (v *viewer) graph(at timeline.Place, task string) error {
	if at.Branch == 0 || at.Frame < 0 && at.Task == "" && at.Checkpoint.ID == 0 {
		return v.one(nil, at.Task, task)
	}
	branch, err := v.tx.BranchByID(at.Branch)
	if err != nil {
		return err
	}
	v.out.Newest = branch.HeadSeq
	if at.Frame < 0 {
		at.Frame = branch.HeadSeq
		if at.Attempt != nil {
			at.Frame = at.Attempt.StartSeq
		}
	}
	frame, err := v.tx.FrameAt(at.Branch, at.Frame, false)
	if err != nil {
		return err
	}
	v.out.Frame, v.out.At, v.out.Label, v.out.Root = frame.Seq, frame.At.UTC(), frame.Note, frame.Root.String()
	state, err := v.tx.LoadFrame(at.Branch, at.Frame)
	if err != nil {
		return err
	}
	var rows []snapshot.Row
	for r := range state.Set.Rows() {
		if err := v.row(r, at.Branch); err != nil {
			return err
		}
		if r.Key[0] != '~' {
			rows = append(rows, r)
		}
	}
	v.tasks(state.Set, rows)
	v.out.Waits = waitsOf(state.Set)
	v.out.Resume = v.next(state.Set)
	return v.one(state.Set, at.Task, task)
}

// row takes in what is not a task.
func (v *viewer) row(r snapshot.Row, branch int64) error {
	switch {
	case strings.HasPrefix(r.Key, "~loop/"):
		v.out.Loops = append(v.out.Loops, Loop{Name: strings.TrimPrefix(r.Key, "~loop/"), Iterations: int(r.Iter), State: r.State.String()})
	case r.Key == "~end":
		b, err := workflow.FrameOutcome(v.tx, v.run, branch, r)
		if err != nil {
			return fmt.Errorf("what r%d returned: %w", v.run.ID, err)
		}
		v.out.Value, err = workflow.OutcomeJSON(r.State, b)
		return err
	}
	return nil
}

// tasks lists the tasks of a frame in the order in which they settled, and then
// those that have not, each behind what it is given.
func (v *viewer) tasks(set *snapshot.Set, rows []snapshot.Row) {
	names := shortNames(rows)
	settled := func(r snapshot.Row) int64 {
		if !r.State.Settled() {
			return 1 << 62
		}
		seq, _ := set.ChangedAt(r.Key)
		return seq
	}
	slices.SortStableFunc(rows, func(a, b snapshot.Row) int {
		return cmp.Or(cmp.Compare(settled(a), settled(b)), cmp.Compare(a.Control, b.Control))
	})
	for _, r := range inOrder(rows) {
		v.out.Tasks = append(v.out.Tasks, taskOf(r, names))
	}
}

func taskOf(r snapshot.Row, names map[string]string) Task {
	return Task{ID: r.Key, Name: names[r.Key], Scope: scopeOf(r.Key), Kind: r.Kind, State: r.State.String(), Attempt: int(r.Attempt),
		Carried: r.Carried, Deps: r.Deps, After: r.After}
}

// inOrder sorts tasks so that each follows what it is given and the writer it
// works on, and otherwise as they are.
func inOrder(rows []snapshot.Row) []snapshot.Row {
	byKey := make(map[string]snapshot.Row, len(rows))
	for _, r := range rows {
		byKey[r.Key] = r
	}
	var out []snapshot.Row
	seen := map[string]bool{}
	var visit func(r snapshot.Row)
	visit = func(r snapshot.Row) {
		if seen[r.Key] {
			return
		}
		seen[r.Key] = true
		for _, d := range append(slices.Clone(r.Deps), r.After) {
			if before, ok := byKey[d]; ok {
				visit(before)
			}
		}
		out = append(out, r)
	}
	for _, r := range rows {
		visit(r)
	}
	return out
}

// one shows a task whole: the one that was located, or the one that was named.
func (v *viewer) one(set *snapshot.Set, located, named string) error {
	if named == "" {
		return nil
	}
	if done, err := v.call(named); done || err != nil {
		return err
	}
	id := located
	if id == "" {
		at, err := timeline.Locate(v.tx, v.run, snapshot.Point{Kind: snapshot.AtTask, Text: named, Task: named})
		if err != nil {
			return err
		}
		id = at.Task
	}
	told := &ShownTask{Task: Task{ID: id, Name: called(id), Scope: scopeOf(id), State: snapshot.Pending.String()}, Attempts: []Attempt{}}
	v.out.Task = told
	if err := v.attempts(told); err != nil {
		return err
	}
	if err := v.calls(told); err != nil {
		return err
	}
	if set == nil {
		return nil
	}
	row, ok := set.Get(id)
	if !ok {
		return &timeline.NoPointError{Run: v.run.ID, Point: named, Reason: fmt.Sprintf("the task is not there at frame %d", v.out.Frame)}
	}
	for _, t := range v.out.Tasks {
		if t.ID == id {
			told.Task = t
		}
	}
	return v.content(told, row)
}

// content reads what a task was declared with and what came of it.
func (v *viewer) content(t *ShownTask, row snapshot.Row) error {
	if !row.Input.IsZero() {
		t.Input = row.Input.String()
	}
	if v.run.Kind == KindSession {
		return nil // a prompt is neither declared nor has it a value
	}
	b, err := v.tx.Content(row.Decl)
	if err == nil {
		t.Declared, err = workflow.DeclarationJSON(b)
	}
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("what %s was declared with: %w", row.Key, err)
	}
	if !row.State.Settled() {
		return nil
	}
	b, err = workflow.FrameOutcome(v.tx, v.run, v.run.HeadBranch, row)
	if err == nil {
		t.Output, err = workflow.OutcomeJSON(row.State, b)
	}
	if err != nil {
		return fmt.Errorf("the outcome of %s: %w", row.Key, err)
	}
	events, err := v.tx.Events(v.run.HeadBranch, ledger.EventQuery{Task: row.Key, Types: []string{workflow.EventStarted}, Limit: 1})
	if err != nil || len(events) == 0 {
		return err
	}
	var note struct{ At string }
	body, err := v.tx.EventBody(events[0])
	if err == nil {
		err = json.Unmarshal(body, &note)
	}
	t.Line = note.At
	return err
}

func attemptOf(a ledger.Attempt) Attempt {
	one := Attempt{Run: runRef(a.RunID), Number: a.Number, Outcome: a.Outcome, Exit: a.ExitCode, Before: checkpointRef(a.Before),
		After: checkpointRef(a.After), Started: a.Started.UTC(), AtLeastOnce: a.AtLeastOnce}
	if !a.Ended.IsZero() {
		at := a.Ended.UTC()
		one.Ended = &at
	}
	return one
}

// attempts lists how often a task was tried, in the run and those it was forked
// from, oldest first.
func (v *viewer) attempts(t *ShownTask) error {
	lineage, err := v.tx.Lineage(v.run.ID)
	if err != nil {
		return err
	}
	for _, run := range slices.Backward(lineage) {
		tried, err := v.tx.AttemptsOf(run, t.ID)
		if err != nil {
			return err
		}
		for _, a := range tried {
			one := attemptOf(a)
			if one.Cells, err = v.cells(ledger.CellQuery{Attempt: a.ID}, a); err != nil {
				return err
			}
			t.Attempts = append(t.Attempts, one)
		}
	}
	return nil
}
