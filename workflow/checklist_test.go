package workflow_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow"
)

// The tests of the checklist of durable runs carry its number: TestD01 and on.
// docs/coverage.md has what each line demands.

// world is a folder that is not the run's: what is done there is done, however
// often the run is taken back. Commands find it as $WORLD.
func (l *lab) world() string {
	l.Helper()
	dir := filepath.Join(filepath.Dir(l.root), "world")
	require.NoError(l, os.MkdirAll(dir, 0o755))
	l.opt.Env = append(l.opt.Env, "WORLD="+dir)
	return dir
}

// does is what has been written down in the world, in order.
func does(t require.TestingT, world string) string {
	b, err := os.ReadFile(filepath.Join(world, "log"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(b)
}

// events lists what the log of a run says of a task, "" for all: "started",
// "settled".
func (l *lab) events(run int64, task string) (types []string) {
	l.Helper()
	for _, e := range l.log(run) {
		if task == "" || bare(e.Task) == task {
			types = append(types, e.Type)
		}
	}
	return types
}

// log is the whole log of a run.
func (l *lab) log(run int64) (all []ledger.Event) {
	l.Helper()
	require.NoError(l, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		b, err := tx.RunHead(run)
		if err == nil {
			all, err = tx.Events(b.ID, ledger.EventQuery{Limit: 100000})
		}
		return err
	}))
	return all
}

// attempts lists how the attempts of a task ended, in order.
func (l *lab) attempts(run int64, task string) (ends []string) {
	l.Helper()
	require.NoError(l, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		all, err := tx.Attempts(run)
		for _, a := range all {
			if bare(a.Task) == task {
				ends = append(ends, a.Outcome)
			}
		}
		return err
	}))
	return ends
}

// head is the state that a run is in.
func (l *lab) head(run int64) *snapshot.Set {
	l.Helper()
	var set *snapshot.Set
	require.NoError(l, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		b, err := tx.RunHead(run)
		if err != nil {
			return err
		}
		h, err := tx.LoadFrame(b.ID, ledger.Newest)
		if err == nil {
			set = h.Set
		}
		return err
	}))
	return set
}

// ids are the tasks of a result.
func ids(r *workflow.Result) (all []string) {
	for _, t := range r.Tasks {
		all = append(all, t.ID)
	}
	return all
}

// send answers a signal.
func (l *lab) send(run int64, name, value string) {
	l.Helper()
	_, err := workflow.Send(ctx, l.opt, run, name, []byte(value), "")
	require.NoError(l, err)
}

// audit holds the run to being rendered again, frame by frame.
func (l *lab) audit(run int64) {
	l.Helper()
	_, err := workflow.Audit(ctx, l.opt, run, nil)
	require.NoError(l, err)
}

// stopAt runs something and interrupts it as soon as a thing of a task has
// happened.
func (l *lab) stopAt(kind, task string, run func(context.Context) (*workflow.Result, error)) *workflow.Result {
	l.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	before := l.opt.On
	l.opt.On = func(p workflow.Progress) {
		before(p)
		if p.Kind == kind && bare(p.Task) == task {
			once.Do(cancel)
		}
	}
	r, err := run(ctx)
	l.opt.On = before
	require.NoError(l, err)
	require.Equal(l, "interrupted", r.Status)
	return r
}

// clock is a time that stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
