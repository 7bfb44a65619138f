package retcon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow"
)

// What workflow says while it runs, under the names the doors know.
type Progress = workflow.Progress

// Kinds of Progress.
const (
	Declared = workflow.Declared
	Started  = workflow.Started
	Printed  = workflow.Printed
	Retried  = workflow.Retried
	Settled  = workflow.Settled
	Framed   = workflow.Framed
)

// Statuses of a workflow's run.
const (
	StatusRunning     = ledger.StatusRunning
	StatusOK          = ledger.OutcomeOK
	StatusFailed      = ledger.OutcomeFailed
	StatusInterrupted = ledger.OutcomeInterrupted
	StatusWaiting     = workflow.StatusWaiting
	StatusCancelled   = "cancelled"
	StatusLoaded      = "loaded" // of a dry run
)

// RunOptions say what is run. File is needed.
type RunOptions struct {
	File   string // the body, relative to Options.Dir; it may lie outside the worktree
	Name   string
	Input  []byte // JSON; nil for none
	Origin string // where the input came from, for errors; "-i" when empty
	DryRun bool   // load the body and look at the input, and do nothing

	Wait      bool // stay while a signal is all that is waited for
	Jobs      int  // attempts at the same time; a few when zero
	KeepFiles bool // a task that failed begins again with the files as they are
	Force     bool // tasks run again across what they have done outside, which stays there

	// On is told what happens, one call at a time.
	On func(Progress)
}

// Task is a task of a run, as a frame has it.
type Task struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"` // the shortest that names it within its scope
	Scope   string   `json:"scope,omitempty"`
	Kind    string   `json:"kind"`
	State   string   `json:"state"`
	Attempt int      `json:"attempt,omitempty"`
	Carried bool     `json:"carried,omitempty"`
	Line    string   `json:"line,omitempty"` // "build.star:12:5"
	Message string   `json:"message,omitempty"`
	Deps    []string `json:"deps,omitempty"`
	After   string   `json:"after,omitempty"` // the writer whose files it works on
}

// RunResult is how far a run has come.
type RunResult struct {
	Run    string          `json:"run"`
	Frame  int64           `json:"frame"`
	Status string          `json:"status"`
	Value  json.RawMessage `json:"value,omitempty"` // what the body returned

	// What stopped it: a task, or the body itself.
	Task    string `json:"task,omitempty"`
	Scope   string `json:"scope,omitempty"`
	Line    string `json:"line,omitempty"`
	Kind    string `json:"kind,omitempty"` // of the failure: exit, timeout, body, …
	Message string `json:"message,omitempty"`

	Waits  []string `json:"waits"`  // the signals that are waited for
	Resume []string `json:"resume"` // commands that bring it on
	Tasks  []Task   `json:"tasks"`
}

// Kinds of what stops a run, beside those that tasks fail with.
const (
	KindBody        = "body"   // a fault of the body
	KindGaveUp      = "fail"   // the body called fail()
	KindEngine      = "engine" // the engine could not go on
	KindInterrupted = "interrupted"
)

// RunWorkflow runs a body as a new run, in this worktree. How the run ended is
// in the result; an error means that it did not begin, or that the engine could
// not go on, a *StoppedError.
//
// It fails with *FileError, *workflow.BodyError, *workflow.InputError,
// *ProjectError when what is an effect here can't be read, or *ledger.LockedError
// when another run goes on here. With those nothing is written.
func (w *Workspace) RunWorkflow(ctx context.Context, o RunOptions) (*RunResult, error) {
	if w.project.Err != nil {
		return nil, w.project.Err
	}
	p, err := w.body(o.File)
	if err != nil {
		return nil, err
	}
	if err := from(o.Origin, p.CheckInput(o.Input, "-i")); err != nil {
		return nil, err
	}
	if o.DryRun {
		return &RunResult{Status: StatusLoaded, Tasks: []Task{}, Waits: []string{}, Resume: []string{}}, nil
	}
	db, err := w.settled(ctx)
	if err != nil {
		return nil, err
	}
	out, err := workflow.Start(ctx, w.engine(db, o), p, o.Name, o.Input)
	return w.ended(out, err, o.File)
}

// from says where an input came from.
func from(origin string, err error) error {
	var bad *workflow.InputError
	if origin != "" && errors.As(err, &bad) {
		bad.Origin = origin
	}
	return err
}

// engine is what a run in this worktree runs with.
func (w *Workspace) engine(db *ledger.DB, o RunOptions) workflow.Options {
	e := workflow.Options{Ledger: db, Recorder: w.recorder(db), Owner: w.owner(), Alive: checkpoint.Alive, Actor: w.opt.Actor,
		Now: w.opt.Now, Env: commandEnv(w.opt.Env), Jobs: o.Jobs, Wait: o.Wait, KeepFiles: o.KeepFiles, Tape: w.tape(db),
		Rules: w.rules(), Force: o.Force}
	if o.On != nil {
		e.On = func(p Progress) {
			w.tell.Lock()
			defer w.tell.Unlock()
			o.On(p)
		}
	}
	return e
}

// commandEnv is what commands of a run see: not what retcon itself is told.
func commandEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "RETCON_") })
}

