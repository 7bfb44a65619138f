package retcon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// book reads the ledger of a place, as another process would.
func (p *place) book(do func(tx *ledger.Tx) error) {
	p.t.Helper()
	db, err := ledger.Open(filepath.Join(p.Folder(), "ledger.db"), ledger.Options{})
	require.NoError(p.t, err)
	defer db.Close()
	require.NoError(p.t, db.Update(ctx, do))
}

// windows are the attempts of a session, each with what changed in it: "prompt-1/Bash[id] ok +a -b".
func (k *talker) windows() (all []string) {
	k.t.Helper()
	k.book(func(tx *ledger.Tx) error {
		run, err := tx.RunByExt(k.client, k.session)
		require.NoError(k.t, err)
		attempts, err := tx.Attempts(run.ID)
		require.NoError(k.t, err)
		for _, a := range attempts {
			if !strings.Contains(a.Task, "[") {
				continue
			}
			words := []string{a.Task, a.Outcome}
			if a.Before != 0 && a.After != 0 {
				d, err := k.Diff(ctx, retcon.DiffOptions{From: retcon.Ref(fmt.Sprintf("c%d", a.Before)), To: retcon.Ref(fmt.Sprintf("c%d", a.After))})
				require.NoError(k.t, err)
				words = append(words, names(d.Changes))
			}
			all = append(all, strings.TrimSpace(strings.Join(words, " ")))
		}
		return nil
	})
	return all
}

// types are the types of the events on the way to each frame.
func (k *talker) types() (all []string) {
	k.t.Helper()
	events, err := k.Events(ctx, retcon.EventsOptions{Run: k.session})
	require.NoError(k.t, err)
	for _, e := range events {
		all = append(all, fmt.Sprintf("%d %s", e.Frame, e.Type))
	}
	return all
}

// living is a talker whose process lives, as a client does between two hooks.
func living(t *testing.T, session string) *talker {
	t.Helper()
	p := newRepo(t)
	p.write("a", "1")
	k := newTalker(p, agent.Claude, session)
	k.process = 0
	return k
}

func TestCallsAreRecordedOnce(t *testing.T) {
	k := living(t, "s1")
	for range 2 {
		k.prompt("go")
		k.n--
	}
	k.n++
	for range 3 {
		k.hook("PreToolUse.Bash", fields{"tool_use_id": "c1"})
	}
	k.write("made", "")
	for range 3 {
		k.hook("PostToolUse.Bash", fields{"tool_use_id": "c1"})
		k.write("user", "not of the call")
	}
	for range 2 {
		k.stop()
	}
	assert.Equal(t, []string{"prompt-1/Bash[c1] ok +made"}, k.windows())
	assert.Equal(t, []string{"1 prompt", "1 tool-before", "1 tool-after", "1 turn-end", "1 conversation"}, k.types())
	assert.Len(t, k.frames("s1"), 2)
}

func TestCallsThatEndUnseen(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(k *talker)
		want []string
	}{
		"the turn ends":   {func(k *talker) { k.stop() }, []string{"prompt-1/Bash[c1] interrupted +made"}},
		"the next prompt": {func(k *talker) { k.prompt("again") }, []string{"prompt-1/Bash[c1] interrupted +made"}},
		"the batch ends": {func(k *talker) {
			k.hook("PostToolBatch", fields{"tool_calls": []any{fields{"tool_use_id": "c1", "tool_name": "Bash"}}})
		}, []string{"prompt-1/Bash[c1] interrupted +made"}},
		"another batch ends": {func(k *talker) {
			k.hook("PostToolBatch", fields{"tool_calls": []any{fields{"tool_use_id": "c2", "tool_name": "Bash"}}})
		}, []string{"prompt-1/Bash[c1]"}},
		"the client ends": {func(k *talker) { k.hook("SessionEnd", nil) }, []string{"prompt-1/Bash[c1] interrupted +made"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := living(t, "s1")
			k.prompt("go")
			k.hook("PreToolUse.Bash", fields{"tool_use_id": "c1"})
			k.write("made", "")
			test.end(k)
			assert.Equal(t, test.want, k.windows())
			if test.want[0] == "prompt-1/Bash[c1]" {
				k.stop() // no window stays open
			}
		})
	}
}

