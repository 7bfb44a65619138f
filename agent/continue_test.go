package agent

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const newSession = "11111111-2222-4333-8444-555555555555"

// cutAt is the pointer to a place in a recorded transcript.
func cutAt(t *testing.T, agent, session, path string, text []byte, cut func(string, []Entry, string) (Cutting, error), id string) Pointer {
	t.Helper()
	c, err := cut(agent, readAll(t, agent, text), id)
	require.NoError(t, err)
	p, err := Pointer{Agent: agent, Session: session, Transcript: path}.At(c, bytes.NewReader(text))
	require.NoError(t, err)
	return p
}

func TestContinueClaude(t *testing.T) {
	const session = "5b1f0c2e-7a44-4d0b-9a35-2f6f6f3c8e10"
	text := recording(t, Claude, "transcript_after_native_rewind.jsonl")
	p := cutAt(t, Claude, session, "/p/"+session+".jsonl", text, CutBeforePrompt, "b281ba8c-1aa1-4f9f-84bc-495a7fe27326")

	k, err := Continue(p, ContinueOptions{Headless: true, Session: newSession})
	require.NoError(t, err)
	assert.Equal(t, []string{"claude", "-p", "--output-format", "json", "--resume", session, "--resume-session-at", p.Entry, "--fork-session", "--session-id", newSession}, k.Argv)
	assert.Empty(t, k.Files, "the client branches by itself")

	k, err = Continue(p, ContinueOptions{Session: newSession, Source: bytes.NewReader(text)})
	require.NoError(t, err)
	assert.Equal(t, []string{"claude", "--resume", newSession}, k.Argv)
	require.Len(t, k.Files, 1)
	assert.Equal(t, "/p/"+newSession+".jsonl", k.Files[0].Path)
	assert.NotContains(t, string(k.Files[0].Content), session)
	entries := readAll(t, Claude, k.Files[0].Content)
	assert.Equal(t, "PMCRM", shown(entries), "without the branch that was left")
	assert.Equal(t, p.Entry, entries[len(entries)-1].ID)
}

func TestContinueCodex(t *testing.T) {
	const session = "019f0a11-2c3d-7e4f-8a9b-0c1d2e3f4a5b"
	const path = "/home/dev/.codex/sessions/2026/11/29/rollout-2026-11-29T17-38-14-" + session + ".jsonl"
	text := recording(t, Codex, "rollout_two_turns.jsonl")
	p := cutAt(t, Codex, session, path, text, CutAfter, "call_RetconSample000001")
	k, err := Continue(p, ContinueOptions{Session: newSession, Source: bytes.NewReader(text)})
	require.NoError(t, err)
	assert.Equal(t, []string{"codex", "resume", newSession}, k.Argv)
	assert.Equal(t, strings.Replace(path, session, newSession, 1), k.Files[0].Path)
	assert.Equal(t, strings.ReplaceAll(string(text[:p.Offset]), session, newSession), string(k.Files[0].Content))
	assert.Equal(t, "PCR", shown(readAll(t, Codex, k.Files[0].Content)))
	k, err = Continue(p, ContinueOptions{Session: newSession, Source: bytes.NewReader(text), Headless: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"codex", "exec", "--json", "--skip-git-repo-check", "resume", newSession, "-"}, k.Argv)

	// What the old file goes on from itself keeps its name.
	text = recording(t, Codex, "rollout_after_thread_revert.jsonl")
	p, _ = endOf(t, Pointer{Agent: Codex, Session: session, Transcript: "/s/rollout-2026-11-29T17-40-16-" + session + "_x.jsonl"}, text)
	p.Entry = "any"
	k, err = Continue(p, ContinueOptions{Session: newSession, Source: bytes.NewReader(text)})
	require.NoError(t, err)
	entries := readAll(t, Codex, k.Files[0].Content)
	assert.Equal(t, &Base{Session: session, Offset: 54287}, baseOf(entries))
	assert.Contains(t, string(k.Files[0].Content), `"id": "`+newSession+`"`)
	assert.Equal(t, "/s/rollout-2026-11-29T17-40-16-"+newSession+".jsonl", k.Files[0].Path)
}

