package retcon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// flow is a workspace with a workflow in it, and a file outside that counts the
// attempts.
type flow struct {
	*place
	count string
}

func newFlow(t *testing.T) *flow {
	t.Helper()
	dir := t.TempDir()
	f := &flow{count: filepath.Join(dir, "count")}
	f.place = openPlace(t, filepath.Join(dir, "work"), retcon.Options{Create: true,
		Env: []string{"PATH=" + os.Getenv("PATH"), "COUNT=" + f.count}})
	return f
}

// ran are the attempts since the last call.
func (f *flow) ran() string {
	b, _ := os.ReadFile(f.count)
	os.Remove(f.count)
	return strings.Join(strings.Fields(string(b)), " ")
}

func (f *flow) body(text string) string {
	f.t.Helper()
	path := filepath.Join(filepath.Dir(f.dir), "flow.star")
	require.NoError(f.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func (f *flow) run(text string) *retcon.RunResult {
	f.t.Helper()
	r, err := f.RunWorkflow(ctx, retcon.RunOptions{File: f.body(text)})
	require.NoError(f.t, err)
	return r
}

func (f *flow) resume(run string) *retcon.RunResult {
	f.t.Helper()
	r, err := f.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: run})
	require.NoError(f.t, err)
	return r
}

const threeSteps = `
def step(name, text):
    return sh("echo %s >> $COUNT; echo %s > %s.txt; echo %s >> log" % (name, text, name, name), name=name)

def main(ctx):
    step("plan", "1").out()
    step("build", "2").out()
    step("test", "3").out()
    return "done"
`

func (f *flow) files() string {
	var names []string
	entries, err := os.ReadDir(f.dir)
	require.NoError(f.t, err)
	for _, e := range entries {
		if e.Name()[0] != '.' {
			b, _ := os.ReadFile(f.path(e.Name()))
			names = append(names, e.Name()+"="+strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", "+"))
		}
	}
	return strings.Join(names, " ")
}

// root is that of the newest frame, as the ledger has it.
func (f *flow) root() (root string) {
	f.t.Helper()
	db, err := ledger.Open(filepath.Join(f.Folder(), "ledger.db"), ledger.Options{ReadOnly: true})
	require.NoError(f.t, err)
	defer db.Close()
	require.NoError(f.t, db.View(ctx, func(tx *ledger.Tx) error {
		b, err := tx.RunHead(1)
		root = b.HeadRoot.String()
		return err
	}))
	return root
}

func TestRewind(t *testing.T) {
	f := newFlow(t)
	r := f.run(threeSteps)
	require.Equal(t, "ok", r.Status)
	require.Equal(t, int64(3), r.Frame)
	whole := "build.txt=2 log=plan+build+test plan.txt=1 test.txt=3"
	require.Equal(t, whole, f.files())
	end := f.root()
	f.ran()
	f.write("mine", "by hand")

	dry, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1, DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, int64(2), dry.Plan.History.Cut)
	assert.Equal(t, whole+"", strings.ReplaceAll(f.files(), "mine=by hand ", ""))

	res, err := f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 1})
	require.NoError(t, err)
	assert.Equal(t, "log=plan mine=by hand plan.txt=1", f.files())
	assert.Equal(t, "mine", res.Plan.Kept[0].Path)
	runs, err := f.Runs(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, timeline.StatusRewound, runs[0].Status)

	undo, err := f.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "build.txt=2 log=plan+build+test mine=by hand plan.txt=1 test.txt=3", f.files())
	assert.Equal(t, end, f.root(), "undo of op %d", undo.Op)
	runs, err = f.Runs(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, "ok", runs[0].Status)

	_, err = f.Redo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "log=plan mine=by hand plan.txt=1", f.files())

	again := f.resume("r1")
	require.Equal(t, "ok", again.Status, again.Message)
	assert.Empty(t, f.ran(), "what was cut off is carried: nothing has changed")
	assert.Equal(t, "build.txt=2 log=plan+build+test mine=by hand plan.txt=1 test.txt=3", f.files())
}