// A call's window that was closed with the turn goes on when its end is told
// after all.
func TestCallThatIsToldLate(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c1"})
	k.write("early", "")
	k.stop()
	k.write("late", "")
	k.hook("PostToolUse.Bash", fields{"tool_use_id": "c1"})
	assert.Equal(t, []string{"prompt-1/Bash[c1] interrupted +early", "prompt-1/Bash[c1] ok +late"}, k.windows())
}

// Of what was there before a call that nobody saw begin nothing is known: it is
// not taken for the agent's work.
func TestCallWhoseBeginningIsLost(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	k.write("whose", "")
	k.hook("PostToolUse.Bash", fields{"tool_use_id": "c1"})
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c1"}) // it comes too late
	k.stop()
	assert.Equal(t, []string{"prompt-1/Bash[c1] ok"}, k.windows())
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	assert.FileExists(t, k.path("whose"))
}

func TestInterruptedTurn(t *testing.T) {
	k := living(t, "s1")
	k.prompt("first")
	k.tool("Bash", "c1", func() { k.write("a", "2") })
	k.prompt("second") // no event told of the interrupt
	k.hook("StopFailure", fields{"prompt_id": k.turn(), "error": "rate_limit"})
	assert.Equal(t, []string{
		"2 prompt prompt-2 failed +0 ~0 -0 (second)",
		"1 prompt prompt-1 cancelled +0 ~1 -0 (first)",
		"0 start",
	}, k.frames("s1"))
	k.hook("Stop", fields{"prompt_id": "of another"})
	assert.Len(t, k.frames("s1"), 3, "no turn ends twice")
}

// Hooks may be installed in the middle of a turn.
func TestToolWithoutAPrompt(t *testing.T) {
	k := living(t, "s1")
	k.tool("Write", "c1", func() { k.write("b", "") })
	k.hook("Stop", nil)
	assert.Equal(t, "1 prompt prompt-1 done +1 ~0 -0 ((no prompt was heard of))", k.frames("s1")[0])
}

func TestBackgroundWindowStaysOpen(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c1"})
	k.hook("PostToolUse.Bash.background", fields{"tool_use_id": "c1"})
	k.hook("Stop", fields{"prompt_id": k.turn(), "background_tasks": []string{"b1"}})
	k.write("late", "")
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	assert.Equal(t, retcon.CodeLocked, code(err), "something of the agent's still runs")
	k.hook("UserPromptSubmit", fields{"prompt": "<task-notification>\n<tool-use-id>c1</tool-use-id>"})
	assert.Equal(t, []string{"prompt-1/Bash[c1] interrupted +late"}, k.windows())
	k.write("after", "")
	_, err = k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	assert.NoFileExists(t, k.path("late"))
	assert.FileExists(t, k.path("after"), "the user's")
}

// What began before a rewind and ends after it belongs to what was cut off.
func TestLateEndLandsOnItsBranch(t *testing.T) {
	k := living(t, "s1")
	k.process = 1 << 30 // its client is dead: nobody keeps the move from happening
	k.prompt("first")
	k.tool("Write", "c1", func() { k.write("b", "") })
	k.stop()
	k.prompt("second")
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c2"})
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	k.hook("PostToolUse.Bash", fields{"tool_use_id": "c2"})
	k.hook("Stop", fields{"prompt_id": k.turn()})
	assert.Equal(t, []string{"0 start"}, k.frames("s1"))
	assert.Equal(t, []string{"1 moved"}, k.types())
	k.book(func(tx *ledger.Tx) error {
		branches, err := tx.Branches(1)
		require.NoError(t, err)
		events, err := tx.Events(branches[0].ID, ledger.EventQuery{Types: []string{retcon.EventToolAfter}})
		assert.Len(t, events, 2)
		return err
	})
}

