package agent

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func testSetup(t *testing.T) Setup {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, sub := range []string{"home", "project"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	return Setup{Home: filepath.Join(dir, "home"), Root: filepath.Join(dir, "project"), Exe: "/usr/bin/retcon", Backups: filepath.Join(dir, "backups")}
}

// tree is every file below a folder, with its content and mode.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			link, err := os.Readlink(path)
			all[path] = "-> " + link
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = info.Mode().String() + "\n" + string(data)
		return err
	}))
	return all
}

func put(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

const codexTOML = `# my settings
model = "gpt-5.5" # the good one

[mcp_servers.note]
command = "note"
args = [ "a",
         "b" ]   # odd, and mine
[hooks.state."/elsewhere/hooks.json:stop:0:0"]
trusted_hash = "sha256:1"
`

const codexTOMLHooks = codexTOML + `
[[hooks.PreToolUse]]
matcher = "Bash"
[[hooks.PreToolUse.hooks]]
type = "command"
command = "notify-send tool"`

// foreign are settings that people have, by client and file.
var foreign = map[string]map[string]string{
	"nothing":             {},
	"empty files":         {".claude/settings.json": "", ".gemini/settings.json": "\n", ".codex/config.toml": "", ".codex/hooks.json": "{}"},
	"settings":            {".claude/settings.json": "{\n\t\"model\": \"opus\",\n\t\"hooks\": {\n\t\t\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]\n\t}\n}", ".gemini/settings.json": "{\r\n  // dark\r\n  \"theme\": \"x\",\r\n}\r\n", ".codex/config.toml": codexTOML},
	"hooks":               {".codex/config.toml": codexTOMLHooks, ".claude/settings.local.json": `{"permissions":{"allow":["Bash(ls)"]}}`, ".cursor/hooks.json": `{"version": 1, "hooks": {}}`},
	"hooks.json":          {".codex/hooks.json": "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]}}\n", ".codex/config.toml": strings.ReplaceAll(codexTOML, "\n", "\r\n")},
	"a plugin of another": {".config/opencode/plugins/other.js": "export const Other = 1\n", ".opencode/plugins/other.js": "export const Other = 1\n"},
}

func TestInstallThenRemoveLeavesNothing(t *testing.T) {
	for name, files := range foreign {
		for _, scope := range []Scope{User, Project} {
			for _, agent := range []string{Claude, Codex, OpenCode, Gemini, Cline, Cursor, Copilot} {
				if agent == Copilot && scope == User || agent == Cursor && files[".cursor/hooks.json"] == "" {
					continue // no such place; a head of our own stays
				}
				for _, trust := range []bool{false, true} {
					if trust && agent != Codex {
						continue
					}
					t.Run(strings.Join([]string{name, string(scope), agent}, " "), func(t *testing.T) {
						t.Parallel()
						s := testSetup(t)
						s.Scope, s.Trust = scope, trust
						for file, content := range files {
							put(t, filepath.Join(s.Home, file), content)
							put(t, filepath.Join(s.Root, file), content)
						}
						before := [2]map[string]string{tree(t, s.Home), tree(t, s.Root)}
						for range 2 {
							first, err := s.Install(agent)
							require.NoError(t, err)
							assert.NotEmpty(t, first.Touched)
							again, err := s.Install(agent)
							require.NoError(t, err)
							assert.Empty(t, again.Touched, "a second time")
							st, err := s.Status(agent)
							require.NoError(t, err)
							assert.Equal(t, Installed, st.State, "%+v", st)
							if agent == Codex {
								assert.Equal(t, map[bool]string{true: "trusted", false: "untrusted"}[trust], st.Trust)
								assert.Equal(t, trust, len(first.Notes) == 0)
							}
							_, err = s.Remove(agent)
							require.NoError(t, err)
							require.Equal(t, before, [2]map[string]string{tree(t, s.Home), tree(t, s.Root)})
							st, err = s.Status(agent)
							require.NoError(t, err)
							assert.Equal(t, Missing, st.State)
						}
						again, err := s.Remove(agent)
						require.NoError(t, err)
						assert.Empty(t, again.Touched)
					})
				}
			}
		}
	}
}

func TestTouchedPathsAreAllThatChanged(t *testing.T) {
	s := testSetup(t)
	s.Trust = true
	hooks, config := filepath.Join(s.Home, ".codex/hooks.json"), filepath.Join(s.Home, ".codex/config.toml")
	put(t, config, codexTOML)
	change, err := s.Install(Codex)
	require.NoError(t, err)
	require.Len(t, change.Touched, 3)
	assert.Equal(t, Touch{Path: hooks, Done: "created"}, change.Touched[0])
	assert.Equal(t, Touch{Path: config, Done: "changed"}, change.Touched[2])
	kept, err := os.ReadFile(change.Touched[1].Path)
	require.NoError(t, err)
	assert.Equal(t, codexTOML, string(kept), "the backup")
	assert.Len(t, tree(t, s.Backups), 1)
}

func TestInstallInAProjectPrefersWhatIsNotTracked(t *testing.T) {
	s := testSetup(t)
	s.Scope = Project
	change, err := s.Install(Claude)
	require.NoError(t, err)
	assert.Equal(t, []Touch{{Path: filepath.Join(s.Root, ".claude/settings.local.json"), Done: "created"}}, change.Touched)
	assert.Empty(t, tree(t, s.Home))
}

func TestFoldersFromTheEnvironment(t *testing.T) {
	s := testSetup(t)
	elsewhere := filepath.Join(s.Root, "elsewhere")
	s.Env = func(name string) string {
		switch name {
		case "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME":
			return elsewhere
		}
		return ""
	}
	for _, agent := range []string{Claude, Codex, OpenCode} {
		_, err := s.Install(agent)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{
		filepath.Join(elsewhere, "hooks.json"), filepath.Join(elsewhere, "opencode/plugins/retcon.js"), filepath.Join(elsewhere, "settings.json"),
	}, sorted(tree(t, s.Root)))
	assert.Empty(t, tree(t, s.Home))
}

// Whoever keeps the settings elsewhere and links to them still does afterwards.
func TestLinksAreWrittenThrough(t *testing.T) {
	for _, dangling := range []bool{false, true} {
		s := testSetup(t)
		target := filepath.Join(s.Home, "dotfiles/claude.json")
		put(t, target, "{}\n")
		if dangling {
			require.NoError(t, os.Remove(target))
		}
		link := filepath.Join(s.Home, ".claude/settings.json")
		require.NoError(t, os.Mkdir(filepath.Dir(link), 0o755))
		require.NoError(t, os.Symlink("../dotfiles/claude.json", link))
		before := tree(t, s.Home)
		change, err := s.Install(Claude)
		require.NoError(t, err)
		assert.Equal(t, target, change.Touched[len(change.Touched)-1].Path)
		after := tree(t, s.Home)
		assert.Equal(t, "-> ../dotfiles/claude.json", after[link])
		assert.Contains(t, after[target], "retcon hook claude")
		_, err = s.Remove(Claude)
		require.NoError(t, err)
		assert.Equal(t, before, tree(t, s.Home))
	}
}

// A repository cannot have us write somewhere else.
func TestLinksOutOfAProjectAreRefused(t *testing.T) {
	for _, where := range []string{".claude/settings.local.json", ".claude"} {
		s := testSetup(t)
		s.Scope = Project
		outside := filepath.Join(s.Home, "victim")
		if where == ".claude" {
			require.NoError(t, os.Mkdir(outside, 0o755))
		} else {
			put(t, outside, "{}")
		}
		link := filepath.Join(s.Root, where)
		require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o755))
		require.NoError(t, os.Symlink(outside, link))
		before := tree(t, s.Home)
		_, err := s.Install(Claude)
		var e *LinkError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, before, tree(t, s.Home))
	}
}

