package agent

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// payloads are the recorded ones: file name to content.
func payloads(t testing.TB, agent string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", agent, "*.json"))
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, f := range files {
		name := filepath.Base(f)
		if strings.HasPrefix(name, "_") {
			continue
		}
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		all[name] = data
	}
	require.NotEmpty(t, all)
	return all
}

// eventOf is the event that a recorded file's name begins with.
func eventOf(agent, file string) string {
	name := strings.TrimSuffix(file, ".json")
	switch {
	case agent == OpenCode && strings.HasPrefix(name, "event."):
		return "event"
	case agent == OpenCode:
		for known := range openCodeKinds {
			if name == known || strings.HasPrefix(name, known+".") {
				return known
			}
		}
	}
	event, _, _ := strings.Cut(name, ".")
	return event
}

// line shows what an event says: the fields that are not empty, without the
// raw payload.
func line(e Event) string {
	var b strings.Builder
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if f.IsZero() || name == "Raw" || name == "Agent" {
			continue
		}
		switch value := f.Interface().(type) {
		case json.RawMessage:
			var short bytes.Buffer
			if json.Compact(&short, value) == nil && short.Len() > 60 {
				short.Truncate(60)
			}
			fmt.Fprintf(&b, " %s=%s", name, short.String())
		case []Call:
			for _, c := range value {
				fmt.Fprintf(&b, " Call=%s/%s/%d/%d", c.ID, c.Tool, len(c.Input), len(c.Output))
			}
		case bool:
			fmt.Fprintf(&b, " %s=%t", name, value)
		case *int:
			fmt.Fprintf(&b, " %s=%d", name, *value)
		default:
			fmt.Fprintf(&b, " %s=%.160q", name, value)
		}
	}
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	wanted := strings.Split(string(want), "\n")
	lines := strings.Split(got, "\n")
	for i := range min(len(wanted), len(lines)) {
		require.Equal(t, wanted[i], lines[i], "%s:%d", path, i+1)
	}
	assert.Len(t, lines, len(wanted))
}

func TestDecodeRecorded(t *testing.T) {
	for _, agent := range []string{Claude, Codex, OpenCode, Gemini, Cline, Cursor, Copilot} {
		t.Run(agent, func(t *testing.T) {
			all := payloads(t, agent)
			var got strings.Builder
			for _, file := range sorted(all) {
				e, err := Decode(agent, eventOf(agent, file), all[file])
				require.NoError(t, err, file)
				assert.Equal(t, agent, e.Agent)
				assert.NotEqual(t, Unknown, e.Kind, file)
				assert.JSONEq(t, string(all[file]), string(e.Raw))
				fmt.Fprintf(&got, "%s:%s\n", file, line(e))
			}
			golden(t, filepath.Join("testdata", agent, "events.txt"), got.String())
		})
	}
}

