// Command engine-dbos runs a workflow of many steps with DBOS on SQLite, for the
// bench engine. It is a module of its own, so that the product needs none of
// what DBOS needs.
//
// "run", "break", "resume" and "idle" take a folder and a number of steps.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // the same database as the engine's
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// id is as long as one that DBOS would give.
const id = "5f0c2f4e-8a39-4d0b-9c39-2f6a1b7d8e90"

// steps is the workflow: steps one after the other, each with an outcome of 256
// bytes.
type steps struct {
	carriedOut atomic.Int64 // steps whose function was called
	breakAt    int          // dies in this step; -1 for none
	done       chan cost    // when the last step has its outcome
}

func (s *steps) workflow(ctx dbos.Context, n int) (int, error) {
	defer func() { s.done <- spent() }()
	size := 0
	for i := range n {
		out, err := dbos.RunAsStep(ctx, func(context.Context) (string, error) {
			if i == s.breakAt {
				os.Exit(0)
			}
			s.carriedOut.Add(1)
			return fmt.Sprintf("%0256d", i), nil
		}, dbos.WithStepName("step"))
		if err != nil {
			return 0, err
		}
		size += len(out)
	}
	return size, nil
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("want what to do, a folder and a number of steps")
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	s := &steps{breakAt: -1, done: make(chan cost, 1)}
	if args[0] == "break" {
		s.breakAt = n - 1
	}
	ctx, err := dbos.NewContext(context.Background(), dbos.Config{AppName: "bench", ExecutorID: "bench", ApplicationVersion: "1",
		DatabaseURL: "sqlite:" + filepath.Join(args[1], "dbos.db"), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	dbos.RegisterWorkflow(ctx, s.workflow)
	before := spent()
	if err := dbos.Launch(ctx); err != nil {
		return err
	}
	var want int64
	switch args[0] {
	case "idle":
		return spent().since(before)
	case "run", "break":
		before, want = spent(), int64(n)
		if _, err := dbos.RunWorkflow(ctx, s.workflow, n, dbos.WithWorkflowID(id)); err != nil {
			return err
		}
	case "resume": // Launch has begun to
		want = 1
	default:
		return fmt.Errorf("cannot %s", args[0])
	}
	after := <-s.done // a result is asked for at intervals, which is not the steps' fault
	h, err := dbos.RetrieveWorkflow[int](ctx, id)
	if err != nil {
		return err
	}
	size, err := h.GetResult()
	if err != nil {
		return err
	}
	if got := s.carriedOut.Load(); size != 256*n || got != want {
		return fmt.Errorf("%d steps were carried out and %d bytes came of them", got, size)
	}
	return after.since(before)
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

// since prints what was spent since.
func (c cost) since(before cost) error {
	return json.NewEncoder(os.Stdout).Encode(cost{c.CPU - before.CPU, c.Wall - before.Wall})
}
