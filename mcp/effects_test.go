package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/mcp"
)

// effectful does something outside in each of its steps but the first, and knows
// how to take it back, but for the last.
const effectful = `
def main(ctx):
    sh("echo 1 > plan.txt", name="plan").out()
    effect("touch ../note", name="note", undo=["rm", "../note"]).out()
    effect("touch ../mark", name="mark", undo=["rm", "../mark"]).out()
    effect("touch ../letter", name="letter").out()
`

// beside tells whether a file is there beside the workspace.
func (w *work) beside(name string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(w.dir), name))
	return err == nil
}

func TestListEffects(t *testing.T) {
	w := newWork(t, effectful)
	c := w.process("reader", nil, "--allow", "read")
	ids := func(doc map[string]any) (ids []float64) {
		for _, e := range doc["effects"].([]any) {
			ids = append(ids, e.(map[string]any)["id"].(float64))
		}
		return ids
	}
	first := c.ok("list_effects", args{"run": "r1", "limit": 2})
	assert.Equal(t, []float64{3, 2}, ids(first))
	assert.Equal(t, true, first["more"])
	rest := c.ok("list_effects", args{"run": "r1", "limit": 2, "before": 2})
	assert.Equal(t, []float64{1}, ids(rest))
	assert.Equal(t, false, rest["more"])
	all := c.ok("list_effects", nil)
	assert.Equal(t, []float64{3, 2, 1}, ids(all), "of all runs")
	assert.Equal(t, false, all["more"])

	letter, note := first["effects"].([]any)[0].(map[string]any), rest["effects"].([]any)[0].(map[string]any)
	assert.Equal(t, "r1", note["run"])
	assert.Equal(t, "succeeded", note["status"])
	assert.EqualValues(t, 2, note["frame"])
	assert.EqualValues(t, 1, note["attempt"])
	assert.NotEmpty(t, note["key"])
	assert.Equal(t, args{"command": []any{"rm", "../note"}}, note["compensation"])
	assert.Contains(t, note["how"], "rm ../note")
	assert.Empty(t, note["why"])
	assert.Nil(t, letter["compensation"])
	assert.Contains(t, letter["why"], "no compensation is known")
	assert.Equal(t, "NOT_FOUND", c.code("list_effects", args{"run": "r9"}))
}

// What a move would do outside stands in its plan; what is in the way refuses it.
func TestPlanTellsOfEffects(t *testing.T) {
	w := newWork(t, effectful)
	c := w.process("mover", nil)
	what := func(plan map[string]any) (what []string) {
		for _, e := range plan["effects"].([]any) {
			e := e.(map[string]any)
			what = append(what, fmt.Sprintf("%v %v %v", e["run"], e["id"], e["what"]))
		}
		return what
	}
	blocked := args{"run": "r1", "frame": 1}
	plan := c.ok("rewind_run", blocked)
	assert.Equal(t, []string{"r1 3 blocked", "r1 2 compensate", "r1 1 compensate"}, what(plan))
	assert.Equal(t, "refused like this: effects are in the way, and each says what would unblock it", plan["next"])
	assert.Equal(t, "TIME_TRAVEL_SIDE_EFFECT_BLOCKED", c.code("rewind_run", c.confirmed("rewind_run", blocked)))
	assert.True(t, w.beside("note") && w.beside("mark"), "nothing was undone")

	one := args{"run": "r1", "task": "mark", "only": true}
	without := args{"run": "r1", "task": "mark", "only": true, "no_compensate": true}
	assert.Equal(t, []string{"r1 2 compensate"}, what(c.ok("revert_attempt", one)))
	assert.Equal(t, []string{"r1 2 blocked"}, what(c.ok("revert_attempt", without)))
	assert.Equal(t, "TIME_TRAVEL_SIDE_EFFECT_BLOCKED", c.code("revert_attempt", c.confirmed("revert_attempt", without)))
	done := c.carry("revert_attempt", one)
	assert.Equal(t, []string{"r1 2 compensate"}, what(done))
	assert.False(t, w.beside("mark"))
	assert.True(t, w.beside("note"))
	assert.Equal(t, "compensated", c.ok("list_effects", nil)["effects"].([]any)[1].(map[string]any)["state"])
}

