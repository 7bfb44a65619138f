package retcon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// stepped is a session whose second prompt made three calls, each of which its
// transcript has.
func stepped(t *testing.T) *talker {
	k := living(t, "s1")
	in := fields{"transcript_path": k.transcriptPath()}
	last := "p2" // entry of the conversation
	line := func(id, parent, turn, role string, content any) {
		text, err := json.Marshal(fields{"uuid": id, "parentUuid": parent, "promptId": turn, "type": role, "sessionId": k.session,
			"message": fields{"role": role, "id": "answer-" + id, "content": content}})
		require.NoError(t, err)
		f, err := os.OpenFile(k.transcriptPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		require.NoError(t, err)
		defer f.Close()
		_, err = f.Write(append(text, '\n'))
		require.NoError(t, err)
	}
	say := func(event string, more fields) {
		for key, v := range in {
			more[key] = v
		}
		k.hook(event, more)
	}
	call := func(tool, id string, do func()) {
		line("call-"+id, last, "", "assistant", []any{fields{"type": "tool_use", "id": id}})
		say("PreToolUse."+tool, fields{"tool_use_id": id})
		do()
		say("PostToolUse."+tool, fields{"tool_use_id": id})
		line("result-"+id, "call-"+id, "", "user", []any{fields{"type": "tool_result", "tool_use_id": id}})
		last = "result-" + id
	}
	line("p1", "", "t1", "user", "first")
	say("UserPromptSubmit", fields{"prompt": "first", "prompt_id": "t1"})
	say("Stop", fields{"prompt_id": "t1"})
	line("m1", "p1", "", "assistant", "said")
	say("UserPromptSubmit", fields{"prompt": "second", "prompt_id": "t2"})
	line("p2", "m1", "t2", "user", "second")
	call("Write", "c1", func() { k.write("b", "1") })
	call("Bash", "c2", func() { require.NoError(t, os.Remove(k.path("b"))); k.write("d", "2") })
	say("PreToolUse.Bash", fields{"tool_use_id": "nested"}) // which the conversation does not know
	k.write("e", "3")
	say("PostToolUse.Bash", fields{"tool_use_id": "nested"})
	call("Write", "c3", func() { k.write("f", "4") })
	say("Stop", fields{"prompt_id": "t2"})
	return k
}

// near is the checkpoint with a note.
func (k *talker) near(note string) string {
	k.t.Helper()
	list, err := k.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(k.t, err)
	at := slices.IndexFunc(list, func(c retcon.Checkpoint) bool { return c.Note == note })
	require.GreaterOrEqual(k.t, at, 0, note)
	return list[at].Ref
}

func TestRewindToACall(t *testing.T) {
	k := stepped(t)
	k.write("mine", "")
	was := k.frames("s1")
	frame, inside, err := k.Point(ctx, "s1", k.near("after Bash c2"))
	require.NoError(t, err)
	assert.Equal(t, int64(1), frame)
	require.NotZero(t, inside)
	_, err = k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0, Inside: inside})
	assert.Equal(t, retcon.CodeStalePlan, code(err), "the frame is another one")
	r, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: frame, Inside: inside})
	require.NoError(t, err)
	assert.Equal(t, "r1@"+k.near("after Bash c2"), r.Plan.Target)
	assert.NoFileExists(t, k.path("b"))
	assert.Equal(t, "2", k.read("d"))
	assert.NoFileExists(t, k.path("e"))
	assert.NoFileExists(t, k.path("f"))
	assert.FileExists(t, k.path("mine"))
	assert.Equal(t, was[1:], k.frames("s1"))

	k.prompt("second, again")
	k.tool("Write", "c4", func() { k.write("d", "5") })
	k.stop()
	_, err = k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	assert.NoFileExists(t, k.path("d"), "begun by what was cut off, and the run's all the same")
	for range 2 {
		_, err = k.Undo(ctx, retcon.MoveOptions{})
		require.NoError(t, err)
	}
	assert.Equal(t, "4", k.read("f"))
	assert.Equal(t, was, k.frames("s1"))
}

func TestPointsOfARewind(t *testing.T) {
	k := stepped(t)
	for point, want := range map[string]int64{"1": 1, "-1": 1, "start": 0, "prompt-2": 2, "prompt-1.before": 1, "~first": 1} {
		frame, inside, err := k.Point(ctx, "s1", point)
		require.NoError(t, err, point)
		assert.Equal(t, want, frame, point)
		assert.Zero(t, inside, point)
	}
	for _, point := range []string{"c99", "nowhere", "7", "~none", ""} {
		_, _, err := k.Point(ctx, "s1", point)
		assert.Error(t, err, point)
	}
	other := newTalker(k.place, agent.Claude, "s2")
	other.process = 0
	other.prompt("other")
	other.tool("Write", "o1", func() { k.write("o", "") })
	_, _, err := k.Point(ctx, "s1", k.near("after Write o1"))
	assert.Equal(t, retcon.CodeNotFound, code(err), "it is of another session")
}

