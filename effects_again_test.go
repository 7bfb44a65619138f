package retcon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/workflow"
)

// mailer is a flow with a program that sends mails, which nothing calls back, and
// one that makes issues.
type mailer struct {
	*flow
	log string
}

func newMailer(t *testing.T) *mailer {
	t.Helper()
	m := &mailer{flow: newFlow(t)}
	bin := filepath.Join(filepath.Dir(m.dir), "bin")
	m.log = filepath.Join(bin, "log")
	require.NoError(t, os.Mkdir(bin, 0o755))
	for name, text := range map[string]string{
		"mail-it": `echo "$*" >> ` + m.log,
		"gh":      `echo "gh $*" >> ` + m.log + `; case "$2" in create) echo https://github.com/o/r/issues/7;; esac`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	m.place = openPlace(t, m.dir, retcon.Options{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "COUNT=" + m.count}})
	return m
}

// sent are the calls so far.
func (m *mailer) sent() string {
	b, _ := os.ReadFile(m.log)
	return strings.Join(strings.Split(strings.TrimSpace(string(b)), "\n"), ", ")
}

// stands fails with the error of a run that has stopped before an effect.
func (m *mailer) stands(err error) *workflow.StandingError {
	m.t.Helper()
	var stands *workflow.StandingError
	require.ErrorAs(m.t, err, &stands)
	assert.Equal(m.t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
	return stands
}

func (m *mailer) goOn(o retcon.ResumeOptions) (*retcon.RunResult, error) {
	o.Run = "r1"
	return m.ResumeWorkflow(m.t.Context(), o)
}

// planned is a workflow that mails what its first task has found.
const planned = `
def main(ctx):
    plan = sh("cat ../what", name="plan")
    effect(["mail-it", plan], name="send").out()
    sh("echo 2 > build.txt", name="build").out()
`

func (m *mailer) what(text string) {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(filepath.Join(filepath.Dir(m.dir), "what"), []byte(text), 0o644))
}

// T124: what would be done again, because of what a task that runs again has
// found, stops the run before it is done.
func TestT124ARunStopsBeforeWhatItHasDone(t *testing.T) {
	m := newMailer(t)
	m.what("one")
	require.Equal(t, "ok", m.run(planned).Status)
	require.Equal(t, "one", m.sent())

	o := retcon.TravelOptions{Run: "r1", Task: "plan"}
	dry := o
	dry.DryRun = true
	res, err := m.RetryTask(ctx, dry)
	require.NoError(t, err)
	require.Len(t, res.Plan.Effects, 1, "it is not known whether it will")
	assert.Equal(t, "listed", res.Plan.Effects[0].What)
	assert.Contains(t, res.Plan.Effects[0].Why, "may run again")

	_, err = m.RetryTask(ctx, o)
	require.NoError(t, err)
	r, err := m.goOn(retcon.ResumeOptions{})
	require.NoError(t, err)
	require.Equal(t, "ok", r.Status, "it has found the same, and nothing is sent")
	require.Equal(t, "one", m.sent())

	m.what("two")
	_, err = m.Rerun(ctx, retcon.TravelOptions{Run: "r1", Tasks: []string{"plan"}})
	require.NoError(t, err)
	r, err = m.goOn(retcon.ResumeOptions{})
	in := m.stands(err)
	require.Len(t, in.Tasks, 1)
	assert.EqualValues(t, 1, in.Tasks[0].Effects[0].ID)
	told := retcon.Explain(err)
	assert.Equal(t, []string{"retcon effects show 1", "retcon resume r1 --force", "retcon resume r1"}, told.Hints)
	assert.NotContains(t, told.Message, "\n")
	assert.Equal(t, "interrupted", r.Status)
	assert.Equal(t, "one", m.sent())

	p, err := m.Preview(ctx, retcon.ResumeOptions{Run: "r1"})
	require.NoError(t, err)
	for _, task := range p.Tasks {
		if task.Name == "send" {
			assert.Equal(t, []int64{1}, task.Effects)
		}
	}
	_, err = m.goOn(retcon.ResumeOptions{})
	m.stands(err)
	_, err = m.SettleEffect(ctx, 1, retcon.EffectOutcome{Compensation: &retcon.Compensation{Command: []string{"mail-it", "sorry"}}})
	require.NoError(t, err)
	_, err = m.RetryEffect(ctx, 1)
	require.NoError(t, err)
	r, err = m.goOn(retcon.ResumeOptions{})
	require.NoError(t, err)
	assert.Equal(t, "ok", r.Status)
	assert.Equal(t, "one, sorry, two", m.sent())
	assert.Empty(t, m.needsAttention())
}

