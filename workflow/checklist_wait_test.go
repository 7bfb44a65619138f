package workflow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// states are the tasks of a result with where they stand.
func states(r *workflow.Result) map[string]string {
	all := map[string]string{}
	for _, t := range r.Tasks {
		all[bare(t.ID)] = t.State.String()
	}
	return all
}

// A task that is given up because another one won is recorded as cancelled, and
// falls back to nothing.
func TestD32CancelledTask(t *testing.T) {
	l := newLab(t)
	world := l.world()
	r := l.start(`
def main(ctx):
    slow = sh("sleep 60; echo late >> $WORLD/log", name="slow", fx="external", fallback="fell", retry=3)
    quick = sh("echo quick", name="quick", fx="external")
    won = race([slow, quick]).out()
    return [won, slow.result()["error"]["type"]]
`)
	require.NoError(t, r.Err)
	assert.Equal(t, "[{index:1,value:quick},cancelled]", shownValue(r.Value))
	assert.Equal(t, snapshot.Cancelled.String(), states(r)["slow"])
	assert.Equal(t, []string{"interrupted"}, l.attempts(r.Run, "slow"))
	assert.NotContains(t, l.events(r.Run, "slow"), workflow.EventFallback)
	assert.Empty(t, does(t, world))
	l.audit(r.Run)
}

// A run that is stopped while it undoes what it did goes on undoing when it is
// resumed; an undo that hangs ends in its time, and keeps no other from being
// done.
func TestD34UndoIsStopped(t *testing.T) {
	l := newLab(t)
	world := l.world()
	p := l.load(`
def main(ctx):
    def steps():
        for n in ["a", "b", "c"]:
            sh("echo do %s >> $WORLD/log" % n, name=n, undo=lambda _, n=n: sh(
                "echo undo %s >> $WORLD/log; test %s != b || test -e $WORLD/quick || sleep 60; test %s != c || sleep 60" % (n, n, n),
                name="un" + n, timeout="100ms" if n == "c" else "50s")).out()
        sh("exit 1", name="last").out()
    saga(steps)
`)
	r := l.stopAt(workflow.Started, "s0.saga/undo/unb", func(ctx context.Context) (*workflow.Result, error) {
		return workflow.Start(ctx, l.opt, p, "", nil)
	})
	require.NoError(t, os.WriteFile(filepath.Join(world, "quick"), nil, 0o644))
	r = l.resume(r.Run)
	require.Equal(t, "failed", r.Status)
	assert.Equal(t, "failed", states(r)["s0.saga/undo/unc"])
	log := does(t, world)
	assert.Equal(t, 1, strings.Count(log, "do a\n")-strings.Count(log, "undo a\n"), "nothing is done again in between")
	assert.Equal(t, 1, strings.Count(log, "undo a\n"))
	assert.Equal(t, 1, strings.Count(log, "undo c\n"))
	assert.True(t, strings.HasSuffix(log, "undo b\nundo a\n"), log)
}

// What was going on in branches when a run was stopped runs again, each to one
// end.
func TestD35StragglersRunAgain(t *testing.T) {
	l := newLab(t)
	world := l.world()
	p := l.load(`
def lane(name):
    sh("echo %s >> $WORLD/log; test %s = quick || test -e $WORLD/well || sleep 60" % (name, name), name="work", fx="read").out()
    return name

def main(ctx):
    return each(["quick", "slow", "slower"], lane)
`)
	r := l.stopAt(workflow.Settled, "e0[quick]/work", func(ctx context.Context) (*workflow.Result, error) {
		return workflow.Start(ctx, l.opt, p, "", nil)
	})
	require.NoError(t, os.WriteFile(filepath.Join(world, "well"), nil, 0o644))
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, "[quick,slow,slower]", shownValue(r.Value))
	for _, lane := range []string{"quick", "slow", "slower"} {
		task := fmt.Sprintf("e0[%s]/work", lane)
		assert.Equal(t, []string{"ok"}, l.attempts(r.Run, task))
		settled := 0
		for _, kind := range l.events(r.Run, task) {
			if kind == workflow.EventSettled {
				settled++
			}
		}
		assert.Equal(t, 1, settled, task)
	}
	assert.Equal(t, 1, strings.Count(does(t, world), "quick\n"))
}

// Results come in the order of the items, whatever the order they were done in;
// an error comes when all branches have come to their end, and is that of the
// first in order.
func TestD37BranchesInOrder(t *testing.T) {
	l := newLab(t)
	world := l.world()
	source := `
def lane(n):
    before = "test %d = 3 || until test -e $WORLD/done%d; do sleep 0.01; done; " % (n, n + 1)
    return sh(before + "echo %d >> $WORLD/log; touch $WORLD/done%d; echo %d; " % (n, n, n) + END, name="step", fx="external").out()

def main(ctx):
    return each([1, 2, 3], lane)
`
	r := l.start(strings.ReplaceAll(source, "END", `"true"`))
	require.NoError(t, r.Err)
	assert.Equal(t, []value.V{"1", "2", "3"}, r.Value)
	assert.Equal(t, "3\n2\n1\n", does(t, world))
	r = l.start(strings.ReplaceAll(source, "END", `"exit %d" % n`))
	assert.ErrorContains(t, r.Err, "exit 1", "it came last, and is the first")
	for i := 1; i <= 3; i++ {
		assert.Equal(t, []string{"failed"}, l.attempts(r.Run, fmt.Sprintf("e0[%d]/step", i)))
	}
}

