package workflow_test

import (
	"context"
	"testing"

	"github.com/retcon-dev/retcon/workflow"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

func TestRun(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    a = sh("echo one > a; echo hello", name="first")
    b = sh("cat a; echo $GREET", name="second", env={"GREET": a}, fx="read")
    return b.out()
`)
	require.NoError(t, r.Err)
	assert.Equal(t, "ok", r.Status)
	assert.Equal(t, "one\nhello", r.Value)
	assert.Equal(t, "one\n", l.file("a"))
	assert.Equal(t, []string{"first", "second"}, l.ran())
}

func TestResumeAfterFailure(t *testing.T) {
	l := newLab(t)
	source := `
def main(ctx):
    sh("echo x >> log", name="first").out()
    sh("test -f fixed || { echo broken >&2; exit 3; }", name="second").out()
    sh("echo z >> log", name="third").out()
    return "done"
`
	r := l.start(source)
	assert.Equal(t, "failed", r.Status)
	assert.ErrorContains(t, r.Err, "exit 3: broken")
	assert.Equal(t, []string{"first", "second"}, l.ran())
	l.write("fixed", "")
	again := l.resume(r.Run)
	require.NoError(t, again.Err)
	assert.Equal(t, "ok", again.Status)
	assert.Equal(t, []string{"second", "third"}, l.ran())
	assert.Equal(t, "x\nz\n", l.file("log"))
}

func TestResumeEdited(t *testing.T) {
	l := newLab(t)
	source := func(word string) string {
		return `
def main(ctx):
    sh("echo one >> log", name="first").out()
    sh("echo ` + word + ` >> log", name="second").out()
    sh("echo three >> log", name="third").out()
    sh("wc -l < log", name="count", fx="read").out()
`
	}
	r := l.start(source("two"))
	require.NoError(t, r.Err)
	l.ran()
	again := l.resume(r.Run, source("zwei"))
	require.NoError(t, again.Err)
	assert.Equal(t, []string{"second", "third", "count"}, l.ran())
	assert.Equal(t, "one\nzwei\nthree\n", l.file("log"))
	back := l.resume(r.Run, source("two"))
	require.NoError(t, back.Err)
	assert.Empty(t, l.ran(), "all of it was done before")
	assert.Equal(t, "one\ntwo\nthree\n", l.file("log"))
}

func TestPreview(t *testing.T) {
	l := newLab(t)
	source := func(word, more string) string {
		return `
def main(ctx):
    sh("echo one >> log", name="first").out()
    sh("echo ` + word + ` >> log", name="second").out()
    sh("echo three >> log", name="third")
    ` + more + `
`
	}
	r := l.start(source("two", "pass"))
	require.NoError(t, r.Err)
	look, err := workflow.Look(ctx, l.opt, r.Run, workflow.ResumeOptions{Program: l.load(source("zwei", `sh("true", name="new")`))})
	require.NoError(t, err)
	var got []string
	for _, p := range look.Tasks {
		got = append(got, bare(p.ID)+": "+p.What)
	}
	assert.Equal(t, []string{"first: kept", "second: changed", "second: may run", "third: may run"}, got)
}

func TestParallel(t *testing.T) {
	l := newLab(t)
	l.write("base", "0\n")
	source := `
def unit(name):
    a = sh("echo %s > %s.txt; cat base" % (name, name), name="write")
    return sh("cat %s.txt" % name, name="read", fx="read").out() + a.out()

def main(ctx):
    got = parallel({"a": lambda: unit("a"), "b": lambda: unit("b")})
    all = sh("cat a.txt b.txt", name="all", fx="read").out()
    return [got["a"], got["b"], all]
`
	r := l.start(source)
	require.NoError(t, r.Err)
	assert.Equal(t, []value.V{"a0", "b0", "a\nb"}, r.Value)
	_, err := workflow.Resume(ctx, l.opt, r.Run, workflow.ResumeOptions{})
	var finished *workflow.FinishedError
	require.ErrorAs(t, err, &finished)
	l.ran()
	again := l.resume(r.Run, source+"\n# the same in other words\n")
	require.NoError(t, again.Err)
	assert.Empty(t, l.ran())
}

func TestSignal(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    plan = sh("echo plan", name="plan")
    ok = signal("approve", of=plan, schema={"type": "boolean"})
    if ok.out():
        return sh("echo shipped", name="ship").out()
    return "no"
`)
	assert.Equal(t, "waiting", r.Status)
	require.NoError(t, r.Err)
	_, err := workflow.Send(ctx, l.opt, r.Run, "approve", []byte(`"yes"`), "")
	var wrong *workflow.InputError
	require.ErrorAs(t, err, &wrong)
	_, err = workflow.Send(ctx, l.opt, r.Run, "other", []byte(`true`), "")
	var nobody *workflow.WaitError
	require.ErrorAs(t, err, &nobody)
	assert.Equal(t, []string{"approve"}, nobody.Waiting)
	sent, err := workflow.Send(ctx, l.opt, r.Run, "approve", []byte(`true`), "k")
	require.NoError(t, err)
	assert.Equal(t, "approve", bare(sent.Wait))
	sent, err = workflow.Send(ctx, l.opt, r.Run, "approve", []byte(`true`), "k")
	require.NoError(t, err)
	assert.True(t, sent.Repeated)
	again := l.resume(r.Run)
	require.NoError(t, again.Err)
	assert.Equal(t, "shipped", again.Value)
	_, err = workflow.Send(ctx, l.opt, r.Run, "approve", []byte(`true`), "")
	require.ErrorAs(t, err, &nobody)
	assert.True(t, nobody.Settled)
}