// By force it is done again, as another call; what was done stays known, and
// somebody has to look.
func TestT124ForceGoesOnAcross(t *testing.T) {
	m := newMailer(t)
	m.what("one")
	require.Equal(t, "ok", m.run(planned).Status)
	m.what("two")
	_, err := m.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "plan"})
	require.NoError(t, err)
	r, err := m.goOn(retcon.ResumeOptions{RunOptions: retcon.RunOptions{Force: true}})
	require.NoError(t, err)
	require.Equal(t, "ok", r.Status)
	assert.Equal(t, "one, two", m.sent())
	assert.Equal(t, "succeeded, succeeded", m.states())
	require.Len(t, m.needsAttention(), 1)
	assert.Contains(t, m.needsAttention()[0], "although effect 1")
	events, err := m.Events(ctx, retcon.EventsOptions{Run: "r1"})
	require.NoError(t, err)
	crossed := 0
	for _, e := range events {
		if e.Type == timeline.EventCrossed {
			crossed++
		}
	}
	assert.Equal(t, 1, crossed)
	_, err = m.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 0})
	var blocked *timeline.BlockedError
	require.ErrorAs(t, err, &blocked)
	assert.Len(t, blocked.Effects, 2, "both are in the way of going behind them")
}

// T124: what is known to be done again is guarded by the move itself.
func TestT124RerunGuardsWhatWillRunAgain(t *testing.T) {
	const body = `
def main(ctx):
    issue = sh("gh issue create --title x; kill -9 $$", name="issue")
    sh("echo 1 > plan.txt; echo plan >> $COUNT", name="plan").result()
    issue.out()
`
	for name, move := range map[string]func(*retcon.Workspace, retcon.TravelOptions) (*retcon.Result, error){
		"retry": func(w *retcon.Workspace, o retcon.TravelOptions) (*retcon.Result, error) {
			o.Task = "plan"
			return w.RetryTask(ctx, o)
		},
		"rerun": func(w *retcon.Workspace, o retcon.TravelOptions) (*retcon.Result, error) {
			o.Tasks = []string{"plan"}
			return w.Rerun(ctx, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMailer(t)
			require.Equal(t, "failed", m.run(body).Status)
			require.Equal(t, "unknown", m.states())
			_, err := move(m.Workspace, retcon.TravelOptions{Run: "r1"})
			var blocked *timeline.BlockedError
			require.ErrorAs(t, err, &blocked, "the task that has failed is tried again, and may have made an issue")
			assert.EqualValues(t, 1, blocked.Effects[0].ID)
			_, err = m.goOn(retcon.ResumeOptions{})
			m.stands(err)
			assert.Equal(t, "gh issue create --title x", m.sent())

			_, err = m.SettleEffect(ctx, 1, retcon.EffectOutcome{Status: "failed"})
			require.NoError(t, err)
			_, err = move(m.Workspace, retcon.TravelOptions{Run: "r1"})
			require.NoError(t, err, "somebody has looked: there is none")
		})
	}
}

// T124: what was done outside since a plan was made is noticed in the transaction
// that begins its move.
func TestT124GuardLooksAgain(t *testing.T) {
	for name, move := range map[string]func(*shop) (*retcon.Result, error){
		"timetravel": func(s *shop) (*retcon.Result, error) {
			return s.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "make"})
		},
		"rerun": func(s *shop) (*retcon.Result, error) {
			return s.Rerun(ctx, retcon.TravelOptions{Run: "r1", Tasks: []string{"make"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, ticketRule)
			require.Equal(t, "ok", s.run(makes).Status)
			s.calls()
			other := openPlace(t, s.dir, s.opt)
			o, asked, task := s.opt, 0, s.taskID("make")
			o.Trusted = func(string) bool { // asked when the plan looks at the effects
				if asked++; asked == 1 {
					_, err := other.RecordEffect(ctx, retcon.EffectRecord{Run: "r1", Task: task, Tool: "mailer", Status: "succeeded"})
					assert.NoError(t, err)
				}
				return true
			}
			s.reopen(o)
			_, err := move(s)
			var stale *timeline.StaleHistoryError
			require.ErrorAs(t, err, &stale)
			assert.Equal(t, retcon.CodeStalePlan, retcon.Explain(err).Code)
			assert.Empty(t, s.calls(), "nothing was undone")
			assert.Equal(t, "succeeded, succeeded", s.states())
			_, err = move(s)
			require.Equal(t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
		})
	}
}

