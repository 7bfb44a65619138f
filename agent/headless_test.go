package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommand(t *testing.T) {
	schema := []byte(`{"type":"object"}`)
	full := RunOptions{Prompt: "-p do it", Model: "m", Session: "s", Fork: true, Schema: schema, SchemaFile: "/x/schema.json", Mode: All, TrustHooks: true, Extra: []string{"--more"}}
	for _, test := range []struct {
		name, agent string
		options     RunOptions
		want        []string
	}{
		{"least", Claude, RunOptions{}, []string{"claude", "-p", "--output-format", "json"}},
		{"all", Claude, full, []string{"claude", "-p", "--output-format", "json", "--model", "m", "--resume", "s", "--fork-session", "--json-schema", `{"type":"object"}`, "--permission-mode", "bypassPermissions", "--more"}},
		{"edits", Claude, RunOptions{Mode: Edits}, []string{"claude", "-p", "--output-format", "json", "--permission-mode", "acceptEdits"}},
		{"least", Codex, RunOptions{}, []string{"codex", "exec", "--json", "--skip-git-repo-check", "-"}},
		{"all", Codex, full, []string{"codex", "exec", "--json", "--skip-git-repo-check", "--model", "m", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "--output-schema", "/x/schema.json", "--more", "fork", "s", "-"}},
		{"resume", Codex, RunOptions{Session: "s", Mode: Plan}, []string{"codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", "resume", "s", "-"}},
		{"least", OpenCode, RunOptions{}, []string{"opencode", "run", "--format", "json"}},
		{"all", OpenCode, full, []string{"opencode", "run", "--format", "json", "--model", "m", "--session", "s", "--fork", "--auto", "--more"}},
		{"least", Gemini, RunOptions{}, []string{"gemini", "--output-format", "json"}},
		{"resume", Gemini, RunOptions{Model: "m", Session: "s", Mode: Edits, TrustHooks: true}, []string{"gemini", "--output-format", "json", "--model", "m", "--resume", "s", "--approval-mode", "auto_edit", "--skip-trust"}},
	} {
		t.Run(test.agent+" "+test.name, func(t *testing.T) {
			in, err := Command(test.agent, test.options)
			require.NoError(t, err)
			assert.Equal(t, test.want, in.Argv)
			assert.Contains(t, in.Stdin, test.options.Prompt)
		})
	}
	in, err := Command(Codex, full)
	require.NoError(t, err)
	assert.Equal(t, []File{{Path: "/x/schema.json", Content: schema}}, in.Files)
	in, err = Command(OpenCode, full)
	require.NoError(t, err)
	assert.Contains(t, in.Stdin, string(schema), "no option for it")

	for agent, o := range map[string]RunOptions{Gemini: full, Codex: {Schema: schema}, Cursor: {}, Generic: {}} {
		_, err := Command(agent, o)
		assert.ErrorIs(t, err, ErrUnsupported, agent)
	}
}

func TestParseResult(t *testing.T) {
	for _, test := range []struct {
		agent, file string
		exit        int
		want        Result
	}{
		{Claude, "ok.json", 0, Result{Text: "Hello from the model.", Session: "6f3813b5-8196-4846-92ed-7dad3a301b51", Usage: Usage{InputTokens: 100, OutputTokens: 20, CostUSD: 0.0008}}},
		{Claude, "schema.json", 0, Result{Text: `{"answer":"42"}`, Structured: []byte(`{"answer":"42"}`), Usage: Usage{InputTokens: 100, OutputTokens: 20, CostUSD: 0.0008}}},
		{Claude, "stream.jsonl", 0, Result{Text: "Hello from the model.", Usage: Usage{InputTokens: 100, OutputTokens: 20, CostUSD: 0.0008}}},
		{Claude, "unreachable.json", 1, Result{
			Text: "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)", Session: "",
			Failure: &Failure{FailedAPI, "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"},
		}},
		{Codex, "ok.jsonl", 0, Result{Text: "Hello from the model.", Session: "01a22c5d-4f54-7972-82ab-39f3dec0ff3f", Usage: Usage{InputTokens: 100, OutputTokens: 20}}},
		{Codex, "unreachable.jsonl", 137, Result{Failure: &Failure{FailedAPI, "Reconnecting... waiting for network (Connection failed: error sending request)"}}},
		{OpenCode, "ok.jsonl", 0, Result{Text: "Hello from the model.", Session: "ses_dd3a28c5affe8a7AhmFkiBPv3Q", Usage: Usage{InputTokens: 100, OutputTokens: 20}}},
		{OpenCode, "fenced.jsonl", 0, Result{Text: "```json\n{\"answer\":\"42\"}\n```", Structured: []byte(`{"answer":"42"}`), Usage: Usage{InputTokens: 100, OutputTokens: 20}}},
		{OpenCode, "error.jsonl", 1, Result{Failure: &Failure{FailedAPI, "Unexpected server error. Check server logs for details."}}},
		{Gemini, "ok.json", 0, Result{Text: "Hello from the model.", Session: "af5d397b-e1ec-4b63-95c1-83e711339e12", Usage: Usage{InputTokens: 100, OutputTokens: 20}}},
	} {
		t.Run(test.agent+" "+test.file, func(t *testing.T) {
			out, err := os.ReadFile(filepath.Join("testdata", test.agent, "run", test.file))
			require.NoError(t, err)
			got, err := ParseResult(test.agent, out, test.exit)
			require.NoError(t, err)
			assert.NotEmpty(t, got.Session)
			if test.want.Session == "" {
				got.Session = ""
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestParseResultOfLittle(t *testing.T) {
	for _, agent := range []string{Claude, Codex, OpenCode, Gemini} {
		r, err := ParseResult(agent, []byte("no such session\n"), 1)
		require.NoError(t, err)
		assert.Equal(t, &Failure{FailedExit, "exit status 1"}, r.Failure, agent)
		for _, out := range []string{"", "{", "[1]", "{}\n", "what {is} this"} {
			_, err = ParseResult(agent, []byte(out), 0)
			assert.ErrorIs(t, err, ErrOutput, "%s %q", agent, out)
		}
	}
	r, err := ParseResult(Claude, []byte(`{"type":"result","subtype":"error_max_turns","session_id":"s","is_error":true}`), 1)
	require.NoError(t, err)
	assert.Equal(t, &Failure{FailedLimit, "error_max_turns"}, r.Failure)
	r, err = ParseResult(Claude, []byte("warning: x\n[{\"type\":\"system\"},{\"type\":\"result\",\"subtype\":\"success\",\"session_id\":\"s\",\"result\":\"ok\"}]\n"), 0)
	require.NoError(t, err)
	assert.Equal(t, "ok", r.Text)
	// What went wrong on the way and was tried again is no failure.
	r, err = ParseResult(Codex, []byte("{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"error\",\"message\":\"Reconnecting\"}\n{\"type\":\"turn.completed\"}\n"), 0)
	require.NoError(t, err)
	assert.Nil(t, r.Failure)
}

func FuzzParseResult(f *testing.F) {
	f.Add([]byte(`{"type":"result","usage":{"input_tokens":"x"}}`), 0)
	f.Fuzz(func(t *testing.T, out []byte, exit int) {
		for _, agent := range []string{Claude, Codex, OpenCode, Gemini} {
			r, err := ParseResult(agent, out, exit)
			if exit != 0 {
				require.NoError(t, err)
				require.NotNil(t, r.Failure)
			}
		}
	})
}