func TestTimeTravel(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	f.ran()
	res, err := f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "build"})
	require.NoError(t, err)
	assert.Equal(t, "log=plan plan.txt=1", f.files(), "to where the attempt began")
	require.Len(t, res.Plan.History.Forced, 1)
	again := f.resume("r1")
	require.Equal(t, "ok", again.Status, again.Message)
	assert.Equal(t, "build", f.ran(), "it runs again whatever its digest; what comes after finds the same files")
	assert.Equal(t, "build.txt=2 log=plan+build+test plan.txt=1 test.txt=3", f.files())

	_, err = f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "build", Cascade: true})
	require.NoError(t, err)
	require.Equal(t, "ok", f.resume("r1").Status)
	assert.Equal(t, "build test", f.ran())

	_, err = f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "build", After: true})
	require.NoError(t, err)
	assert.Equal(t, "build.txt=2 log=plan+build plan.txt=1", f.files())

	var none *timeline.NoPointError
	_, err = f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "nothing"})
	require.ErrorAs(t, err, &none)
	_, err = f.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "plan", Attempt: 7})
	require.ErrorAs(t, err, &none)
	_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: 99})
	require.ErrorAs(t, err, &none)
}

func TestRetryTaskAndRerun(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	f.ran()
	_, err := f.RetryTask(ctx, retcon.TravelOptions{Run: "r1", Task: "build"})
	require.NoError(t, err)
	assert.Equal(t, "log=plan plan.txt=1", f.files())
	require.Equal(t, "ok", f.resume("r1").Status)
	assert.Equal(t, "build", f.ran())

	_, err = f.Rerun(ctx, retcon.TravelOptions{Run: "r1", From: "build"})
	require.NoError(t, err)
	require.Equal(t, "ok", f.resume("r1").Status)
	assert.Equal(t, "build test", f.ran())
	assert.Equal(t, "build.txt=2 log=plan+build+test plan.txt=1 test.txt=3", f.files())
}

func TestRevert(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	_, err := f.Revert(ctx, retcon.TravelOptions{Run: "r1", Task: "build"})
	require.NoError(t, err)
	assert.Equal(t, "build.txt=2 log=plan+build plan.txt=1", f.files())
	_, err = f.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "build.txt=2 log=plan+build+test plan.txt=1 test.txt=3", f.files())
	_, err = f.Revert(ctx, retcon.TravelOptions{Run: "r1", Task: "plan", Before: true})
	require.NoError(t, err)
	assert.Equal(t, "", f.files())
}

// turning is a run with a loop, an answer and an effect that can be undone.
const turning = `
def main(ctx):
    def step(i):
        sh("echo %d >> steps; mkdir -p d%d; echo %d > d%d/f; chmod 75%d d%d/f" % (i, i, i, i, i, i), name="step", key=str(i)).out()
        return True if i == 2 else None
    sh("echo 1 > plan.txt; ln -sf plan.txt link", name="plan").out()
    loop(step)
    if signal("approve", of="plan").out():
        sh("rm -r d0 link; echo 2 > build.txt; ln -s build.txt link", name="build").out()
    sh("echo 3 > test.txt; chmod 600 plan.txt", name="test").out()
`

// retcon runs a command line in a process of its own.
func (f *flow) retcon(args ...string) {
	f.t.Helper()
	out, err := asRetcon(f.t, f.dir, args...).CombinedOutput()
	require.NoError(f.t, err, "retcon %q: %s", args, out)
}

// record is all that the ledger holds of where a run stands: its frames with
// their roots, the rows of the newest, its loops among them, its answers, what is
// to run again, and its attempts.
func (f *flow) record(id int64) (said string) {
	f.t.Helper()
	f.look(func(tx *ledger.Tx) error {
		run, err := tx.Run(id)
		if err != nil {
			return err
		}
		said = fmt.Sprintf("r%d %s\n", id, run.Status)
		frames, err := tx.Frames(run.HeadBranch, ledger.FrameQuery{})
		if err != nil {
			return err
		}
		for _, fr := range frames {
			said += fmt.Sprintf("frame %d %v at c%d\n", fr.Seq, fr.Root, fr.Checkpoint)
		}
		head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest)
		if err != nil {
			return err
		}
		for r := range head.Set.Rows() {
			said += fmt.Sprintf("%s %v #%d iteration %d out %v\n", r.Key, r.State, r.Attempt, r.Iter, r.Out)
		}
		sent, err := tx.Signals(id)
		if err != nil {
			return err
		}
		for _, g := range sent {
			said += fmt.Sprintf("signal %s taken by %d\n", g.Name, g.Delivered)
		}
		events, err := tx.Events(run.HeadBranch, ledger.EventQuery{From: 0, Types: []string{timeline.EventForced, timeline.EventMoved}})
		if err != nil {
			return err
		}
		for _, e := range events {
			body, err := tx.EventBody(e)
			if err != nil {
				return err
			}
			said += fmt.Sprintf("%s %s\n", e.Type, body)
		}
		attempts, err := tx.Attempts(id)
		for _, a := range attempts {
			said += fmt.Sprintf("%s#%d %s c%d to c%d compensated=%v\n", a.Task, a.Number, a.Outcome, a.Before, a.After, a.Compensated)
		}
		return err
	})
	return said
}