// taskID is the id of a task of r1 by its name.
func (s *shop) taskID(name string) string {
	s.t.Helper()
	at, err := s.Show(ctx, retcon.ShowOptions{At: "r1"})
	require.NoError(s.t, err)
	for _, task := range at.Tasks {
		if task.Name == name {
			return task.ID
		}
	}
	s.t.Fatal("no task ", name)
	return ""
}

// An edited body that would do again what it has done stops before it.
func TestT124EditedTaskIsTheSameTask(t *testing.T) {
	const body = `
def main(ctx):
    effect("mail-it first", name="send").out()
    sh("test -e ok", name="build").out()
`
	m := newMailer(t)
	require.Equal(t, "failed", m.run(body).Status)
	m.write("ok", "")
	edited := m.body(strings.Replace(body, "first", "second", 1))
	_, err := m.goOn(retcon.ResumeOptions{File: edited})
	in := m.stands(err)
	assert.Contains(t, err.Error(), "in place of")
	assert.NotEqual(t, in.Tasks[0].Task, in.Tasks[0].Effects[0].Task)
	assert.Equal(t, "first", m.sent())

	renamed := m.body(strings.Replace(body, `first", name="send"`, `hello", name="greet"`, 1))
	r, err := m.goOn(retcon.ResumeOptions{File: renamed, RunOptions: retcon.RunOptions{KeepFiles: true}})
	require.NoError(t, err, "another task is no repetition")
	assert.Equal(t, "first, hello", m.sent(), r.Status)
}

// A call that was cut short is made once more under its key; a command that
// nobody has given one stops the run.
func TestT124CutShort(t *testing.T) {
	for _, test := range []struct{ name, task, again string }{
		{"under a key", `effect("mail-it $RETCON_EFFECT_KEY; test -e ../on || kill -9 $$", name="send", undo="true")`, "the same"},
		{"without one", `sh("gh issue create --title x; test -e ../on || kill -9 $$", name="send")`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMailer(t)
			require.Equal(t, "failed", m.run("\ndef main(ctx):\n    "+test.task+".out()\n").Status)
			require.Equal(t, "unknown", m.states())
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(m.dir), "on"), nil, 0o644))
			_, err := m.goOn(retcon.ResumeOptions{})
			if test.again == "" {
				m.stands(err)
				assert.NotContains(t, m.sent(), ",")
				return
			}
			require.NoError(t, err)
			calls := strings.Split(m.sent(), ", ")
			require.Len(t, calls, 2)
			assert.Equal(t, calls[0], calls[1], "it is the same call")
			assert.Equal(t, "succeeded", m.states())
		})
	}
}

// The same arguments on other files are another call: its key must not make a
// provider believe that it has done it.
func TestT124SameArgumentsOnOtherFiles(t *testing.T) {
	m := newMailer(t)
	body := `
def main(ctx):
    sh("cat ../what > page.txt", name="write").out()
    effect("mail-it $(cat page.txt) $RETCON_EFFECT_KEY", name="publish").out()
`
	m.what("one")
	require.Equal(t, "ok", m.run(body).Status)
	m.what("two")
	_, err := m.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "write"})
	require.NoError(t, err)
	_, err = m.goOn(retcon.ResumeOptions{})
	m.stands(err)
	_, err = m.goOn(retcon.ResumeOptions{RunOptions: retcon.RunOptions{Force: true}})
	require.NoError(t, err)
	calls := strings.Split(m.sent(), ", ")
	require.Len(t, calls, 2)
	assert.True(t, strings.HasSuffix(calls[0], "#0") && strings.HasSuffix(calls[1], "#1"), calls)
}

// What somebody settles while the run goes on counts: it is looked at when the
// task begins.
func TestT124LooksWhenTheTaskBegins(t *testing.T) {
	m := newMailer(t)
	m.what("one")
	require.Equal(t, "ok", m.run(planned).Status)
	m.what("two")
	_, err := m.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "plan"})
	require.NoError(t, err)
	other := openPlace(t, m.dir, retcon.Options{})
	r, err := m.goOn(retcon.ResumeOptions{RunOptions: retcon.RunOptions{On: func(p retcon.Progress) {
		if p.Kind != retcon.Started {
			return
		}
		_, err := other.SettleEffect(ctx, 1, retcon.EffectOutcome{Compensation: &retcon.Compensation{NotNeeded: "it was a rehearsal"}})
		assert.NoError(t, err)
	}}})
	require.NoError(t, err)
	assert.Equal(t, "ok", r.Status)
	assert.Equal(t, "one, two", m.sent())
}

