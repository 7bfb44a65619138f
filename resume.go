package retcon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/workflow"
)

// ResumeOptions say how a run goes on. Run is needed.
type ResumeOptions struct {
	Run  string // an id, the beginning of one, a name, or "last"
	File string // an edited body, in place of the one the run is pinned to

	// Values are answers to signals, sent before the run goes on.
	Values []Answer

	// Confirm, if set, is asked before results that were had are given up for
	// an edited body. ErrDeclined when it says no.
	Confirm func(*Preview) (bool, error)

	RunOptions // Wait, Jobs, KeepFiles, Force and On count
}

// Answer is a value for a signal.
type Answer struct {
	Name  string
	Value []byte // JSON
}

// Preview is what resuming a run would do, found out without doing anything.
type Preview struct {
	Run   string        `json:"run"`
	File  string        `json:"file,omitempty"`
	Tasks []PreviewTask `json:"tasks"`
}

// PreviewTask is one task of a preview. What is kept, will run, may run, gone,
// waits, new or changed.
type PreviewTask struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Scope string `json:"scope,omitempty"`
	Kind  string `json:"kind"`
	What  string `json:"what"`
	Line  string `json:"line,omitempty"`
	Was   string `json:"was,omitempty"` // the state it is in; "" for a new one
	Reset bool   `json:"reset"`         // it has failed, and is tried again

	// Effects are what it has done outside, and would or may do again.
	Effects []int64 `json:"effects"`
}

// What a PreviewTask says.
const (
	WillKeep    = workflow.WillKeep
	WillRun     = workflow.WillRun
	MayRun      = workflow.MayRun
	WillBeGone  = workflow.WillBeGone
	WillWait    = workflow.WillWait
	WillRunNew  = workflow.WillRunNew
	WillRunEdit = workflow.WillRunEdit
)

// GivenUp are the tasks whose results would not be used any more.
func (p *Preview) GivenUp() (tasks []PreviewTask) {
	for _, t := range p.Tasks {
		if t.Was == snapshot.Done.String() && t.What != WillKeep {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// findRun finds a run of this worktree by what a person calls it.
func findRun(tx *ledger.Tx, row ledger.Worktree, what string) (ledger.Run, error) {
	r, err := look{tx: tx, worktree: row.ID, ref: Ref(what)}.run(what)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Run{}, &RunError{Run: what}
	}
	return r, err
}

// RunError says that there is no run of a name.
type RunError struct{ Run string }

func (e *RunError) Error() string { return fmt.Sprintf("no run %q", e.Run) }

// workflowRun is findRun for what only a workflow's run can do.
func (w *Workspace) workflowRun(ctx context.Context, what string) (run ledger.Run, err error) {
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		if run, err = findRun(tx, row, what); err != nil {
			return err
		}
		if run.Kind != workflow.Source {
			return &workflow.NotWorkflowError{Run: run.ID, Source: run.Source}
		}
		if run.WorktreeID != row.ID {
			return &ElsewhereError{Run: runRef(run.ID)}
		}
		return nil
	})
	return run, err
}

// ElsewhereError says that a run works in another worktree of the repository:
// it goes on there.
type ElsewhereError struct{ Run string }

func (e *ElsewhereError) Error() string { return e.Run + " works in another worktree" }