// Gemini has no ids of calls: what does the same is told apart by its order.
func TestCallsWithoutIDs(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	k := newTalker(p, agent.Gemini, "g1")
	k.process = 0
	k.hook("BeforeAgent", nil)
	k.hook("BeforeTool.run_shell_command", nil)
	k.hook("BeforeTool.run_shell_command", nil) // the same, at the same time
	k.hook("BeforeTool.write_file", nil)
	k.write("one", "")
	k.hook("AfterTool.write_file", nil)
	k.hook("AfterTool.run_shell_command", nil)
	k.write("two", "")
	k.hook("AfterTool.run_shell_command", nil)
	k.hook("AfterAgent", nil)
	var got []string
	for _, w := range k.windows() {
		_, rest, _ := strings.Cut(w, "/")
		tool, rest, _ := strings.Cut(rest, "[h")
		got = append(got, tool+" "+rest[strings.IndexByte(rest, '.'):])
	}
	assert.Equal(t, []string{"run_shell_command .1] ok +one", "run_shell_command .2] ok +one +two", "write_file .1] ok +one"}, got)
	assert.Len(t, k.frames("g1"), 2)
}

func TestSubagentsAreScopes(t *testing.T) {
	k := living(t, "s1")
	k.prompt("delegate")
	k.hook("SubagentStart", fields{"agent_id": "x", "prompt_id": k.turn()})
	k.hook("PreToolUse.Write.subagent", fields{"agent_id": "x", "tool_use_id": "c1"})
	k.hook("PreToolUse.Write.subagent", fields{"agent_id": "y", "tool_use_id": "c2"}) // its start is lost
	k.write("sub", "")
	k.hook("PostToolUse.Write.subagent", fields{"agent_id": "x", "tool_use_id": "c1"})
	k.hook("PostToolUse.Write.subagent", fields{"agent_id": "y", "tool_use_id": "c2"})
	k.hook("SubagentStop", fields{"agent_id": "x"})
	k.stop()
	assert.Equal(t, []string{"prompt-1/sub-1/Write[c1] ok +sub", "prompt-1/sub-2/Write[c2] ok +sub"}, k.windows())
	assert.Equal(t, "1 prompt prompt-1 done prompt-1/sub-1 done prompt-1/sub-2 done +1 ~0 -0 (delegate)", k.frames("s1")[0])
}

// Codex tells of the prompt and the end of a subagent under the session of its
// parent.
func TestSubagentsPromptIsNotAPerson(t *testing.T) {
	p := newRepo(t)
	k := newTalker(p, agent.Codex, "s1")
	k.hook("UserPromptSubmit", fields{"turn_id": "t1"})
	k.hook("UserPromptSubmit.subagent", nil)
	k.hook("SubagentStop", nil)
	k.hook("Stop", fields{"turn_id": "of the subagent"})
	assert.Equal(t, []string{"0 start"}, k.frames("s1"))
	k.hook("Stop", fields{"turn_id": "t1"})
	assert.Equal(t, "1 prompt prompt-1 done prompt-1/sub-1 done +0 ~0 -0 (FIRST PROMPT: do the work)", k.frames("s1")[0])
}

// opencode's subagents are sessions of their own.
func TestChildSessionHasAParent(t *testing.T) {
	p := newRepo(t)
	say := func(event string, payload fields) {
		b, err := json.Marshal(payload)
		require.NoError(t, err)
		_, err = p.Hook(ctx, retcon.HookOptions{Agent: agent.OpenCode, Event: event, Payload: b})
		require.NoError(t, err)
	}
	created := func(id, parent string) fields {
		return fields{"type": "session.created", "properties": fields{"sessionID": id, "info": fields{"id": id, "parentID": parent}}}
	}
	say("event", created("ses_1", ""))
	say("event", created("ses_2", "ses_1"))
	runs, err := p.Runs(ctx, 0)
	require.NoError(t, err)
	require.Len(t, runs, 2)
	assert.Equal(t, "r1", runs[0].Parent)
}

