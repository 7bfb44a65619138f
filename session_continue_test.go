package retcon_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// transcript writes a line of a conversation as Claude Code does.
func (k *talker) transcript(id, parent, turn, role, text string) {
	k.t.Helper()
	line, err := json.Marshal(fields{"uuid": id, "parentUuid": parent, "promptId": turn, "type": role, "sessionId": k.session,
		"message": fields{"role": role, "content": text}})
	require.NoError(k.t, err)
	f, err := os.OpenFile(k.transcriptPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	require.NoError(k.t, err)
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	require.NoError(k.t, err)
}

func (k *talker) transcriptPath() string {
	return filepath.Join(filepath.Dir(k.dir), k.session+".jsonl")
}

// spoken is a session of two prompts, with its transcript.
func spoken(t *testing.T) *talker {
	k := living(t, "s1")
	in := fields{"transcript_path": k.transcriptPath()}
	say := func(event string, more fields) {
		for key, v := range in {
			more[key] = v
		}
		k.hook(event, more)
	}
	say("UserPromptSubmit", fields{"prompt": "first", "prompt_id": "t1"})
	k.transcript("p1", "", "t1", "user", "first")
	k.write("b", "1")
	say("Stop", fields{"prompt_id": "t1"})
	k.transcript("m1", "p1", "", "assistant", "written late")
	say("UserPromptSubmit", fields{"prompt": "second", "prompt_id": "t2"})
	k.transcript("p2", "m1", "t2", "user", "second")
	k.transcript("m2", "p2", "", "assistant", "done")
	say("Stop", fields{"prompt_id": "t2"})
	return k
}

// said are the ids of a conversation that a continuation goes on with.
func conversationOf(t *testing.T, c *retcon.Continuation) (ids []string) {
	t.Helper()
	require.NoError(t, c.Write())
	require.Len(t, c.Files, 1)
	f, err := os.Open(c.Files[0])
	require.NoError(t, err)
	defer f.Close()
	entries, _, err := agent.ReadTranscript(c.Agent, f, 0)
	require.NoError(t, err)
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestContinuation(t *testing.T) {
	k := spoken(t)
	before, err := os.ReadFile(k.transcriptPath())
	require.NoError(t, err)

	c, err := k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	assert.Equal(t, []string{"claude", "--resume", c.Session}, c.Argv)
	assert.Equal(t, []string{"p1", "m1"}, conversationOf(t, c))
	assert.Error(t, c.Write(), "a conversation that may have gone on is left alone")

	c, err = k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: 2})
	require.NoError(t, err)
	assert.Equal(t, []string{"p1", "m1", "p2", "m2"}, conversationOf(t, c))

	c, err = k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	assert.Equal(t, []string{"claude"}, c.Argv)

	_, err = k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	c, err = k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: 1})
	require.NoError(t, err, "what was cut off is known still")
	assert.Equal(t, []string{"p1", "m1"}, conversationOf(t, c))

	after, err := os.ReadFile(k.transcriptPath())
	require.NoError(t, err)
	assert.Equal(t, before, after, "the client's file stays as it is")
}

func TestContinuationRefuses(t *testing.T) {
	k := living(t, "s1")
	for _, turn := range []string{"t1", "t2"} { // of which the client has written nothing down
		k.tell("UserPromptSubmit", fields{"prompt": turn, "prompt_id": turn})
		k.tell("Stop", fields{"prompt_id": turn})
	}
	_, err := k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: 1})
	assert.ErrorIs(t, err, agent.ErrSource)

	k.exec("plain", func() {})
	_, err = k.Continuation(ctx, retcon.ContinueOptions{Run: "plain"})
	var none *retcon.NotSessionError
	assert.ErrorAs(t, err, &none)
	_, err = k.Continuation(ctx, retcon.ContinueOptions{Run: "nobody"})
	assert.Equal(t, retcon.CodeNotFound, code(err))

	_, err = k.Hook(ctx, retcon.HookOptions{Agent: agent.Generic, Event: "prompt", Payload: []byte(`{"session": "g", "prompt": "p"}`)})
	require.NoError(t, err)
	_, err = k.Continuation(ctx, retcon.ContinueOptions{Run: "g"})
	assert.ErrorIs(t, err, agent.ErrUnsupported)
}

func TestShowASession(t *testing.T) {
	k := story(t)
	shown, err := k.Show(ctx, retcon.ShowOptions{At: "s1@prompt-1"})
	require.NoError(t, err)
	assert.Equal(t, int64(1), shown.Frame)
	require.NotNil(t, shown.Task)
	assert.Equal(t, "prompt-1 done", shown.Task.ID+" "+shown.Task.State)
	assert.True(t, strings.HasPrefix(shown.Label, "first"))
	k.prompt("third")
	tree, err := k.Timeline(ctx, retcon.TimelineOptions{Run: "s1"})
	require.NoError(t, err)
	assert.True(t, tree.Live)
	k.stop()
}