// Preview says what resuming a run would do, with an edited body when o.File is
// set. Nothing is written.
func (w *Workspace) Preview(ctx context.Context, o ResumeOptions) (*Preview, error) {
	run, err := w.workflowRun(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	ro, err := w.program(o)
	if err != nil {
		return nil, err
	}
	return w.preview(ctx, run, o, ro)
}

func (w *Workspace) program(o ResumeOptions) (ro workflow.ResumeOptions, err error) {
	if o.File != "" {
		ro.Program, err = w.body(o.File)
	}
	return ro, err
}

func (w *Workspace) preview(ctx context.Context, run ledger.Run, o ResumeOptions, ro workflow.ResumeOptions) (*Preview, error) {
	db, err := w.ledger()
	if err != nil {
		return nil, err
	}
	if run.Status == StatusOK && o.File == "" {
		return nil, &workflow.FinishedError{Run: run.ID}
	}
	seen, err := workflow.Look(ctx, w.engine(db, o.RunOptions), run.ID, ro)
	if err != nil {
		return nil, err
	}
	was := map[string]snapshot.State{}
	err = db.View(ctx, func(tx *ledger.Tx) error {
		head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest)
		if err != nil {
			return err
		}
		for r := range head.Set.Rows() {
			was[r.Key] = r.State
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &Preview{Run: runRef(run.ID), File: o.File, Tasks: []PreviewTask{}}
	rows := make([]snapshot.Row, 0, len(seen.Tasks))
	for _, t := range seen.Tasks {
		rows = append(rows, snapshot.Row{Key: t.ID})
	}
	names := shortNames(rows)
	for _, t := range seen.Tasks {
		one := PreviewTask{ID: t.ID, Name: names[t.ID], Scope: scopeOf(t.ID), Kind: t.Kind, What: t.What, Line: t.At, Reset: t.Reset, Effects: []int64{}}
		for _, e := range t.Stands {
			one.Effects = append(one.Effects, e.ID)
		}
		if state, ok := was[t.ID]; ok {
			one.Was = state.String()
		}
		out.Tasks = append(out.Tasks, one)
	}
	return out, nil
}

// ResumeWorkflow goes on with a run that was halted, interrupted, cancelled or
// left waiting. See RunWorkflow for what comes back.
//
// It fails with *RunError, *workflow.FinishedError, *workflow.LiveError,
// *workflow.DivergedError, and with what Signal and RunWorkflow fail with.
func (w *Workspace) ResumeWorkflow(ctx context.Context, o ResumeOptions) (*RunResult, error) {
	run, err := w.resumable(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	ro, err := w.program(o)
	if err != nil {
		return nil, err
	}
	db, err := w.settled(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.refuseLive(ctx, run); err != nil {
		return nil, err
	}
	if o.File != "" && o.Confirm != nil {
		p, err := w.preview(ctx, run, o, ro)
		if err != nil {
			return nil, err
		}
		if len(p.GivenUp()) > 0 {
			switch yes, err := o.Confirm(p); {
			case err != nil:
				return nil, err
			case !yes:
				return nil, timeline.ErrDeclined
			}
		}
	}
	e := w.engine(db, o.RunOptions)
	for _, a := range o.Values {
		if _, err := workflow.Send(ctx, e, run.ID, a.Name, a.Value, ""); err != nil {
			return nil, err
		}
	}
	out, err := workflow.Resume(ctx, e, run.ID, ro)
	return w.ended(out, err, o.File)
}

// resumable finds the run of a workflow that the caller may go on with.
func (w *Workspace) resumable(ctx context.Context, what string) (ledger.Run, error) {
	run, err := w.workflowRun(ctx, what)
	if err == nil {
		err = w.rejected(ctx, rejection{Verb: "resume", Run: what}, w.refuseSelf(ctx, run.ID))
	}
	if err == nil && w.project.Err != nil {
		err = w.project.Err
	}
	return run, err
}

// refuseLive fails with a *workflow.LiveError when a process is running a run.
func (w *Workspace) refuseLive(ctx context.Context, run ledger.Run) error {
	return w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		live, owner, err := livingRun(tx, row.ID)
		if err != nil || live != run.ID {
			return err
		}
		l, err := tx.Lease(ledger.WorkflowResource(row.ID))
		if err != nil {
			return err
		}
		return &workflow.LiveError{Run: run.ID, Err: &ledger.LockedError{Resource: runRef(run.ID), Owner: owner, Since: l.Acquired}}
	})
}

// SignalOptions say what is sent.
type SignalOptions struct {
	Run       string
	Name      string // of the wait, or its id
	Value     []byte // JSON
	RequestID string // send this once, however often it is asked for
}

// Sent is a signal that was sent.
type Sent struct {
	Run      string `json:"run"`
	Wait     string `json:"wait"`     // the task that waits for it
	Repeated bool   `json:"replayed"` // it had been sent before, under the same request key
	Live     bool   `json:"live"`     // the run goes on, and will take it
}

// Signal answers a wait of a run, which need not be going on.
//
// It fails with *RunError, *workflow.WaitError, *workflow.AmbiguousWaitError,
// *workflow.InputError and *ledger.SignalReuseError.
func (w *Workspace) Signal(ctx context.Context, o SignalOptions) (*Sent, error) {
	run, err := w.workflowRun(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	db, err := w.settled(ctx)
	if err != nil {
		return nil, err
	}
	sent, err := workflow.Send(ctx, w.engine(db, RunOptions{}), run.ID, o.Name, o.Value, o.RequestID)
	if err != nil {
		return nil, err
	}
	out := &Sent{Run: runRef(run.ID), Wait: sent.Wait, Repeated: sent.Repeated}
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		live, _, err := livingRun(tx, row.ID)
		out.Live = live == run.ID
		return err
	})
	return out, err
}

// CancelOptions say what is given up.
type CancelOptions struct {
	Run     string
	Task    string        // one task only
	Timeout time.Duration // how long to wait for a live run to stop; a minute when zero
}

// Cancelled is a run that was given up.
type Cancelled struct {
	Run     string `json:"run"`
	Was     string `json:"was"`     // its status before
	Stopped int64  `json:"stopped"` // the process that was running it; 0 for none
}

// TaskCancelError says that a single task can't be given up while its run goes
// on.
type TaskCancelError struct{ Run, Task string }

func (e *TaskCancelError) Error() string {
	return fmt.Sprintf("%s: a single task can't be cancelled, only the whole of %s", e.Task, e.Run)
}

// StillRunningError says that a process did not stop in time. It was told to,
// and may still do so.
type StillRunningError struct {
	Run string
	PID int64
}

func (e *StillRunningError) Error() string {
	return fmt.Sprintf("%s is still being run by pid %d, which was told to stop", e.Run, e.PID)
}

// CancelRun gives a run up. One that goes on is interrupted, and waited for.
//
// It fails with *RunError, *workflow.FinishedError, *TaskCancelError, a
// *workflow.LiveError when the process is on another host, or a
// *StillRunningError.
func (w *Workspace) CancelRun(ctx context.Context, o CancelOptions) (*Cancelled, error) {
	run, err := w.workflowRun(ctx, o.Run)
	if err == nil {
		err = w.rejected(ctx, rejection{Verb: "cancel", Run: o.Run}, w.refuseSelf(ctx, run.ID))
	}
	if err != nil {
		return nil, err
	}
	if o.Task != "" {
		return nil, &TaskCancelError{Run: runRef(run.ID), Task: o.Task}
	}
	if run.Status == StatusOK {
		return nil, &workflow.FinishedError{Run: run.ID}
	}
	out := &Cancelled{Run: runRef(run.ID), Was: run.Status}
	if out.Stopped, err = w.interrupt(ctx, run, o.Timeout); err != nil {
		return nil, err
	}
	err = w.update(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		now, err := tx.Run(run.ID)
		if err != nil {
			return err
		}
		if now.Status == StatusOK { // it had ended before it was told
			return &workflow.FinishedError{Run: run.ID}
		}
		return tx.SetRunStatus(run.ID, StatusCancelled)
	})
	return out, err
}

// interrupt stops the process that runs a run, and returns which that was.
func (w *Workspace) interrupt(ctx context.Context, run ledger.Run, timeout time.Duration) (int64, error) {
	if timeout <= 0 {
		timeout = time.Minute
	}
	owner, live, err := w.runner(ctx, run.ID)
	if err != nil || !live {
		return 0, err
	}
	if owner.Host != w.owner().Host {
		return 0, &workflow.LiveError{Run: run.ID, Err: &ledger.LockedError{Resource: runRef(run.ID), Owner: owner}}
	}
	if err := syscall.Kill(int(owner.PID), syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return 0, fmt.Errorf("stop pid %d: %w", owner.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return 0, &StillRunningError{Run: runRef(run.ID), PID: owner.PID}
			}
			return 0, ctx.Err()
		case <-tick.C:
		}
		if _, live, err = w.runner(ctx, run.ID); err != nil && ctx.Err() == nil || err == nil && !live {
			return owner.PID, err
		}
	}
}

// runner is the process that runs a run.
func (w *Workspace) runner(ctx context.Context, run int64) (owner ledger.Owner, live bool, err error) {
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		id, o, err := livingRun(tx, row.ID)
		owner, live = o, err == nil && id == run
		return err
	})
	return owner, live, err
}

// Waits are the signals that a run waits for, as they are sent.
func (w *Workspace) Waits(ctx context.Context, run string) (names []string, err error) {
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		r, err := findRun(tx, row, run)
		if err != nil || r.HeadBranch == 0 {
			return err
		}
		head, err := tx.LoadFrame(r.HeadBranch, ledger.Newest)
		if err != nil {
			return err
		}
		names = waitsOf(head.Set)
		return nil
	})
	return names, err
}

// waitsOf are the signals that a state waits for.
func waitsOf(set *snapshot.Set) []string {
	all := map[string]string{}
	for r := range set.Rows() {
		if r.Kind == workflow.KindSignal && r.State == snapshot.Waiting {
			all[r.Key] = ""
		}
	}
	names := []string{}
	for id := range all {
		names = append(names, waitName(id, all))
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
