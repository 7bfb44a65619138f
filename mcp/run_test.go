package mcp_test

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/mcp"
)

func runOptions(file string) retcon.RunOptions { return retcon.RunOptions{File: file} }

const gated = `
def main(ctx):
    answer = signal("approve").out()
    sh("echo yes > built", name="build").out()
    return answer
`

func TestSignalAndResume(t *testing.T) {
	w := newWork(t, gated)
	c := w.serve(mcp.Options{}, "conductor")
	assert.Equal(t, []any{"approve"}, c.ok("get_run", args{"run": "r1"})["waits"])

	sent := c.ok("send_signal", args{"run": "r1", "name": "approve", "value": args{"by": "me"}, "request_id": "k"})
	assert.Equal(t, false, sent["replayed"])
	sent = c.ok("send_signal", args{"run": "r1", "name": "approve", "value": args{"by": "me"}, "request_id": "k"})
	assert.Equal(t, true, sent["replayed"])

	seen := c.ok("resume_run", args{"run": "r1"})
	assert.Equal(t, false, seen["done"])
	assert.Nil(t, seen["result"])
	assert.NotEmpty(t, seen["tasks"])
	assert.Equal(t, "CONFIRMATION_NEEDED", c.code("resume_run", args{"run": "r1", "plan_id": seen["plan_id"]}))
	assert.Equal(t, "STALE_PLAN", c.code("resume_run", args{"run": "r1", "plan_id": "0123456789abcdef", "confirm": true}))
	require.Equal(t, "", w.files(), "nothing has run yet")

	done := c.ok("resume_run", args{"run": "r1", "plan_id": seen["plan_id"], "confirm": true})
	assert.Equal(t, true, done["done"])
	result := done["result"].(map[string]any)
	assert.Equal(t, "ok", result["status"])
	assert.Equal(t, args{"by": "me"}, result["value"])
	assert.Equal(t, "built=yes", w.files())
}

// Rewound, the run would do something else than the preview says.
func TestStalePreview(t *testing.T) {
	w := newWork(t, `
def main(ctx):
    sh("true", name="first").out()
    sh("[ -e ok ]", name="second").out()
`)
	c := w.serve(mcp.Options{}, "conductor")
	a := c.confirmed("resume_run", args{"run": "r1"})
	c.carry("rewind_run", args{"run": "r1", "frame": 0})
	assert.Equal(t, "STALE_PLAN", c.code("resume_run", a))
	w.write("ok", "")
	assert.Equal(t, "ok", c.carry("resume_run", args{"run": "r1"})["result"].(map[string]any)["status"])
}

func TestResumeWithEditedFile(t *testing.T) {
	w := newWork(t, `
def main(ctx):
    sh("exit 1", name="build").out()
`)
	c := w.serve(mcp.Options{}, "conductor")
	edited := w.file("edited.star", `
def main(ctx):
    sh("echo 1 > built", name="build").out()
`)
	done := c.carry("resume_run", args{"run": "r1", "file": edited})
	assert.Equal(t, "ok", done["result"].(map[string]any)["status"])
	assert.Equal(t, "built=1", w.files())
}

