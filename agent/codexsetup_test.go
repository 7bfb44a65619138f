package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The hashes are those that `codex app-server`, method hooks/list, gave for
// these hooks (0.171.0).
func TestCodexHash(t *testing.T) {
	for _, test := range []struct {
		event, matcher, command string
		timeout                 int
		want                    string
	}{
		{"PreToolUse", "Bash|apply_patch", "retcon hook codex PreToolUse", 10, "sha256:03fdee37fea13f88abddbe5ff19685dfc327d3bbd41e8f252ce1f2827d8f30c2"},
		{"SessionStart", "", "x y", 10, "sha256:6687d25496cda401dc54c3b843698bd1552231dc87c4a31490847879f18cd9ca"},
		{"SessionStart", "", "x y", 600, "sha256:748d6cd3a46be3c9edba6585078859b634a8c6164599240aeba2b827456b1c84"},
		{"SessionEnd", "", "x y", 3, "sha256:f65e6f069827cfa72a55a0bacaed12e9859c486aa16f55ce4054a8827941e0f4"},
		{"PreToolUse", "Bash", "foo <a> && b 'x' \"y\" é", 10, "sha256:80f1300e2209e553393c63bee76f8ca3bc8686735b0d39fa0712edf2508d9adb"},
	} {
		g := map[string]any{}
		if test.matcher != "" {
			g["matcher"] = test.matcher
		}
		h := map[string]any{"command": test.command, "timeout": float64(test.timeout)}
		assert.Equal(t, test.want, codexHash(test.event, g, h), test.event)
	}
}

func TestPasteThenCutIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"\n", "\r\n", "# retcon", "a = 1", " ", "[t]", "# ende"})).Draw(t, "text")
		before := strings.Join(pieces, "")
		text := hooksMark.paste(before, "a = 1\n", false)
		text = trustMark.paste(text, "b = 1\n", false)
		require.NotEqual(t, before, text)
		require.Equal(t, before, hooksMark.cut(trustMark.cut(text)))
	})
	assert.Empty(t, hooksMark.cut(hooksMark.paste("", "a = 1\n", true)))
}

// Where the user has hooks in config.toml, ours go there, behind them: one in
// front would change the place by which theirs are trusted.
func TestCodexHooksInTOML(t *testing.T) {
	s := testSetup(t)
	path := filepath.Join(s.Home, ".codex/config.toml")
	put(t, path, codexTOMLHooks)
	_, err := s.Install(Codex)
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(s.Home, ".codex/hooks.json"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(data), codexTOMLHooks+"\n"))
	tree, err := parseTOML(string(data))
	require.NoError(t, err)
	found := codexFound(path, tree)
	require.Len(t, found, len(codexEvents))
	assert.Equal(t, path+":session_start:0:0", found[0].key)
	assert.Equal(t, path+":pre_tool_use:1:0", found[2].key)

	put(t, path, strings.Replace(string(data), "timeout = 10", "timeout = 11", 1))
	st, err := s.Status(Codex)
	require.NoError(t, err)
	assert.Equal(t, Edited, st.State)
}

func TestCodexTrust(t *testing.T) {
	s := testSetup(t)
	path := filepath.Join(s.Home, ".codex/config.toml")
	change, err := s.Install(Codex)
	require.NoError(t, err)
	assert.Equal(t, []string{approve}, change.Notes)

	// The user approves a hook, and our binary moves: Codex calls it modified.
	data, err := os.ReadFile(filepath.Join(s.Home, ".codex/hooks.json"))
	require.NoError(t, err)
	d, err := parseDoc(data)
	require.NoError(t, err)
	tree, err := plain(d.read(d.root))
	require.NoError(t, err)
	put(t, path, trustTable(codexFound(filepath.Join(s.Home, ".codex/hooks.json"), tree)))
	st, err := s.Status(Codex)
	require.NoError(t, err)
	assert.Equal(t, "trusted", st.Trust)
	s.Exe = "/elsewhere/retcon"
	s.Trust = true
	change, err = s.Install(Codex)
	require.NoError(t, err)
	assert.Equal(t, []string{approve}, change.Notes, "the client's own entries are the user's to change")
	st, err = s.Status(Codex)
	require.NoError(t, err)
	assert.Equal(t, "modified", st.Trust)
}

// Trust is the user's, also for the hooks of a project.
func TestCodexTrustOfAProject(t *testing.T) {
	s := testSetup(t)
	s.Scope, s.Trust = Project, true
	change, err := s.Install(Codex)
	require.NoError(t, err)
	assert.Equal(t, []Touch{
		{Path: filepath.Join(s.Root, ".codex/hooks.json"), Done: "created"}, {Path: filepath.Join(s.Home, ".codex/config.toml"), Done: "created"},
	}, change.Touched)
}

func TestCodexDisabled(t *testing.T) {
	s := testSetup(t)
	put(t, filepath.Join(s.Home, ".codex/config.toml"), "[features]\nhooks = false\n")
	st, err := s.Status(Codex)
	require.NoError(t, err)
	assert.Equal(t, "features.hooks is false in config.toml", st.Disabled)
}
