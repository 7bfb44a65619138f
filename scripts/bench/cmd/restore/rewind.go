package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
	"github.com/retcon-dev/retcon/scripts/bench/internal/tree"
	"github.com/retcon-dev/retcon/vcs"
)

// steps is a workflow each of whose frames changed the same files: it adds a
// line to each of them.
const steps = `
def main(ctx):
    for i in range(ctx.input["steps"]):
        add = 'for file; do echo "step $0" >>"$file"; done'
        sh(["sh", "-c", add, str(i + 1)] + ctx.input["files"], name="step", key=str(i + 1)).out()
`

func step(i int) string { return fmt.Sprintf("step %d\n", i) }

// rewind is a run that goes back by one frame, against what it can't do without:
// a restore of the files that the frame changed, and two looks at all files.
// Both are timed inside this process, which has the worktrees open.
func (r *restores) rewind(ctx context.Context) error {
	const files = 10
	name, goal := r.f.Case(fmt.Sprintf("rewind by a frame of %d files", files)), r.f.Goal(1, 20000)
	rival := fmt.Sprintf("a restore of the %d and 2 scans", files)
	if !r.Wants(name) {
		return nil
	}
	if files > len(r.f.Paths) {
		return r.Skip(name, rival, goal, "the tree is too small")
	}
	paths := r.f.Paths[:files]
	frames := r.Rounds + 20
	r.Say("make a run of %d frames", frames)
	ours, err := r.runOf(ctx, frames, paths)
	if err != nil {
		return err
	}
	defer ours.Close()
	w, err := vcs.Open(r.theirs, vcs.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	base, err := w.Capture(ctx, vcs.CaptureOptions{Sync: true})
	if err != nil {
		return err
	}
	at := frames
	return r.Play(ctx, ground.Race{Case: name, Goal: goal,
		Ours: bench.Side{Name: "retcon", Prepare: func(int) error { at--; return nil },
			Run: func(ctx context.Context) (bench.Usage, error) {
				return timed(func() error {
					done, err := ours.Rewind(ctx, retcon.TravelOptions{Run: "last", Frame: int64(at)})
					if err == nil && len(done.Plan.Changes) != files {
						err = fmt.Errorf("%d files were put back", len(done.Plan.Changes))
					}
					return err
				})
			},
			Check: func() error { return r.stepped(ours.Root(), paths, at) }},
		Theirs: bench.Side{Name: rival, Prepare: func(round int) error { return tree.Edit(r.theirs, paths, round+1) },
			Run: func(ctx context.Context) (bench.Usage, error) {
				return timed(func() error {
					_, _, err := w.Restore(ctx, base.Commit)
					for range 2 {
						if err == nil {
							_, err = w.Capture(ctx, vcs.CaptureOptions{})
						}
					}
					return err
				})
			},
			Check: func() error { return r.f.Same(r.theirs, paths) }}})
}

// runOf makes a copy of the field in which a workflow has run, and opens it.
func (r *restores) runOf(ctx context.Context, frames int, paths []string) (*retcon.Workspace, error) {
	dir, err := r.f.Copy(ctx, "stepped")
	if err != nil {
		return nil, err
	}
	body := filepath.Join(filepath.Dir(dir), "steps.star")
	if err := os.WriteFile(body, []byte(steps), 0o644); err != nil {
		return nil, err
	}
	input, err := json.Marshal(map[string]any{"steps": frames, "files": paths})
	if err != nil {
		return nil, err
	}
	w, err := retcon.Open(ctx, retcon.Options{Dir: dir, Now: time.Now, Env: os.Environ()})
	if err != nil {
		return nil, err
	}
	run, err := w.RunWorkflow(ctx, retcon.RunOptions{File: body, Input: input})
	switch {
	case err != nil:
	case run.Status != retcon.StatusOK:
		err = fmt.Errorf("the run is %s: %s", run.Status, run.Message)
	case run.Frame != int64(frames):
		err = fmt.Errorf("the run has come to frame %d", run.Frame)
	default:
		return w, r.stepped(dir, paths, frames)
	}
	return nil, errors.Join(err, w.Close())
}

// stepped tells whether files are what the first n frames have made of them.
func (r *restores) stepped(dir string, paths []string, n int) error {
	var added strings.Builder
	for i := range n {
		added.WriteString(step(i + 1))
	}
	for _, path := range paths {
		base, err := os.ReadFile(filepath.Join(r.f.Base, path))
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		if string(got) != string(base)+added.String() {
			return fmt.Errorf("%s is not what it was at frame %d", path, n)
		}
	}
	return nil
}

func timed(do func() error) (bench.Usage, error) {
	began := time.Now()
	err := do()
	return bench.Usage{Wall: time.Since(began)}, err
}
