package retcon

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/retcon-dev/retcon/workflow"
)

// RunProgram runs a workflow written in Go as a new run, in this worktree, as
// RunWorkflow does one that is written in a file. Of the options File and Origin
// do not count. The run can be looked at and moved like
// any other; ResumeProgram goes on with it.
func (w *Workspace) RunProgram(ctx context.Context, p workflow.GoProgram, o RunOptions) (*RunResult, error) {
	if w.project.Err != nil {
		return nil, w.project.Err
	}
	if o.DryRun {
		return &RunResult{Status: StatusLoaded, Tasks: []Task{}, Waits: []string{}, Resume: []string{}}, nil
	}
	db, err := w.settled(ctx)
	if err != nil {
		return nil, err
	}
	var input any
	if o.Input != nil {
		input = json.RawMessage(o.Input)
	}
	out, err := workflow.StartGo(ctx, w.engine(db, o), p, o.Name, input)
	return w.endedProgram(out, err, p)
}

// ResumeProgram goes on with a run of a Go program that has stopped, or was
// moved. The program may have been changed since: what its tasks are given
// decides what is kept. Of the options Run, Jobs, KeepFiles, Force and On count;
// for the errors see ResumeWorkflow.
func (w *Workspace) ResumeProgram(ctx context.Context, p workflow.GoProgram, o ResumeOptions) (*RunResult, error) {
	run, err := w.resumable(ctx, o.Run)
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
	out, err := workflow.ResumeGo(ctx, w.engine(db, o.RunOptions), run.ID, p)
	return w.endedProgram(out, err, p)
}

// endedProgram is ended for a run that no command resumes.
func (w *Workspace) endedProgram(r *workflow.Result, err error, p workflow.GoProgram) (*RunResult, error) {
	out, err := w.ended(r, err, "")
	if out != nil {
		out.Resume = []string{}
	}
	var stopped *StoppedError
	if errors.As(err, &stopped) {
		stopped.Program = p.Name
	}
	return out, err
}
