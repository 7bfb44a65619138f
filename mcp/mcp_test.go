package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/cli"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
	"github.com/retcon-dev/retcon/mcp"
)

var ctx = context.Background()

// beProgram makes the test binary be retcon.
const beProgram = "MCP_TEST_IS_RETCON"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		os.Exit(cli.Main(append([]string{"retcon"}, os.Args[1:]...), os.Stdin, os.Stdout, os.Stderr, cli.System()))
	}
	os.Exit(m.Run())
}

// work is a workspace of a test's.
type work struct {
	t   *testing.T
	dir string
}

// threeSteps writes a file in each of its steps.
const threeSteps = `
def step(name, text):
    return sh("echo %s > %s.txt" % (text, name), name=name)

def main(ctx):
    step("plan", "1").out()
    step("build", "2").out()
    step("test", "3").out()
    return "done"
`

const whole = "build.txt=2 plan.txt=1 test.txt=3"

// newWork makes a workspace in which a workflow has run as r1, if there is one.
func newWork(t *testing.T, workflow string) *work {
	t.Helper()
	w := &work{t: t, dir: filepath.Join(t.TempDir(), "work")}
	require.NoError(t, os.Mkdir(w.dir, 0o755))
	s := w.open("user", true)
	t.Cleanup(func() { ledgertest.Check(t, filepath.Join(w.dir, ".retcon", "ledger.db")) })
	if workflow != "" {
		_, err := s.RunWorkflow(ctx, retcon.RunOptions{File: w.file("flow.star", workflow)})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	return w
}

func (w *work) open(actor string, create bool) *retcon.Workspace {
	w.t.Helper()
	s, err := retcon.Open(ctx, w.options(actor, create))
	require.NoError(w.t, err)
	return s
}

func (w *work) options(actor string, create bool) retcon.Options {
	return retcon.Options{Dir: w.dir, Create: create, Now: time.Now, Actor: actor, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// file writes a file beside the workspace.
func (w *work) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.dir), name)
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func (w *work) write(name, text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644))
}

func (w *work) files() string {
	w.t.Helper()
	entries, err := os.ReadDir(w.dir)
	require.NoError(w.t, err)
	var all []string
	for _, e := range entries {
		if e.Name()[0] != '.' {
			b, err := os.ReadFile(filepath.Join(w.dir, e.Name()))
			require.NoError(w.t, err)
			all = append(all, e.Name()+"="+strings.TrimSpace(string(b)))
		}
	}
	return strings.Join(all, " ")
}

// server is one in this process.
func (w *work) server(o mcp.Options) *mcp.Server {
	o.Now = time.Now
	if o.Open == nil {
		o.Open = func(ctx context.Context, actor string) (*retcon.Workspace, error) {
			return retcon.Open(ctx, w.options(actor, false))
		}
	}
	return mcp.New(o)
}

// serve connects a client to a server of this process.
func (w *work) serve(o mcp.Options, name string) *client { return w.connect(w.server(o), name) }

func (w *work) connect(s *mcp.Server, name string) *client {
	w.t.Helper()
	in, toServer, err := os.Pipe()
	require.NoError(w.t, err)
	fromServer, out, err := os.Pipe()
	require.NoError(w.t, err)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(ctx, in, out)
		out.Close()
	}()
	c := w.client(name, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
	w.t.Cleanup(func() {
		require.NoError(w.t, c.session.Close())
		require.NoError(w.t, <-served)
	})
	return c
}

// process connects a client to retcon mcp serve, as a process.
func (w *work) process(name string, env []string, flags ...string) *client {
	w.t.Helper()
	command := exec.Command(os.Args[0], append([]string{"mcp", "serve"}, flags...)...)
	command.Dir, command.Stderr = w.dir, os.Stderr
	command.Env = append(append(os.Environ(), beProgram+"=1"), env...)
	c := w.client(name, &sdk.CommandTransport{Command: command})
	w.t.Cleanup(func() { require.NoError(w.t, c.session.Close()) })
	return c
}

// client is a client of the tools.
type client struct {
	t       *testing.T
	session *sdk.ClientSession
}

func (w *work) client(name string, over sdk.Transport) *client {
	w.t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, nil).Connect(ctx, over, nil)
	require.NoError(w.t, err)
	return &client{w.t, session}
}

// args are the arguments of a call.
type args = map[string]any

// answer is what a tool answers: a document or an error.
type answer struct {
	doc map[string]any
	err retcon.Explained
}

func (c *client) call(tool string, a args) (out answer) {
	c.t.Helper()
	r, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: a})
	require.NoError(c.t, err)
	b, err := json.Marshal(r.StructuredContent)
	require.NoError(c.t, err)
	require.Len(c.t, r.Content, 1)
	require.JSONEq(c.t, string(b), r.Content[0].(*sdk.TextContent).Text, "for clients that know no structured content")
	if r.IsError {
		require.NoError(c.t, json.Unmarshal(b, &out.err))
		require.NotEmpty(c.t, out.err.Code)
		return out
	}
	require.NoError(c.t, json.Unmarshal(b, &out.doc))
	return out
}

// ok is the document of a call that must not fail.
func (c *client) ok(tool string, a args) map[string]any {
	c.t.Helper()
	out := c.call(tool, a)
	require.Empty(c.t, out.err.Code, "%s %v: %s", tool, a, out.err.Message)
	return out.doc
}

// code is that of the error of a call that must fail.
func (c *client) code(tool string, a args) string {
	c.t.Helper()
	return c.call(tool, a).err.Code
}

// carry asks for a plan and has it carried out.
func (c *client) carry(tool string, a args) map[string]any {
	c.t.Helper()
	out := c.call(tool, c.confirmed(tool, a))
	require.Empty(c.t, out.err.Code, "%s %v: %s", tool, a, out.err.Message)
	return out.doc
}

// confirmed are the arguments that carry out the plan that is shown for some.
func (c *client) confirmed(tool string, a args) args {
	c.t.Helper()
	both := args{"plan_id": c.ok(tool, a)["plan_id"], "confirm": true}
	for k, v := range a {
		both[k] = v
	}
	return both
}
