package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
)

// What is wrong with a repository's configuration is told in one line, with the
// line where it stands.
func TestProjectErrors(t *testing.T) {
	for _, test := range []struct {
		name, text string
		line       int
		want       string
	}{
		{"no TOML", "max_file = 1\nmax_file 2\n", 2, "expected"},
		{"twice", "a = 1\nmax_file = 1\nmax_file = 2\n", 3, "max_file"},
		{"another kind", "\nmax_file = \"much\"\n", 2, ""},
		{"a duration", "\n\ndebounce = \"soon\"\n", 3, ""},
		{"no setting", "max_file = 1\n# max_fiel = 3\nmax_fiel = 2\n", 3, `there is no setting "max_fiel", but max_file`},
		{"below zero", "\nmax_file = -1\n", 2, "max_file: is below zero"},
		{"yours", "[[rule]]\ncommand = \"x\"\n[x]\n", 3, `no setting "x"`},
		{"keep_tools", "max_file = 1\nkeep_tools = \"240h\"\n", 2, "keep_tools is for you to set"},
		{"disabled", "disabled = false\n", 1, "disabled is for you to set"},
		{"budget", "budget = 0\n", 1, "budget is for you to set"},
		{"in a rule", "[[rule]]\ncommand = \"x\"\nundo = { comand = [\"y\"] }\n", 3, `no setting "rule.undo.comand"`},
		{"a rule by its number", "[[rule]]\ncommand = \"x\"\n\n[[rule]]\nname = \"\"\nmatch = \"(\"\n", 4, "rule 2: match: error parsing regexp"},
		{"a rule by its name", "[[rule]]\ncommand = \"x\"\n\n[[ rule ]]\nname = 'deploy'\nfind = \"(\"\ncommand = \"y\"\n", 4, "rule deploy: find: "},
		{"a compensation", "[[rule]]\ncommand = \"x\"\nundo = { http = { method = \"DELETE\", url = \"ftp://x\" } }\n", 1, "rule 1: compensation: url"},
		{"a variable of ours", "[[rule]]\ncommand = \"x\"\nundo = { command = [\"y\"], env = [\"RETCON_RUN\"] }\n", 1, "are not handed on"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseProject([]byte(test.text))
			var bad *retcon.ProjectError
			require.ErrorAs(t, err, &bad)
			assert.Equal(t, test.line, bad.Line, bad.Reason)
			assert.Contains(t, bad.Reason, test.want)
			assert.NotEmpty(t, bad.Reason)
			assert.NotContains(t, bad.Error(), "\n")
		})
	}
}

func TestProjectIsParsed(t *testing.T) {
	c, err := parseProject([]byte(`
max_file = 7
include = ["a"]
debounce = "1s"

[[rule]]
name = "ticket"
command = "acme make"
undo = { shell = { text = "x $1", args = ["{{.command}}"] }, env = ["A"], gone = ["none"] }

[[rule]]
tool = "mcp__x__*"
[rule.undo.http]
method = "POST"
url = "https://h/x"
headers = { A = "{{.env.T}}" }
body = { list = [ { id = "{{.args.id}}" } ] }
`))
	require.NoError(t, err)
	assert.EqualValues(t, 7, c.MaxFile)
	require.Len(t, c.Rules, 2)
	assert.Equal(t, []string{"A"}, c.Rules[0].Undo.Env)
	assert.Equal(t, `POST https://h/x 'A: {{.env.T}}' {"list":[{"id":"{{.args.id}}"}]}`, c.Rules[1].Undo.String())
}

// Nothing hides in what is shown before it is trusted.
func TestVisible(t *testing.T) {
	assert.Equal(t, `rm \u{202e}x\u{1b}[2K\u{d}`, visible("rm \u202ex\x1b[2K\r", "  "))
	assert.Equal(t, "a\n  | b", visible("a\nb", "  | "))
	assert.Equal(t, `a\u{a}b`, visible("a\nb", ""))
	assert.Equal(t, "größe", visible("größe", ""))
}

func TestStateFolder(t *testing.T) {
	for _, test := range []struct{ xdg, home, want string }{
		{"", "/h", "/h/.local/state/retcon"}, {"/s", "/h", "/s/retcon"}, {"s", "/h", "/h/.local/state/retcon"}, {"", "", ""},
	} {
		c := &console{Env: Env{Home: test.home, Getenv: func(string) string { return test.xdg }}}
		assert.Equal(t, test.want, c.stateFolder())
	}
}

// The configuration in the documentation is one, with each of the lines in it
// that are commented out.
func TestDocumentedRules(t *testing.T) {
	page, err := os.ReadFile("../docs/time-travel.md")
	require.NoError(t, err)
	_, block, ok := strings.Cut(string(page), "```toml\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")
	c, err := parseProject([]byte(block))
	require.NoError(t, err)
	assert.EqualValues(t, 20<<20, c.MaxFile)
	lines := strings.Split(block, "\n")
	for i, line := range lines {
		key, _, _ := strings.Cut(strings.TrimPrefix(line, "# "), " ")
		if !strings.HasPrefix(line, "# ") {
			continue
		}
		other := slices.Clone(lines)
		other[i] = strings.TrimPrefix(line, "# ")
		for j := range other {
			if j != i && (strings.HasPrefix(other[j], key+" ") || key == "tool" && strings.HasPrefix(other[j], "command ")) {
				other[j] = ""
			}
		}
		_, err := parseProject([]byte(strings.Join(other, "\n")))
		assert.NoError(t, err, other[i])
	}
}
