package retcon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
)

// tape are the cells of the session, oldest first.
func (k *talker) tape() (all []ledger.Cell) {
	k.t.Helper()
	k.book(func(tx *ledger.Tx) error {
		run, err := tx.RunByExt(k.client, k.session)
		require.NoError(k.t, err)
		all, err = tx.Cells(run.ID, ledger.CellQuery{Limit: 1000})
		return err
	})
	return all
}

// reel is the tape in words: "op args -> output".
func (k *talker) reel() (lines []string) {
	k.t.Helper()
	cells := k.tape()
	k.book(func(tx *ledger.Tx) error {
		for _, c := range cells {
			view, err := tx.CellView(c)
			require.NoError(k.t, err)
			out, err := tx.CellOutput(c)
			require.NoError(k.t, err)
			line := fmt.Sprintf("%s %s -> %s", c.Op, view, out)
			if c.Exit != nil {
				line += fmt.Sprintf(" exit %d", *c.Exit)
			}
			if c.Flags != 0 {
				line += fmt.Sprintf(" flags %d", c.Flags)
			}
			lines = append(lines, line)
		}
		return nil
	})
	return lines
}

// spoken sends both events of a call with what it was given and gave back.
func (k *talker) spoken(name, id string, input, response any, do func()) {
	k.t.Helper()
	k.hook("PreToolUse."+name, fields{"tool_use_id": id, "tool_input": input})
	if do != nil {
		do()
	}
	k.hook("PostToolUse."+name, fields{"tool_use_id": id, "tool_input": input, "tool_response": response})
}

// What a tool was given and what it gave back is on the tape, once, with the
// trees around it.
func TestCallsAreOnTheTape(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	k.spoken("Bash", "c1", fields{"command": "echo 2 > a"}, fields{"stdout": "x"}, func() { k.write("a", "2") })
	k.hook("PostToolUse.Bash", fields{"tool_use_id": "c1", "tool_response": fields{"stdout": "again"}})
	k.spoken("Write", "c2", fields{"file_path": "b"}, fields{"type": "create"}, nil)
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c3", "tool_input": fields{"command": "false"}})
	k.hook("PostToolUseFailure.Bash", fields{"tool_use_id": "c3", "tool_input": fields{"command": "false"}, "error": "Exit code 1"})
	k.stop()
	assert.Equal(t, []string{
		`Bash {"command":"echo 2 > a"} -> {"stdout":"x"} exit 0`,
		`Write {"file_path":"b"} -> {"type":"create"}`,
		`Bash {"command":"false"} -> {"error":"Exit code 1"} exit 1 flags 4`,
	}, k.reel())
	cells := k.tape()
	assert.NotEqual(t, cells[0].TreeIn, cells[0].TreeOut, "it has changed a file")
	assert.NotEmpty(t, cells[0].TreeIn)
	assert.Equal(t, cells[0].TreeOut, cells[1].TreeIn)
	assert.Equal(t, cells[1].TreeIn, cells[1].TreeOut)
	assert.Equal(t, agent.Claude, cells[0].Actor)
	assert.Positive(t, cells[0].Took)
	k.book(func(tx *ledger.Tx) error {
		a, err := tx.Attempt(cells[0].AttemptID)
		require.NoError(t, err)
		assert.Equal(t, "prompt-1/Bash[c1]", a.Task)
		assert.Equal(t, a.Branch, cells[0].Branch)
		return nil
	})
}

// Every client's calls are on it, those of a server's tools and of subagents
// too.
func TestTapeOfEveryClient(t *testing.T) {
	for client, want := range map[string][]string{
		agent.Claude:   {"Agent", "Bash", "Edit", "EnterWorktree", "ExitWorktree", "Write", "mcp__note__add_note"},
		agent.Codex:    {"Bash", "apply_patch", "mcp__note__add_note", "multi_agent_v1wait_agent", "spawn_agent"},
		agent.Gemini:   {"complete_task", "invoke_agent", "mcp_note_add_note", "replace", "run_shell_command", "write_file"},
		agent.OpenCode: {"bash", "edit", "note_add_note", "task", "write"},
	} {
		t.Run(client, func(t *testing.T) {
			p := newRepo(t)
			files, err := filepath.Glob(filepath.Join("agent", "testdata", client, "*.json"))
			require.NoError(t, err)
			for _, f := range files {
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				event, _, _ := strings.Cut(filepath.Base(f), ".")
				if client == agent.OpenCode {
					event = strings.TrimSuffix(filepath.Base(f), ".json")
					for _, hook := range []string{"tool.execute.before", "tool.execute.after", "event"} {
						if strings.HasPrefix(event, hook+".") {
							event = hook
						}
					}
				}
				_, _ = p.Hook(ctx, retcon.HookOptions{Agent: client, Event: event, Payload: text, Client: os.Getpid()}) // some are no payload
			}
			ops := map[string]bool{}
			runs, err := p.Runs(ctx, 0)
			require.NoError(t, err)
			p.book(func(tx *ledger.Tx) error {
				for i := range runs {
					cells, err := tx.Cells(int64(i+1), ledger.CellQuery{Limit: 1000})
					require.NoError(t, err)
					for _, c := range cells {
						if !c.Flags.Has(ledger.CellHole) {
							ops[c.Op] = true
						}
					}
				}
				return nil
			})
			for _, op := range want {
				assert.True(t, ops[op], op)
			}
		})
	}
}