// Two sessions and the user in one checkout: what one did is taken back, what
// the others did stays.
func TestTwoSessionsInOneCheckout(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	one, two := newTalker(p, agent.Claude, "one"), newTalker(p, agent.Claude, "two")
	one.process, two.process = 0, 0
	one.prompt("one")
	two.prompt("two")
	one.tool("Write", "c1", func() { p.write("of-one", "1") })
	two.tool("Write", "c2", func() { p.write("of-two", "2") })
	p.write("mine", "in the middle of both turns")
	one.tool("Bash", "c3", func() { p.write("a", "by one") })
	two.stop()
	one.stop()
	_, err := p.Rewind(ctx, retcon.TravelOptions{Run: "one", Frame: 0})
	require.NoError(t, err)
	assert.NoFileExists(t, p.path("of-one"))
	assert.Equal(t, "1", p.read("a"))
	assert.Equal(t, "2", p.read("of-two"))
	assert.Equal(t, "in the middle of both turns", p.read("mine"))
	assert.Equal(t, []string{"1 prompt prompt-1 done +3 ~1 -0 (two)", "0 start"}, p.frames("two"))
}

func TestRestoreToAToolCall(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	k.tool("Write", "c1", func() { k.write("b", "1") })
	k.tool("Edit", "c2", func() { k.write("b", "2") })
	k.stop()
	list, err := k.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	at := slices.IndexFunc(list, func(c retcon.Checkpoint) bool { return c.Note == "after Write c1" })
	require.GreaterOrEqual(t, at, 0)
	assert.Len(t, list, 3, "a worktree that is as it was needs no other checkpoint")
	_, err = k.Restore(ctx, retcon.RestoreOptions{Ref: retcon.Ref("s1@" + list[at].Ref)})
	require.NoError(t, err)
	assert.Equal(t, "1", k.read("b"))
}

// While a move holds the workspace, nothing is begun in it.
func TestAgentsAreDeniedDuringAMove(t *testing.T) {
	k := living(t, "s1")
	k.prompt("first")
	k.stop()
	mover, err := vcs.Open(k.dir, vcs.Options{})
	require.NoError(t, err)
	defer mover.Close()
	unlock, err := mover.LockMove("a move", time.Now())
	require.NoError(t, err)
	var op ledger.Op
	k.book(func(tx *ledger.Tx) error {
		op, err = tx.BeginOp(ledger.Op{Verb: "rewind", Owner: checkpoint.Self("user"), Worktrees: []ledger.OpWorktree{{WorktreeID: 1}}}, nil)
		return err
	})
	before := k.types()
	assert.Contains(t, k.hook("PreToolUse.Bash", nil), `"permissionDecision":"deny"`)
	assert.Contains(t, k.hook("UserPromptSubmit", nil), `"decision":"block"`)
	assert.Equal(t, before, k.types())
	assert.Empty(t, k.hook("PostToolBatch", nil), "cannot be denied")
	k.book(func(tx *ledger.Tx) error {
		_, err := tx.FinishOp(op.ID, op.Token, ledger.ResultAborted, "")
		return err
	})
	unlock()
	assert.Empty(t, k.hook("PreToolUse.Bash", nil))
	k.hook("PostToolUse.Bash", nil)
}

func TestAgentsAreToldOfAMoveOnce(t *testing.T) {
	k := living(t, "s1")
	k.prompt("first")
	k.tool("Write", "c1", func() { k.write("b", "1") })
	k.stop()
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	assert.Empty(t, k.hook("Stop", nil), "it would not be heard")
	said := k.prompt("again")
	assert.Contains(t, said, `"additionalContext"`)
	assert.Contains(t, said, "rewind r1@0: 1 file (b)")
	k.stop()
	assert.Empty(t, k.prompt("and again"))
	k.stop()
	_, err = k.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	said = k.prompt("once more")
	assert.Contains(t, said, "undo op 1: 1 file (b)")
	assert.NotContains(t, said, "rewind")

	other := newTalker(k.place, agent.Claude, "s2")
	assert.Empty(t, other.prompt("new here"), "it knows nothing that could be wrong")
}

