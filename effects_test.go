package retcon_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// tracker is a service outside: tickets are made by POST, and deleted. The same
// key makes a ticket once.
type tracker struct {
	*httptest.Server
	mu      sync.Mutex
	open    map[int]string // tickets, by number: their key
	next    int
	deleted []int // in the order of the requests
	keys    []string
	fail    string // answer deletions of tickets with this key's text by an error
	refuse  map[int]bool
}

func newTracker(t *testing.T) *tracker {
	t.Helper()
	tr := &tracker{open: map[int]string{}, refuse: map[int]bool{}}
	tr.Server = httptest.NewServer(http.HandlerFunc(tr.serve))
	t.Cleanup(tr.Close)
	return tr
}

func (tr *tracker) serve(w http.ResponseWriter, r *http.Request) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	key := r.Header.Get("Idempotency-Key")
	switch r.Method {
	case http.MethodPost:
		tr.keys = append(tr.keys, key)
		n := 0
		for id, k := range tr.open {
			if k == key && key != "" {
				n = id
			}
		}
		if n == 0 {
			tr.next++
			n = tr.next
			tr.open[n] = key
		}
		io.WriteString(w, `{"id": `+strconv.Itoa(n)+`}`)
	case http.MethodDelete:
		n, _ := strconv.Atoi(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
		if tr.refuse[n] {
			http.Error(w, "the tracker is down", http.StatusServiceUnavailable)
			return
		}
		tr.deleted = append(tr.deleted, n)
		if _, ok := tr.open[n]; !ok {
			http.NotFound(w, r)
			return
		}
		delete(tr.open, n)
	}
}

// tickets are those that are open.
func (tr *tracker) tickets() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.open)
}

// ticketed is a workflow whose middle task makes a ticket.
func (tr *tracker) ticketed() string {
	return `
def main(ctx):
    sh("echo 1 > plan.txt", name="plan").out()
    http("POST", "` + tr.URL + `/tickets", body={"title": "it"}, json=True, name="ticket",
         undo={"method": "DELETE", "url": "` + tr.URL + `/tickets/{{.id}}"}).out()
    sh("echo 2 > build.txt", name="build").out()
    return "done"
`
}

// T109: an effect is recorded before it is made, and its outcome closes it.
func TestT109EffectIsRecorded(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.ticketed()).Status)
	all, err := f.Effects(ctx, retcon.EffectsOptions{Run: "r1"})
	require.NoError(t, err)
	require.Len(t, all, 1)
	e := all[0]
	assert.Equal(t, "succeeded", e.Status)
	assert.Equal(t, "1", e.Fields["id"])
	assert.Equal(t, tr.keys[0], e.Key, "the key is sent")
	assert.Equal(t, "DELETE "+tr.URL+"/tickets/1", e.How)
}

func TestTimeTravelUndoesEffect(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.ticketed()).Status)
	require.Equal(t, 1, tr.tickets())

	dry, err := f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "ticket", DryRun: true})
	require.NoError(t, err)
	require.Len(t, dry.Plan.Effects, 1)
	assert.Equal(t, "compensate", dry.Plan.Effects[0].What)
	assert.Equal(t, 1, tr.tickets(), "a dry run calls nothing")

	_, err = f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "ticket"})
	require.NoError(t, err)
	assert.Equal(t, 0, tr.tickets())
	assert.Equal(t, "plan.txt=1", f.files())
	e, err := f.Effect(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, "compensated", e.State)

	require.Equal(t, "ok", f.resume("r1").Status)
	assert.Equal(t, 1, tr.tickets(), "it is made again, not carried")
	require.Len(t, tr.keys, 2)
	assert.NotEqual(t, tr.keys[0], tr.keys[1], "under a key of its own")
}

// step is a task that makes a ticket, with an undo of its own.
func (tr *tracker) step(name, undo string) string {
	if undo != "" {
		undo = ", undo=" + undo
	}
	return `    http("POST", "` + tr.URL + `/tickets", body={"title": "` + name + `"}, name="` + name + `", json=True` + undo + `).out()
`
}

// deletes undoes a ticket.
func (tr *tracker) deletes() string {
	return `{"method": "DELETE", "url": "` + tr.URL + `/tickets/{{.output.id}}"}`
}

