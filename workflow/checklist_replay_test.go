package workflow_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/workflow"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// Two calls that are the same are two tasks: each runs, and has an id and an
// outcome of its own.
func TestD01IdenticalCalls(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    return [sh("echo x >> log; wc -l < log", name="add").out() for _ in range(3)]
`)
	require.NoError(t, r.Err)
	assert.Equal(t, []value.V{"1", "2", "3"}, r.Value)
	assert.Equal(t, []string{"add", "add#2", "add#3"}, l.ran())
	for _, task := range []string{"add", "add#2", "add#3"} {
		assert.Equal(t, []string{"started", "settled"}, l.events(r.Run, task), task)
	}
}

// After a pause identical calls have their own outcomes again, in branches too,
// whichever of them came first.
func TestD02IdenticalCallsAfterAPause(t *testing.T) {
	l := newLab(t)
	l.world()
	source := `
def twice(name):
    call = "mkdir $WORLD/%s 2>/dev/null && echo first || echo second" % name
    return [sh(call, name="call", fx="external").out() for _ in range(2)]

def main(ctx):
    got = twice("all") + twice("all")
    got += each(["a", "b"], lambda name: twice(name))
    signal("go").out()
    got += twice("late")
    return got
`
	r := l.start(source)
	require.Equal(t, "waiting", r.Status)
	l.ran()
	l.send(r.Run, "go", "null")
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, "[first,second,second,second,[first,second],[first,second],first,second]", shownValue(r.Value))
	assert.Equal(t, []string{"call", "call#2"}, l.ran(), "of the late ones only")
}

// What identifies a task is written down here: it is the same in every process,
// for equal arguments in any order, and different for others.
func TestD04Ids(t *testing.T) {
	source := `
def main(ctx):
    sh("echo", name="a", env={"A": "1", "B": "2"}, fx="read")
    sh("echo", name="a", env={"B": "2", "A": "1"}, fx="read")
    sh("echo", name="a", env={"A": "2", "B": "1"}, fx="read")
    sh("echo", name="keyed", key="k", fx="read")
    each(["x/y", 7], lambda item: sh("echo", name="in", fx="read").out())
    parallel({"p": lambda: sh("echo", name="in", fx="read").out()})
`
	r := newLab(t).start(source)
	require.NoError(t, r.Err)
	want := []string{"a~1286ff1dfaba", "a~1286ff1dfaba#2", "a~9bb7a9ceed9e", "keyed[k]", "e0[x.y]/in~032db3daa154", "e0[7]/in~032db3daa154", "p0.p/in~032db3daa154"}
	assert.ElementsMatch(t, want, ids(r))
	assert.Equal(t, ids(r)[:4], ids(newLab(t).start(strings.ReplaceAll(source, `"B": "2", "A": "1"`, `"A": "1", "B": "2"`)))[:4])
}

// The same run in another folder has the same frames: their roots are equal.
func TestD06FramesAreTheSameElsewhere(t *testing.T) {
	source := `
def main(ctx):
    a = sh("echo one > a; echo hello", name="first")
    got = parallel({"x": lambda: sh("cat a > x; cat x", name="copy").out(), "y": lambda: sh("echo y > y", name="other").out()})
    return [a.out(), got["x"]]
`
	one, two := newLab(t), newLab(t)
	r, s := one.start(source), two.start(source)
	require.NoError(t, r.Err)
	require.NoError(t, s.Err)
	assert.Equal(t, one.head(r.Run).Root(), two.head(s.Run).Root())
	other := newLab(t)
	assert.NotEqual(t, one.head(r.Run).Root(), other.head(other.start(strings.ReplaceAll(source, "hello", "hallo")).Run).Root())
}

// A task that is kept adds nothing to the log when the run goes on.
func TestD07KeptTasksAddNoEvents(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    sh("echo", name="done").out()
    [uuid4(), now()]
    signal("go").out()
    signal("again").out()
`)
	want := map[string][]string{}
	for _, task := range []string{"done", "uuid4", "now"} {
		want[task] = l.events(r.Run, task)
		assert.NotEmpty(t, want[task])
	}
	l.send(r.Run, "go", "1")
	r = l.resume(r.Run)
	l.send(r.Run, "again", "2")
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	for task, events := range want {
		assert.Equal(t, events, l.events(r.Run, task), task)
	}
}

