package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/mcp"
)

// A plan, refusals without its number or without a confirmation, the move, and
// its undo; over stdio, as a process.
func TestMoveInTwoCalls(t *testing.T) {
	w := newWork(t, threeSteps)
	c := w.process("mover", nil)
	rewind := args{"run": "r1", "frame": 1}

	plan := c.ok("rewind_run", rewind)
	id := plan["plan_id"].(string)
	assert.Equal(t, false, plan["done"])
	assert.EqualValues(t, 2, plan["totals"].(map[string]any)["removed"])
	assert.EqualValues(t, 2, plan["history"].(map[string]any)["cut"])
	assert.Equal(t, fmt.Sprintf("nothing was changed: call rewind_run again with the same arguments, plan_id %q and confirm: true", id), plan["next"])

	unsure := c.call("rewind_run", args{"run": "r1", "frame": 1, "plan_id": id})
	assert.Equal(t, "CONFIRMATION_NEEDED", unsure.err.Code)
	hasty := c.ok("rewind_run", args{"run": "r1", "frame": 1, "confirm": true})
	assert.Equal(t, false, hasty["done"], "confirmed, but what?")
	dry := c.ok("rewind_run", args{"run": "r1", "frame": 1, "confirm": true, "plan_id": id, "dry_run": true})
	assert.Equal(t, false, dry["done"])
	require.Equal(t, whole, w.files())
	require.Empty(t, c.ok("list_operations", nil)["operations"])

	done := c.ok("rewind_run", args{"run": "r1", "frame": 1, "plan_id": id, "confirm": true})
	assert.Equal(t, true, done["done"])
	assert.Equal(t, "plan.txt=1", w.files())
	ops := c.ok("list_operations", nil)["operations"].([]any)
	require.Len(t, ops, 1)
	assert.Equal(t, "mover", ops[0].(map[string]any)["actor"])

	assert.Equal(t, true, c.carry("undo_operation", nil)["done"])
	assert.Equal(t, whole, w.files())
	assert.Equal(t, true, c.carry("undo_operation", args{"redo": true})["done"])
	assert.Equal(t, "plan.txt=1", w.files())
}

func TestEveryMove(t *testing.T) {
	for _, test := range []struct {
		tool string
		args args
		want string
	}{
		{"time_travel", args{"run": "r1", "task": "build"}, "plan.txt=1"},
		{"time_travel", args{"run": "r1", "task": "build", "after": true}, "build.txt=2 plan.txt=1"},
		{"revert_attempt", args{"run": "r1", "task": "build"}, "build.txt=2 plan.txt=1"},
		{"revert_attempt", args{"run": "r1", "task": "build", "only": true}, "plan.txt=1 test.txt=3"},
		{"retry_task", args{"run": "r1", "task": "build"}, "plan.txt=1"},
		{"retry_task", args{"run": "r1", "task": "build", "keep_files": true}, whole},
		{"rerun_tasks", args{"run": "r1", "tasks": []string{"test"}}, "build.txt=2 plan.txt=1"},
		{"rerun_tasks", args{"run": "r1", "from": "build"}, "plan.txt=1"},
		{"rewind_run", args{"run": "r1", "frame": 0}, ""},
		{"rewind_run", args{"run": "r1", "frame": 0, "ledger_only": true}, whole},
		{"restore_checkpoint", args{"checkpoint": "r1@start"}, ""},
		{"restore_checkpoint", args{"checkpoint": "r1@start", "paths": []string{"test.txt"}}, "build.txt=2 plan.txt=1"},
	} {
		t.Run(fmt.Sprint(test.tool, test.args), func(t *testing.T) {
			t.Parallel()
			w := newWork(t, threeSteps)
			c := w.serve(mcp.Options{}, "mover")
			done := c.carry(test.tool, test.args)
			assert.Equal(t, true, done["done"])
			assert.Equal(t, test.want, w.files())
			c.carry("undo_operation", args{"operation": done["op"]})
			assert.Equal(t, whole, w.files(), "undone")
		})
	}
}

func TestRequestIsCarriedOutOnce(t *testing.T) {
	w := newWork(t, threeSteps)
	c := w.serve(mcp.Options{}, "mover")
	a := c.confirmed("rewind_run", args{"run": "r1", "frame": 1, "request_id": "once"})
	first := c.ok("rewind_run", a)
	again := c.ok("rewind_run", a)
	assert.Equal(t, first["op"], again["op"])
	assert.Equal(t, true, again["replayed"])
	assert.Len(t, c.ok("list_operations", nil)["operations"], 1)
}