// two is a workflow that makes two tickets.
func (tr *tracker) two(first, second string) string {
	return "def main(ctx):\n    sh('echo 1 > plan.txt', name='plan').out()\n" + tr.step("one", first) + tr.step("two", second) +
		"    sh('echo 2 > build.txt', name='build').out()\n"
}

func (f *flow) needsAttention() []string {
	runs, err := f.Runs(ctx, 1)
	require.NoError(f.t, err)
	return runs[0].NeedsAttention
}

func (f *flow) states() string {
	all, err := f.Effects(ctx, retcon.EffectsOptions{Run: "r1"})
	require.NoError(f.t, err)
	var words []string
	for _, e := range all {
		words = append(words, strings.TrimSpace(e.Status+" "+e.State))
	}
	return strings.Join(words, ", ")
}

func TestT111EffectsAreUndoneNewestFirst(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), tr.deletes())).Status)
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err)
	assert.Equal(t, []int{2, 1}, tr.deleted)
	assert.Equal(t, "succeeded compensated, succeeded compensated", f.states())
}

// Only what was done after the frame is undone.
func TestRewindLeavesEarlierEffects(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), tr.deletes())).Status)
	_, err := f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "two"})
	require.NoError(t, err)
	assert.Equal(t, []int{2}, tr.deleted)
	_, err = f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "one"})
	require.NoError(t, err)
	assert.Equal(t, []int{2, 1}, tr.deleted)
}

func TestT112BlockersAreFoundFirst(t *testing.T) {
	for name, body := range map[string]func(*tracker) string{
		"the older is in the way": func(tr *tracker) string { return tr.two("", tr.deletes()) },
		"the newer is in the way": func(tr *tracker) string { return tr.two(tr.deletes(), "") },
	} {
		t.Run(name, func(t *testing.T) {
			f, tr := newFlow(t), newTracker(t)
			require.Equal(t, "ok", f.run(body(tr)).Status)
			before, root := f.files(), f.root()
			_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
			var blocked *timeline.BlockedError
			require.ErrorAs(t, err, &blocked)
			require.Len(t, blocked.Effects, 1)
			assert.Equal(t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
			assert.Contains(t, err.Error(), "no compensation is known")
			assert.Empty(t, tr.deleted)
			assert.Equal(t, before, f.files())
			assert.Equal(t, root, f.root())
			ops, err := f.Ops(ctx, 0, 10)
			require.NoError(t, err)
			assert.Empty(t, ops, "nothing is journaled")
			assert.Equal(t, 1, f.audited("op.rejected"))
			assert.Empty(t, f.needsAttention())
		})
	}
}

// audited counts the rows of the audit about an action.
func (f *flow) audited(action string) (n int) {
	f.t.Helper()
	db, err := ledger.Open(filepath.Join(f.Folder(), "ledger.db"), ledger.Options{ReadOnly: true})
	require.NoError(f.t, err)
	defer db.Close()
	require.NoError(f.t, db.View(ctx, func(tx *ledger.Tx) error {
		rows, err := tx.AuditRows(ledger.AuditQuery{})
		for _, r := range rows {
			if r.Action == action {
				n++
			}
		}
		return err
	}))
	return n
}

func TestT113FailureStopsAndFlags(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), tr.deletes())).Status)
	before, root := f.files(), f.root()
	tr.refuse[1] = true
	o := retcon.TravelOptions{Run: "r1", Frame: 1, RequestID: "k"}
	_, err := f.Rewind(ctx, o)
	var stopped *timeline.CompensationError
	require.ErrorAs(t, err, &stopped)
	assert.Equal(t, 1, stopped.Undone)
	assert.Contains(t, err.Error(), "effect 1")
	assert.Equal(t, retcon.CodeNeedsAttention, retcon.Explain(err).Code)
	assert.Equal(t, []int{2}, tr.deleted)
	assert.Equal(t, before, f.files())
	assert.Equal(t, root, f.root())
	assert.Equal(t, "succeeded compensated, succeeded failed", f.states())
	require.Len(t, f.needsAttention(), 1)
	assert.Contains(t, f.needsAttention()[0], "effect 1")
	ops, err := f.Ops(ctx, 0, 10)
	require.NoError(t, err)
	require.Len(t, ops, 1)
	assert.Equal(t, "failed", ops[0].Result)

	_, err = f.Rewind(ctx, o)
	var again *timeline.RequestFailedError
	require.ErrorAs(t, err, &again, "a request that has failed is no success when it is repeated")
}

