package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
	"github.com/retcon-dev/retcon/vcs"
)

// Whatever an agent sends, through the whole of the hook's path: it succeeds,
// nothing panics, what is printed has no field that the agent does not know, and
// the ledger is whole. One place is at rest; in the other a move goes on, so that
// there is something to deny.

func FuzzHookClaude(f *testing.F)   { fuzzHook(f, agent.Claude) }
func FuzzHookCodex(f *testing.F)    { fuzzHook(f, agent.Codex) }
func FuzzHookGemini(f *testing.F)   { fuzzHook(f, agent.Gemini) }
func FuzzHookOpenCode(f *testing.F) { fuzzHook(f, agent.OpenCode) }
func FuzzHookCursor(f *testing.F)   { fuzzHook(f, agent.Cursor) }
func FuzzHookCline(f *testing.F)    { fuzzHook(f, agent.Cline) }
func FuzzHookCopilot(f *testing.F)  { fuzzHook(f, agent.Copilot) }
func FuzzHookGeneric(f *testing.F)  { fuzzHook(f, agent.Generic) }

// recordedIn is where the clients worked that were recorded.
const recordedIn = "/home/dev/project"

func fuzzHook(f *testing.F, client string) {
	files, err := filepath.Glob(filepath.Join("..", "agent", "testdata", client, "*.json"))
	require.NoError(f, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if strings.HasPrefix(name, "_") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(eventIn(client, name), text)
	}
	f.Add("prompt", []byte(`{"session": "s1", "prompt": "hello", "cwd": "`+recordedIn+`"}`))
	f.Add("tool-before", []byte(`{"session": "s1", "tool": "sh", "call": "c1", "command": "ls", "cwd": "`+recordedIn+`"}`))
	f.Add("", []byte(`{}`))
	f.Add("Stop", []byte("{\"session_id\": \"\xff\", \"cwd\": [1]}"))

	calm, held := hookPlace(f, client, false), hookPlace(f, client, true)
	f.Fuzz(func(t *testing.T, event string, payload []byte) {
		for _, dir := range []string{calm, held} {
			here, err := json.Marshal(dir)
			require.NoError(t, err)
			in := bytes.ReplaceAll(payload, []byte(recordedIn), here[1:len(here)-1])
			var out, errs bytes.Buffer
			env := Env{Dir: dir, Home: filepath.Dir(dir), Now: time.Now, Getenv: func(name string) string {
				return map[string]string{"RETCON_DEBUG": "1"}[name]
			}}
			code := Main([]string{"retcon", "hook", client, event}, bytes.NewReader(in), &out, &errs, env)
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, errs.String())
			}
			if strings.Contains(errs.String(), "BUG") {
				t.Fatal(errs.String())
			}
			known(t, client, event, out.Bytes())
		}
	})
}

// eventIn is the event that the name of a recorded file begins with.
func eventIn(client, name string) string {
	if client == agent.OpenCode {
		for _, event := range []string{"event", "chat.message", "tool.execute.before", "tool.execute.after"} {
			if name == event || strings.HasPrefix(name, event+".") {
				return event
			}
		}
	}
	event, _, _ := strings.Cut(name, ".")
	return event
}

// hookPlace is a repository where an agent has worked, and something was taken
// back that it has not been told of; a move goes on in it if it is held.
func hookPlace(f *testing.F, client string, isHeld bool) (dir string) {
	dir = filepath.Join(f.TempDir(), "work")
	require.NoError(f, os.MkdirAll(dir, 0o755))
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(f, err)
	require.NoError(f, os.WriteFile(filepath.Join(dir, "a"), []byte("1"), 0o600))
	w, err := retcon.Open(f.Context(), retcon.Options{Dir: dir, Create: true, Now: time.Now})
	require.NoError(f, err)
	c, err := w.Checkpoint(f.Context(), retcon.CheckpointOptions{})
	require.NoError(f, err)
	db := filepath.Join(w.Folder(), "ledger.db")
	if !isHeld {
		f.Cleanup(func() { ledgertest.Check(f, db) })
		require.NoError(f, os.WriteFile(filepath.Join(dir, "a"), []byte("2"), 0o600))
		_, err = w.Restore(f.Context(), retcon.RestoreOptions{Ref: retcon.Ref(c.Ref)})
		require.NoError(f, err)
		require.NoError(f, w.Close())
		return dir
	}
	require.NoError(f, w.Close())
	mover, err := vcs.Open(dir, vcs.Options{})
	require.NoError(f, err)
	unlock, err := mover.LockMove("a move", time.Now())
	require.NoError(f, err)
	book, err := ledger.Open(db, ledger.Options{})
	require.NoError(f, err)
	require.NoError(f, book.Update(f.Context(), func(tx *ledger.Tx) error {
		_, err := tx.BeginOp(ledger.Op{Verb: "rewind", Owner: checkpoint.Self("user"), Worktrees: []ledger.OpWorktree{{WorktreeID: 1}}}, nil)
		return err
	}))
	require.NoError(f, book.Close())
	f.Cleanup(func() {
		unlock()
		require.NoError(f, mover.Close())
	})
	return dir
}

// specific are the fields below hookSpecificOutput, and answers those of all, as
// the clients' own documents list them.
var (
	specific = []string{"hookEventName", "additionalContext", "permissionDecision", "permissionDecisionReason", "decision"}
	answers  = map[string][]string{
		agent.Claude:   {"hookSpecificOutput", "decision", "reason"},
		agent.Codex:    {"hookSpecificOutput", "decision", "reason"},
		agent.Gemini:   {"hookSpecificOutput", "decision", "reason"},
		agent.OpenCode: {"deny", "note"},
		agent.Cline:    {"cancel", "errorMessage", "contextModification"},
		agent.Cursor:   {"permission", "user_message", "agent_message", "continue"},
		agent.Copilot:  {"permissionDecision", "permissionDecisionReason"},
		agent.Generic:  {"deny", "reason", "note"},
	}
)

// known fails the test for an answer with a field that the client does not know.
func known(t *testing.T, client, event string, answer []byte) {
	t.Helper()
	if len(answer) == 0 {
		return
	}
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(answer, &all), "%s", answer)
	require.NotEmpty(t, all)
	allowed, inside := answers[client], specific
	if client == agent.Codex {
		text, err := os.ReadFile(filepath.Join("..", "agent", "testdata", client, "_contract.json"))
		require.NoError(t, err)
		var contract map[string]struct {
			Stdout   []string `json:"stdout_allowed"`
			Specific []string `json:"hookSpecificOutput_allowed"`
		}
		require.NoError(t, json.Unmarshal(text, &contract))
		allowed, inside = contract[event].Stdout, contract[event].Specific
	}
	for name, v := range all {
		require.Contains(t, allowed, name, "%s %s: %s", client, event, answer)
		if name != "hookSpecificOutput" {
			continue
		}
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(v, &fields))
		for name := range fields {
			require.Contains(t, inside, name, "%s %s: %s", client, event, answer)
		}
	}
}
