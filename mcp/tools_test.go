package mcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/mcp"
)

var (
	readers = []string{"diff_runs", "get_run", "get_timeline", "list_effects", "list_operations", "list_runs", "list_snapshots"}
	movers  = []string{"rerun_tasks", "restore_checkpoint", "resume_run", "retry_task", "revert_attempt", "rewind_run", "time_travel", "undo_operation"}
	others  = []string{"send_signal"}
)

func (c *client) tools() map[string]*sdk.Tool {
	c.t.Helper()
	all := map[string]*sdk.Tool{}
	for tool, err := range c.session.Tools(ctx, nil) {
		require.NoError(c.t, err)
		all[tool.Name] = tool
	}
	return all
}

func names(all map[string]*sdk.Tool) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestTools(t *testing.T) {
	w := newWork(t, "")
	all := w.process("tester", nil).tools()
	want := slices.Concat(readers, movers, others)
	slices.Sort(want)
	require.Equal(t, want, names(all))
	for name, tool := range all {
		t.Run(name, func(t *testing.T) {
			assert.NotEmpty(t, tool.Description)
			assert.NotEmpty(t, tool.Title)
			require.NotNil(t, tool.Annotations.DestructiveHint)
			assert.Equal(t, slices.Contains(readers, name), tool.Annotations.ReadOnlyHint)
			assert.Equal(t, slices.Contains(movers, name), *tool.Annotations.DestructiveHint)
			assert.Equal(t, name == "resume_run", *tool.Annotations.OpenWorldHint)
			input := tool.InputSchema.(map[string]any)
			assert.Equal(t, "object", input["type"])
			assert.Equal(t, false, input["additionalProperties"])
			properties := input["properties"].(map[string]any)
			for property, schema := range properties {
				assert.NotEmpty(t, schema.(map[string]any)["description"], "%s is described", property)
			}
			for _, guard := range []string{"dry_run", "plan_id", "confirm"} {
				assert.Equal(t, slices.Contains(movers, name), properties[guard] != nil, guard)
			}
			output := tool.OutputSchema.(map[string]any)
			assert.Equal(t, "object", output["type"])
			assert.Len(t, output["anyOf"], 2, "an answer, or an error")
		})
	}
}

func TestReading(t *testing.T) {
	w := newWork(t, threeSteps)
	c := w.serve(mcp.Options{}, "reader")

	runs := c.ok("list_runs", nil)["runs"].([]any)
	require.Len(t, runs, 1)
	assert.Equal(t, "r1", runs[0].(map[string]any)["ref"])

	run := c.ok("get_run", args{"run": "last", "task": "build"})
	assert.Equal(t, "done", run["value"])
	assert.Len(t, run["tasks"], 3)
	assert.Len(t, run["task"].(map[string]any)["attempts"], 1)

	line := c.ok("get_timeline", args{"run": "r1", "limit": 2})
	require.Len(t, line["frames"], 2)
	assert.Equal(t, true, line["more"])
	newest := line["frames"].([]any)[0].(map[string]any)
	assert.EqualValues(t, 3, newest["frame"])
	assert.Equal(t, true, newest["restorable"])
	assert.EqualValues(t, args{"added": 1.0, "changed": 0.0, "removed": 0.0}, newest["files"])

	assert.NotEmpty(t, c.ok("list_snapshots", args{"run": "r1", "limit": 1})["checkpoints"])

	d := c.ok("diff_runs", args{"from": "r1@1", "to": "r1@3", "patch": true})
	assert.Len(t, d["changes"], 2)
	assert.EqualValues(t, 2, d["totals"].(map[string]any)["added"])
	assert.Contains(t, d["patch"], "+++ b/test.txt")
	w.write("mine", "x")
	assert.Len(t, c.ok("diff_runs", args{"from": "r1"})["changes"], 1, "the worktree as it is")

	assert.Empty(t, c.ok("list_operations", nil)["operations"])
}