// Undo of each verb brings all back, and redo makes it again, ten deep, each in a
// process of its own and after a collection that keeps nothing it need not keep.
func TestUndoTenDeep(t *testing.T) {
	f := newFlow(t)
	file := f.body(turning)
	require.Error(t, asRetcon(t, f.dir, "run", file).Run(), "it waits for an answer")
	f.retcon("signal", "r1", "approve", "--value", "true", "--resume")
	type state struct {
		files  map[string]string
		record string
	}
	at := func() state { return state{f.digest(), f.record(1)} }
	same := func(want, got state, what string) {
		t.Helper()
		require.Equal(t, want.files, got.files, what)
		require.Equal(t, want.record, got.record, what)
	}
	collect := func() {
		t.Helper()
		is := at()
		f.retcon("gc", "--full", "--keep-tools", "1ns")
		same(is, at(), "a collection changes nothing")
	}
	moves := [][]string{
		{"rewind", "r1", "6", "--exact"},
		{"timetravel", "r1", "-n", "build"},
		{"restore", "r1@start", "--exact"},
		{"revert", "r1", "-n", "plan", "--exact"},
		{"retry-task", "r1", "-n", "plan", "--no-resume", "--exact"},
		{"rerun", "r1", "--from", "plan", "--no-resume", "--exact"},
		{"timetravel", "r1", "-n", "plan", "--after", "--exact"},
		{"restore", "c1", "--exact"},
		{"revert", "r1", "-n", "plan"},
		{"rewind", "r1", "0", "--exact"},
	}
	var before []state
	f.write("mine/own", "by hand")
	require.NoError(t, os.Chmod(f.path("mine/own"), 0o640))
	for i, move := range moves {
		before = append(before, at())
		f.retcon(append(move, "--yes")...)
		now := at()
		require.False(t, reflect.DeepEqual(before[i], now), "%q did nothing", move)
		collect()
	}
	undone := make([]state, len(moves)) // what each undo began with
	for i := len(moves) - 1; i >= 0; i-- {
		undone[i] = at()
		f.retcon("undo", "--yes")
		same(before[i], at(), fmt.Sprintf("undo of %q", moves[i]))
		collect()
	}
	for i := range moves {
		f.retcon("redo", "--yes")
		same(undone[i], at(), fmt.Sprintf("redo of %q", moves[i]))
		collect()
	}
	for i := len(moves) - 1; i >= 0; i-- {
		f.retcon("undo", "--yes")
		same(before[i], at(), fmt.Sprintf("undo of the redo of %q", moves[i]))
	}
}

// A collection gives up the tail of a run that no undo or redo can bring back, and
// nothing else of it.
func TestCollectPurgesBranches(t *testing.T) {
	f := newFlow(t)
	file := f.body(threeSteps)
	f.retcon("run", file)
	branches := func() (said string) {
		f.look(func(tx *ledger.Tx) error {
			all, err := tx.Branches(1)
			for _, b := range all {
				said += fmt.Sprintf("%s to %d, ", b.State, b.HeadSeq)
			}
			return err
		})
		return said
	}
	gc := func() { t.Helper(); f.retcon("gc", "--keep-tools", "1ns") }
	f.retcon("rewind", "r1", "1", "--yes")
	gc()
	assert.Equal(t, "archived to 3, live to 1, ", branches(), "undo can reach it")
	f.retcon("undo", "--yes")
	gc()
	assert.Equal(t, "live to 3, archived to 1, ", branches(), "redo can reach it")
	f.retcon("resume", "r1", "--file", f.body(strings.Replace(threeSteps, `"done"`, `"well"`, 1)), "--yes")
	whole := f.digest()
	f.retcon("rewind", "r1", "2", "--yes") // nothing can be done again after it
	gc()
	assert.NotContains(t, branches(), "archived to 1,")
	f.retcon("undo", "--yes")
	assert.Equal(t, whole, f.digest())
	f.retcon("doctor", "--deep")
}