func TestContinueGemini(t *testing.T) {
	const session = "033dfec0-6ca0-43f4-ae13-0c0df18ada78"
	text := recording(t, Gemini, "transcript.jsonl")
	p := cutAt(t, Gemini, session, "/c/x.jsonl", text, CutAfter, "write_file__call_a6384203e93bfbb814cbca22")
	k, err := Continue(p, ContinueOptions{Session: newSession, Source: bytes.NewReader(text), Folder: "/store"})
	require.NoError(t, err)
	assert.Equal(t, []string{"gemini", "--session-file", "/store/gemini-" + newSession + ".jsonl"}, k.Argv)
	assert.NotContains(t, string(k.Files[0].Content), session)
	live, err := Live(Gemini, readAll(t, Gemini, k.Files[0].Content))
	require.NoError(t, err)
	assert.Equal(t, "PCR", shown(live))
}

// Each resume writes the list of what was said once more, first without most of
// it: a prompt that came after one resume is found behind what came before it.
func TestCutAfterResumesOfGemini(t *testing.T) {
	var text strings.Builder
	line := func(s string) { text.WriteString(s + "\n") }
	resume := func(ids string) {
		line(`{"sessionId": "s", "kind": "main"}`)
		line(`{"$set": {"messages": [{"id": "context"}]}}`)
		line(`{"$set": {"messages": [{"id": "context"}` + ids + `]}}`)
	}
	line(`{"sessionId": "s", "kind": "main"}`)
	line(`{"$set": {"messages": [{"id": "context"}]}}`)
	line(`{"id": "p1", "type": "user", "content": "one"}`)
	line(`{"id": "m1", "type": "gemini", "content": "done"}`)
	resume(`, {"id": "p1"}, {"id": "m1"}`)
	line(`{"id": "p2", "type": "user", "content": "two"}`)
	resume(`, {"id": "p1"}, {"id": "m1"}, {"id": "p2"}`)
	line(`{"id": "p3", "type": "user", "content": "three"}`)
	all := []byte(text.String())
	for prompt, want := range map[string]string{"p2": "PM", "p3": "PMP"} {
		p := cutAt(t, Gemini, "s", "/c/x.jsonl", all, CutBeforePrompt, prompt)
		k, err := Continue(p, ContinueOptions{Session: newSession, Source: bytes.NewReader(all), Folder: "/store"})
		require.NoError(t, err)
		require.Len(t, k.Files, 1, prompt)
		live, err := Live(Gemini, readAll(t, Gemini, k.Files[0].Content))
		require.NoError(t, err)
		assert.Equal(t, want, shown(live), prompt)
	}
}

func TestContinueOpenCode(t *testing.T) {
	text := recording(t, OpenCode, "export/two_prompts.json")
	var before struct {
		Info     struct{ ID string }
		Messages []struct{ Info struct{ ID, Role string } }
	}
	require.NoError(t, json.Unmarshal(text, &before))
	require.Len(t, before.Messages, 5)
	second := before.Messages[3].Info.ID
	for name, p := range map[string]Pointer{"before": {Before: second}, "entry": {Entry: before.Messages[2].Info.ID}} {
		p.Agent, p.Session = OpenCode, before.Info.ID
		k, err := Continue(p, ContinueOptions{Session: newSession, Source: bytes.NewReader(text), Folder: "/store"})
		require.NoError(t, err)
		assert.Equal(t, [][]string{{"opencode", "import", k.Files[0].Path}}, k.Before, name)
		assert.Equal(t, []string{"opencode", "--session", k.Session}, k.Argv)
		after := before
		after.Messages = nil
		require.NoError(t, json.Unmarshal(k.Files[0].Content, &after))
		assert.Equal(t, k.Session, after.Info.ID)
		require.Len(t, after.Messages, 3)
		ids := regexp.MustCompile(`(ses|msg|prt)_\w+`)
		for _, old := range ids.FindAllString(string(text), -1) {
			assert.NotContains(t, string(k.Files[0].Content), old)
		}
		var order []string
		for _, m := range after.Messages {
			order = append(order, m.Info.ID)
		}
		assert.True(t, slices.IsSorted(order), "ids order the messages: %v", order)
	}
	_, err := Continue(Pointer{Agent: OpenCode, Session: before.Info.ID, Entry: "msg_none"}, ContinueOptions{Source: bytes.NewReader(text)})
	require.ErrorIs(t, err, ErrSource)
	_, err = Continue(Pointer{Agent: OpenCode, Entry: "x"}, ContinueOptions{Source: strings.NewReader("{")})
	require.ErrorIs(t, err, ErrSource)

	argv, err := ExportCommand(OpenCode, "ses_1")
	require.NoError(t, err)
	assert.Equal(t, []string{"opencode", "export", "ses_1"}, argv)
	_, err = ExportCommand(Claude, "s")
	require.ErrorIs(t, err, ErrUnsupported)
}

