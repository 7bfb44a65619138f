package workflow_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/workflow"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// A failure that was recorded is the same to the body when the run goes on, in
// a process that has not seen it happen, with all of its fields.
func TestD20FailureAfterAResume(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    bad = sh("echo sorry >&2; exit 3", name="bad").result()
    nojson = sh("echo x", name="nojson", json=True).result()
    slow = sh("sleep 20", name="slow", timeout="50ms").result()
    if signal("go").out():
        return [bad, nojson["error"]["type"], slow["error"]]
`)
	require.Equal(t, "waiting", r.Status)
	l.ran()
	other := openLab(t, l.root)
	other.send(r.Run, "go", "true")
	r = other.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Empty(t, other.ran())
	got := r.Value.([]value.V)
	bad := got[0].(value.Dict)
	assert.Equal(t, "{attempts:1,error:{code:3,message:exit 3: sorry,task:"+ids(r)[0]+",type:exit},ok:false,value:<nil>}", shownValue(bad))
	assert.Equal(t, "output", got[1])
	assert.Contains(t, shownValue(got[2]), "it took longer than 50ms")
	assert.Contains(t, shownValue(got[2]), "type:timeout")
}

// A fallback that fails, and an undo that fails, are in the log as what they
// are, and rendering the run again tries neither.
func TestD21FallbackAndUndoThatFail(t *testing.T) {
	l := newLab(t)
	world := l.world()
	r := l.start(`
def main(ctx):
    sh("exit 1", name="lost", fallback=lambda err: sh("echo fallback >> $WORLD/log; exit 2", name="fallback")).out()
`)
	assert.ErrorContains(t, r.Err, "exit 2")
	assert.Equal(t, []string{"started", "settled"}, l.events(r.Run, "fallback"))
	l.audit(r.Run)
	assert.Equal(t, "fallback\n", does(t, world))

	r = l.start(`
def main(ctx):
    def steps():
        for n in ["one", "two", "three"]:
            sh("true", name=n, undo=lambda _, n=n: sh("echo undo %s >> $WORLD/log; test %s != two" % (n, n), name="un" + n)).out()
        sh("exit 7", name="last").out()
    saga(steps)
`)
	assert.ErrorContains(t, r.Err, "exit 7", "what failed first is what is told")
	want := "fallback\nundo three\nundo two\nundo one\n"
	assert.Equal(t, want, does(t, world), "one that fails keeps no other from being done")
	assert.Equal(t, []string{"failed"}, l.attempts(r.Run, "s0.saga/undo/untwo"))
	l.audit(r.Run)
	assert.Equal(t, want, does(t, world))
}

// An undo function that fails itself is told, beside what failed first, and keeps
// no other from being done.
func TestD21UndoFunctionThatFails(t *testing.T) {
	l := newLab(t)
	world := l.world()
	r := l.start(`
def main(ctx):
    def steps():
        sh("true", name="a", undo=lambda _: sh("echo undo a >> $WORLD/log", name="una")).out()
        sh("true", name="b", undo=lambda _: {}["nothing"]).out()
        sh("true", name="c", undo=lambda _: sh("false", name="unc").out()).out()
        sh("exit 7", name="last").out()
    saga(steps)
`)
	assert.Equal(t, "undo a\n", does(t, world))
	var undone *workflow.UndoError
	require.ErrorAs(t, r.Err, &undone)
	var halt *workflow.HaltError
	require.ErrorAs(t, r.Err, &halt)
	assert.Contains(t, halt.Task, "s0.saga/last", "what failed first")
	told := regexp.MustCompile(`~[0-9a-f]{12}`).ReplaceAllString(r.Err.Error(), "")
	assert.Equal(t, "s0.saga/last failed: exit 7; s0.saga/c was not undone: s0.saga/undo/unc failed: exit 1; "+
		`s0.saga/b was not undone: main.star:5:47: key "nothing" not in dict`, told)
	l.audit(r.Run)
}

// What a saga has undone is done again when the run goes on, and undone again
// when it fails once more. What an undo could not take back stands.
func TestD21SagaThatGoesOn(t *testing.T) {
	l := newLab(t)
	world := l.world()
	source := `
def main(ctx):
    def steps():
        sh("echo do a >> $WORLD/log", name="a", undo=lambda _: sh("echo undo a >> $WORLD/log", name="una")).out()
        sh("echo do b >> $WORLD/log", name="b", undo=lambda _: sh("echo cannot undo b >> $WORLD/log; false", name="unb")).out()
        sh("test -e $WORLD/well", name="last").out()
    saga(steps)
    return "done"
`
	r := l.start(source)
	require.Equal(t, "failed", r.Status)
	once := "do a\ndo b\ncannot undo b\nundo a\n"
	assert.Equal(t, once, does(t, world))
	r = l.resume(r.Run)
	require.Equal(t, "failed", r.Status)
	twice := once + "do a\ncannot undo b\nundo a\n"
	assert.Equal(t, twice, does(t, world))
	require.NoError(t, os.WriteFile(filepath.Join(world, "well"), nil, 0o644))
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, twice+"do a\n", does(t, world))
	l.audit(r.Run)
}

// A failure that the body has dealt with is not tried again when the run goes
// on after an approval, though it would succeed now.
func TestD22RetryAfterApproval(t *testing.T) {
	l := newLab(t)
	world := l.world()
	r := l.start(`
def main(ctx):
    if sh("echo first >> $WORLD/log; test -e $WORLD/well", name="first").result()["ok"]:
        return "the first"
    if signal("again").out():
        return sh("echo second >> $WORLD/log", name="second").result()["ok"] and "the second"
`)
	require.Equal(t, "waiting", r.Status)
	require.NoError(t, os.WriteFile(filepath.Join(world, "well"), nil, 0o644))
	l.send(r.Run, "again", "true")
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, "the second", r.Value)
	assert.Equal(t, "first\nsecond\n", does(t, world))
}

// A run that is stopped between two attempts waits, when it goes on, for what is
// left of the time between them; when the attempts are used up the fallback
// counts.
func TestD24BackOffAcrossAResume(t *testing.T) {
	l := newLab(t)
	c := &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	l.opt.Now = c.read
	world := l.world()
	p := l.load(`
def main(ctx):
    flaky = sh("exit 5", name="flaky", fx="pure", retry={"max": 2, "delay": "1h"}, fallback="fell")
    sh("test -e $WORLD/quick || sleep 60", name="beside", fx="pure").out()
    sh("true", name="later", fx="pure").out()
    return flaky.out()
`)
	r := l.stopAt(workflow.Retried, "flaky", func(ctx context.Context) (*workflow.Result, error) {
		return workflow.Start(ctx, l.opt, p, "", nil)
	})
	for _, e := range l.log(r.Run) {
		if e.Type == workflow.EventRetry {
			assert.Contains(t, string(e.Body), `"due":"2030-01-01T01:00:00Z"`)
		}
	}
	c.move(59 * time.Minute)
	require.NoError(t, os.WriteFile(filepath.Join(world, "quick"), nil, 0o644))
	r = l.stopAt(workflow.Settled, "later", func(ctx context.Context) (*workflow.Result, error) {
		return workflow.Resume(ctx, l.opt, r.Run, workflow.ResumeOptions{})
	})
	assert.Equal(t, []string{"failed"}, l.attempts(r.Run, "flaky"), "it is not its time yet")
	c.move(time.Minute)
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, "fell", r.Value)
	assert.Equal(t, []string{"failed", "failed"}, l.attempts(r.Run, "flaky"))
	assert.Contains(t, l.events(r.Run, "flaky"), workflow.EventFallback)
}

// An attempt that was interrupted goes on under its number at once: it has not
// failed, and no time has to pass.
func TestD25InterruptedAttemptDoesNotBackOff(t *testing.T) {
	l := newLab(t)
	world := l.world()
	p := l.load(`
def main(ctx):
    sh("echo $RETCON_ATTEMPT $GIVEN >> $WORLD/log; test -e $WORLD/quick || sleep 60", name="long", env={"GIVEN": "x"},
        retry={"max": 3, "delay": "1h"}).out()
`)
	r := l.stopAt(workflow.Started, "long", func(ctx context.Context) (*workflow.Result, error) {
		return workflow.Start(ctx, l.opt, p, "", nil)
	})
	require.NoError(t, os.WriteFile(filepath.Join(world, "quick"), nil, 0o644))
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, []string{"ok"}, l.attempts(r.Run, "long"))
	assert.Contains(t, does(t, world), "1 x\n", "with the number and the environment it had")
	assert.NotContains(t, does(t, world), "2 x\n")
}

// What was refused would be refused again: it is not sent a second time. A
// body that gives up after a refusal falls back to nothing.
func TestD27RefusalIsFinal(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		code := map[string]int{"/no": 403, "/busy": 503}[r.URL.Path]
		w.WriteHeader(code)
	}))
	defer server.Close()
	l := newLab(t)
	l.opt.HTTP = server.Client()
	r := l.start(`
def main(ctx):
    no = http("GET", "` + server.URL + `/no", name="no", retry=3).result()
    busy = http("GET", "` + server.URL + `/busy", name="busy", retry=3).result()
    return [no["error"]["type"], no["attempts"], busy["error"]["type"], busy["attempts"]]
`)
	require.NoError(t, r.Err)
	assert.Equal(t, "[refused,1,http,3]", shownValue(r.Value))
	assert.EqualValues(t, 4, asked.Load())

	r = l.start(`
def main(ctx):
    if not signal("ok").out():
        fail("said no")
    sh("true", name="never").out()
`)
	l.send(r.Run, "ok", "false")
	r = l.resume(r.Run)
	assert.ErrorContains(t, r.Err, "said no")
	l.ran()
	r = l.resume(r.Run)
	assert.ErrorContains(t, r.Err, "said no")
	assert.Empty(t, l.ran())
}

// A fallback comes after the last attempt, also of one that takes too long, and
// a task within it has a time of its own.
func TestD28Fallbacks(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    a = sh("sleep 20", name="a", timeout="50ms", retry=2, fallback="late")
    b = sh("exit 1", name="b", fallback=lambda err: sh("sleep 20", name="c", timeout="50ms", fallback="later still"))
    return [a.out(), a.result()["ok"], b.out()]
`)
	require.NoError(t, r.Err)
	assert.Equal(t, "[late,true,later still]", shownValue(r.Value))
	assert.Equal(t, []string{"failed", "failed"}, l.attempts(r.Run, "a"))
	assert.Equal(t, []string{"a", "a", "b", "c"}, l.ran())
}