func TestDecodeIsLenient(t *testing.T) {
	for _, test := range []struct{ name, agent, event, payload, want string }{
		{"no event's name", Claude, "", `{"hook_event_name":"Stop","session_id":"s"}`, ` Name="Stop" Kind="turn-end" Session="s"`},
		{"an event of tomorrow", Claude, "Tomorrow", `{"session_id":"s"}`, ` Name="Tomorrow" Kind="unknown" Session="s"`},
		{"fields of other types", Claude, "PreToolUse", `{"session_id":1,"cwd":{},"tool_name":["Bash"],"tool_input":"x","tool_use_id":null,"background_tasks":7}`, ` Name="PreToolUse" Kind="tool-before" ToolInput="x"`},
		{"nothing at all", Codex, "", `{}`, ` Kind="unknown"`},
		{"background", Claude, "Stop", `{"background_tasks":[{"id":"b1","status":"running"},{"id":"b2","status":"completed"},"b3"]}`, ` Name="Stop" Kind="turn-end" Running=["b3" "b1"]`},
		{"Cursor runs Claude's hook", Claude, "Stop", `{"cursor_version":"3","conversation_id":"c"}`, ` Name="Stop" Kind="turn-end" Session="c"`},
		{"interrupted", Claude, "PostToolUseFailure", `{"is_interrupt":true,"error":"no"}`, ` Name="PostToolUseFailure" Kind="tool-failed" Output="no" Interrupted=true Error="no"`},
		{"a patch that moves", Codex, "PreToolUse", `{"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: a b\n*** Move to: c\n+*** Add File: not this\n*** Delete File: d\r\n*** End Patch"}}`, ` Name="PreToolUse" Kind="tool-before" Tool="apply_patch" ToolInput={"command":"*** Begin Patch\n*** Update File: a b\n*** Move  Paths=["a b" "c" "d"]`},
		{"an opencode child", OpenCode, "event", `{"hook":"event","input":{"type":"session.created","properties":{"info":{"id":"c","parentID":"p"}}},"directory":"/d"}`, ` Name="session.created" Kind="subagent-start" Session="c" Parent="p" Subagent="c" CWD="/d"`},
		{"an opencode abort", OpenCode, "event", `{"type":"session.error","properties":{"sessionID":"s","error":{"name":"MessageAbortedError","data":{"message":"Aborted"}}}}`, ` Name="session.error" Kind="turn-end" Session="s" Interrupted=true Error="Aborted"`},
		{"a Gemini failure", Gemini, "AfterTool", `{"tool_name":"replace","tool_response":{"error":{"message":"no"}}}`, ` Name="AfterTool" Kind="tool-after" Tool="replace" ToolOutput={"error":{"message":"no"}} Exit=1 Error="no"`},
		{"generic", Generic, "tool-before", `{"session":"s","call":"1","tool":"sh","command":"ls","paths":["a","b"],"background":true}`, ` Name="tool-before" Kind="tool-before" Session="s" Tool="sh" CallID="1" Command="ls" Paths=["a" "b"] Background=true`},
		{"generic may not say other", Generic, "other", `{}`, ` Name="other" Kind="unknown"`},
		{"Copilot's string of JSON", Copilot, "preToolUse", `{"toolName":"bash","toolArgs":"{\"command\":\"ls\"}"}`, ` Name="preToolUse" Kind="tool-before" Tool="bash" ToolInput={"command":"ls"} Command="ls"`},
		{"Cline's error", Cline, "PostToolUse", `{"tool_result":{"name":"x","error":"no"}}`, ` Name="PostToolUse" Kind="tool-failed" Tool="x" Error="no"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := Decode(test.agent, test.event, []byte(test.payload))
			require.NoError(t, err)
			assert.Equal(t, test.want, line(e))
		})
	}
	e, err := Decode(Claude, "Stop", []byte(`{"cursor_version":"3"}`))
	require.NoError(t, err)
	assert.Equal(t, Cursor, e.Agent)
}

func TestDecodeRefuses(t *testing.T) {
	for _, payload := range []string{``, `null`, `[]`, `"x"`, `{`, `{} {}`} {
		_, err := Decode(Claude, "Stop", []byte(payload))
		assert.ErrorIs(t, err, ErrPayload, payload)
	}
	_, err := Decode("nobody", "Stop", []byte(`{}`))
	assert.ErrorIs(t, err, ErrUnknown)
}

// Any object is an event, whatever is in it, and none makes an answer with
// another field.
func FuzzDecode(f *testing.F) {
	for _, agent := range []string{Claude, Codex, OpenCode, Gemini, Cline, Cursor, Copilot} {
		for file, payload := range payloads(f, agent) {
			f.Add(eventOf(agent, file), payload)
		}
	}
	f.Fuzz(func(t *testing.T, event string, payload []byte) {
		var o map[string]json.RawMessage
		valid := json.Unmarshal(payload, &o) == nil && o != nil
		for _, c := range clients() {
			e, err := Decode(c.Name, event, payload)
			require.Equal(t, valid, err == nil)
			if valid {
				require.NotEmpty(t, e.Kind)
				require.NotEmpty(t, e.Agent)
			}
		}
	})
}
