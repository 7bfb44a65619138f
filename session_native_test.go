package retcon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

// recorded is a transcript that a client wrote, to be written again bit by bit.
type recorded struct {
	*talker
	lines []string
}

func (k *talker) recorded(file string) *recorded {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join("agent", "testdata", k.client, file))
	require.NoError(k.t, err)
	return &recorded{k, strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")}
}

// upTo writes the lines before the first that has something in it; all that are
// left when none has.
func (r *recorded) upTo(what string) {
	r.t.Helper()
	n := len(r.lines)
	for i, l := range r.lines {
		if what != "" && strings.Contains(l, what) {
			n = i
			break
		}
	}
	f, err := os.OpenFile(r.transcriptPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	require.NoError(r.t, err)
	defer f.Close()
	for _, l := range r.lines[:n] {
		_, err := f.WriteString(strings.TrimSuffix(l, "\n") + "\n")
		require.NoError(r.t, err)
	}
	r.lines = r.lines[n:]
}

// tell sends a recorded payload with the path of the transcript.
func (k *talker) tell(name string, change fields) string {
	k.t.Helper()
	all := fields{"transcript_path": k.transcriptPath()}
	for key, v := range change {
		all[key] = v
	}
	return k.hook(name, all)
}

// turnOf is a prompt of Claude's with one call in it.
func (k *talker) turnOf(turn, prompt, call string, do func()) {
	k.t.Helper()
	k.tell("UserPromptSubmit", fields{"prompt": prompt, "prompt_id": turn})
	k.tell("PreToolUse.Write", fields{"tool_use_id": call})
	do()
	k.tell("PostToolUse.Write", fields{"tool_use_id": call})
}

// What the prompts of the recording are called.
const (
	firstTurn  = "6b2eb749-2a20-42bd-891d-a1503dc58d6f"
	secondTurn = "243d9c35-85da-4bab-b5db-b9cc4ddc785d"
	thirdTurn  = "68aeb62e-aff5-43a2-888d-a349b85dcd5f"
)

// twice is a session of the recording up to the person's going back in it, which
// no hook tells of: two prompts, of which the second changed a and made tui2.txt.
func twice(t *testing.T) *recorded {
	k := living(t, "5b1f0c2e-7a44-4d0b-9a35-2f6f6f3c8e10")
	r := k.recorded("transcript_after_native_rewind.jsonl")
	k.turnOf(firstTurn, "create tui1.txt", "c1", func() { k.write("tui1.txt", "1") })
	r.upTo(`"uuid": "73bf5be5`) // the second prompt
	k.tell("Stop", fields{"prompt_id": firstTurn})
	k.turnOf(secondTurn, "create tui2.txt", "c2", func() { k.write("tui2.txt", "2"); k.write("a", "changed") })
	r.upTo(`"uuid": "b281ba8c`) // the third, said after the person went back
	k.tell("Stop", fields{"prompt_id": secondTurn})
	return r
}

func TestNativeRewindOfClaude(t *testing.T) {
	for name, when := range map[string]string{"at a call": "call", "at the end of the turn": "stop", "at the next prompt": "prompt"} {
		t.Run(name, func(t *testing.T) {
			k := twice(t)
			k.tell("UserPromptSubmit", fields{"prompt": "third after rewind", "prompt_id": thirdTurn})
			if when == "call" {
				k.tell("PreToolUse.Write", fields{"tool_use_id": "c3"})
				k.upTo("")
				k.write("tui3.txt", "3")
				k.tell("PostToolUse.Write", fields{"tool_use_id": "c3"})
				assert.Equal(t, "1 prompt prompt-1 done +1 ~0 -0 (create tui1.txt)", k.frames(k.session)[0], "noticed before the turn ends")
			}
			if when == "stop" {
				k.upTo("")
				k.tell("Stop", fields{"prompt_id": thirdTurn})
			}
			if when == "prompt" { // nobody heard of the end of the third
				k.upTo("")
				k.tell("UserPromptSubmit", fields{"prompt": "fourth", "prompt_id": "t4"})
				k.tell("Stop", fields{"prompt_id": "t4"})
			} else {
				k.tell("Stop", fields{"prompt_id": thirdTurn})
			}
			tree, err := k.Timeline(ctx, retcon.TimelineOptions{Run: k.session, All: true})
			require.NoError(t, err)
			require.Len(t, tree.Archived, 1)
			cut := tree.Archived[0]
			assert.Equal(t, "native-rewind claude", cut.CutVerb+" "+cut.CutActor)
			if when == "prompt" {
				assert.Equal(t, []string{"2 prompt prompt-2 cancelled +1 ~1 -0 (third after rewind)",
					"1 prompt prompt-1 done +1 ~0 -0 (create tui1.txt)", "0 start"}, told(tree)[1:])
				return
			}
			assert.Equal(t, "2 prompt prompt-2 done +0 ~0 -0 (create tui2.txt)", strings.Replace(told(cut)[0], "+1 ~1", "+0 ~0", 1))
			assert.Contains(t, told(tree)[0], "2 prompt prompt-2 done")
			assert.Contains(t, told(tree)[0], "(third after rewind)")
			require.Len(t, tree.Edges, 1)
			assert.Equal(t, "native-rewind 1", fmt.Sprint(tree.Edges[0].Kind, " ", tree.Edges[0].Frame))
			if when == "call" {
				assert.Contains(t, k.windows(), "prompt-2/Write[c3] ok +tui3.txt")
				assert.Equal(t, []string{"prompt-1/Write[c1] ok +tui1.txt", "prompt-2/Write[c2] ok ~a +tui2.txt"}, k.windows()[:2])
			}
			assert.Equal(t, "2", k.read("tui2.txt"), "the files are as the client left them")
		})
	}
}

// A native rewind is an operation as any other: undo brings back what it cut
// off, redo cuts it off again, and a timeline tells of both.
func TestNativeRewindIsUndone(t *testing.T) {
	k := twice(t)
	require.NoError(t, os.Remove(k.path("tui2.txt"))) // the client puts the files back, too
	k.write("a", "1")
	k.write("mine", "the user's")
	k.tell("UserPromptSubmit", fields{"prompt": "third after rewind", "prompt_id": thirdTurn})
	k.upTo("")
	k.tell("Stop", fields{"prompt_id": thirdTurn})
	ops, err := k.Ops(ctx, 0, 0)
	require.NoError(t, err)
	require.Len(t, ops, 1)
	assert.Equal(t, "native-rewind claude r1@1 ok 2", fmt.Sprintf("%s %s %s %s %d", ops[0].Verb, ops[0].Actor, ops[0].Target, ops[0].Result, ops[0].Paths))

	_, err = k.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "2 changed the user's", k.read("tui2.txt")+" "+k.read("a")+" "+k.read("mine"))
	assert.Equal(t, "2 prompt prompt-2 done +1 ~1 -0 (create tui2.txt)", k.frames(k.session)[0])
	_, err = k.Redo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.NoFileExists(t, k.path("tui2.txt"))
	assert.Equal(t, "1", k.read("a"))
	assert.Contains(t, k.frames(k.session)[0], "(third after rewind)")
}

