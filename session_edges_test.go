package retcon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// edges are those of a session, each as "fork from r1@2 after 0".
func (p *place) edges(run string) (all []string) {
	p.t.Helper()
	tree, err := p.Timeline(ctx, retcon.TimelineOptions{Run: run})
	require.NoError(p.t, err)
	for _, e := range tree.Edges {
		text := e.Kind
		if e.From != "" {
			text += " from " + e.From
		}
		if e.To != "" {
			text += " to " + e.To
		}
		all = append(all, fmt.Sprintf("%s after %d", text, e.Frame))
	}
	return all
}

func TestSessionIsResumedAndSummedUp(t *testing.T) {
	k := living(t, "s1")
	k.hook("SessionStart.startup", nil)
	k.prompt("one")
	k.stop()
	k.hook("SessionEnd", nil)
	k.hook("SessionStart.resume", nil)
	k.prompt("two")
	k.hook("PreCompact.manual", nil)
	k.hook("SessionStart.compact", nil)
	k.hook("PostCompact.manual", nil)
	k.stop()
	want := []string{"resume after 1", "compact after 1"}
	assert.Equal(t, want, k.edges("s1"))
	shown, err := k.Show(ctx, retcon.ShowOptions{At: "s1"})
	require.NoError(t, err)
	assert.Len(t, shown.Run.Edges, 2)
	runs, err := k.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Empty(t, runs[0].Edges, "a list tells of edges to others")
}

// /clear begins another session in the place of one: of the one that the same
// client has ended for it.
func TestSessionIsCleared(t *testing.T) {
	for name, test := range map[string]struct {
		process int
		reason  string
		want    []string
	}{
		"of the same client": {0, "clear", []string{"clear from r1@1 after 0"}},
		"of another":         {1 << 29, "clear", nil},
		"ended for good":     {0, "other", nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := living(t, "s1")
			k.prompt("one")
			k.stop()
			k.hook("SessionEnd", fields{"reason": test.reason})
			next := newTalker(k.place, agent.Claude, "s2")
			next.process = test.process
			for range 2 {
				next.hook("SessionStart.clear", nil)
			}
			next.prompt("two")
			next.stop()
			assert.Equal(t, test.want, k.edges("s2"))
			var out []string
			if test.want != nil {
				out = []string{"clear to r2 after 1"}
			}
			assert.Equal(t, out, k.edges("s1"))
		})
	}
}

// A fork is known by what it has in common with the session it was made of.
func TestSessionIsForked(t *testing.T) {
	k := spoken(t)
	text, err := os.ReadFile(k.transcriptPath())
	require.NoError(t, err)
	fork := newTalker(k.place, agent.Claude, "s2")
	fork.hook("SessionStart.fork", nil)
	require.NoError(t, os.WriteFile(fork.transcriptPath(), text, 0o600))
	fork.tell("UserPromptSubmit", fields{"prompt": "third", "prompt_id": "t3"})
	fork.transcript("p3", "m2", "t3", "user", "third")
	fork.tell("Stop", fields{"prompt_id": "t3"})
	assert.Equal(t, []string{"fork from r1@2 after 0"}, k.edges("s2"))
	assert.Equal(t, []string{"fork to r2 after 2"}, k.edges("s1"))
	assert.Len(t, k.frames("s1"), 3, "nothing was taken back in it")
	assert.Len(t, k.frames("s2"), 2)
	runs, err := k.Runs(ctx, 0)
	require.NoError(t, err)
	require.Len(t, runs[0].Edges, 1)
	assert.Equal(t, "fork r1@2", runs[0].Edges[0].Kind+" "+runs[0].Edges[0].From)
}