// What a saga has undone itself does not stand: the run goes on, and can be
// rewound.
func TestT124WhatASagaHasUndone(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	body := `
def main(ctx):
    def book():
        http("POST", "` + tr.URL + `/tickets", body={"title": "it"}, json=True, name="ticket",
             undo=lambda v: http("DELETE", "` + tr.URL + `/tickets/%d" % v["body"]["id"], name="cancel")).out()
        sh("test -e ok", name="pay").out()
    saga(book)
    return "done"
`
	require.Equal(t, "failed", f.run(body).Status)
	require.Equal(t, 0, tr.tickets())
	assert.Equal(t, "succeeded compensated, succeeded compensated", f.states())
	f.write("ok", "")
	r, err := f.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: "r1", RunOptions: retcon.RunOptions{KeepFiles: true}})
	require.NoError(t, err)
	require.Equal(t, "ok", r.Status)
	assert.Equal(t, 1, tr.tickets())
	require.NoError(t, os.Remove(f.path("ok")))
}

// T122: what was left behind by force is not in the way of the next move, nor of
// doing it again.
func TestT122CrossedIsNotInTheWayAgain(t *testing.T) {
	m := newMailer(t)
	m.what("one")
	require.Equal(t, "ok", m.run(planned).Status)
	o := retcon.TravelOptions{Run: "r1", Task: "send"}
	_, err := m.TimeTravel(ctx, o)
	require.Equal(t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
	o.Force = true
	_, err = m.TimeTravel(ctx, o)
	require.NoError(t, err)
	require.Equal(t, "ok", m.resume("r1").Status)
	assert.Equal(t, "one, one", m.sent(), "it was left behind, and is made again")
	assert.Equal(t, "succeeded, succeeded crossed", m.states())
	res, err := m.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 0, DryRun: true})
	require.NoError(t, err)
	require.Len(t, res.Plan.Effects, 1, "only the second")
	assert.EqualValues(t, 2, res.Plan.Effects[0].ID)
}

// The same request again is answered as before, whatever the run is by then.
func TestRerunIsReplayed(t *testing.T) {
	m := newMailer(t)
	body := m.body("\ndef main(ctx):\n    sh(\"test -e ok\", name=\"build\").out()\n")
	_, err := m.RunWorkflow(ctx, retcon.RunOptions{File: body})
	require.NoError(t, err)
	o := retcon.TravelOptions{Run: "r1", Failed: true, RequestID: "k"}
	first, err := m.Rerun(ctx, o)
	require.NoError(t, err)
	m.write("ok", "")
	r, err := m.goOn(retcon.ResumeOptions{RunOptions: retcon.RunOptions{KeepFiles: true}})
	require.NoError(t, err)
	require.Equal(t, "ok", r.Status)
	again, err := m.Rerun(ctx, o)
	require.NoError(t, err, "nothing has failed any more")
	assert.True(t, again.Replayed)
	assert.Equal(t, first.Op, again.Op)
}

// Tasks of the same name are told apart by whether they are declared: one more
// takes nobody's place, and one instead of another does.
func TestT124OneMoreIsNoRepetition(t *testing.T) {
	const list = `
def main(ctx):
    for who in sh("cat ../what", name="plan").out().split():
        effect(["mail-it", who], name="send").out()
`
	m := newMailer(t)
	m.what("ann bob")
	require.Equal(t, "ok", m.run(list).Status)
	again := func(what string) error {
		m.what(what)
		_, err := m.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "plan"})
		require.NoError(t, err)
		_, err = m.goOn(retcon.ResumeOptions{})
		return err
	}
	require.NoError(t, again("ann bob eve"))
	assert.Equal(t, "ann, bob, eve", m.sent())
	in := m.stands(again("ann bob ida"))
	require.Len(t, in.Tasks, 1)
	assert.EqualValues(t, 3, in.Tasks[0].Effects[0].ID, "ida stands where eve stood")
	assert.Equal(t, "ann, bob, eve", m.sent())
}