// Five waits, one after the other, each with tasks of its own, and each answered
// with another kind of value.
func TestD38FivePauses(t *testing.T) {
	l := newLab(t)
	big := strings.Repeat("x", 100_000)
	answers := []string{`true`, `{"a": [1, 2.5, {"b": null}]}`, `null`, `{}`, `"` + big + `"`}
	r := l.start(`
def main(ctx):
    got = []
    for i in range(5):
        sh("echo %d >> log" % i, name="step", key=str(i)).out()
        got.append(signal("go", key=str(i)).out())
    return got
`)
	for i, answer := range answers {
		require.Equal(t, "waiting", r.Status)
		task := fmt.Sprintf("step[%d]", i)
		assert.Equal(t, []string{task}, l.ran())
		assert.Equal(t, []string{"started", "settled"}, l.events(r.Run, task))
		l.send(r.Run, fmt.Sprintf("go[%d]", i), answer)
		r = l.resume(r.Run)
	}
	require.NoError(t, r.Err)
	assert.Equal(t, "[true,{a:[1,2.5,{b:<nil>}]},<nil>,{},"+big+"]", shownValue(r.Value))
	_, err := workflow.Resume(ctx, l.opt, r.Run, workflow.ResumeOptions{})
	var finished *workflow.FinishedError
	require.ErrorAs(t, err, &finished)
	l.audit(r.Run)
}

// A run that waits, resumed without an answer, waits still, and writes nothing
// but that.
func TestD40ResumedWithoutAnAnswer(t *testing.T) {
	l := newLab(t)
	r := l.start("def main(ctx):\n    sh('true', name='a').out()\n    return signal('go').out()\n")
	before := l.head(r.Run)
	l.ran()
	r = l.resume(r.Run)
	assert.Equal(t, "waiting", r.Status)
	assert.Empty(t, l.ran())
	assert.Equal(t, before.Root(), l.head(r.Run).Root())
	l.send(r.Run, "go", "1")
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
}

// A time of day is one instant, however its zone is written; a length of time is
// counted from when it was declared, and not again when the run goes on. Both
// settle once, also when they are long overdue.
func TestD41Timers(t *testing.T) {
	l := newLab(t)
	c := &clock{now: time.Date(2030, 1, 31, 11, 0, 0, 0, time.UTC)}
	l.opt.Now = c.read
	p := l.load(`
def main(ctx):
    ts = [timer("2h", key=str(i)) for i in range(3)]
    until("2030-01-31T12:00:00+02:00")
    return [until("2030-01-31T13:00:00+01:00")] + [t.out() for t in ts]
`)
	r := l.stopAt(workflow.Settled, "until", func(ctx context.Context) (*workflow.Result, error) {
		return workflow.Start(ctx, l.opt, p, "", nil)
	})
	c.move(24 * time.Hour)
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	due := "2030-01-31T13:00:00Z"
	assert.Equal(t, []value.V{"2030-01-31T12:00:00Z", due, due, due}, r.Value)
	for i := range 3 {
		assert.Equal(t, []string{"timer", "settled"}, l.events(r.Run, fmt.Sprintf("timer[%d]", i)))
	}
	l.audit(r.Run)
}

// Of many who answer at once one wins; the others are told, or are not heard,
// and the answer is never another.
func TestD49OneAnswerWins(t *testing.T) {
	l := newLab(t)
	r := l.start("def main(ctx):\n    a = signal('go', schema={'type': 'integer'}).out()\n    return [a, signal('next').out()]\n")
	_, err := workflow.Send(ctx, l.opt, r.Run, "go", []byte(`"word"`), "")
	var wrong *workflow.InputError
	require.ErrorAs(t, err, &wrong, "and the wait stays open")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, err := workflow.Send(ctx, l.opt, r.Run, "go", []byte(fmt.Sprint(i)), fmt.Sprint("key", i))
			var late *workflow.WaitError
			if err != nil {
				assert.ErrorAs(t, err, &late)
			}
		})
	}
	all.Wait()
	r = l.resume(r.Run)
	require.Equal(t, "waiting", r.Status)
	_, err = workflow.Send(ctx, l.opt, r.Run, "go", []byte("99"), "")
	var late *workflow.WaitError
	require.ErrorAs(t, err, &late)
	assert.True(t, late.Settled)
	won := ""
	l.send(r.Run, "next", "0")
	for range 2 { // live, and rendered
		r, err = workflow.Resume(ctx, l.opt, r.Run, workflow.ResumeOptions{})
		if won != "" {
			break
		}
		require.NoError(t, err)
		require.NoError(t, r.Err)
		won = shownValue(r.Value)
	}
	assert.Regexp(t, `^\[[0-7],0\]$`, won)
}

// An answer holds for what it was given for: when that has become another, it is
// asked for again, and comes back with what it was given for.
func TestD51AnswerOfAnotherQuestion(t *testing.T) {
	l := newLab(t)
	source := func(plan string) string {
		return `
def main(ctx):
    plan = sh("echo ` + plan + `", name="plan", key="k")
    if signal("ok", of=plan).out():
        return sh("echo done " + plan.out(), name="act").out()
`
	}
	r := l.start(source("one"))
	l.send(r.Run, "ok", "true")
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	r = l.resume(r.Run, source("two"))
	assert.Equal(t, "waiting", r.Status, "nobody has said yes to this plan")
	assert.NotContains(t, l.ran(), "act#2")
	l.send(r.Run, "ok", "true")
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, "done two", r.Value)

	r = l.start(source("three"))
	l.send(r.Run, "ok", "true")
	r = l.resume(r.Run, source("four"))
	assert.Equal(t, "waiting", r.Status, "the yes that nobody has taken yet was to another plan")
}
