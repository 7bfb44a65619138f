package workflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/workflow"
)

// counted is a Go body that counts how often it was begun, with steps that are
// named by their number, and is interrupted in the last.
type counted struct {
	begun, steps int
	renamed      int  // this step has another name
	aside        bool // there is a task that nobody waits for, before them
	interrupt    func()
}

func (c *counted) program() workflow.GoProgram {
	return workflow.GoProgram{Name: "counted", Version: "1", Body: func(w *workflow.Context) (any, error) {
		c.begun++
		if c.aside {
			workflow.Do(w, "aside", func(context.Context, int) (int, error) { return 1, nil }, 1, workflow.TaskOptions{})
		}
		for i := range c.steps {
			name := fmt.Sprint("step", i)
			if i == c.renamed {
				name = "other"
			}
			out := workflow.Do(w, name, func(ctx context.Context, i int) (int, error) {
				if i == c.steps-1 && c.interrupt != nil {
					c.interrupt()
				}
				return i * i, ctx.Err()
			}, i, workflow.TaskOptions{}).Out()
			if out != i*i {
				return nil, fmt.Errorf("step %d gave %d", i, out)
			}
		}
		return c.begun, nil
	}}
}

// interrupted starts a run that is interrupted in its last step.
func (l *lab) interrupted(c *counted) int64 {
	l.Helper()
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	c.interrupt = cancel
	r, err := workflow.StartGo(inside, l.opt, c.program(), "", nil)
	require.NoError(l, err)
	require.Equal(l, ledger.OutcomeInterrupted, r.Status)
	c.interrupt, c.begun = nil, 0
	return r.Run
}

// A run that goes on from where it was is rendered once: by the lines that go on.
func TestResumeRendersOnce(t *testing.T) {
	l := newLab(t)
	c := &counted{steps: 20, renamed: -1}
	run := l.interrupted(c)
	l.said = nil
	r, err := workflow.ResumeGo(ctx, l.opt, run, c.program())
	require.NoError(t, err)
	require.NoError(t, r.Err)
	assert.Equal(t, int64(1), r.Value)
	assert.Equal(t, 1, c.begun)
	assert.Contains(t, l.said[0], "settled step0~", "what is kept is told of, too")
	_, err = workflow.Audit(ctx, l.opt, run, nil)
	var program *workflow.GoProgramError
	assert.ErrorAs(t, err, &program)
}

// A body that does something else than it did then is found out before anything
// is told, begun or written.
func TestResumeDivergesBeforeAnythingHappens(t *testing.T) {
	l := newLab(t)
	for _, another := range []counted{{renamed: 0, aside: true}, {renamed: 7, aside: true}, {renamed: -1}} {
		c := &counted{steps: 20, renamed: -1, aside: true}
		run := l.interrupted(c)
		before := l.written(run)
		c.renamed, c.aside, l.said = another.renamed, another.aside, nil
		_, err := workflow.ResumeGo(ctx, l.opt, run, c.program())
		var diverged *workflow.DivergedError
		require.ErrorAs(t, err, &diverged)
		code, task := workflow.DivergedExtra, "other"
		if !c.aside {
			code, task = workflow.DivergedMissing, "aside"
		}
		assert.Equal(t, code, diverged.Code)
		assert.Contains(t, diverged.Task, task)
		assert.Empty(t, l.said)
		assert.Equal(t, before, l.written(run))

		c.renamed, c.aside = -1, true
		r, err := workflow.ResumeGo(ctx, l.opt, run, c.program())
		require.NoError(t, err)
		require.NoError(t, r.Err)
	}
}

// written is all that a run has in the ledger that resuming it would add to.
func (l *lab) written(run int64) (all []any) {
	l.Helper()
	require.NoError(l, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		r, err1 := tx.Run(run)
		b, err2 := tx.RunHead(run)
		as, err3 := tx.Attempts(run)
		events, err4 := tx.Events(b.ID, ledger.EventQuery{Limit: 100000})
		leases, err5 := tx.Leases()
		all = []any{r, b, as, events, leases}
		return errors.Join(err1, err2, err3, err4, err5)
	}))
	return all
}

// A body that waits takes the engine's turns, and must not come to recover from
// what a step of it panics with, or to end because a step leaves its goroutine.
func TestPanicOfAStepEndsTheProcess(t *testing.T) {
	if root := os.Getenv("PANIC_ROOT"); root != "" {
		panics(childT{}, root)
		return
	}
	for how, says := range map[string]string{"panic": "it is broken", "exit": "has left its goroutine"} {
		root := filepath.Join(t.TempDir(), "work")
		require.NoError(t, os.Mkdir(root, 0o755))
		cmd := exec.Command(os.Args[0], "-test.run=^TestPanicOfAStepEndsTheProcess$")
		cmd.Env = append(os.Environ(), "PANIC_ROOT="+root, "PANIC_HOW="+how)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Run(), &exit, how)
		assert.Equal(t, 2, exit.ExitCode(), out.String())
		assert.Contains(t, out.String(), "panic: breaks~")
		assert.Contains(t, out.String(), says)
		assert.NotContains(t, out.String(), "recovered")
	}
}

func panics(t testing.TB, root string) {
	l := openLab(t, root)
	l.opt.On = nil
	step := func(context.Context, int) (int, error) {
		if os.Getenv("PANIC_HOW") == "exit" {
			runtime.Goexit()
		}
		panic("it is broken")
	}
	_, err := workflow.StartGo(ctx, l.opt, workflow.GoProgram{Name: "p", Version: "1", Body: func(w *workflow.Context) (any, error) {
		defer func() {
			if p := recover(); p != nil {
				fmt.Println("recovered", p)
			}
		}()
		return workflow.Do(w, "breaks", step, 1, workflow.TaskOptions{}).Out(), nil
	}}, "", nil)
	fmt.Println("recovered: the run ended", err)
	os.Exit(0)
}