// A fork of Codex names its parent.
func TestCodexSessionIsForked(t *testing.T) {
	const thread = "019f0a11-2c3d-7e4f-8a9b-0c1d2e3f4a5b"
	p := newRepo(t)
	p.write("a", "1")
	k := newTalker(p, agent.Codex, thread)
	r := k.recorded("rollout_two_turns.jsonl")
	k.tell("UserPromptSubmit", fields{"prompt": "one", "turn_id": "019f0a11-3000-7000-8000-00000000aaaa"})
	r.upTo("")
	k.tell("Stop", fields{"turn_id": "019f0a11-3000-7000-8000-00000000aaaa"})
	fork := newTalker(p, agent.Codex, "01a22885-14cd-7083-b480-7230f73439dd")
	text, err := os.ReadFile(filepath.Join("agent", "testdata", "codex", "rollout_after_thread_revert.jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(fork.transcriptPath(), text, 0o600))
	fork.tell("SessionStart.fork", nil)
	fork.tell("UserPromptSubmit", fields{"prompt": "two", "turn_id": "t2"})
	fork.tell("Stop", fields{"turn_id": "t2"})
	assert.Equal(t, []string{"fork from r1 after 0"}, p.edges("r2"))
	assert.Len(t, p.frames("r1"), 2)
}

// What retcon has prepared is known when it comes.
func TestSessionGoesOnElsewhere(t *testing.T) {
	k := spoken(t)
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	c, err := k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	require.NoError(t, k.Prepare(ctx, c))
	next := newTalker(k.place, agent.Claude, c.Session)
	next.hook("SessionStart.resume", nil)
	next.prompt("second, otherwise")
	next.stop()
	assert.Equal(t, []string{"continue from r1@1 after 0", "resume after 0"}, k.edges("r2"))
	assert.Equal(t, []string{"continue to r2 after 1"}, k.edges("r1"))
}

// A subagent's session belongs to another.
func TestSubagentSessionIsAnEdge(t *testing.T) {
	p := newRepo(t)
	for _, created := range []fields{{"id": "ses_1"}, {"id": "ses_2", "parentID": "ses_1"}} {
		b, err := json.Marshal(fields{"type": "session.created", "properties": fields{"sessionID": created["id"], "info": created}})
		require.NoError(t, err)
		_, err = p.Hook(ctx, retcon.HookOptions{Agent: agent.OpenCode, Event: "event", Payload: b})
		require.NoError(t, err)
	}
	runs, err := p.Runs(ctx, 0)
	require.NoError(t, err)
	require.Len(t, runs, 2)
	require.Len(t, runs[0].Edges, 1)
	assert.Equal(t, "subagent r1", runs[0].Edges[0].Kind+" "+runs[0].Edges[0].From)
}

// What of a session was not recorded, its next timeline tells, once; and nobody
// else's does.
func TestTimelineTellsWhatWasMissed(t *testing.T) {
	k := living(t, "s1")
	other := newTalker(k.place, agent.Claude, "s2")
	for _, one := range []*talker{k, other} {
		one.prompt("one")
		one.stop()
	}
	missed := func(run string) []string {
		tree, err := k.Timeline(ctx, retcon.TimelineOptions{Run: run})
		require.NoError(t, err)
		return tree.Missed
	}
	assert.Empty(t, missed("s1"))
	lost := func() {
		k.t.Helper()
		killed, kill := context.WithCancel(ctx)
		kill()
		_, err := k.Hook(killed, retcon.HookOptions{Agent: agent.Claude, Event: "PreToolUse", Payload: k.payload("PreToolUse.Bash", nil)})
		assert.Error(t, err)
	}
	for range 2 {
		lost()
	}
	told := missed("s1")
	require.Len(t, told, 2)
	assert.Contains(t, told[1], "hook claude/s1: ")
	assert.Empty(t, missed("s1"), "once")
	assert.Empty(t, missed("s2"))
	lost()
	assert.Len(t, missed("s1"), 1)
	require.NoError(t, os.Remove(filepath.Join(k.Folder(), "log", "missed")))
	assert.Empty(t, missed("s1"))
	lost()
	assert.Len(t, missed("s1"), 1, "also after somebody has cleared them away")
}