func TestT114RetryGoesOnWhereItStopped(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), tr.deletes())).Status)
	tr.refuse[1] = true
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.Error(t, err)
	_, err = f.RetryEffect(ctx, 1)
	var stopped *timeline.CompensationError
	require.ErrorAs(t, err, &stopped)
	tr.refuse = nil
	res, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err)
	require.Len(t, res.Plan.Effects, 1, "what was undone is not planned again")
	assert.Equal(t, []int{2, 1}, tr.deleted, "nor called again")
	assert.Equal(t, "plan.txt=1", f.files())
	acked, err := f.Ack(ctx, "r1")
	require.NoError(t, err)
	assert.Len(t, acked.Reasons, 1)
	assert.Empty(t, f.needsAttention())
}

func TestRetryEffect(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), "")).Status)
	e, err := f.RetryEffect(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, "compensated", e.State)
	assert.Equal(t, []int{1}, tr.deleted)
	_, err = f.RetryEffect(ctx, 1)
	assert.Equal(t, retcon.CodeRefused, retcon.Explain(err).Code, "once is enough")
	_, err = f.RetryEffect(ctx, 2)
	assert.Equal(t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
	_, err = f.RetryEffect(ctx, 9)
	assert.Equal(t, retcon.CodeNotFound, retcon.Explain(err).Code)
}

func TestT115ReportSaysWhatIsSo(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two("", tr.deletes())).Status)
	dry, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, DryRun: true})
	require.NoError(t, err, "a dry run shows what is in the way")
	var what []string
	for _, s := range dry.Plan.Effects {
		what = append(what, s.What)
	}
	assert.Equal(t, []string{"compensate", "blocked"}, what)
	assert.NotEmpty(t, dry.Plan.Effects[1].Unblock)
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.Error(t, err)
	assert.Equal(t, "succeeded, succeeded", f.states(), "what did not run is not said to be undone")
}

func TestT116KeyOfACall(t *testing.T) {
	f := newFlow(t)
	seen := filepath.Join(filepath.Dir(f.dir), "keys")
	body := func(more string) string {
		return `
def main(ctx):
    effect("echo $RETCON_EFFECT_KEY >> ` + seen + `; test -e ` + seen + `2 || { touch ` + seen + `2; exit 3; }` + more + `", name="send", retry=2,
           undo="true").out()
`
	}
	keys := func() []string {
		b, _ := os.ReadFile(seen)
		return strings.Fields(string(b))
	}
	require.Equal(t, "ok", f.run(body("")).Status)
	require.Len(t, keys(), 2)
	assert.Equal(t, keys()[0], keys()[1], "a retry is the same call")
	assert.Equal(t, "succeeded", f.states(), "and the same effect")
	_, err := f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "send"})
	require.NoError(t, err)
	require.Equal(t, "ok", f.resume("r1").Status)
	require.Len(t, keys(), 3)
	assert.True(t, strings.HasSuffix(keys()[0], "#0") && strings.HasSuffix(keys()[2], "#1"), keys())
	require.Equal(t, "ok", f.run(body("; echo more")).Status)
	require.Len(t, keys(), 4)
	assert.NotEqual(t, keys()[0], keys()[3], "another call has another key")
}

// T117: what a command does outside is recognised, and undone with what its
// output tells.
func TestT117CommandsAreRecognised(t *testing.T) {
	f := newFlow(t)
	bin := filepath.Join(filepath.Dir(f.dir), "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	log := filepath.Join(bin, "log")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "gh"), []byte("#!/bin/sh\necho \"$*\" >> "+log+
		"\ncase \"$2\" in create) echo https://github.com/o/r/issues/7;; esac\n"), 0o755))
	f.place = openPlace(t, f.dir, retcon.Options{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}})
	require.Equal(t, "ok", f.run(`
def main(ctx):
    sh("echo 1 > plan.txt", name="plan").out()
    sh("gh issue create --title it --body x && echo 2 > build.txt", name="build").out()
    sh("gh issue view 7", name="look").out()
`).Status)
	all, err := f.Effects(ctx, retcon.EffectsOptions{Run: "r1"})
	require.NoError(t, err)
	require.Len(t, all, 1, "looking is no effect")
	assert.Equal(t, "gh issue create", all[0].Rule)
	assert.Equal(t, "succeeded", all[0].Status)
	_, err = f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "build"})
	require.NoError(t, err)
	b, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(b), "issue close")
	assert.Equal(t, "plan.txt=1", f.files())
}