// What the client has put back is nobody's change: a later rewind puts back what
// the agent has made of it since, and no conflict stands in the way.
func TestOwnersAfterANativeRewind(t *testing.T) {
	k := twice(t)
	k.write("a", "1") // by the client's rewind
	require.NoError(t, os.Remove(k.path("tui2.txt")))
	k.write("mine", "the user's")
	k.tell("UserPromptSubmit", fields{"prompt": "third after rewind", "prompt_id": thirdTurn})
	k.tell("PreToolUse.Write", fields{"tool_use_id": "c3"})
	k.upTo("")
	k.write("a", "by the third")
	k.tell("PostToolUse.Write", fields{"tool_use_id": "c3"})
	k.tell("Stop", fields{"prompt_id": thirdTurn})
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: k.session, Frame: 1})
	require.NoError(t, err)
	assert.Equal(t, "1", k.read("a"))
	assert.Equal(t, "the user's", k.read("mine"))
	assert.FileExists(t, k.path("tui1.txt"))
}

// The agent has no need to be told of what was done inside its client.
func TestNoNoteOfANativeRewind(t *testing.T) {
	k := twice(t)
	k.tell("UserPromptSubmit", fields{"prompt": "third after rewind", "prompt_id": thirdTurn})
	k.upTo("")
	k.tell("Stop", fields{"prompt_id": thirdTurn})
	assert.Empty(t, k.tell("UserPromptSubmit", fields{"prompt": "fourth", "prompt_id": "t4"}))
	k.tell("Stop", fields{"prompt_id": "t4"})
}

