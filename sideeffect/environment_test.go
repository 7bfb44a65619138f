package sideeffect

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEnvironment(t *testing.T) {
	all := []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "LC_X=1", "LANG=C", "TZ=UTC", "TMPDIR=/t", "USER=u", "LOGNAME=u", "GH_TOKEN=s3cret",
		"SSH_AUTH_SOCK=/s", "PATHS=x", "LC=x", "LD_PRELOAD=x", "RETCON_RUN=r1", "nonsense"}
	assert.Equal(t, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "LC_X=1", "LANG=C", "TZ=UTC", "TMPDIR=/t", "USER=u", "LOGNAME=u"}, Environment(all))
}

// A variable reaches a command when it is common, or named.
func TestNamedVariables(t *testing.T) {
	all := []string{"PATH=" + os.Getenv("PATH"), "TOKEN=s3cret", "OTHER=secret too", "RETCON_RUN=r9"}
	h := Handlers{Dir: t.TempDir(), Env: Environment(all), Named: all, About: []string{"RETCON_EFFECT_RUN=r7"}}
	seen := func(e Effect) []string {
		got := run(t, e, h)
		require.Equal(t, Done, got.Result, got.Detail)
		return slices.DeleteFunc(strings.Fields(strings.ReplaceAll(got.Output, " ", "_")), func(pair string) bool {
			name, _, _ := strings.Cut(pair, "=")
			return slices.Contains([]string{"PATH", "PWD", "OLDPWD", "SHLVL", "_"}, name) // the shell's own
		})
	}
	e := shell("env | sort")
	e.Seq = 12
	about := []string{"RETCON_EFFECT=12", "RETCON_EFFECT_KEY=r/t/c#0", "RETCON_EFFECT_RUN=r7"}
	assert.Equal(t, about, seen(e))
	e.Compensation.Env = []string{"TOKEN", "UNSET"}
	assert.Equal(t, append(about, "TOKEN=s3cret"), seen(e))
	e.Compensation = Compensation{Command: []string{"env"}, Env: []string{"OTHER"}}
	assert.Contains(t, seen(e), "OTHER=secret_too")
	assert.NotContains(t, seen(e), "TOKEN=s3cret")

	b, err := json.Marshal(e)
	require.NoError(t, err)
	assert.NotContains(t, string(b), "secret", "names are stored, not values")
}

func TestEnvIsChecked(t *testing.T) {
	for want, c := range map[string]Compensation{
		"is not the name of a variable":        {Command: []string{"x"}, Env: []string{"A=b"}},
		`env "" is not the name`:               {Command: []string{"x"}, Env: []string{""}},
		"of retcon itself are not handed on":   {Shell: &Script{Text: "x"}, Env: []string{"RETCON_RUN"}},
		"env: only for command and shell":      {Handler: "x", Env: []string{"A"}},
		`env "{{.id}}" is not the name of a v`: {Command: []string{"x"}, Env: []string{"{{.id}}"}},
	} {
		assert.ErrorContains(t, c.Validate(), want)
	}
	assert.NoError(t, Compensation{Shell: &Script{Text: "x"}, Env: []string{"A", "_b2"}}.Validate())
}