func TestSettingsThatCannotBeReadAreLeftAlone(t *testing.T) {
	for file, content := range map[string]string{
		".claude/settings.json": "{\n  \"a\": 1,\n  oops\n}", ".codex/config.toml": "a = \n", ".gemini/settings.json": "[]", ".codex/hooks.json": `{"hooks": []}`, ".cursor/hooks.json": `{"hooks": {"stop": {}}}`,
	} {
		t.Run(file, func(t *testing.T) {
			s := testSetup(t)
			put(t, filepath.Join(s.Home, file), content)
			before := tree(t, s.Home)
			agent, _, _ := strings.Cut(strings.TrimPrefix(file, "."), "/")
			for _, do := range []func(string) (Change, error){s.Install, s.Remove} {
				_, err := do(agent)
				var e *SettingsError
				require.ErrorAs(t, err, &e)
				assert.Equal(t, filepath.Join(s.Home, file), e.Path)
				assert.Equal(t, before, tree(t, s.Home))
			}
		})
	}
}

func TestModesAreKept(t *testing.T) {
	s := testSetup(t)
	path := filepath.Join(s.Home, ".claude/settings.json")
	put(t, path, "{}")
	require.NoError(t, os.Chmod(path, 0o640))
	_, err := s.Install(Claude)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o640), info.Mode())
}

func TestApplyRefusesWhatHasChanged(t *testing.T) {
	s := testSetup(t)
	path := filepath.Join(s.Home, "x")
	put(t, path, "theirs")
	_, err := s.apply(edit{path: path, before: []byte("read before"), after: []byte("ours")})
	require.ErrorIs(t, err, ErrChanged)
	_, err = s.apply(edit{path: path, after: []byte("ours")})
	require.ErrorIs(t, err, ErrChanged)
	assert.Equal(t, "theirs", strings.SplitN(tree(t, s.Home)[path], "\n", 2)[1])
}