func TestT118EditedWorkflowKeepsTheCompensation(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), tr.deletes())).Status)
	edited := f.body(strings.Replace(tr.two("", ""), "echo 2 >", "echo 3 >", 1))
	r, err := f.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: "r1", File: edited})
	require.NoError(t, err)
	require.Equal(t, "ok", r.Status)
	require.Equal(t, 2, tr.tickets(), "the tickets are kept")
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err)
	assert.Equal(t, 0, tr.tickets())
}

func TestT119ForceFlagsUntilAcknowledged(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two("", tr.deletes())).Status)
	res, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, Force: true})
	require.NoError(t, err)
	assert.Equal(t, "compensate", res.Plan.Effects[0].What, "what can be undone is")
	assert.Equal(t, "crossed", res.Plan.Effects[1].What)
	assert.Equal(t, []int{2}, tr.deleted)
	assert.Equal(t, "succeeded compensated, succeeded crossed", f.states())
	events, err := f.Events(ctx, retcon.EventsOptions{Run: "r1"})
	require.NoError(t, err)
	found := false
	for _, e := range events {
		found = found || e.Type == timeline.EventCrossed
	}
	assert.True(t, found, "the log says so")
	require.Len(t, f.needsAttention(), 1)
	require.Equal(t, "ok", f.resume("r1").Status)
	require.Len(t, f.needsAttention(), 1, "going on does not take the flag off")
	shown, err := f.Show(ctx, retcon.ShowOptions{At: "r1"})
	require.NoError(t, err)
	assert.Len(t, shown.Run.NeedsAttention, 1)

	// T122: what was crossed is not in the way again.
	assert.Equal(t, 2, tr.tickets())
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err, "T122")
	assert.Equal(t, []int{2, 3}, tr.deleted)

	acked, err := f.Ack(ctx, "r1")
	require.NoError(t, err)
	assert.Len(t, acked.Reasons, 1)
	assert.Empty(t, f.needsAttention())
	acked, err = f.Ack(ctx, "r1")
	require.NoError(t, err)
	assert.Empty(t, acked.Reasons)
}

func TestT120StealDoesNotCross(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two("", "")).Status)
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, Steal: true})
	assert.Equal(t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
}

func TestT121NoCompensateBlocks(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), tr.deletes())).Status)
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, NoCompensate: true})
	var blocked *timeline.BlockedError
	require.ErrorAs(t, err, &blocked)
	assert.Len(t, blocked.Effects, 2)
	assert.Equal(t, 2, tr.tickets())
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, NoCompensate: true, Force: true})
	require.NoError(t, err)
	assert.Equal(t, 2, tr.tickets())
	assert.Equal(t, "succeeded crossed, succeeded crossed", f.states())
}

func TestT123LateCompletion(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	e, err := f.RecordEffect(ctx, retcon.EffectRecord{Run: "r1", Tool: "mailer", Call: "welcome",
		Compensation: retcon.Compensation{Command: []string{"true"}}})
	require.NoError(t, err)
	assert.Equal(t, "intended", e.Status)
	same, err := f.RecordEffect(ctx, retcon.EffectRecord{Run: "r1", Tool: "mailer", Call: "welcome",
		Compensation: retcon.Compensation{Command: []string{"true"}}})
	require.NoError(t, err)
	assert.Equal(t, e.ID, same.ID, "the same call")
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err, "what was intended counts as happened, and is undone")
	assert.Equal(t, "unknown compensated", f.states())
	assert.Empty(t, f.needsAttention())
	e, err = f.SettleEffect(ctx, e.ID, retcon.EffectOutcome{Status: "succeeded"})
	require.NoError(t, err)
	assert.True(t, e.Late)
	require.Len(t, f.needsAttention(), 1)
	assert.Contains(t, f.needsAttention()[0], "after it was compensated")
	next, err := f.RecordEffect(ctx, retcon.EffectRecord{Run: "r1", Tool: "mailer", Call: "welcome"})
	require.NoError(t, err)
	assert.NotEqual(t, e.Key, next.Key, "after it was undone, the call is another one")
}

