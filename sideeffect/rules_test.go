package sideeffect

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines are effects as class and rule.
func lines(effects []Effect) (out []string) {
	for _, e := range effects {
		out = append(out, string(e.Class)+" "+e.Rule)
	}
	return out
}

func TestUserRules(t *testing.T) {
	rules, err := NewRules(Config{Source: "digest", Trusted: true, Rules: []RuleConfig{
		{Name: "ticket", Command: "acme ticket create", Find: `created (?P<id>T-\d+)`, Undo: argv("acme", "ticket", "delete", "{{.id}}"), Atomic: true},
		{Name: "acme", Command: "acme", Class: Maybe},
		{Name: "local", Command: "curl", Match: `https?://localhost[:/]`, Class: Read},
		{Name: "issues", Command: "gh issue create", Class: Exempt},
		{Name: "deploys", Match: `(^|/)deploy\.sh\b`},
		{Name: "docs", Tool: "mcp__docs__*", Class: Read},
		{Name: "tickets", Tool: "mcp__tracker__create", Match: `"project":"X"`, Undo: Compensation{MCP: &ToolUse{Server: "tracker", Tool: "delete", Args: map[string]any{"id": "{{.output.id}}"}}}},
		{Name: "web", Tool: "WebFetch"},
	}})
	require.NoError(t, err)
	for _, test := range []struct {
		call ToolCall
		want []string
	}{
		{ToolCall{Command: "acme ticket create x"}, []string{"write ticket"}},
		{ToolCall{Command: "acme --verbose ticket create x"}, []string{"write ticket"}},
		{ToolCall{Command: "cd x && /opt/acme ticket create y | tee log"}, []string{"write ticket"}},
		{ToolCall{Command: "acme ticket"}, []string{"maybe acme"}},
		{ToolCall{Command: "acme ticket list create"}, []string{"maybe acme"}},
		{ToolCall{Command: "acmeish ticket create"}, nil},
		{ToolCall{Command: "echo acme ticket create"}, nil},
		{ToolCall{Command: "curl -d x http://localhost:8080/"}, nil},
		{ToolCall{Command: "curl -d x http://localhost.example/"}, []string{"write curl POST"}},
		{ToolCall{Command: "curl -d x https://example.com/; curl -d x http://localhost/"}, []string{"write curl POST"}},
		{ToolCall{Command: "gh issue create"}, []string{"exempt issues"}},
		{ToolCall{Command: "gh pr create"}, []string{"write gh pr create"}},
		{ToolCall{Command: "./deploy.sh --now"}, []string{"write deploys"}},
		{ToolCall{Command: "acme 'no end"}, []string{"maybe acme, in a line that can't be read"}},
		{ToolCall{Tool: "mcp__docs__create"}, nil},
		{ToolCall{Tool: "mcp__tracker__create", Args: json.RawMessage(`{"project":"X"}`)}, []string{"write tickets"}},
		{ToolCall{Tool: "mcp__tracker__create", Args: json.RawMessage(`{"project":"Y"}`)}, []string{"maybe mcp__tracker__create"}},
		{ToolCall{Tool: "WebFetch"}, []string{"write web"}},
		{ToolCall{Tool: "Write"}, nil},
	} {
		t.Run(test.call.Command+test.call.Tool, func(t *testing.T) {
			assert.Equal(t, test.want, lines(rules.Recognise(test.call)))
		})
	}

	h := programs(t, "acme")
	h.Trusted = func(source string) bool { return source == "digest" }
	zero, one := 0, 1
	e := rules.Recognise(ToolCall{Command: "acme ticket create x", Output: "created T-12\n", Exit: &zero})[0]
	assert.Equal(t, "digest", e.Source)
	call, err := Resolve(e, h)
	require.NoError(t, err)
	assert.Equal(t, "acme ticket delete T-12", call.Shown)
	e = rules.Recognise(ToolCall{Command: "acme ticket create x", Output: "no", Exit: &one})[0]
	assert.Equal(t, Failed, e.Status)
	e = rules.Recognise(ToolCall{Command: "acme ticket", Exit: &one})[0]
	assert.Equal(t, Unknown, e.Status)
}