func TestPatchIsCutAndSaysSo(t *testing.T) {
	w := newWork(t, `
def main(ctx):
    sh("seq 30000 > big", name="big").out()
`)
	d := w.serve(mcp.Options{}, "reader").ok("diff_runs", args{"from": "r1@0", "to": "r1", "patch": true})
	assert.Equal(t, true, d["cut"])
	assert.LessOrEqual(t, len(d["patch"].(string)), 64<<10)
}

func TestLongListsAreCutAndSaySo(t *testing.T) {
	w := newWork(t, `
def main(ctx):
    sh("for i in $(seq 250); do echo $i > $i; done", name="many").out()
`)
	c := w.serve(mcp.Options{}, "reader")
	for tool, a := range map[string]args{
		"diff_runs": {"from": "r1@0", "to": "r1"}, "rewind_run": {"run": "r1", "frame": 0},
	} {
		doc := c.ok(tool, a)
		assert.Len(t, doc["changes"], 200, tool)
		assert.EqualValues(t, 50, doc["more"], tool)
	}
}

// What leaves the machine holds no secrets that can be known as such.
func TestAnswersAreRedacted(t *testing.T) {
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	w := newWork(t, `
def main(ctx):
    return sh("echo `+secret+` | tee key", name="leak").out()
`)
	c := w.serve(mcp.Options{}, "reader")
	for tool, a := range map[string]args{
		"get_run":   {"run": "r1@leak"},
		"diff_runs": {"from": "r1@0", "to": "r1", "patch": true},
		"list_runs": nil,
	} {
		b, err := json.Marshal(c.ok(tool, a))
		require.NoError(t, err)
		assert.NotContains(t, string(b), secret, tool)
		if tool != "list_runs" {
			assert.Contains(t, string(b), "[redacted", tool)
		}
	}
	out := c.call("get_run", args{"run": secret})
	assert.Equal(t, "NOT_FOUND", out.err.Code)
	assert.NotContains(t, out.err.Message, secret)
}

// Arguments that make no sense are an error that says so, and lose nothing.
func TestBadArguments(t *testing.T) {
	w := newWork(t, threeSteps)
	c := w.serve(mcp.Options{}, "clumsy")
	plan := c.ok("rewind_run", args{"run": "r1", "frame": 1})["plan_id"]
	for _, test := range []struct {
		name, tool string
		args       args
		code       string
	}{
		{"an argument is missing", "rewind_run", args{"run": "r1"}, "USAGE"},
		{"there is no such argument", "rewind_run", args{"run": "r1", "frame": 1, "force": true}, "USAGE"},
		{"a frame is no number", "rewind_run", args{"run": "r1", "frame": "one", "plan_id": plan, "confirm": true}, "USAGE"},
		{"a confirmation is no word", "rewind_run", args{"run": "r1", "frame": 1, "plan_id": plan, "confirm": "yes"}, "USAGE"},
		{"there is no such side", "rewind_run", args{"run": "r1", "frame": 1, "conflicts": "ours", "plan_id": plan, "confirm": true}, "USAGE"},
		{"there is no such tier", "list_snapshots", args{"tier": "hand"}, "USAGE"},
		{"there is no such run", "rewind_run", args{"run": "r9", "frame": 1, "plan_id": plan, "confirm": true}, "NOT_FOUND"},
		{"there is no such frame", "rewind_run", args{"run": "r1", "frame": 99, "plan_id": plan, "confirm": true}, "NOT_FOUND"},
		{"there is no such task", "time_travel", args{"run": "r1", "task": "xyzzy", "plan_id": plan, "confirm": true}, "NOT_FOUND"},
		{"the run is empty", "get_run", args{"run": ""}, "USAGE"},
		{"there is no such checkpoint", "restore_checkpoint", args{"checkpoint": "c999", "plan_id": plan, "confirm": true}, "NOT_FOUND"},
		{"a path leads out", "restore_checkpoint", args{"checkpoint": "c1", "paths": []string{"../x"}, "plan_id": plan, "confirm": true}, "USAGE"},
		{"there is nothing to undo", "undo_operation", args{"plan_id": plan, "confirm": true}, "NOT_FOUND"},
		{"nobody waits", "send_signal", args{"run": "r1", "name": "approve"}, "NOT_FOUND"},
		{"a run has ended", "resume_run", args{"run": "r1"}, "REFUSED"},
		{"a plan of somebody's fancy", "rewind_run", args{"run": "r1", "frame": 1, "plan_id": "0123456789abcdef", "confirm": true}, "STALE_PLAN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := c.call(test.tool, test.args)
			assert.Equal(t, test.code, out.err.Code, out.err.Message)
			assert.NotEmpty(t, out.err.Message)
		})
	}
	_, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: "drop_everything"})
	require.Error(t, err)
	assert.Equal(t, whole, w.files())
	assert.Empty(t, c.ok("list_operations", nil)["operations"])
	assert.Len(t, c.ok("list_runs", nil)["runs"], 1)
}

