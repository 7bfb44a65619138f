package workflow_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/workflow"
)

var long = flag.Bool("workflow.long", false, "kill the run that resumes, too")

// killed is the workflow that is killed. Every attempt leaves a line in a file
// outside the worktree.
const killed = `
def note(name):
    return "echo %s >> $COUNT; " % name

def unit(name):
    sh(note(name) + "echo %s > %s.txt" % (name, name), name="write", env={"N": name}).out()
    return sh(note(name + "-read") + "cat base %s.txt" % name, name="read", fx="read").out()

def main(ctx):
    sh(note("first") + "echo base > base", name="first").out()
    got = parallel({"a": lambda: unit("a"), "b": lambda: unit("b")})
    n = sh(note("flaky") + "echo x > trace; test $RETCON_ATTEMPT = 2", name="flaky", retry=2).result()
    sleep("5ms")
    pick = randint(1, 1000000)
    def step(i):
        sh(note("loop%d" % i) + "echo %d >> steps" % i, name="step").out()
        return True if i == 1 else None
    loop(step)
    sh("exit 1", name="lost", fallback="found").out()
    sh(note("last") + "cat a.txt b.txt steps > all", name="last").out()
    return [got["a"], got["b"], n["attempts"], pick > 0]
`

func TestMain(m *testing.M) {
	if root := os.Getenv("KILL_ROOT"); root != "" {
		os.Exit(killChild(root))
	}
	os.Exit(m.Run())
}

type childT struct{ testing.TB }

func (childT) Helper()                   {}
func (childT) Name() string              { return "child" }
func (childT) Cleanup(func())            {}
func (childT) FailNow()                  { os.Exit(3) }
func (childT) Fatal(args ...any)         { fmt.Fprintln(os.Stderr, args...); os.Exit(3) }
func (childT) Errorf(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (childT) Logf(f string, a ...any)   {}

func killChild(root string) int {
	l := openLab(childT{}, root)
	l.opt.On = nil
	l.opt.Env = append(l.opt.Env, "COUNT="+os.Getenv("COUNT"))
	l.opt.Alive = func(ledger.Owner) bool { return false }
	var at, n int64
	fmt.Sscan(os.Getenv("KILL_AT"), &at)
	crash.Hook = func(name string) {
		if name != "ledger.committed" && !strings.HasPrefix(name, "workflow.") {
			return
		}
		if atomic.AddInt64(&n, 1) == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	body := killed
	if other := os.Getenv("KILL_BODY"); other != "" {
		body = other
	}
	var r *workflow.Result
	var err error
	if os.Getenv("KILL_RESUME") != "" {
		if err = l.interrupt(); err == nil {
			r, err = workflow.Resume(ctx, l.opt, 1, workflow.ResumeOptions{})
		}
		var none *workflow.NothingBegunError
		if errors.As(err, &none) || errors.Is(err, ledger.ErrNotFound) {
			r, err = workflow.Start(ctx, l.opt, l.load(body), "", nil)
		}
	} else {
		r, err = workflow.Start(ctx, l.opt, l.load(body), "", nil)
	}
	if err == nil {
		err = r.Err
	}
	if to := os.Getenv("KILL_PASSED"); to != "" && err == nil {
		err = os.WriteFile(to, fmt.Append(nil, n), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// interrupt ends the attempts that a process has left open, as opening a
// workspace does.
func (l *lab) interrupt() error {
	return l.opt.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		rows, err := tx.Worktrees()
		if err != nil || len(rows) == 0 {
			return err
		}
		open, err := tx.OpenAttempts(rows[0].ID)
		for _, a := range open {
			err = errors.Join(err, tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeInterrupted}))
		}
		return err
	})
}

func kill(t *testing.T, root, count string, at int, resume string, env ...string) (died bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), "KILL_ROOT="+root, "COUNT="+count, fmt.Sprint("KILL_AT=", at), "KILL_RESUME="+resume), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	require.NoError(t, err, "point %d: %s", at, out.String())
	return false
}

// T101: killed at any event and resumed, the run comes to the same end; what
// was going on when it died ran once more, nothing else did.
func TestKilledAtEveryEvent(t *testing.T) {
	all := t.TempDir()
	root, passed := filepath.Join(all, "work"), filepath.Join(all, "passed")
	require.NoError(t, os.Mkdir(root, 0o755))
	require.False(t, kill(t, root, filepath.Join(all, "count"), 0, "", "KILL_PASSED="+passed))
	b, err := os.ReadFile(passed)
	require.NoError(t, err)
	var points int
	_, err = fmt.Sscan(string(b), &points)
	require.NoError(t, err)
	require.Greater(t, points, 60)
	step := 1
	if testing.Short() {
		step = 15
	}
	for at := 1; at <= points+1; at += step {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			root, count := filepath.Join(dir, "work"), filepath.Join(dir, "count")
			require.NoError(t, os.Mkdir(root, 0o755))
			died := kill(t, root, count, at, "") // not past the end: the number differs a little from run to run
			kills := 0
			if died {
				kills++
				if *long && at%3 == 0 && kill(t, root, count, 7, "again") {
					kills++
				}
			}
			l := openLab(t, root)
			l.opt.Env = append(l.opt.Env, "COUNT="+count)
			l.opt.Alive = func(ledger.Owner) bool { return false }
			require.NoError(t, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
				runs, err := tx.Runs(ledger.RunQuery{Limit: 1})
				if err == nil && len(runs) > 0 {
					l.newest = runs[0].ID
				}
				return err
			}))
			l.ended(t, at, died, kills, count)
		})
	}
}

// ended resumes a run and looks at what it came to.
func (l *lab) ended(t *testing.T, at int, died bool, kills int, count string) {
	t.Helper()
	require.NoError(t, l.interrupt())
	run := l.newest
	if died {
		r, err := workflow.Resume(ctx, l.opt, run, workflow.ResumeOptions{})
		var none *workflow.NothingBegunError
		var finished *workflow.FinishedError
		switch {
		case errors.As(err, &none), errors.Is(err, ledger.ErrNotFound):
			r, err = workflow.Start(ctx, l.opt, l.load(killed), "", nil)
		case errors.As(err, &finished):
			r, err = &workflow.Result{}, nil
		}
		require.NoError(t, err, "point %d", at)
		require.NoError(t, r.Err, "point %d", at)
		run = max(run, r.Run)
	}
	assert.Equal(t, "a\nb\n0\n1\n", l.file("all"), "point %d", at)
	assert.Equal(t, "0\n1\n", l.file("steps"), "point %d", at)
	b, err := os.ReadFile(count)
	require.NoError(t, err)
	lines := strings.Fields(string(b))
	times := map[string]int{}
	for _, s := range lines {
		times[s]++
	}
	times["flaky"]-- // it fails once
	repeated := 0
	for _, name := range []string{"first", "a", "b", "a-read", "b-read", "flaky", "loop0", "loop1", "last"} {
		assert.GreaterOrEqual(t, times[name], 1, "point %d: %s", at, name)
		repeated += times[name] - 1
	}
	// Two branches go on at the same time.
	assert.LessOrEqual(t, repeated, 2*kills, "point %d: %v", at, lines)
	_, err = workflow.Audit(ctx, l.opt, run, nil)
	assert.NoError(t, err, "point %d", at)
}