// Two agents, each with a server process of its own: while the move of one is
// held up by what undoes an effect, the other gets "locked", with who and since
// when, and changes nothing; it may look, and move when the first has.
func TestSecondAgentWaitsForAMove(t *testing.T) {
	w := newWork(t, "")
	begun, gate := filepath.Join(filepath.Dir(w.dir), "begun"), filepath.Join(filepath.Dir(w.dir), "go")
	t.Cleanup(func() { w.file("go", "") })
	w.runs(fmt.Sprintf(`
def main(ctx):
    sh("echo 1 > plan.txt", name="plan").out()
    effect("true", name="note", undo=["sh", "-c", "touch %s; while [ ! -e %s ]; do sleep 0.02; done"]).out()
    sh("echo 2 > build.txt", name="build").out()
`, begun, gate))
	first, second := w.process("first", nil), w.process("second", nil)
	before := time.Now().Add(-time.Second)
	theirs := second.confirmed("rewind_run", args{"run": "r1", "frame": 0})
	ours := first.confirmed("rewind_run", args{"run": "r1", "frame": 1})
	ended := make(chan answer, 1)
	go func() { ended <- first.call("rewind_run", ours) }()
	require.Eventually(t, func() bool { _, err := os.Stat(begun); return err == nil }, 30*time.Second, 10*time.Millisecond)

	for _, a := range []struct {
		tool string
		args args
	}{
		{"rewind_run", theirs},
		{"rewind_run", args{"run": "r1", "frame": 0}},
		{"time_travel", args{"run": "r1", "task": "plan"}},
		{"restore_checkpoint", args{"checkpoint": "r1@start"}},
	} {
		out := second.call(a.tool, a.args)
		assert.Equal(t, "LOCKED", out.err.Code, "%s: %s", a.tool, out.err.Message)
		assert.Regexp(t, `^first \(pid \d+\)$`, out.err.Holder, a.tool)
		if assert.NotNil(t, out.err.Since, a.tool) {
			assert.WithinRange(t, *out.err.Since, before, time.Now(), a.tool)
		}
		assert.Contains(t, out.err.Message, out.err.Holder+" since ", a.tool)
	}
	assert.Equal(t, "build.txt=2 plan.txt=1", w.files(), "nobody has touched the files yet")
	assert.EqualValues(t, 3, second.ok("get_run", args{"run": "r1"})["frame"], "it may look")
	assert.Equal(t, "compensating", second.ok("list_effects", nil)["effects"].([]any)[0].(map[string]any)["state"])

	w.file("go", "")
	out := <-ended
	require.Empty(t, out.err.Code, out.err.Message)
	assert.Equal(t, "plan.txt=1", w.files())
	assert.Equal(t, "STALE_PLAN", second.code("rewind_run", theirs), "made before the move")
	assert.Equal(t, true, second.carry("rewind_run", args{"run": "r1", "frame": 0})["done"])
	assert.Equal(t, "", w.files())
}

// No tool that moves something does so before its plan is named and confirmed;
// over stdio, as a process.
func TestNothingMovesUnconfirmed(t *testing.T) {
	w := newWork(t, threeSteps)
	w.runs(`
def main(ctx):
    sh("echo 4 > more.txt; [ -e ok ]", name="more").out()
`)
	c := w.process("hasty", nil)
	c.carry("restore_checkpoint", args{"checkpoint": "r1@start", "paths": []string{"test.txt"}}) // for undo to have something to do
	calls := map[string]args{
		"rewind_run":         {"run": "r1", "frame": 1},
		"time_travel":        {"run": "r1", "task": "build"},
		"revert_attempt":     {"run": "r1", "task": "plan"},
		"retry_task":         {"run": "r1", "task": "build"},
		"rerun_tasks":        {"run": "r1", "from": "build"},
		"restore_checkpoint": {"checkpoint": "r1@start"},
		"undo_operation":     {},
		"resume_run":         {"run": "r2"},
	}
	require.Len(t, calls, len(movers))
	state := func() []any {
		return []any{w.files(), c.ok("list_operations", nil), c.ok("get_timeline", args{"run": "r1", "all": true}), c.ok("get_timeline", args{"run": "r2", "all": true})}
	}
	was := state()
	for _, tool := range movers {
		plan := c.ok(tool, calls[tool])["plan_id"].(string)
		for _, test := range []struct {
			name string
			add  args
			code string
		}{
			{"neither plan nor confirmation", args{}, ""},
			{"a confirmation of nothing", args{"confirm": true}, ""},
			{"a plan, not confirmed", args{"plan_id": plan}, "CONFIRMATION_NEEDED"},
			{"a plan, refused", args{"plan_id": plan, "confirm": false}, "CONFIRMATION_NEEDED"},
			{"another plan", args{"plan_id": "0123456789abcdef", "confirm": true}, "STALE_PLAN"},
			{"no more than a look", args{"plan_id": plan, "confirm": true, "dry_run": true}, ""},
		} {
			a := args{}
			for _, part := range []args{calls[tool], test.add} {
				for name, v := range part {
					a[name] = v
				}
			}
			out := c.call(tool, a)
			assert.Equal(t, test.code, out.err.Code, "%s, %s: %s", tool, test.name, out.err.Message)
			if test.code == "" {
				assert.Equal(t, false, out.doc["done"], "%s, %s", tool, test.name)
			}
			require.Equal(t, was, state(), "%s, %s", tool, test.name)
		}
	}
	assert.Equal(t, "NOT_FOUND", w.serve(mcp.Options{}, "hasty").code("undo_operation", args{"redo": true, "confirm": true}), "nothing was undone, so nothing can be redone")
}

// runs runs a workflow in the workspace.
func (w *work) runs(workflow string) {
	w.t.Helper()
	s := w.open("user", false)
	_, err := s.RunWorkflow(ctx, runOptions(w.file("flow.star", workflow)))
	require.NoError(w.t, err)
	require.NoError(w.t, s.Close())
}