// A transcript in which nothing was taken back is taken for none, however the
// events and the lines of the file are interleaved: recorded runs, replayed with
// a prompt in front of each line.
func TestNoNativeRewindWhereThereWasNone(t *testing.T) {
	for client, file := range map[string]string{
		agent.Claude: "transcript.jsonl", agent.Codex: "rollout_two_turns.jsonl", agent.Gemini: "transcript.jsonl",
	} {
		t.Run(client, func(t *testing.T) {
			p := newRepo(t)
			p.write("a", "1")
			k := newTalker(p, client, "s1")
			r := k.recorded(file)
			say := map[string]string{agent.Claude: "UserPromptSubmit", agent.Codex: "UserPromptSubmit", agent.Gemini: "BeforeAgent"}[client]
			end := map[string]string{agent.Claude: "Stop", agent.Codex: "Stop", agent.Gemini: "AfterAgent"}[client]
			said := map[string]bool{}
			for len(r.lines) > 0 {
				line := []byte(r.lines[0])
				entries, _, err := agent.ReadTranscript(client, bytes.NewReader(append(bytes.TrimSpace(line), '\n')), 0)
				require.NoError(t, err)
				if len(entries) > 0 && entries[0].Kind == agent.Said && !said[entries[0].ID] {
					said[entries[0].ID] = true
					k.tell(say, fields{"prompt": entries[0].Text, "prompt_id": entries[0].Turn, "turn_id": entries[0].Turn})
				}
				rest := r.lines[1:]
				r.lines = r.lines[:1]
				r.upTo("")
				r.lines = rest
				k.tell(end, fields{"prompt_id": "", "turn_id": ""})
			}
			ops, err := k.Ops(ctx, 0, 0)
			require.NoError(t, err)
			assert.Empty(t, ops)
			assert.NotEmpty(t, said)
			assert.Len(t, k.frames("s1"), 1+len(said))
		})
	}
}

// What a client writes in front of the prompt it went on with hides nothing,
// though an event comes in between.
func TestNativeRewindInSteps(t *testing.T) {
	k := spoken(t)
	k.transcript("note", "m1", "", "system", "after going back")
	k.tell("UserPromptSubmit", fields{"prompt": "other", "prompt_id": "t3"})
	assert.Len(t, k.frames("s1"), 3, "not yet said")
	k.transcript("p3", "note", "t3", "user", "other")
	k.tell("Stop", fields{"prompt_id": "t3"})
	assert.Equal(t, []string{"2 prompt prompt-2 done +0 ~0 -0 (other)", "1 prompt prompt-1 done +1 ~0 -0 (first)", "0 start"}, k.frames("s1"))
}

