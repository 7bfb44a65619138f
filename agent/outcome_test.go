package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How a call ended is told in a different way by each client; what is not told
// is not guessed.
func TestOutcomes(t *testing.T) {
	gemini := func(told, shown string) string {
		return fmt.Sprintf(`{"session_id":"s","tool_name":"run_shell_command","tool_input":{"command":"x"},"tool_response":{"llmContent":%q,"returnDisplay":%q}}`, told, shown)
	}
	for _, test := range []struct{ name, agent, event, payload, want string }{
		{"claude, well", Claude, "PostToolUse", `{"tool_name":"Bash","tool_response":{"stdout":"a","stderr":"b"}}`, "a\nb 0"},
		{"claude, not well", Claude, "PostToolUseFailure", `{"tool_name":"Bash","error":"Exit code 3\nno such\nthing"}`, "no such\nthing 3"},
		{"claude, out of time", Claude, "PostToolUseFailure", `{"tool_name":"Bash","error":"Command timed out after 2m"}`, "Command timed out after 2m nil"},
		{"claude, interrupted", Claude, "PostToolUseFailure", `{"tool_name":"Bash","error":"Exit code 1","is_interrupt":true}`, "Exit code 1 nil"},
		{"claude, interrupted and told as well", Claude, "PostToolUse", `{"tool_name":"Bash","tool_response":{"stdout":"a","interrupted":true}}`, "a nil"},
		{"claude, a status that is none", Claude, "PostToolUse", `{"tool_name":"Bash","tool_response":{"stdout":"","returnCodeInterpretation":"No matches found"}}`, " nil"},
		{"claude, in the background", Claude, "PostToolUse", `{"tool_name":"Bash","tool_response":{"stdout":"","backgroundTaskId":"b1"}}`, " nil"},
		{"claude, a server's tool", Claude, "PostToolUse", `{"tool_name":"mcp__note__add","tool_response":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`, "x\ny 0 note/add"},
		{"claude, a server's error", Claude, "PostToolUseFailure", `{"tool_name":"mcp__note__add","error":"no"}`, "no 1 note/add"},
		{"codex, a shell", Codex, "PostToolUse", `{"tool_name":"Bash","tool_response":"a"}`, "a nil"},
		{"codex, a server's tool", Codex, "PostToolUse", `{"tool_name":"mcp__note__add","tool_response":{"content":[{"type":"text","text":"x"}]}}`, "x 0 note/add"},
		{"codex, a server's error", Codex, "PostToolUse", `{"tool_name":"mcp__note__add","tool_response":{"isError":true,"content":[{"type":"text","text":"x"}]}}`, "x 1 note/add"},
		{"gemini, well", Gemini, "AfterTool", gemini("Output: a\nProcess Group PGID: 1", "a"), "a 0"},
		{"gemini, well and silent", Gemini, "AfterTool", gemini("<untrusted_context>\nOutput: (empty)\nProcess Group PGID: 1\n</untrusted_context>", ""), " 0"},
		{"gemini, not well", Gemini, "AfterTool", gemini("Output: a\nExit Code: 3\nProcess Group PGID: 1", "a"), "a 3"},
		{"gemini, an output that says otherwise", Gemini, "AfterTool", gemini("Output: a\nExit Code: 3\nProcess Group PGID: 1", "a\nExit Code: 3"), "a\nExit Code: 3 0"},
		{"gemini, killed", Gemini, "AfterTool", gemini("Output: a\nSignal: 9", "a"), "a nil"},
		{"gemini, cancelled", Gemini, "AfterTool", gemini("Command was cancelled by user before it could complete.", "Command cancelled by user."), "Command cancelled by user. nil"},
		{"gemini, a server's tool", Gemini, "AfterTool", `{"tool_name":"mcp_a_b_c","mcp_context":{"server_name":"a_b","tool_name":"c"},"tool_response":{"llmContent":[{"text":"x"}]}}`, "x 0 a_b/c"},
		{"gemini, a server's error", Gemini, "AfterTool", `{"tool_name":"mcp_a_c","mcp_context":{"server_name":"a","tool_name":"c"},"tool_response":{"error":{"message":"no"}}}`, " 1 a/c"},
		{"opencode, well", OpenCode, "tool.execute.after", `{"input":{"tool":"bash"},"output":{"output":"a","metadata":{"exit":0}}}`, "a 0"},
		{"opencode, not well", OpenCode, "tool.execute.after", `{"input":{"tool":"bash"},"output":{"output":"a","metadata":{"exit":3}}}`, "a 3"},
		{"opencode, aborted", OpenCode, "tool.execute.after", `{"input":{"tool":"bash"},"output":{"output":"a","metadata":{"exit":null}}}`, "a nil"},
		{"opencode, a server's tool", OpenCode, "tool.execute.after", `{"input":{"tool":"note_add_note"},"output":{"content":[{"type":"text","text":"x"}]}}`, "x 0 note/add_note"},
		{"opencode, one of its own", OpenCode, "tool.execute.after", `{"input":{"tool":"apply_patch"},"output":{"output":"x"}}`, "x 0"},
		{"generic", Generic, "tool-after", `{"tool":"sh","output":"a","exit":3}`, "a 3"},
		{"generic, not told", Generic, "tool-after", `{"tool":"sh","output":{"output":"a"}}`, "a nil"},
		{"cline, a server's tool", Cline, "PreToolUse", `{"tool_call":{"name":"use_mcp_tool","input":{"server_name":"a","tool_name":"b"}}}`, " nil a/b"},
		{"cursor, a server's tool", Cursor, "preToolUse", `{"tool_name":"MCP:add"}`, " nil cursor/add"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := Decode(test.agent, test.event, []byte(test.payload))
			require.NoError(t, err)
			got := e.Output + " nil"
			if e.Exit != nil {
				got = fmt.Sprintf("%s %d", e.Output, *e.Exit)
			}
			if e.Server != "" {
				got += " " + e.Server + "/" + e.ServerTool
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// Codex tells its hooks what a command printed, and writes down before that how
// it ended.
func TestExitInTranscript(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "codex", "transcript.jsonl"))
	require.NoError(t, err)
	exit := func(agent string, text []byte, call string) string {
		n, err := ExitInTranscript(agent, bytes.NewReader(text), int64(len(text)), call)
		require.NoError(t, err)
		if n == nil {
			return "nil"
		}
		return fmt.Sprint(*n)
	}
	assert.Equal(t, "0", exit(Codex, text, "call_40c7ba20dd37c32a443804cb"))
	assert.Equal(t, "3", exit(Codex, text, "call_07b49062f6c48061690be5e6"))
	assert.Equal(t, "nil", exit(Codex, text, "call_86879880674605534c5f7805"), "a patch is no command")
	assert.Equal(t, "nil", exit(Codex, text, "call_nobody"))
	assert.Equal(t, "nil", exit(Codex, text, ""))
	assert.Equal(t, "nil", exit(Claude, text, "call_07b49062f6c48061690be5e6"))
	at := bytes.Index(text, []byte(`"id": "call_07b49062f6c48061690be5e6"`))
	require.Positive(t, at)
	assert.Equal(t, "nil", exit(Codex, text[:at+60], "call_07b49062f6c48061690be5e6"), "a line that is not whole")
	far := append(bytes.Clone(text), []byte(strings.Repeat("{}\n", exitBack/3+1))...)
	assert.Equal(t, "nil", exit(Codex, far, "call_07b49062f6c48061690be5e6"), "long ago")
	_, err = ExitInTranscript("nobody", bytes.NewReader(nil), 0, "x")
	assert.ErrorIs(t, err, ErrUnknown)
}