func TestRetry(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    a = sh("echo x >> tries; test $RETCON_ATTEMPT = 3 || exit 1; wc -l < tries", name="flaky", retry=3)
    b = sh("exit 7", name="bad", retry={"max": 2}, fallback="fell").out()
    c = sh("exit 7", name="worse", fallback=lambda err: err["code"]).out()
    d = sh("sleep 20", name="slow", timeout="100ms").result()
    return [a.out(), b, c, d["error"]["type"]]
`)
	require.NoError(t, r.Err)
	assert.Equal(t, []value.V{"1", "fell", "7", "timeout"}, r.Value, "each retry begins with the files of the first")
	assert.Equal(t, []string{"flaky", "flaky", "flaky", "bad", "bad", "worse", "slow"}, l.ran())
}

func TestSaga(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def release():
    sh("echo tag >> world", name="tag", undo=lambda v: sh("echo untag >> world", name="untag")).out()
    sh("echo push >> world", name="push", undo=lambda v: sh("echo unpush >> world", name="unpush")).out()
    sh("exit 1", name="announce").out()

def main(ctx):
    saga(release)
`)
	assert.Equal(t, "failed", r.Status)
	assert.ErrorContains(t, r.Err, "announce")
	assert.Equal(t, "tag\npush\nunpush\nuntag\n", l.file("world"))
}

func TestRaceAndTimers(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    sleep("20ms")
    won = race([sh("sleep 20", name="slow", fx="external"), timer("50ms")]).out()
    return [won["index"], len(uuid4()), randint(3, 3), choice(["x"]), now() < now()]
`)
	require.NoError(t, r.Err)
	assert.Equal(t, []value.V{int64(1), int64(36), int64(3), "x", true}, r.Value)
}

// Stopped while what was recorded is looked up, a run is interrupted like at any
// other moment, and can be resumed.
func TestInterruptedWhileCatchingUp(t *testing.T) {
	l := newLab(t)
	source := `
def main(ctx):
    for i in range(20):
        sh("echo %d" % i, name="step", fx="pure", key=str(i)).out()
    sh("test -n \"$NOW\"", name="last", fx="pure").out()
`
	r := l.start(source)
	require.Equal(t, "failed", r.Status)
	stopped, stop := context.WithCancel(ctx)
	o := l.opt
	o.On = func(p workflow.Progress) {
		if p.Kind == workflow.Declared {
			stop()
		}
	}
	again, err := workflow.Resume(stopped, o, r.Run, workflow.ResumeOptions{})
	require.NoError(t, err)
	assert.Equal(t, "interrupted", again.Status)
	require.ErrorIs(t, again.Err, workflow.ErrInterrupted)
	l.opt.Env = append(l.opt.Env, "NOW=1")
	l.ran()
	again = l.resume(r.Run)
	require.NoError(t, again.Err)
	assert.Equal(t, []string{"last"}, l.ran())
}