func TestHooksInParallel(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	k := newTalker(p, agent.Claude, "s1")
	const many = 16
	var all sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		id := fmt.Sprintf("c%d", i)
		payloads := [][]byte{k.payload("PreToolUse.Bash", fields{"tool_use_id": id}), k.payload("PostToolUse.Bash", fields{"tool_use_id": id})}
		all.Go(func() {
			for n, event := range []string{"PreToolUse", "PostToolUse"} {
				w, err := retcon.Open(ctx, retcon.Options{Dir: p.dir, Now: time.Now})
				if err == nil {
					_, err = w.Hook(ctx, retcon.HookOptions{Agent: agent.Claude, Event: event, Payload: payloads[n], Client: os.Getpid()})
					if cerr := w.CloseFast(); err == nil {
						err = cerr
					}
				}
				if errs[i] = err; err != nil {
					return
				}
				_ = os.WriteFile(p.path("f-"+id), []byte(id), 0o600)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	k.hook("Stop", nil)
	windows := k.windows()
	assert.Len(t, windows, many)
	for _, w := range windows {
		assert.Contains(t, w, "] ok")
	}
	assert.Len(t, k.frames("s1"), 2)
}

// Whatever clients send, there is no error, no panic and a whole ledger.
func TestEveryRecordedPayload(t *testing.T) {
	for _, client := range []string{agent.Claude, agent.Codex, agent.OpenCode, agent.Gemini, agent.Cursor, agent.Cline} {
		t.Run(client, func(t *testing.T) {
			p := newRepo(t)
			files, err := filepath.Glob(filepath.Join("agent", "testdata", client, "*.json"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			for _, f := range files {
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				event := strings.Split(filepath.Base(f), ".")[0]
				if client == agent.OpenCode || strings.HasPrefix(event, "_") {
					event = strings.TrimSuffix(filepath.Base(f), ".json")
				}
				_, err = p.Hook(ctx, retcon.HookOptions{Agent: client, Event: event, Payload: text})
				if err != nil {
					assert.ErrorIs(t, err, retcon.ErrNoSession, f)
				}
			}
		})
	}
}

func TestHookRefusesQuietly(t *testing.T) {
	p := newRepo(t)
	for name, o := range map[string]retcon.HookOptions{
		"nobody":     {Agent: "nobody", Payload: []byte("{}")},
		"no JSON":    {Agent: agent.Claude, Payload: []byte("{")},
		"nothing":    {Agent: agent.Claude},
		"no session": {Agent: agent.Claude, Event: "Stop", Payload: []byte("{}")},
	} {
		answer, err := p.Hook(ctx, o)
		assert.Error(t, err, name)
		assert.Empty(t, answer, name)
	}
	missed, err := os.ReadFile(filepath.Join(p.Folder(), "log", "missed"))
	require.NoError(t, err)
	assert.Equal(t, 4, strings.Count(string(missed), "\n"))

	answer, err := p.Hook(ctx, retcon.HookOptions{Agent: agent.Claude, Event: "Whatever", Payload: []byte("{}")})
	assert.NoError(t, err, "an event nobody knows")
	assert.Empty(t, answer)
}

// An isolated subagent works in a worktree of its own: what it does there is of
// its session, and the session's frames are of the worktree it began in.
func TestHookFromALinkedWorktree(t *testing.T) {
	k := living(t, "s1")
	git(t, k.dir, "add", ".")
	git(t, k.dir, "commit", "-qm", "a")
	k.prompt("isolated")
	aside := filepath.Join(filepath.Dir(k.dir), "aside")
	git(t, k.dir, "worktree", "add", "-q", aside)
	w, err := retcon.Open(ctx, retcon.Options{Dir: aside, Now: func() time.Time { return k.clock }})
	require.NoError(t, err)
	require.Equal(t, string(vcs.Linked), w.Kind())
	for _, event := range []string{"PreToolUse", "PostToolUse"} {
		_, err = w.Hook(ctx, retcon.HookOptions{Agent: agent.Claude, Event: event, Payload: k.payload(event+".Bash.subagent.worktree", nil)})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(aside, "b"), nil, 0o600))
	}
	_, err = w.Hook(ctx, retcon.HookOptions{Agent: agent.Claude, Event: "Stop", Payload: k.payload("Stop", nil)})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	assert.Equal(t, "1 prompt prompt-1 done prompt-1/sub-1 done +0 ~0 -0 (isolated)", k.frames("s1")[0])
	assert.Equal(t, []string{"prompt-1/sub-1/Bash[toolu_77afb84cfbd75739762523ef] ok +b"}, k.windows())
}