// A result that is cached is taken by other runs while it is fresh, null as
// well, and each taking is in the log of the run that takes it.
func TestD29Cache(t *testing.T) {
	l := newLab(t)
	c := &clock{now: time.Now()}
	l.opt.Now = c.read
	source := `
def main(ctx):
    a = sh("echo hello", name="a", fx="pure", cache="1h")
    b = sh("echo null", name="b", fx="pure", cache="1h", json=True)
    c = sh("echo again", name="c", fx="pure")
    return [a.out(), b.out(), c.out()]
`
	for _, run := range []struct {
		after time.Duration
		ran   []string
	}{{0, []string{"a", "b", "c"}}, {time.Minute, []string{"c"}}, {2 * time.Hour, []string{"a", "b", "c"}}} {
		c.move(run.after)
		r := l.start(source)
		require.NoError(t, r.Err)
		assert.Equal(t, []value.V{"hello", nil, "again"}, r.Value)
		assert.ElementsMatch(t, run.ran, l.ran())
		assert.Contains(t, l.events(r.Run, "a"), workflow.EventSettled)
		assert.Contains(t, l.events(r.Run, "b"), workflow.EventSettled)
	}
}

// Nothing is tried again unasked, whatever it failed of.
func TestD30NothingIsRetriedUnasked(t *testing.T) {
	l := newLab(t)
	r := l.start(`
def main(ctx):
    return [t.result()["attempts"] for t in [
        sh("exit 1", name="a"), sh("sleep 20", name="b", timeout="20ms"), sh(["/does/not/exist"], name="c"),
        http("GET", "http://127.0.0.1:1/", name="d"), sh("kill -9 $$", name="e")]]
`)
	require.NoError(t, r.Err)
	assert.Equal(t, "[1,1,1,1,1]", shownValue(r.Value))
}

// One lane that fails does not keep the others from coming to their end, and
// only it runs again.
func TestD31OtherLanesGoOn(t *testing.T) {
	l := newLab(t)
	world := l.world()
	r := l.start(`
def lane(name):
    sh("echo %s >> $WORLD/log; test %s != b || test -e $WORLD/well" % (name, name), name="one").out()
    return sh("echo %s > %s.txt; echo %s" % (name, name, name), name="two").out()

def main(ctx):
    return each(["a", "b", "c"], lane)
`)
	assert.Equal(t, "failed", r.Status)
	assert.Equal(t, []string{"ok"}, l.attempts(r.Run, "e0[a]/two"))
	assert.Equal(t, []string{"ok"}, l.attempts(r.Run, "e0[c]/two"))
	l.ran()
	require.NoError(t, os.WriteFile(filepath.Join(world, "well"), nil, 0o644))
	r = l.resume(r.Run)
	require.NoError(t, r.Err)
	assert.Equal(t, "[a,b,c]", shownValue(r.Value), "in the order of the items")
	assert.Equal(t, []string{"e0[b]/one", "e0[b]/two", "e0.merge[join]"}, l.ran())
}