func TestExportedCall(t *testing.T) {
	text := recording(t, OpenCode, "export/two_prompts.json")
	var export struct {
		Messages []struct {
			Info  struct{ ID string }
			Parts []struct{ Type, CallID string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &export))
	found := 0
	for _, m := range export.Messages {
		for _, p := range m.Parts {
			if p.Type != "tool" {
				continue
			}
			found++
			message, alone, err := ExportedCall(OpenCode, text, p.CallID)
			require.NoError(t, err)
			assert.Equal(t, m.Info.ID, message)
			assert.True(t, alone)
		}
	}
	require.NotZero(t, found)
	_, alone, err := ExportedCall(OpenCode, []byte(`{"messages": [{"info": {"id": "m"}, "parts": [{"type": "tool", "callID": "c"}, {"type": "tool", "callID": "d"}]}]}`), "c")
	require.NoError(t, err)
	assert.False(t, alone, "two calls in one message")
	var none *NoCutError
	_, _, err = ExportedCall(OpenCode, text, "call_none")
	require.ErrorAs(t, err, &none)
	_, _, err = ExportedCall(OpenCode, []byte("{"), "c")
	require.ErrorIs(t, err, ErrSource)
	_, _, err = ExportedCall(Claude, text, "c")
	require.ErrorIs(t, err, ErrUnsupported)
}

// Hooks of Gemini CLI tell of no ids; the conversation has the same call.
func TestCallsDoing(t *testing.T) {
	entries := readAll(t, Gemini, recording(t, Gemini, "transcript.jsonl"))
	for file, want := range map[string]string{"write_file": "write_file__call_a6384203e93bfbb814cbca22", "replace": "replace__", "mcp_note_add_note": "mcp_note_add_note__"} {
		e, err := Decode(Gemini, "BeforeTool", recording(t, Gemini, "BeforeTool."+file+".json"))
		require.NoError(t, err)
		ids, err := CallsDoing(Gemini, entries, CallKey(e.Tool, e.ToolInput))
		require.NoError(t, err)
		require.Len(t, ids, 1, file)
		assert.True(t, strings.HasPrefix(ids[0], want), ids[0])
		_, err = CutAfter(Gemini, entries, ids[0])
		require.NoError(t, err)
	}
	assert.Equal(t, CallKey("t", []byte(`{ "a": 1 }`)), CallKey("t", []byte(`{"a":1}`)))
	assert.NotEqual(t, CallKey("t", []byte(`{"a":1}`)), CallKey("u", []byte(`{"a":1}`)))
	ids, err := CallsDoing(Gemini, entries, CallKey("write_file", nil))
	require.NoError(t, err)
	assert.Empty(t, ids)
}

func TestContinueRefuses(t *testing.T) {
	text := recording(t, Gemini, "transcript.jsonl")
	p := cutAt(t, Gemini, "s", "/c/x.jsonl", text, CutAfter, "write_file__call_a6384203e93bfbb814cbca22")
	changed := slices.Clone(text)
	changed[10] ^= 1
	for name, o := range map[string]ContinueOptions{
		"no source": {}, "another file": {Source: bytes.NewReader(changed)}, "a shorter file": {Source: bytes.NewReader(text[:p.Offset-1])},
	} {
		for _, agent := range []string{Claude, Codex, Gemini} {
			p.Agent = agent
			_, err := Continue(p, o)
			assert.ErrorIs(t, err, ErrSource, "%s %s", agent, name)
		}
	}
	_, err := Continue(Pointer{Agent: Cursor, Entry: "x"}, ContinueOptions{})
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = Continue(Pointer{Agent: "nobody"}, ContinueOptions{})
	require.ErrorIs(t, err, ErrUnknown)
}

func TestContinueFromNothing(t *testing.T) {
	k, err := Continue(Pointer{Agent: Claude, Session: "s"}, ContinueOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"claude"}, k.Argv)
	assert.NotEmpty(t, k.Note)
	k, err = Continue(Pointer{Agent: Codex, Session: "s"}, ContinueOptions{Headless: true})
	require.NoError(t, err)
	assert.Equal(t, "-", k.Argv[len(k.Argv)-1])
}

func TestNewUUID(t *testing.T) {
	a, b := newUUID(), newUUID()
	assert.NotEqual(t, a, b)
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, a)
}