// Two agents on one workspace: while one lets a run go on, the other gets
// "locked", with who and since when; in another process, and in the same.
func TestSecondAgentIsLockedOut(t *testing.T) {
	for _, test := range []struct {
		name, moving, resuming string
		clients                func(w *work) (first, second *client)
	}{
		{"another process", `run r1 is going on here, first \(pid \d+\) since \d\d:\d\d`, `r1 is being run by pid \d+ since \d\d:\d\d`,
			func(w *work) (first, second *client) { return w.process("first", nil), w.process("second", nil) }},
		{"the same", `the workspace is locked by first, whose resume_run goes on since \d\d:\d\d:\d\d`, `locked by first, whose resume_run goes on since`,
			func(w *work) (first, second *client) {
				s := w.server(mcp.Options{})
				return w.connect(s, "first"), w.connect(s, "second")
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, begun, goOn := waiting(t)
			first, second := test.clients(w)
			first.ok("send_signal", args{"run": "r1", "name": "start"})
			plan := second.confirmed("rewind_run", args{"run": "r1", "frame": 1})
			resume := first.confirmed("resume_run", args{"run": "r1"})
			ended := make(chan answer, 1)
			go func() { ended <- first.call("resume_run", resume) }()
			begun()
			for tool, a := range map[string]args{"rewind_run": plan, "restore_checkpoint": {"checkpoint": "c1"}} {
				out := second.call(tool, a)
				assert.Equal(t, "LOCKED", out.err.Code, "%s: %s", tool, out.err.Message)
				assert.Regexp(t, test.moving, out.err.Message, tool)
			}
			out := second.call("resume_run", args{"run": "r1"})
			if out.err.Code == "" { // it may be shown what would run
				out = second.call("resume_run", args{"run": "r1", "plan_id": out.doc["plan_id"], "confirm": true})
			}
			assert.Equal(t, "LOCKED", out.err.Code, out.err.Message)
			assert.Regexp(t, test.resuming, out.err.Message)
			assert.Equal(t, true, second.ok("get_run", args{"run": "r1"})["live"], "it may look")
			goOn()
			out = <-ended
			require.Empty(t, out.err.Code, out.err.Message)
			assert.Equal(t, "ok", out.doc["result"].(map[string]any)["status"])
			assert.Equal(t, true, second.carry("rewind_run", args{"run": "r1", "frame": 1})["done"])
		})
	}
}

// An agent that works in a run can't move it, or where it works, while it goes
// on; not even with force.
func TestAgentCantMoveItsOwnRun(t *testing.T) {
	w, begun, goOn := waiting(t)
	first := w.process("conductor", nil)
	first.ok("send_signal", args{"run": "r1", "name": "start"})
	ended := make(chan answer, 1)
	a := first.confirmed("resume_run", args{"run": "r1"})
	go func() { ended <- first.call("resume_run", a) }()
	begun()
	inside := w.process("inside", []string{"RETCON_RUN=r1"}, "--allow", "read,travel,force")
	for tool, a := range map[string]args{
		"rewind_run":         {"run": "r1", "frame": 0, "steal": true},
		"time_travel":        {"run": "r1", "task": "first"},
		"restore_checkpoint": {"checkpoint": "c1", "steal": true},
	} {
		out := inside.call(tool, a)
		assert.Equal(t, "SELF_OPERATION_DENIED", out.err.Code, "%s: %s", tool, out.err.Message)
	}
	assert.Empty(t, inside.ok("list_operations", nil)["operations"])
	goOn()
	require.Empty(t, (<-ended).err.Code)
	assert.Equal(t, true, inside.carry("rewind_run", args{"run": "r1", "frame": 0})["done"], "it has ended: it may")
}

// A client that goes away, or a server that is told to stop, interrupts what
// runs, so that it can be resumed; the process waits for that.
func TestGoingAwayInterrupts(t *testing.T) {
	for name, leave := range map[string]func(*exec.Cmd, io.Closer) error{
		"the client hangs up":   func(_ *exec.Cmd, in io.Closer) error { return in.Close() },
		"the server is to stop": func(p *exec.Cmd, _ io.Closer) error { return p.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			w, begun, _ := waiting(t)
			server := exec.Command(os.Args[0], "mcp", "serve")
			server.Dir, server.Stderr, server.Env = w.dir, os.Stderr, append(os.Environ(), beProgram+"=1")
			in, err := server.StdinPipe()
			require.NoError(t, err)
			out, err := server.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, server.Start())
			c := w.client("leaver", &sdk.IOTransport{Reader: out, Writer: kept{in}})
			c.ok("send_signal", args{"run": "r1", "name": "start"})
			a := c.confirmed("resume_run", args{"run": "r1"})
			go c.session.CallTool(ctx, &sdk.CallToolParams{Name: "resume_run", Arguments: a})
			begun()
			require.NoError(t, leave(server, in))
			require.NoError(t, server.Wait())
			s := w.open("user", false)
			defer s.Close()
			runs, err := s.Runs(ctx, 1)
			require.NoError(t, err)
			assert.Equal(t, retcon.StatusInterrupted, runs[0].Status)
			assert.False(t, runs[0].Dead, "it was written down")
		})
	}
}

// kept is a stream that the client's transport does not close.
type kept struct{ io.Writer }

func (kept) Close() error { return nil }
