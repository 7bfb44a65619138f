package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEncode(t *testing.T) {
	no := Answer{Deny: true, Reason: "a <move> holds it", Note: "files were rewound"}
	note := Answer{Note: "files were rewound & kept"}
	for _, test := range []struct {
		agent, event string
		answer       Answer
		want         string
	}{
		{Claude, "PreToolUse", no, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"a <move> holds it\n\nfiles were rewound"}}`},
		{Claude, "PreToolUse", note, `{"hookSpecificOutput":{"additionalContext":"files were rewound & kept","hookEventName":"PreToolUse"}}`},
		{Claude, "UserPromptSubmit", no, `{"decision":"block","reason":"a <move> holds it\n\nfiles were rewound"}`},
		{Claude, "PermissionRequest", no, `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"a <move> holds it\n\nfiles were rewound"},"hookEventName":"PermissionRequest"}}`},
		{Claude, "PostToolUse", no, `{"hookSpecificOutput":{"additionalContext":"files were rewound","hookEventName":"PostToolUse"}}`},
		{Claude, "Stop", no, ""},
		{Claude, "PreToolUse", Answer{}, ""},
		{Codex, "PreToolUse", Answer{Deny: true, Reason: "no"}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		{Codex, "SessionEnd", no, ""},
		{Gemini, "BeforeTool", Answer{Deny: true, Reason: "no"}, `{"decision":"deny","reason":"no"}`},
		{Gemini, "BeforeAgent", note, `{"hookSpecificOutput":{"additionalContext":"files were rewound & kept","hookEventName":"BeforeAgent"}}`},
		{OpenCode, "tool.execute.before", Answer{Deny: true, Reason: "no"}, `{"deny":"no"}`},
		{OpenCode, "event", no, ""},
		{Cursor, "preToolUse", Answer{Deny: true, Reason: "no"}, `{"agent_message":"no","permission":"deny","user_message":"no"}`},
		{Cline, "PreToolUse", Answer{Deny: true, Reason: "no"}, `{"cancel":true,"errorMessage":"no"}`},
		{Copilot, "preToolUse", Answer{Deny: true, Reason: "no"}, `{"permissionDecision":"deny","permissionDecisionReason":"no"}`},
		{Generic, "tool-before", Answer{Deny: true, Reason: "no"}, `{"deny":true,"reason":"no"}`},
		{Generic, "what", no, ""},
	} {
		t.Run(test.agent+" "+test.event, func(t *testing.T) {
			got, err := Encode(test.agent, test.event, test.answer)
			require.NoError(t, err)
			if test.want != "" {
				test.want += "\n"
			}
			assert.Equal(t, test.want, string(got))
		})
	}
}

func TestHears(t *testing.T) {
	deny, note, err := Hears(Gemini, "BeforeTool")
	require.NoError(t, err)
	assert.True(t, deny)
	assert.False(t, note, "Gemini CLI takes no note before a tool")
	deny, note, err = Hears(Claude, "Stop")
	require.NoError(t, err)
	assert.False(t, deny || note)
	_, _, err = Hears("nobody", "Stop")
	assert.ErrorIs(t, err, ErrUnknown)
}

// codexAllows are the fields that Codex takes in reply to an event, by its own
// schemas: with one more it ignores a denial.
func codexAllows(t testing.TB) map[string]struct {
	Stdout   []string `json:"stdout_allowed"`
	Specific []string `json:"hookSpecificOutput_allowed"`
} {
	data, err := os.ReadFile(filepath.Join("testdata", Codex, "_contract.json"))
	require.NoError(t, err)
	var all map[string]struct {
		Stdout   []string `json:"stdout_allowed"`
		Specific []string `json:"hookSpecificOutput_allowed"`
	}
	require.NoError(t, json.Unmarshal(data, &all))
	return all
}

// allowed are the fields of the others.
var allowed = map[string][]string{
	Claude:   {"hookSpecificOutput", "hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext", "hookSpecificOutput.permissionDecision", "hookSpecificOutput.permissionDecisionReason", "hookSpecificOutput.decision", "decision", "reason"},
	Gemini:   {"hookSpecificOutput", "hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext", "decision", "reason"},
	OpenCode: {"deny", "note"},
	Cline:    {"cancel", "errorMessage", "contextModification"},
	Cursor:   {"permission", "user_message", "agent_message", "continue"},
	Copilot:  {"permissionDecision", "permissionDecisionReason"},
	Generic:  {"deny", "reason", "note"},
}

func keysOf(t require.TestingT, out []byte) (keys []string) {
	var o map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(out, &o))
	for k, v := range o {
		keys = append(keys, k)
		if k == "hookSpecificOutput" {
			for _, sub := range keysOf(t, v) {
				keys = append(keys, k+"."+sub)
			}
		}
	}
	return keys
}

func TestAnswersHaveNoOtherField(t *testing.T) {
	codexAllowed := codexAllows(t)
	var events []string
	for _, c := range clients() {
		for e := range c.answers {
			events = append(events, e)
		}
	}
	for e := range codexAllowed {
		events = append(events, e)
	}
	slices.Sort(events)
	events = slices.Compact(events)
	rapid.Check(t, func(t *rapid.T) {
		agent := rapid.SampledFrom([]string{Claude, Codex, OpenCode, Gemini, Cline, Cursor, Copilot, Generic}).Draw(t, "agent")
		event := rapid.OneOf(rapid.SampledFrom(events), rapid.String()).Draw(t, "event")
		out, err := Encode(agent, event, Answer{
			Deny: rapid.Bool().Draw(t, "deny"), Reason: rapid.String().Draw(t, "reason"), Note: rapid.String().Draw(t, "note"),
		})
		require.NoError(t, err)
		if len(out) == 0 {
			return
		}
		for _, key := range keysOf(t, out) {
			if agent != Codex {
				require.Contains(t, allowed[agent], key)
				continue
			}
			may := codexAllowed[event].Stdout
			for _, s := range codexAllowed[event].Specific {
				may = append(may, "hookSpecificOutput."+s)
			}
			require.Contains(t, may, key, event)
		}
	})
}