// The conversation goes on from the call that the files are those of.
func TestContinuationFromACall(t *testing.T) {
	k := stepped(t)
	for note, want := range map[string][]string{
		"after Write c1":    {"p1", "m1", "p2", "call-c1", "result-c1"},
		"after Bash c2":     {"p1", "m1", "p2", "call-c1", "result-c1", "call-c2", "result-c2"},
		"after Bash nested": {"p1", "m1"},
	} {
		frame, inside, err := k.Point(ctx, "s1", k.near(note))
		require.NoError(t, err, note)
		c, err := k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: frame, Inside: inside})
		require.NoError(t, err, note)
		assert.Equal(t, want, conversationOf(t, c), note)
		assert.Equal(t, note == "after Bash nested", c.Note != "", "%s: %s", note, c.Note)
	}

	k.write("mine", "")
	k.hook("UserPromptSubmit", fields{"prompt": "third", "prompt_id": "t3", "transcript_path": k.transcriptPath()})
	k.stop()
	frame, inside, err := k.Point(ctx, "s1", k.near("prompt"))
	require.NoError(t, err)
	require.NotZero(t, inside, "between two turns there was only the user")
	c, err := k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: frame, Inside: inside})
	require.NoError(t, err)
	assert.Len(t, conversationOf(t, c), 9)
	assert.NotEmpty(t, c.Note)
}

// Hooks of Gemini CLI tell of no ids of calls: the conversation is cut at the
// call that does the same, if it has all that do.
func TestContinuationFromACallWithoutAnID(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	k := newTalker(p, agent.Gemini, "g1")
	k.process = 0
	in := fields{"transcript_path": k.transcriptPath()}
	var e struct {
		Input json.RawMessage `json:"tool_input"`
	}
	require.NoError(t, json.Unmarshal(k.payload("BeforeTool.write_file", nil), &e))
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	line(`{"id": "p1", "type": "user", "content": "do"}`)
	k.hook("BeforeAgent", in)
	for i, id := range []string{"w1", "w2"} {
		k.hook("BeforeTool.write_file", in)
		k.write("b", id)
		k.hook("AfterTool.write_file", in)
		line(`{"id": "a%d", "type": "gemini", "toolCalls": [{"id": %q, "name": "write_file", "args": %s}]}`, i, id, e.Input)
		line(`{"id": "r%d", "type": "user", "content": [{"functionResponse": {"id": %q}}]}`, i, id)
	}
	k.hook("BeforeTool.write_file", in)
	k.write("b", "interrupted")
	k.hook("AfterAgent", in)
	k.write("c", "")

	list, err := k.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	var after []string
	for _, c := range list {
		if c.Note == "after write_file" {
			after = append(after, c.Ref)
		}
	}
	require.Len(t, after, 2)
	frame, inside, err := k.Point(ctx, "g1", after[1])
	require.NoError(t, err)
	from := func() *retcon.Continuation {
		require.NoError(t, os.WriteFile(k.transcriptPath(), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		c, err := k.Continuation(ctx, retcon.ContinueOptions{Run: "g1", Frame: frame, Inside: inside})
		require.NoError(t, err)
		return c
	}
	c := from()
	assert.NotEmpty(t, c.Note, "the third call is not in the conversation: which of them is which, nobody knows")
	assert.Equal(t, []string{"gemini"}, c.Argv)
	line(`{"id": "a2", "type": "gemini", "toolCalls": [{"id": "w3", "name": "write_file", "args": %s}]}`, e.Input)
	assert.Equal(t, []string{"p1", "a0", "r0"}, conversationOf(t, from()))
}

// What a call did outside is behind the point where it had ended.
func TestEffectsInsideAPrompt(t *testing.T) {
	k := living(t, "s1")
	k.prompt("go")
	for _, id := range []string{"c1", "c2"} {
		command := fields{"tool_use_id": id, "tool_input": fields{"command": "curl -X POST https://example.org/" + id}}
		k.hook("PreToolUse.Bash", command)
		k.write(id, "")
		command["tool_response"] = fields{"stdout": "ok"}
		k.hook("PostToolUse.Bash", command)
	}
	k.stop()
	crossed := func(o retcon.TravelOptions) (all []string) {
		o.Run, o.DryRun = "s1", true
		r, err := k.Rewind(ctx, o)
		require.NoError(t, err)
		for _, e := range r.Plan.Effects {
			all = append(all, e.Summary)
		}
		return all
	}
	frame, inside, err := k.Point(ctx, "s1", k.near("after Bash c1"))
	require.NoError(t, err)
	assert.Equal(t, []string{"curl -X POST https://example.org/c2"}, crossed(retcon.TravelOptions{Frame: frame, Inside: inside}))
	assert.Len(t, crossed(retcon.TravelOptions{Frame: frame}), 2)
}

// A call that was made in another worktree left this one as it was.
func TestRewindToACallElsewhere(t *testing.T) {
	k := living(t, "s1")
	git(t, k.dir, "add", ".")
	git(t, k.dir, "commit", "-qm", "a")
	k.prompt("isolated")
	aside := filepath.Join(filepath.Dir(k.dir), "aside")
	git(t, k.dir, "worktree", "add", "-q", aside)
	w, err := retcon.Open(ctx, retcon.Options{Dir: aside, Now: func() time.Time { return k.clock }})
	require.NoError(t, err)
	for _, event := range []string{"PreToolUse", "PostToolUse"} {
		_, err = w.Hook(ctx, retcon.HookOptions{Agent: agent.Claude, Event: event, Payload: k.payload(event+".Bash.subagent.worktree", nil)})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(aside, "b"), nil, 0o600))
	}
	list, err := w.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	k.stop()
	frame, inside, err := k.Point(ctx, "s1", list[0].Ref)
	require.NoError(t, err)
	_, err = k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: frame, Inside: inside})
	require.NotZero(t, inside)
	assert.Equal(t, retcon.CodeNotRecorded, code(err))
}