func TestTapeOfASessionIsRedacted(t *testing.T) {
	k := living(t, "s1")
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	k.prompt("go")
	k.spoken("Bash", "c1", fields{"command": "curl -H 'Authorization: Bearer " + secret + "' https://example.org"}, fields{"stdout": "token=" + secret}, nil)
	k.stop()
	k.nowhere(secret)
	assert.Len(t, k.tape(), 1)
	assert.NotContains(t, strings.Join(k.reel(), ""), secret)
}

func TestTapeOfASessionIsCapped(t *testing.T) {
	k := living(t, "s1")
	k.Workspace = reopened(t, k.place, retcon.Options{TapeMax: 1000})
	k.prompt("go")
	k.spoken("Bash", "c1", fields{"command": "x"}, fields{"stdout": strings.Repeat("ä", 5000)}, nil)
	k.stop()
	cells := k.tape()
	require.Len(t, cells, 1)
	assert.True(t, cells[0].Flags.Has(ledger.CellTruncated))
	assert.Greater(t, cells[0].OutSize, int64(10_000))
	assert.Less(t, len(k.reel()[0]), 1100)
}

// reopened opens a place anew, with options.
func reopened(t *testing.T, p *place, o retcon.Options) *retcon.Workspace {
	t.Helper()
	o.Dir, o.Now = p.dir, func() time.Time { return p.clock }
	w, err := retcon.Open(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// A session that is begun without a tape has none, one that goes on without has
// holes.
func TestTapeOfASessionIsOff(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	k.spoken("Bash", "c1", fields{"command": "x"}, fields{"stdout": ""}, nil)
	k.Workspace = reopened(t, k.place, retcon.Options{NoTape: true})
	k.spoken("Bash", "c2", fields{"command": "y"}, fields{"stdout": "z"}, nil)
	k.stop()
	cells := k.tape()
	require.Len(t, cells, 2)
	assert.True(t, cells[1].Flags.Has(ledger.CellHole))
	assert.NotContains(t, strings.Join(k.reel(), ""), `"z"`)

	without := newTalker(k.place, agent.Claude, "s2")
	without.process = 0
	without.prompt("go")
	without.spoken("Bash", "c1", fields{"command": "x"}, fields{"stdout": ""}, nil)
	without.hook("PreToolUse.Bash", fields{"tool_use_id": "c2"})
	without.stop()
	assert.Empty(t, without.tape())
	assert.Len(t, without.windows(), 2, "the rest is recorded all the same")
}

// What cannot be put on the tape leaves a hole and is told once; what cannot be
// marked either is told each time. The call is recorded all the same.
func TestTapeOfASessionFails(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	path := filepath.Join(k.Folder(), "ledger.db")
	missed := func() int {
		b, err := os.ReadFile(filepath.Join(k.Folder(), "log", "missed"))
		if os.IsNotExist(err) {
			return 0
		}
		require.NoError(t, err)
		return strings.Count(string(b), " tape: ")
	}
	for name, test := range map[string]struct {
		when  string
		holes int
		told  int
	}{
		"but a hole": {"WHEN NEW.flags & 8 = 0", 2, 1},
		"at all":     {"", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			before, told := len(k.tape()), missed()
			ledgertest.Exec(t, path, `CREATE TRIGGER no_cell BEFORE INSERT ON cell `+test.when+` BEGIN SELECT RAISE(ABORT, 'no cells today'); END`)
			for i := range 2 {
				k.spoken("Bash", fmt.Sprintf("%s-%d", name, i), fields{"command": "x"}, fields{"stdout": ""}, nil)
			}
			ledgertest.Exec(t, path, `DROP TRIGGER no_cell`)
			assert.Equal(t, test.told, missed()-told)
			cells := k.tape()[before:]
			assert.Len(t, cells, test.holes)
			for _, c := range cells {
				assert.True(t, c.Flags.Has(ledger.CellHole))
			}
		})
	}
	k.stop()
	assert.Len(t, k.windows(), 4)
	for _, w := range k.windows() {
		assert.Contains(t, w, "] ok")
	}
}

// Where nobody has told how a call ended, the tape has a hole. What goes on in
// the background has said what it had to say.
func TestTapeOfACallThatEndsUnseen(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c1"})
	k.stop()
	assert.Equal(t, []string{`Bash {"hole":"its end was not told"} ->  flags 8`}, k.reel())
	k.spoken("Bash", "c1", fields{"command": "x"}, fields{"stdout": "late"}, nil)
	assert.Len(t, k.reel(), 2, "told late")

	k.prompt("more")
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c2"})
	k.hook("PostToolUse.Bash.background", fields{"tool_use_id": "c2"})
	k.hook("Stop", fields{"prompt_id": k.turn(), "background_tasks": []string{"b1"}})
	k.hook("UserPromptSubmit", fields{"prompt": "<task-notification>\n<tool-use-id>c2</tool-use-id>"})
	cells := k.tape()
	require.Len(t, cells, 3)
	assert.False(t, cells[2].Flags.Has(ledger.CellHole))

	k.prompt("both")
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c3"})
	k.hook("PostToolUse.Bash.background", fields{"tool_use_id": "c3"})
	k.hook("PreToolUse.Write", fields{"tool_use_id": "c4"})
	k.stop() // nothing runs any more
	cells = k.tape()[3:]
	require.Len(t, cells, 2)
	assert.Equal(t, "Bash", cells[0].Op)
	assert.False(t, cells[0].Flags.Has(ledger.CellHole))
	assert.Equal(t, "Write", cells[1].Op)
	assert.True(t, cells[1].Flags.Has(ledger.CellHole))
}

// A prompt is shown with its calls, and a call with what the tape has of it.
func TestShowOfASession(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	k.spoken("Bash", "c1", fields{"command": "echo 2 > a"}, fields{"stdout": strings.Repeat("x", 5000)}, func() { k.write("a", "2") })
	k.hook("PreToolUse.Write", fields{"tool_use_id": "c2"})
	k.stop()
	k.prompt("more")
	k.spoken("Bash", "c3", fields{"command": "true"}, "", nil)
	k.stop()
	shown, err := k.Show(ctx, retcon.ShowOptions{At: "s1", Task: "prompt-1"})
	require.NoError(t, err)
	require.NotNil(t, shown.Task)
	require.Len(t, shown.Task.Calls, 2)
	first := shown.Task.Calls[0]
	assert.Equal(t, "prompt-1/Bash[c1] ok", first.Task+" "+first.Outcome)
	require.Len(t, first.Cells, 1)
	assert.JSONEq(t, `{"command": "echo 2 > a"}`, string(first.Cells[0].Args))
	assert.Equal(t, int64(5013), first.Cells[0].Bytes)
	assert.Len(t, first.Cells[0].Output, 2048, "its beginning")
	assert.Equal(t, "its end was not told", shown.Task.Calls[1].Cells[0].Hole)

	for _, name := range []string{"c1", "prompt-1/Bash[c1]"} {
		shown, err = k.Show(ctx, retcon.ShowOptions{At: "s1", Task: name})
		require.NoError(t, err)
		assert.Equal(t, "call done", shown.Task.Kind+" "+shown.Task.State)
		require.Len(t, shown.Task.Attempts, 1)
		assert.Len(t, shown.Task.Attempts[0].Cells, 1)
		assert.Len(t, string(shown.Task.Output), 5013, "all of it")
	}
	_, err = k.Show(ctx, retcon.ShowOptions{At: "s1", Task: "c9"})
	assert.Equal(t, retcon.CodeNotFound, code(err))

	said := command(t, k.dir, "", "show s1 --task prompt-1")
	assert.Zero(t, said.code, said.err)
	assert.Contains(t, said.out, "prompt-1/Bash[c1]")
	assert.Contains(t, said.out, `{"command":"echo 2 > a"}`)
	assert.Contains(t, said.out, "its end was not told")
}

// The tape of a workflow's task is shown in the same way.
func TestShowOfATaskHasItsTape(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(`
def main(ctx):
    sh("echo hello", name="greet").out()
`).Status)
	shown, err := f.Show(ctx, retcon.ShowOptions{At: "r1", Task: "greet"})
	require.NoError(t, err)
	require.Len(t, shown.Task.Attempts, 1)
	require.Len(t, shown.Task.Attempts[0].Cells, 1)
	cell := shown.Task.Attempts[0].Cells[0]
	assert.Equal(t, "sh", cell.Op)
	assert.Contains(t, string(cell.Args), "echo hello")
	assert.Contains(t, cell.Output, "hello")
	require.NotNil(t, cell.Exit)
	assert.Zero(t, *cell.Exit)
}