// A conversation that is summed up has lost nothing.
func TestCompactionIsNoNativeRewind(t *testing.T) {
	k := spoken(t)
	k.hook("PreCompact.manual", nil)
	line, err := json.Marshal(fields{"uuid": "b1", "parentUuid": nil, "type": "system", "subtype": "compact_boundary", "sessionId": k.session})
	require.NoError(t, err)
	f, err := os.OpenFile(k.transcriptPath(), os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	_, err = f.Write(append(line, '\n'))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	k.tell("UserPromptSubmit", fields{"prompt": "third", "prompt_id": "t3"})
	k.transcript("p3", "b1", "t3", "user", "third")
	k.tell("Stop", fields{"prompt_id": "t3"})
	assert.Len(t, k.frames("s1"), 4)
	tree, err := k.Timeline(ctx, retcon.TimelineOptions{Run: "s1"})
	require.NoError(t, err)
	require.Len(t, tree.Edges, 1)
	assert.Equal(t, "compact 2", fmt.Sprint(tree.Edges[0].Kind, " ", tree.Edges[0].Frame))
}

// Gemini CLI writes down that it went back.
func TestNativeRewindOfGemini(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	k := newTalker(p, agent.Gemini, "7e57ab1e-0000-4a4a-8b8b-123456789abc")
	r := k.recorded("chat_with_rewind.jsonl")
	k.tell("BeforeAgent", fields{"prompt": "Add a greeting module"})
	r.upTo("$rewindTo")
	k.tell("AfterAgent", nil)
	require.Len(t, k.frames(k.session), 2)
	r.upTo("")
	k.tell("BeforeAgent", fields{"prompt": "Add another module"})
	assert.Equal(t, []string{"0 start"}, k.frames(k.session), "noticed at the next event")
	k.tell("AfterAgent", nil)
	assert.Equal(t, []string{"1 prompt prompt-1 done +0 ~0 -0 (Add another module)", "0 start"}, k.frames(k.session))
}

// Who goes back may say the same again: that is in the conversation, and so is
// what came after it.
func TestSameSaidAgainAfterANativeRewind(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	k := newTalker(p, agent.Gemini, "g1")
	n := 0
	say := func(id, text string) {
		k.tell("BeforeAgent", fields{"prompt": text})
		f, err := os.OpenFile(k.transcriptPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		require.NoError(t, err)
		n++
		_, err = fmt.Fprintf(f, `{"id":"%s","type":"user","content":[{"text":"%s"}]}`+"\n"+`{"id":"a%d","type":"gemini","content":"ok"}`+"\n", id, text, n)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		k.tell("AfterAgent", nil)
	}
	back := func(id string) {
		f, err := os.OpenFile(k.transcriptPath(), os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		_, err = fmt.Fprintf(f, `{"$rewindTo":"%s"}`+"\n", id)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	say("u1", "one")
	say("u2", "again")
	say("u3", "three")
	back("u2")
	say("u4", "again")
	assert.Equal(t, []string{"2 prompt prompt-2 done +0 ~0 -0 (again)", "1 prompt prompt-1 done +0 ~0 -0 (one)", "0 start"}, k.frames("g1"))
	say("u5", "again")
	say("u6", "six")
	assert.Len(t, k.frames("g1"), 5)
	back("u5")
	say("u7", "seven")
	assert.Equal(t, []string{"3 prompt prompt-3 done +0 ~0 -0 (seven)", "2 prompt prompt-2 done +0 ~0 -0 (again)"}, k.frames("g1")[:2])
}

// Codex goes on in another file, which begins where the old one is left.
func TestNativeRewindOfCodex(t *testing.T) {
	const thread, first, second = "019f0a11-2c3d-7e4f-8a9b-0c1d2e3f4a5b", "019f0a11-3000-7000-8000-00000000aaaa", "019f0a11-3000-7000-8000-00000000bbbb"
	p := newRepo(t)
	p.write("a", "1")
	k := newTalker(p, agent.Codex, thread)
	r := k.recorded("rollout_two_turns.jsonl")
	k.tell("UserPromptSubmit", fields{"prompt": "one", "turn_id": first})
	r.upTo(second)
	k.tell("Stop", fields{"turn_id": first})
	old, err := os.Stat(k.transcriptPath())
	require.NoError(t, err)
	k.tell("UserPromptSubmit", fields{"prompt": "two", "turn_id": second})
	r.upTo("")
	k.tell("Stop", fields{"turn_id": second})
	require.Len(t, k.frames(thread), 3)

	next := k.transcriptPath() + "-reverted.jsonl"
	text, err := os.ReadFile("agent/testdata/codex/rollout_after_thread_revert.jsonl")
	require.NoError(t, err)
	text = bytes.Replace(text, []byte("54287"), fmt.Append(nil, old.Size()), 1)
	require.NoError(t, os.WriteFile(next, text, 0o600))
	k.hook("UserPromptSubmit", fields{"prompt": "two, otherwise", "turn_id": "t3", "transcript_path": next})
	assert.Equal(t, []string{"1 prompt prompt-1 done +0 ~0 -0 (one)", "0 start"}, k.frames(thread))
	k.hook("Stop", fields{"turn_id": "t3", "transcript_path": next})
	assert.Equal(t, "2 prompt prompt-2 done +0 ~0 -0 (two, otherwise)", k.frames(thread)[0])
}

// opencode tells of its undo, and puts the files back itself.
func TestNativeRewindOfOpenCode(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	say := func(event string, payload any) {
		b, err := json.Marshal(payload)
		require.NoError(t, err)
		_, err = p.Hook(ctx, retcon.HookOptions{Agent: agent.OpenCode, Event: event, Payload: b})
		require.NoError(t, err)
	}
	prompt := func(id, text string) {
		say("chat.message", fields{"hook": "chat.message", "input": fields{"sessionID": "ses_1"}, "output": fields{
			"message": fields{"id": id, "role": "user", "sessionID": "ses_1"}, "parts": []any{fields{"type": "text", "text": text}}}})
	}
	idle := func() {
		say("event", fields{"type": "session.idle", "properties": fields{"sessionID": "ses_1"}})
	}
	revert := func(id string) {
		say("event", fields{"type": "session.updated", "properties": fields{"sessionID": "ses_1", "info": fields{"id": "ses_1", "revert": fields{"messageID": id}}}})
	}
	prompt("msg_1", "one")
	idle()
	prompt("msg_2", "two")
	p.write("a", "2")
	idle()
	p.write("a", "1") // by opencode
	for range 2 {
		revert("msg_2")
	}
	assert.Equal(t, []string{"1 prompt prompt-1 done +0 ~0 -0 (one)", "0 start"}, p.frames("ses_1"))
	revert("msg_1")
	assert.Equal(t, []string{"0 start"}, p.frames("ses_1"))
	ops, err := p.Ops(ctx, 0, 0)
	require.NoError(t, err)
	require.Len(t, ops, 2)
	revert("msg_of_nobody")
	assert.Equal(t, []string{"0 start"}, p.frames("ses_1"))
	prompt("msg_3", "three")
	idle()
	assert.Equal(t, "1 prompt prompt-1 done +0 ~0 -0 (three)", p.frames("ses_1")[0])
}

// While a move holds the workspace nothing is recorded over its head, and no
// hook fails.
func TestNativeRewindWaitsForAMove(t *testing.T) {
	k := twice(t)
	k.tell("UserPromptSubmit", fields{"prompt": "third after rewind", "prompt_id": thirdTurn})
	k.tell("PreToolUse.Write", fields{"tool_use_id": "c3"})
	k.upTo("")
	mover, err := vcs.Open(k.dir, vcs.Options{})
	require.NoError(t, err)
	defer mover.Close()
	unlock, err := mover.LockMove("a move", k.clock)
	require.NoError(t, err)
	var op ledger.Op
	k.book(func(tx *ledger.Tx) (err error) {
		op, err = tx.BeginOp(ledger.Op{Verb: timeline.VerbRewind, Owner: checkpoint.Self("user"), Worktrees: []ledger.OpWorktree{{WorktreeID: 1}}}, nil)
		return err
	})
	k.tell("PostToolUse.Write", fields{"tool_use_id": "c3"})
	assert.Len(t, k.frames(k.session), 3)
	assert.NoFileExists(t, filepath.Join(k.Folder(), "log", "missed"))
	k.book(func(tx *ledger.Tx) error {
		_, err := tx.FinishOp(op.ID, op.Token, ledger.ResultAborted, "")
		return err
	})
	unlock()
	k.tell("Stop", fields{"prompt_id": thirdTurn})
	assert.Len(t, k.frames(k.session), 3)
	tree, err := k.Timeline(ctx, retcon.TimelineOptions{Run: k.session, All: true})
	require.NoError(t, err)
	assert.Len(t, tree.Archived, 1, "the next event has found it out")
}