// The hooks follow our binary, and stay where the user has moved them.
func TestInstallAgainAfterAMove(t *testing.T) {
	s := testSetup(t)
	path := filepath.Join(s.Home, ".claude/settings.json")
	put(t, path, `{"hooks": {"PreToolUse": [
  {"matcher": "Bash", "hooks": [
    {"type": "command", "command": "mine"},
    {"type": "command", "command": "/old/retcon hook claude PreToolUse 2>/dev/null || true", "timeout": 99}
  ]}
]}}`)
	st, err := s.Status(Claude)
	require.NoError(t, err)
	assert.Equal(t, Edited, st.State)
	_, err = s.Install(Claude)
	require.NoError(t, err)
	text := tree(t, s.Home)[path]
	assert.NotContains(t, text, "/old/retcon")
	assert.Equal(t, 1, strings.Count(text, "hook claude PreToolUse"))
	_, err = s.Remove(Claude)
	require.NoError(t, err)
	assert.Equal(t, `{"hooks": {"PreToolUse": [
  {"matcher": "Bash", "hooks": [
    {"type": "command", "command": "mine"}
  ]}
]}}`, strings.SplitN(tree(t, s.Home)[path], "\n", 2)[1])
}

func TestStatus(t *testing.T) {
	s := testSetup(t)
	path := filepath.Join(s.Home, ".claude/settings.json")
	_, err := s.Install(Claude)
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	text := strings.Replace(string(data), "claude Stop ", "nobody Stop ", 1)
	put(t, path, strings.Replace(text, "{", `{"disableAllHooks": true,`, 1))
	st, err := s.Status(Claude)
	require.NoError(t, err)
	assert.Equal(t, Partly, st.State)
	assert.Equal(t, `"disableAllHooks" is set`, st.Disabled)
	for _, e := range st.Events {
		assert.Equal(t, e.Event == "Stop", e.State == Missing, e.Event)
	}
	put(t, path, strings.Replace(string(data), `"timeout": 10`, `"timeout": 1`, 1))
	st, err = s.Status(Claude)
	require.NoError(t, err)
	assert.Equal(t, Edited, st.State)
}

func TestOwnFilesThatAreTaken(t *testing.T) {
	s := testSetup(t)
	path := filepath.Join(s.Home, ".config/opencode/plugins/retcon.js")
	put(t, path, "// somebody else's\n")
	_, err := s.Install(OpenCode)
	require.ErrorIs(t, err, ErrTaken)
	change, err := s.Remove(OpenCode)
	require.NoError(t, err)
	assert.Empty(t, change.Touched)
}

func TestOurs(t *testing.T) {
	for command, want := range map[string]bool{
		"retcon hook claude Stop":                                   true,
		"/usr/bin/retcon hook claude Stop 2>/dev/null || true":      true,
		"'/opt/my tools/retcon' hook claude Stop || true":           true,
		"/opt/bin/rc hook claude Stop 2>/dev/null || true # retcon": true,
		"/opt/bin/rc hook claude Stop":                              false,
		"retcon hook codex Stop":                                    false,
		"echo retcon hook claude Stop":                              false,
		"retcon checkpoint":                                         false,
		"/home/retcon/bin/other hook claude Stop":                   false,
		"": false,
	} {
		assert.Equal(t, want, ours(command, Claude), command)
	}
	for _, exe := range []string{"retcon", "/opt/it's/retcon", "/opt/rc"} {
		assert.True(t, ours(Setup{Exe: exe}.command(Claude, "Stop"), Claude), exe)
	}
}

// Whatever our binary does, the shell reports success.
func TestCommandNeverFails(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{"retcon exits 2": "echo panic >&2; exit 2", "it's killed retcon": "kill -9 $$", "answers retcon": "echo \"$*\""} {
		put(t, filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n")
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o755))
	}
	for name, want := range map[string]string{"retcon exits 2": "", "it's killed retcon": "", "is not there": "", "answers retcon": "hook claude Stop\n"} {
		var stderr strings.Builder
		cmd := exec.Command("/bin/sh", "-c", Setup{Exe: filepath.Join(dir, name)}.command(Claude, "Stop"))
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, name)
		assert.Equal(t, want, string(out), name)
		if name != "it's killed retcon" && name != "is not there" { // the shell itself may say so
			assert.Empty(t, stderr.String(), name)
		}
	}
}

func TestCopilotIsPerProject(t *testing.T) {
	_, err := testSetup(t).Install(Copilot)
	assert.ErrorIs(t, err, ErrProjectOnly)
	_, err = testSetup(t).Install(Generic)
	assert.ErrorIs(t, err, ErrUnsupported)
	_, err = testSetup(t).Install("nobody")
	assert.ErrorIs(t, err, ErrUnknown)
}
