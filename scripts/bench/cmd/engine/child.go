package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
	"github.com/retcon-dev/retcon/workflow"
)

const childArg = "steps-as-child"

// steps is a body of steps one after the other, each with an outcome of 256
// bytes.
type steps struct {
	n, carriedOut int
	breakAt       int // dies in this step; -1 for none
}

func (s *steps) program() workflow.GoProgram {
	return workflow.GoProgram{Name: "steps", Version: "1", Body: func(w *workflow.Context) (any, error) {
		size := 0
		for i := range s.n {
			size += len(workflow.Do(w, "step", s.step, i, workflow.TaskOptions{}).Out())
		}
		return size, nil
	}}
}

func (s *steps) step(_ context.Context, i int) (string, error) {
	if i == s.breakAt {
		os.Exit(0)
	}
	s.carriedOut++ // they follow each other
	return fmt.Sprintf("%0256d", i), nil
}

// child does to the engine what the bench asks of it: "run", "break" and
// "resume" take a folder and a number of steps.
func child(args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	s := &steps{n: n, breakAt: -1}
	opt, err := options(args[1])
	if err != nil {
		return err
	}
	defer opt.Recorder.Worktree.Close()
	defer opt.Ledger.Close()
	before, want := spent(), n
	var r *workflow.Result
	switch args[0] {
	case "break":
		s.breakAt = n - 1
		fallthrough
	case "run":
		r, err = workflow.StartGo(context.Background(), opt, s.program(), "", nil)
	case "resume":
		want = 1
		r, err = workflow.ResumeGo(context.Background(), opt, 1, s.program())
	default:
		return fmt.Errorf("cannot %s", args[0])
	}
	if err != nil {
		return err
	}
	after := spent()
	if r.Err != nil || r.Value != int64(256*n) || s.carriedOut != want {
		return fmt.Errorf("%d steps were carried out and %v came of them: %w", s.carriedOut, r.Value, r.Err)
	}
	return json.NewEncoder(os.Stdout).Encode(cost{after.CPU - before.CPU, after.Wall - before.Wall})
}

func options(root string) (workflow.Options, error) {
	w, err := vcs.Open(root, vcs.Options{Create: true})
	if err != nil {
		return workflow.Options{}, err
	}
	db, err := ledger.Open(filepath.Join(w.Folder(), ledgerFile), ledger.Options{})
	return workflow.Options{Ledger: db, Recorder: &checkpoint.Recorder{Ledger: db, Worktree: w, Host: "bench"},
		Owner: checkpoint.Self("bench"), Actor: "user", Now: time.Now}, err
}

// cost is the time a process has spent so far, in nanoseconds.
type cost struct{ CPU, Wall int64 }

func spent() cost {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return cost{}
	}
	return cost{CPU: r.Utime.Nano() + r.Stime.Nano(), Wall: time.Now().UnixNano()}
}