// A file that nobody trusts may add effects, and take none away.
func TestUntrustedRules(t *testing.T) {
	hide := Config{Source: "a", Rules: []RuleConfig{{Command: "gh", Class: Read}, {Command: "npm", Class: Exempt}, {Command: "acme"}}}
	rules, err := NewRules(hide)
	require.NoError(t, err)
	command := ToolCall{Command: "gh issue create; npm publish; acme"}
	assert.Equal(t, []string{"write gh issue create", "write npm publish", "write 3"}, lines(rules.Recognise(command)))

	first, err := NewRules(Config{Rules: []RuleConfig{{Name: "mine", Command: "acme", Class: Maybe}}}, hide)
	require.NoError(t, err)
	effects := first.Recognise(ToolCall{Command: "acme"})
	assert.Equal(t, []string{"maybe mine"}, lines(effects), "the first configuration goes first")
	assert.Empty(t, effects[0].Source)
}

func TestBadRules(t *testing.T) {
	for _, test := range []struct {
		name string
		rule RuleConfig
		want string
	}{
		{"class", RuleConfig{Command: "a", Class: "writes"}, `rule 1: class "writes": it is write, maybe, exempt or read`},
		{"push is not for users", RuleConfig{Command: "a", Class: Push}, `class "push"`},
		{"everything", RuleConfig{Name: "all"}, "rule all: it has neither command, tool nor match"},
		{"two kinds", RuleConfig{Command: "a", Tool: "b"}, "one is enough"},
		{"pattern", RuleConfig{Tool: "["}, "syntax error in pattern"},
		{"match", RuleConfig{Match: "("}, "match: error parsing regexp"},
		{"find", RuleConfig{Command: "a", Find: "("}, "find: error parsing regexp"},
		{"compensation", RuleConfig{Command: "a", Undo: Compensation{Handler: "x", Impossible: "y"}}, "one way is enough"},
		{"value nobody gives", RuleConfig{Command: "a", Find: `(?P<id>\d)`, Undo: argv("a", "{{.url}}")}, "nothing gives a value for {{.url}}"},
		{"value nobody gives, in a body", RuleConfig{Command: "a", Undo: Compensation{HTTP: &Request{Method: "POST", URL: "https://a/", Body: []any{"{{.x}}"}}}}, "nothing gives a value for {{.x}}"},
		{"value nobody gives, to a tool", RuleConfig{Command: "a", Undo: Compensation{MCP: &ToolUse{Server: "s", Tool: "t", Args: map[string]any{"a": "{{.x}}"}}}}, "nothing gives a value for {{.x}}"},
		{"value nobody gives, to a script", RuleConfig{Command: "a", Undo: Compensation{Shell: &Script{Text: "x", Args: []string{"{{.x}}"}}}}, "nothing gives a value for {{.x}}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := NewRules(Config{Rules: []RuleConfig{test.rule}})
			var bad *RuleError
			require.ErrorAs(t, err, &bad)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestMCPTools(t *testing.T) {
	yes, no := true, false
	zero, one := 0, 1
	for _, test := range []struct {
		name string
		call ToolCall
		want string // class, status, compensation known
	}{
		{"nothing is said", ToolCall{Tool: "mcp__x__y"}, "maybe intended"},
		{"nothing is said, and the name reads", ToolCall{Tool: "mcp__x__list"}, ""},
		{"a name of several words", ToolCall{Tool: "mcp__x__get_issue-comments"}, ""},
		{"a name in one", ToolCall{Tool: "mcp__x__searchIssues"}, ""},
		{"a name that reads and changes", ToolCall{Tool: "mcp__x__get_and_delete"}, "maybe intended"},
		{"the name of a server that reads", ToolCall{Tool: "mcp__get__issue"}, "maybe intended"},
		{"a word that begins with another", ToolCall{Tool: "mcp__x__getaway"}, "maybe intended"},
		{"its server says otherwise", ToolCall{Tool: "mcp__x__list", Annotations: Annotations{ReadOnly: &no}}, "write intended"},
		{"reads", ToolCall{Tool: "mcp__x__y", Annotations: Annotations{ReadOnly: &yes}}, ""},
		{"reads, and destroys", ToolCall{Tool: "mcp__x__y", Annotations: Annotations{ReadOnly: &yes, Destructive: &yes}}, ""},
		{"writes", ToolCall{Tool: "mcp__x__y", Annotations: Annotations{ReadOnly: &no}}, "write intended"},
		{"adds", ToolCall{Tool: "mcp__x__y", Annotations: Annotations{Destructive: &no}}, "write intended"},
		{"destroys", ToolCall{Tool: "mcp__x__y", Annotations: Annotations{Destructive: &yes}}, "write intended impossible"},
		{"succeeded", ToolCall{Tool: "mcp__x__y", Exit: &zero}, "maybe succeeded"},
		{"an error may come after the deed", ToolCall{Tool: "mcp__x__y", Exit: &one}, "maybe unknown"},
		{"a tool of the agent", ToolCall{Tool: "Edit"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.call.Args = json.RawMessage(`{"a":1}`)
			got := ""
			for _, e := range (Rules{}).Recognise(test.call) {
				got = string(e.Class) + " " + string(e.Status)
				if e.Compensation.Impossible != "" {
					got += " impossible"
				}
				assert.JSONEq(t, `{"a":1}`, string(e.Args))
				assert.Equal(t, test.call.Tool, e.Tool)
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// The answer of a tool is kept when the compensation asks for it.
func TestOutputIsKept(t *testing.T) {
	rules, err := NewRules(Config{Trusted: true, Rules: []RuleConfig{
		{Tool: "mcp__t__create", Undo: Compensation{MCP: &ToolUse{Server: "t", Tool: "delete", Args: map[string]any{"id": "{{.output.id}}"}}}},
		{Tool: "mcp__t__other", Undo: argv("x", "{{.args.id}}"), Find: "(?P<n>[0-9]+)"},
	}})
	require.NoError(t, err)
	zero := 0
	e := rules.Recognise(ToolCall{Tool: "mcp__t__create", Output: `{"id":5}`, Exit: &zero})[0]
	assert.Equal(t, `{"id":5}`, e.Output)
	e = rules.Recognise(ToolCall{Tool: "mcp__t__other", Output: `number 5`, Exit: &zero})[0]
	assert.Empty(t, e.Output)
	assert.Equal(t, map[string]string{"n": "5"}, e.Fields)
}

func TestPushes(t *testing.T) {
	for command, want := range map[string]Effect{
		"git push":                                {},
		"git push origin":                         {Remote: "origin"},
		"git -C sub push -u origin a b:c":         {Remote: "origin", Refs: []string{"a", "b:c"}},
		"git push -o ci.skip --force origin +a":   {Remote: "origin", Refs: []string{"+a"}},
		`git push "$REMOTE" "HEAD:refs/for/$B"`:   {Remote: "?", Refs: []string{"HEAD:refs/for/?"}},
		"git push --repo https://a/b":             {Remote: "https://a/b"},
		"git push git@github.com:o/n.git --tags":  {Remote: "git@github.com:o/n.git"},
		"bash -c 'cd x && git push origin topic'": {Remote: "origin", Refs: []string{"topic"}},
	} {
		effects := Rules{}.Recognise(ToolCall{Tool: "Bash", Command: command})
		require.Len(t, effects, 1, command)
		assert.Equal(t, Push, effects[0].Class, command)
		assert.Equal(t, want.Remote, effects[0].Remote, command)
		assert.Equal(t, want.Refs, effects[0].Refs, command)
	}
}

// An effect shows the one command it is, not the whole line.
func TestCommandShown(t *testing.T) {
	effects := Rules{}.Recognise(ToolCall{Tool: "Bash", Command: "cd x && A=b npm publish --tag 'a b' > log; bash -c 'echo; gh issue create' &"})
	require.Len(t, effects, 2)
	assert.Equal(t, "A=b npm publish --tag 'a b' > log", effects[0].Command)
	assert.Equal(t, "gh issue create", effects[1].Command)
}