// A task that was going on when the run was stopped begins again under its
// number, and is told from one that begins for the first time.
func TestD08InFlightWhenStopped(t *testing.T) {
	l := newLab(t)
	world := l.world()
	p := l.load(`
def main(ctx):
    sh("echo $RETCON_ATTEMPT >> $WORLD/log; test -e $WORLD/quick || sleep 60", name="long").out()
    sh("echo", name="late").out()
`)
	r := l.stopAt(workflow.Started, "long", func(ctx context.Context) (*workflow.Result, error) {
		return workflow.Start(ctx, l.opt, p, "", nil)
	})
	require.NoError(t, os.WriteFile(filepath.Join(world, "quick"), nil, 0o644))
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, []string{"ok"}, l.attempts(r.Run, "long"), "one attempt")
	assert.Equal(t, []string{"started", "started", "settled"}, l.events(r.Run, "long"))
	assert.Equal(t, []string{"started", "settled"}, l.events(r.Run, "late"))
	assert.NotContains(t, does(t, world), "2", "it goes on under the number it had")
	require.NoError(t, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		all, err := tx.Attempts(r.Run)
		assert.True(t, all[0].AtLeastOnce)
		assert.False(t, all[1].AtLeastOnce)
		return err
	}))
}

// What tasks and the body print is for those who look on, and not part of the
// record.
func TestD11OutputIsNotInTheLog(t *testing.T) {
	quiet, loud := newLab(t), newLab(t)
	source := `
def main(ctx):
    print("a remark")
    sh("true", name="task").out()
    signal("go").out()
`
	chatty := strings.Replace(source, "true", "echo noise >&2", 1)
	q, r := quiet.start(source), loud.start(chatty)
	assert.Equal(t, len(quiet.log(q.Run)), len(loud.log(r.Run)))
	for _, e := range loud.log(r.Run) {
		assert.NotContains(t, string(e.Body), "noise")
		assert.NotContains(t, string(e.Body), "remark")
	}
	loud.send(r.Run, "go", "1")
	r = loud.resume(r.Run)
	require.NoError(t, r.Err)
	loud.audit(r.Run)
}

// A body that does not give a recorded frame again is told from the first
// difference on, with its place; rows that nothing asks for are one.
func TestD16Divergence(t *testing.T) {
	body := func(lines string) string {
		return "def main(ctx):\n    sh('echo 1', name='a', key='k', env={'N': '1'}).out()\n" + lines
	}
	l := newLab(t)
	r := l.start(body("    sh('echo 2', name='b').out()\n"))
	require.NoError(t, r.Err)
	for _, test := range []struct{ name, source, code, task string }{
		{"the same", body("    sh('echo 2', name='b').out()\n"), "", ""},
		{"changed", strings.Replace(body("    sh('echo 2', name='b').out()\n"), "'N': '1'", "'N': '2'", 1), workflow.DivergedChanged, "a[k]"},
		{"one more", body("    sh('echo 2', name='b').out()\n    sh('echo 3', name='c')\n"), workflow.DivergedExtra, "c"},
		{"one less", body("    pass\n"), workflow.DivergedMissing, "b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := load(test.source)
			require.NoError(t, err)
			_, err = workflow.Audit(ctx, l.opt, r.Run, p)
			var diverged *workflow.DivergedError
			if test.code == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, &diverged)
			assert.Equal(t, test.code, diverged.Code)
			assert.Equal(t, test.task, bare(diverged.Task))
		})
	}
}

// A run that went on with an edited body is held to the body that each of its
// frames was made with.
func TestD16AuditAcrossAnEdit(t *testing.T) {
	l := newLab(t)
	source := "def main(ctx):\n    sh('echo 1', name='a').out()\n    sh('exit 1', name='b').out()\n"
	r := l.start(source)
	require.Equal(t, "failed", r.Status)
	r = l.resume(r.Run, strings.Replace(source, "exit 1", "exit 0", 1)+"    sh('echo 3', name='c').out()\n")
	require.NoError(t, r.Err)
	l.audit(r.Run)
}

// To look at what was recorded, or at what a resume would do, writes nothing.
func TestD19LookingWritesNothing(t *testing.T) {
	l := newLab(t)
	source := "def main(ctx):\n    sh('echo x > x', name='a').out()\n    sh('exit 1', name='b').out()\n"
	r := l.start(source)
	before, log := l.head(r.Run).Root(), len(l.log(r.Run))
	l.ran()
	l.audit(r.Run)
	_, err := workflow.Look(ctx, l.opt, r.Run, workflow.ResumeOptions{Program: l.load(strings.Replace(source, "echo x", "echo y", 1))})
	require.NoError(t, err)
	assert.Empty(t, l.ran())
	assert.Equal(t, before, l.head(r.Run).Root())
	assert.Len(t, l.log(r.Run), log)
	assert.Equal(t, "x\n", l.file("x"))
	assert.Equal(t, []string{"ok"}, l.attempts(r.Run, "a"))
	assert.Equal(t, []string{"failed"}, l.attempts(r.Run, "b"))
}