// FileError says that the file of a workflow can't be read.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s: %v", e.File, e.Err) }
func (e *FileError) Unwrap() error { return e.Err }

// bodyMax is the size up to which a file of a body is read.
const bodyMax = 16 << 20

// body loads a workflow's file. Its directory is the root of what it loads and
// reads: nothing outside is looked at, through links either.
func (w *Workspace) body(file string) (*workflow.Program, error) {
	at := file
	if !filepath.IsAbs(at) {
		at = filepath.Join(w.opt.Dir, at)
	}
	dir, err := os.OpenRoot(filepath.Dir(at))
	if err != nil {
		return nil, &FileError{File: file, Err: bare(err)}
	}
	defer dir.Close()
	read := func(path string) ([]byte, error) {
		info, err := dir.Stat(filepath.FromSlash(path))
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			return nil, errors.New("is a directory")
		case !info.Mode().IsRegular():
			return nil, errors.New("is no regular file")
		case info.Size() > bodyMax:
			return nil, fmt.Errorf("is larger than %d bytes", bodyMax)
		}
		return dir.ReadFile(filepath.FromSlash(path))
	}
	main := filepath.Base(at)
	if _, err := read(main); err != nil {
		return nil, &FileError{File: file, Err: bare(err)}
	}
	return workflow.LoadFile(main, read)
}

// bare is an error without the path it repeats.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// StoppedError says that the engine could not go on with a run. The run can be
// resumed when what is wrong has been put right.
type StoppedError struct {
	Run     string
	Program string // the Go program that resumes it; "" where retcon resume does
	Err     error
}

func (e *StoppedError) Error() string { return e.Run + " has stopped: " + e.Err.Error() }
func (e *StoppedError) Unwrap() error { return e.Err }

// ended is the result of a run as the doors tell it. file is the body's, "" when
// it was not named.
func (w *Workspace) ended(r *workflow.Result, err error, file string) (*RunResult, error) {
	if r == nil {
		return nil, err
	}
	out := &RunResult{Run: runRef(r.Run), Frame: r.Frame, Status: r.Status, Waits: []string{}, Resume: []string{}, Tasks: []Task{}}
	rows := make([]snapshot.Row, 0, len(r.Tasks))
	for _, t := range r.Tasks {
		rows = append(rows, snapshot.Row{Key: t.ID, Kind: t.Kind})
	}
	names := shortNames(rows)
	for _, t := range r.Tasks {
		told := Task{ID: t.ID, Name: names[t.ID], Scope: scopeOf(t.ID), Kind: t.Kind, State: t.State.String(), Attempt: t.Attempt,
			Carried: t.Carried, Line: t.At, Message: t.Failure}
		if t.Waiting {
			out.Waits = append(out.Waits, waitName(t.ID, names))
		}
		out.Tasks = append(out.Tasks, told)
	}
	if r.Status == StatusOK {
		out.Value = workflow.ValueJSON(r.Value)
	}
	if err == nil {
		out.stopped(r.Err)
	}
	out.Resume = out.next(file)
	if r.Status == StatusWaiting {
		out.Resume = w.answers(r.Run)
	}
	if err != nil {
		return out, &StoppedError{Run: out.Run, Err: err}
	}
	return out, nil
}

// stopped says what has stopped the run.
func (r *RunResult) stopped(err error) {
	var halt *workflow.HaltError
	var body *workflow.BodyError
	var twice *workflow.DuplicateKeyError
	var gaveUp *workflow.FailError
	switch {
	case err == nil:
		return
	case errors.As(err, &halt):
		r.Task, r.Scope, r.Line, r.Kind, r.Message = halt.Task, scopeOf(halt.Task), halt.At, halt.Failure.Type, halt.Failure.Message
		if r.Kind == "" {
			r.Kind = halt.State.String()
		}
	case errors.As(err, &body):
		r.Line, r.Kind, r.Message = body.At, KindBody, body.Message
	case errors.As(err, &twice):
		r.Line, r.Task, r.Kind, r.Message = twice.At, twice.ID, KindBody, twice.Error()
	case errors.As(err, &gaveUp):
		r.Line, r.Kind, r.Message = gaveUp.At, KindGaveUp, gaveUp.Message
	case errors.Is(err, workflow.ErrInterrupted):
		r.Kind, r.Message = KindInterrupted, "interrupted"
	default:
		r.Kind, r.Message = KindEngine, err.Error()
	}
	also := ""
	var undone *workflow.UndoError
	for ; errors.As(err, &undone); err = undone.Cause { // the last to be undone first
		task, _, _ := strings.Cut(undone.Task, "~")
		also = "; " + task + " was not undone: " + undone.Err.Error() + also
	}
	r.Message += also
}

// next are the commands that bring a run on that has stopped, and does not wait.
func (r *RunResult) next(file string) []string {
	again := "retcon resume " + r.Run
	edited := again + " --file " + shellWord(file)
	switch {
	case r.Status == StatusInterrupted:
		return []string{again}
	case r.Status != StatusFailed:
		return []string{}
	case file == "":
		return []string{again}
	case r.Kind == KindBody || r.Kind == KindGaveUp:
		return []string{edited}
	}
	return []string{again, edited}
}