// A fault of ours answers its call and no other, and the server goes on.
func TestFaultIsAnswered(t *testing.T) {
	w := newWork(t, threeSteps)
	first := true
	c := w.serve(mcp.Options{Open: func(ctx context.Context, actor string) (*retcon.Workspace, error) {
		if first {
			first = false
			panic("BUG: nothing is right")
		}
		return retcon.Open(ctx, w.options(actor, false))
	}}, "reader")
	assert.Equal(t, "BUG", c.code("list_runs", nil))
	assert.Len(t, c.ok("list_runs", nil)["runs"], 1)
}

func TestNoWorkspace(t *testing.T) {
	w := &work{t: t, dir: t.TempDir()}
	assert.Equal(t, "NOT_FOUND", w.serve(mcp.Options{}, "reader").code("list_runs", nil))
}

func TestCapabilities(t *testing.T) {
	w := newWork(t, threeSteps)
	c := w.process("reader", nil, "--allow", "read")
	assert.Equal(t, readers, names(c.tools()))
	out := c.call("rewind_run", args{"run": "r1", "frame": 1})
	assert.Equal(t, "CAPABILITY_MISSING", out.err.Code)
	assert.Equal(t, []string{"retcon mcp serve --allow read,travel"}, out.err.Hints)
	assert.Equal(t, "CAPABILITY_MISSING", c.code("send_signal", args{"run": "r1", "name": "x"}))
	c.ok("list_runs", nil)

	steal := args{"run": "r1", "frame": 1, "steal": true}
	assert.Equal(t, "CAPABILITY_MISSING", w.serve(mcp.Options{}, "thief").code("rewind_run", steal))
	forced := w.serve(mcp.Options{Allow: mcp.Capabilities()}, "thief")
	assert.NotEmpty(t, forced.ok("rewind_run", steal)["plan_id"])

	only := w.serve(mcp.Options{Allow: []mcp.Capability{mcp.Travel}}, "mover")
	assert.Equal(t, "CAPABILITY_MISSING", only.code("list_runs", nil))
	assert.NotContains(t, names(only.tools()), "list_runs")
}

func TestParseCapabilities(t *testing.T) {
	for _, test := range []struct {
		text string
		want []mcp.Capability
		err  string
	}{
		{"read", []mcp.Capability{mcp.Read}, ""},
		{"read, travel,force", []mcp.Capability{mcp.Read, mcp.Travel, mcp.Force}, ""},
		{"", nil, `there is no capability "", only read, fork, travel, signal, force`},
		{"read,write", nil, `there is no capability "write", only read, fork, travel, signal, force`},
	} {
		got, err := mcp.ParseCapabilities(test.text)
		if test.err != "" {
			require.EqualError(t, err, test.err, test.text)
			continue
		}
		require.NoError(t, err, test.text)
		assert.Equal(t, test.want, got)
	}
}
