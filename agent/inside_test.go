package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What an agent starts knows by its environment which conversation it is part of.
func TestSessions(t *testing.T) {
	env := map[string]string{"CLAUDE_CODE_SESSION_ID": "c-1", "GEMINI_SESSION_ID": "g-1", "CLAUDECODE": "1"}
	getenv := func(name string) string { return env[name] }
	assert.Equal(t, []Session{{Claude, "c-1"}, {Gemini, "g-1"}}, Sessions(getenv))
	env = map[string]string{"CODEX_THREAD_ID": "x-1"}
	assert.Equal(t, []Session{{Codex, "x-1"}}, Sessions(getenv))
	env = nil
	assert.Empty(t, Sessions(getenv))
}