func TestStalePlan(t *testing.T) {
	w := newWork(t, threeSteps)
	c := w.serve(mcp.Options{}, "mover")
	rewind := args{"run": "r1", "frame": 1}
	for _, test := range []struct {
		name  string
		after func()
		files string
	}{
		{"a file was written", func() { w.write("mine", "x") }, whole + " mine=x"},
		{"the run was moved", func() { c.carry("rewind_run", args{"run": "r1", "frame": 2, "ledger_only": true}) }, whole + " mine=x"},
	} {
		a := c.confirmed("rewind_run", rewind)
		test.after()
		before := len(c.ok("list_operations", nil)["operations"].([]any))
		assert.Equal(t, "STALE_PLAN", c.code("rewind_run", a), test.name)
		files := strings.Fields(test.files)
		assert.ElementsMatch(t, files, strings.Fields(w.files()), test.name)
		assert.Len(t, c.ok("list_operations", nil)["operations"], before, test.name)
	}
	a := c.confirmed("rewind_run", rewind)
	a["frame"] = 0
	assert.Equal(t, "STALE_PLAN", c.code("rewind_run", a), "the plan of another move")
	assert.Equal(t, true, c.carry("rewind_run", rewind)["done"], "a new plan is carried out")
}

func TestConflictsAreShownAndRefused(t *testing.T) {
	w := newWork(t, threeSteps)
	c := w.serve(mcp.Options{}, "mover")
	w.write("test.txt", "edited by hand")
	plan := c.ok("rewind_run", args{"run": "r1", "frame": 1})
	require.Len(t, plan["conflicts"], 1)
	assert.Contains(t, plan["next"], "conflicts theirs or mine")
	assert.Equal(t, "CONFLICT", c.code("rewind_run", c.confirmed("rewind_run", args{"run": "r1", "frame": 1})))
	assert.Contains(t, w.files(), "test.txt=edited by hand")
	c.carry("rewind_run", args{"run": "r1", "frame": 1, "conflicts": "mine"})
	assert.Equal(t, "plan.txt=1 test.txt=edited by hand", w.files())
}

// The eleventh move of an agent in an hour is refused, and says when to come
// again. Another agent is another matter.
func TestEleventhMoveIsRefused(t *testing.T) {
	w := newWork(t, threeSteps)
	c := w.serve(mcp.Options{}, "busy")
	for i := range 5 {
		c.carry("rewind_run", args{"run": "r1", "frame": 1})
		c.carry("undo_operation", nil)
		require.Equal(t, whole, w.files(), i)
	}
	out := c.call("rewind_run", c.confirmed("rewind_run", args{"run": "r1", "frame": 1})) // the plan may be looked at
	assert.Equal(t, "RATE_LIMITED", out.err.Code)
	assert.Regexp(t, `busy has moved this workspace too often; again at \d\d:\d\d:\d\d`, out.err.Message)
	other := w.serve(mcp.Options{}, "idle")
	plan := other.confirmed("rewind_run", args{"run": "r1", "frame": 1})
	assert.Equal(t, "RATE_LIMITED", c.code("rewind_run", plan), "with somebody else's plan neither")
	assert.Equal(t, whole, w.files())
	assert.Equal(t, true, other.ok("rewind_run", plan)["done"])
}

// A client can't pass for the person at the terminal, who is not limited.
func TestActors(t *testing.T) {
	for name, want := range map[string]string{
		"claude-code": "claude-code", "user": "agent", " User\n": "agent", "": "agent", "a\x1b[31mb": "a[31mb",
		strings.Repeat("x", 100): strings.Repeat("x", 64),
	} {
		w := newWork(t, threeSteps)
		c := w.serve(mcp.Options{}, name)
		c.carry("rewind_run", args{"run": "r1", "frame": 1})
		op := c.ok("list_operations", nil)["operations"].([]any)[0].(map[string]any)
		assert.Equal(t, want, op["actor"], "%q", name)
	}
}

// untilGo runs until a file beside the workspace is there.
func (w *work) untilGo() (workflow string, begun func(), goOn func()) {
	at := filepath.Join(filepath.Dir(w.dir), "begun")
	gate := filepath.Join(filepath.Dir(w.dir), "go")
	workflow = fmt.Sprintf(`
def main(ctx):
    sh("true", name="first").out()
    signal("start").out()
    sh("touch %s; while [ ! -e %s ]; do sleep 0.02; done", name="long").out()
`, at, gate)
	begun = func() {
		w.t.Helper()
		require.Eventually(w.t, func() bool { _, err := os.Stat(at); return err == nil }, 30*time.Second, 10*time.Millisecond)
	}
	goOn = func() { w.file("go", "") }
	w.t.Cleanup(goOn)
	return workflow, begun, goOn
}

// waiting is a workspace in which r1 waits to be told to go on for long.
func waiting(t *testing.T) (w *work, begun, goOn func()) {
	t.Helper()
	w = newWork(t, "")
	flow, begun, goOn := w.untilGo()
	s := w.open("user", false)
	r, err := s.RunWorkflow(ctx, runOptions(w.file("flow.star", flow)))
	require.NoError(t, err)
	require.Equal(t, "waiting", r.Status, r.Message)
	require.NoError(t, s.Close())
	return w, begun, goOn
}