// T107: a task that is tried again goes behind what it did outside like any
// discarding of it.
func TestT107RetryIsGuarded(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), "")).Status)
	_, err := f.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "two"})
	assert.Equal(t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
	_, err = f.Rerun(ctx, retcon.TravelOptions{Run: "r1", Tasks: []string{"two"}})
	assert.Equal(t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
	_, err = f.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "one"})
	require.NoError(t, err)
	assert.Equal(t, []int{1}, tr.deleted, "only its own")
	require.Equal(t, "ok", f.resume("r1").Status)
	assert.Equal(t, 2, tr.tickets())
}

// What is restored or undone without a run's record lists what stays outside.
func TestT125PlansListEffects(t *testing.T) {
	f, tr := newFlow(t), newTracker(t)
	require.Equal(t, "ok", f.run(tr.two(tr.deletes(), "")).Status)
	res, err := f.Restore(ctx, retcon.RestoreOptions{Ref: "r1@plan.after", DryRun: true})
	require.NoError(t, err)
	require.Len(t, res.Plan.Effects, 2)
	assert.Equal(t, "listed", res.Plan.Effects[0].What)

	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, Force: true})
	require.NoError(t, err)
	undo, err := f.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	require.Len(t, undo.Plan.Effects, 2)
	assert.Contains(t, undo.Plan.Effects[0].Why, "stays in the world")
	assert.Contains(t, undo.Plan.Effects[1].Why, "has undone it")
	assert.Equal(t, "build.txt=2 plan.txt=1", f.files())
}

// T110: of a call that was cut short nobody knows what came of it, and it counts
// as happened.
func TestT110CutShortIsUnknown(t *testing.T) {
	f := newFlow(t)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := f.RunWorkflow(ctx, retcon.RunOptions{File: f.body(`
def main(ctx):
    sh("echo 1 > plan.txt", name="plan").out()
    effect("echo ready; sleep 60", name="send", undo="mailer recall {{.out}}").out()
`), On: func(p retcon.Progress) {
		if p.Line == "ready" {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, "interrupted", r.Status)
	assert.Equal(t, "unknown", f.states())
	_, err = f.Rewind(t.Context(), retcon.TravelOptions{Run: "r1", Frame: 1})
	require.Equal(t, retcon.CodeEffectBlocked, retcon.Explain(err).Code)
	assert.Contains(t, err.Error(), "nor whether it happened")
	_, err = f.SettleEffect(t.Context(), 1, retcon.EffectOutcome{Status: "failed"})
	require.NoError(t, err)
	_, err = f.Rewind(t.Context(), retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err, "somebody has looked: it did not happen")
}

// A command that fails says that it did nothing.
func TestFailedEffectIsNotInTheWay(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "failed", f.run(`
def main(ctx):
    sh("echo 1 > plan.txt", name="plan").out()
    effect("exit 4", name="send").out()
`).Status)
	assert.Equal(t, "failed", f.states())
	_, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 0})
	require.NoError(t, err)
}

// What is secret is not stored, and what is not stored is not used.
func TestEffectsAreRedacted(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(`
def main(ctx):
    effect("echo '{\"id\": 4, \"token\": \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"}'", name="send", json=True,
           undo=["true", "{{.output.id}}", "{{.output.token}}"]).out()
`).Status)
	e, err := f.Effect(ctx, 1)
	require.NoError(t, err)
	assert.NotContains(t, e.Output+e.Fields["token"]+e.Fields["out"], "ghp_0123")
	assert.Equal(t, "4", e.Fields["id"])
	assert.Contains(t, e.Why, "nobody knows its output.token")
}

// A value is never part of a command, however the line quotes it.
func TestUndoTakesValuesAsTheyAre(t *testing.T) {
	f := newFlow(t)
	const nasty = `a  b'"; $(touch pwned) *`
	require.Equal(t, "ok", f.run(`
def main(ctx):
    effect(["printf", "%s", "`+strings.ReplaceAll(nasty, `"`, `\"`)+`"], name="send",
           undo="cd ..; printf '[%s]' {{.out}} \"{{.out}}\" '{{.out}}' \"x{{.out}}x\" 'y{{.out}}y' > got")
`).Status)
	_, err := f.RetryEffect(ctx, 1)
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(filepath.Dir(f.dir), "got"))
	require.NoError(t, err)
	assert.Equal(t, "["+nasty+"]["+nasty+"]["+nasty+"][x"+nasty+"x][y"+nasty+"y]", string(b))
	assert.NoFileExists(t, filepath.Join(filepath.Dir(f.dir), "pwned"))
}
