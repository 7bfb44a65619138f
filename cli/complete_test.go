package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestComplete(t *testing.T) {
	runs := func(context.Context) []candidate {
		return []candidate{{"r1", "three hours ago"}, {"r2@5", "a\tb"}, {"bad\nname", ""}}
	}
	for _, test := range []struct{ name, line, want string }{ // the last word is the current one; _ is empty
		{"commands", "ver", "version"},
		{"all commands", "_", "init checkpoint exec watch agents hook run resume signal cancel lint snapshots log runs timeline show diff effects ack restore revert rewind timetravel retry-task rerun undo redo op gc doctor recover config trust mcp version completion help probe wrap group panics child answers fails locked ask wait"},
		{"commands of a group", "group _", "log show"},
		{"flags", "probe --l", "--label"},
		{"shared flags", "probe r1 --js", "--json"},
		{"hidden flags", "probe -1", ""},
		{"an argument by its name in the usage", "probe _", "r1 r2@5"},
		{"with flags before it", "probe -n 3 r2", "r2@5"},
		{"an argument nobody knows", "probe r1 _", ""},
		{"a flag's value by its name in the usage", "probe --label r1", "r1"},
		{"with an equals sign", "probe --label=r", "--label=r1 --label=r2@5"},
		{"choices", "completion _", "bash zsh fish"},
		{"too many arguments", "completion bash _", ""},
		{"commands, for help", "help comp", "completion"},
		{"behind --", "probe -- -", ""},
		{"another program's arguments", "wrap sh --j", ""},
		{"nonsense", "xyzzy --what --ever _", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &console{Env: Env{}.orNothing(), out: &bytes.Buffer{}, values: map[string]func(context.Context) []candidate{"run": runs}}
			words := strings.Fields(test.line)
			for i := range words {
				if words[i] == "_" {
					words[i] = ""
				}
			}
			var got []string
			for _, one := range c.complete(t.Context(), c.app(), words) {
				got = append(got, one.Value)
			}
			assert.Equal(t, test.want, strings.Join(got, " "))
		})
	}
}

func TestCompletionIsSilentAndPlain(t *testing.T) {
	got := run(t, Env{}, "__complete", "--", "vers")
	assert.Equal(t, said{0, "version\tprint which build this is\n", ""}, got)
	assert.Equal(t, said{0, "", ""}, run(t, Env{}, "__complete", "--", "-C", "/does/not/exist", "probe", ""))
	assert.Equal(t, 0, run(t, Env{}, "__complete").code)
}

// The scripts are run by the shells they are for, where there are such shells.
func TestCompletionScripts(t *testing.T) {
	for shell := range completionScripts {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			script := run(t, Env{}, "completion", shell).out
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(script)
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s", out)
		})
	}
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	script := run(t, Env{}, "completion", "bash").out
	for _, test := range []struct{ line, asked, want string }{
		{"retcon ver", "ver", "[ver+]"},
		{"retcon show r1@", "show|r1@", "[+]"}, // bash keeps what stands before the @
		{"retcon show ", "show|", "[+]"},
	} {
		// A retcon that shows what it was asked and offers the current word with a plus.
		fake := `retcon() { shift 2; local IFS='|'; echo "$*" >"$ASKED"; printf '%s+\tabout\n' "${!#}"; }`
		ask := `COMP_LINE="$1" COMP_POINT=${#1}; _retcon; for c in "${COMPREPLY[@]}"; do echo "[$c]"; done`
		asked := filepath.Join(t.TempDir(), "asked")
		cmd := exec.Command(bash, "--norc", "-c", "ASKED='"+asked+"'\n"+fake+"\n"+script+ask, "bash", test.line)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, test.want, strings.TrimSpace(string(out)), test.line)
		got, err := os.ReadFile(asked)
		require.NoError(t, err)
		assert.Equal(t, test.asked, strings.TrimSpace(string(got)), test.line)
	}
}