// Our own compensations name what their programs work with: without it they
// would not be let in.
func TestBuiltinCompensationsNameWhatTheyNeed(t *testing.T) {
	zero := 0
	for _, test := range []struct{ command, output, needs string }{
		{"gh issue create --title x", "https://github.com/o/n/issues/7\n", "GH_TOKEN"},
		{"gh release create v1", "https://github.com/o/n/releases/tag/v1\n", "GITHUB_TOKEN"},
		{"gh issue close 7 --repo o/n", "Closed issue o/n#7\n", "GH_TOKEN"},
		{"glab issue create --title x", "https://gitlab.com/o/n/-/issues/7\n", "GITLAB_TOKEN"},
		{"aws s3 mb s3://bucket", "make_bucket: bucket\n", "AWS_SECRET_ACCESS_KEY"},
		{"kubectl create -f x --context c -n n", "pod/x created\n", "KUBECONFIG"},
		{"oc create -f x --context c -n n", "pod/x created\n", "KUBECONFIG"},
		{"helm install r chart --kube-context c -n n", "", "KUBECONFIG"},
		{"cargo yank x --version 1.0.0", "", "CARGO_REGISTRY_TOKEN"},
	} {
		t.Run(test.command, func(t *testing.T) {
			found := Rules{}.Recognise(ToolCall{Tool: "Bash", Command: test.command, Output: test.output, Exit: &zero})
			require.Len(t, found, 1)
			require.NotEmpty(t, found[0].Compensation.Command)
			assert.Contains(t, found[0].Compensation.Env, test.needs)
			assert.Contains(t, found[0].Compensation.Env, "HTTPS_PROXY")
			require.NoError(t, found[0].Compensation.Validate())
		})
	}
	makeTables()
	for name := range tables {
		tool := toolNamed(name)
		for path, v := range tool.verbs {
			if v != none && len(v.undo.Command) > 0 {
				assert.NotEmpty(t, v.undo.Env, "%s %s", name, path)
			}
		}
	}
}

// A file that nobody trusts does not keep an effect out of the way, and what
// undoes it waits for trust.
func TestUntrustedRulesLowerNothing(t *testing.T) {
	file := Config{Source: "digest", Rules: []RuleConfig{
		{Name: "nothing", Command: "acme read", Undo: Compensation{NotNeeded: "it only reads"}},
		{Name: "ticket", Command: "acme ticket", Find: `(?P<id>T-\d+)`, Undo: argv("undo", "{{.id}}"), Atomic: true},
		{Name: "own", Command: "gh issue create", Undo: argv("undo")},
		{Name: "mcp", Tool: "Deploy", Undo: argv("undo")},
	}}
	rules, err := NewRules(file)
	require.NoError(t, err)
	zero, one := 0, 1
	h := programs(t, "undo", "gh")
	why := func(e Effect) Reason {
		_, err := Boundary([]Effect{e}, BoundaryOptions{}, h)
		var blocked *BlockedError
		require.ErrorAs(t, err, &blocked)
		return blocked.Blocked[0].Reason
	}
	read := rules.Recognise(ToolCall{Command: "acme read", Exit: &zero})[0]
	assert.Equal(t, NoCompensation, why(read))

	failed := rules.Recognise(ToolCall{Command: "acme ticket", Exit: &one})[0]
	assert.Equal(t, Unknown, failed.Status, "an error may have come after the deed")
	ticket := rules.Recognise(ToolCall{Command: "acme ticket", Output: "T-3\n", Exit: &zero})[0]
	assert.Equal(t, "digest", ticket.Source)
	assert.Equal(t, Untrusted, why(ticket))
	h.Offered = "another"
	assert.Equal(t, Outdated, why(ticket))
	h.Trusted = func(source string) bool { return source == "digest" }
	call, err := Resolve(ticket, h)
	require.NoError(t, err)
	assert.Equal(t, "undo T-3", call.Shown)

	issue := rules.Recognise(ToolCall{Command: "gh issue create", Output: "https://github.com/o/n/issues/1\n", Exit: &zero})[0]
	assert.Equal(t, "gh issue create", issue.Rule, "what we know is not replaced")
	assert.Equal(t, "mcp", rules.Recognise(ToolCall{Tool: "Deploy"})[0].Rule)

	file.Trusted = true
	rules, err = NewRules(file)
	require.NoError(t, err)
	assert.Equal(t, "own", rules.Recognise(ToolCall{Command: "gh issue create"})[0].Rule)
	assert.Equal(t, Failed, rules.Recognise(ToolCall{Command: "acme ticket", Exit: &one})[0].Status)
	_, err = Boundary(rules.Recognise(ToolCall{Command: "acme read", Exit: &zero}), BoundaryOptions{}, h)
	require.NoError(t, err)
}
