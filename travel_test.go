package retcon_test

import (
	"os"
	"path/filepath"
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

// Undo and redo of moves along a run, ten deep, through processes and a gc.
func TestUndoTenDeep(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	type state struct{ files, root string }
	at := func() state { return state{f.files(), f.root()} }
	var before []state
	for i := range 10 {
		f.write("mine", strings.Repeat("x", i+1))
		before = append(before, at())
		var err error
		if i%2 == 0 {
			_, err = f.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: max(0, int64(2-i/3)), Exact: true})
		} else {
			_, err = f.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Exact: true})
		}
		require.NoError(t, err, i)
	}
	undone := map[int]state{} // what each undo began with
	for i := 9; i >= 0; i-- {
		undone[i] = at()
		_, err := f.Undo(ctx, retcon.MoveOptions{Conflicts: timeline.Theirs})
		require.NoError(t, err, i)
		require.Equal(t, before[i], at(), i)
	}
	for i := range 10 {
		_, err := f.Redo(ctx, retcon.MoveOptions{Conflicts: timeline.Theirs})
		require.NoError(t, err, i)
		require.Equal(t, undone[i], at(), i)
	}
}
