package sideeffect

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompensationJSON(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"command":["gh","issue","close","{{.url}}","--reason","x"],"gone":["not found"]}`,
		`{"shell":{"text":"curl \"$1\"","args":["{{.output.id}}"]}}`,
		`{"http":{"method":"DELETE","url":"https://tracker.example/t/{{.output.id}}?why={{.key}}","headers":{"Authorization":"Bearer {{.env.TOKEN}}"},"expect":[204,404],"key_header":"X-Key"}}`,
		`{"http":{"method":"POST","url":"http://127.0.0.1:8080/undo","body":{"id":"{{.args.id}}","l":[true,null,"x"],"n":12345678901234567890}}}`,
		`{"mcp":{"server":"jira","tool":"delete","args":{"deep":{"n":1},"id":"{{.output.id}}"}}}`,
		`{"handler":"undo-ticket"}`,
		`{"not_needed":"it reads"}`,
		`{"impossible":"mail is gone"}`,
	} {
		t.Run(text, func(t *testing.T) {
			var c Compensation
			require.NoError(t, json.Unmarshal([]byte(text), &c))
			back, err := json.Marshal(c)
			require.NoError(t, err)
			assert.Equal(t, text, string(back))
			assert.Equal(t, text == `{}`, c.IsZero())
		})
	}
}

func TestBadCompensations(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"two ways", `{"command":["a"],"handler":"b"}`, "command and handler: one way is enough"},
		{"unknown member", `{"comand":["a"]}`, "unknown field"},
		{"unknown member inside", `{"http":{"method":"POST","url":"https://a/","timeout":1}}`, "unknown field"},
		{"wrong type", `{"command":"rm"}`, "cannot unmarshal"},
		{"program from a value", `{"command":["{{.url}}","x"]}`, "takes no placeholder"},
		{"no program", `{"command":["","x"]}`, "command is empty"},
		{"braces that are no placeholder", `{"command":["a","{{url}}"]}`, "a placeholder is written {{.name}}"},
		{"a function call", `{"command":["a","{{.x | printf}}"]}`, "a placeholder is written {{.name}}"},
		{"closing braces", `{"command":["a","x}}"]}`, "a placeholder is written {{.name}}"},
		{"a NUL", `{"command":["a","x\u0000y"]}`, "holds a NUL"},
		{"value in a script", `{"shell":{"text":"rm {{.path}}"}}`, "values are passed in args"},
		{"empty script", `{"shell":{"text":" "}}`, "shell is empty"},
		{"bad argument of a script", `{"shell":{"text":"x","args":["{{"]}}`, "a placeholder is written"},
		{"no method", `{"http":{"url":"https://a/"}}`, `method ""`},
		{"method with a space", `{"http":{"method":"GET /x","url":"https://a/"}}`, `method "GET /x"`},
		{"other scheme", `{"http":{"method":"GET","url":"file:///etc/passwd"}}`, "begins with http"},
		{"host from a value", `{"http":{"method":"GET","url":"https://{{.host}}/x"}}`, "a host without placeholders"},
		{"host ended by a value", `{"http":{"method":"GET","url":"https://a.example{{.x}}"}}`, "a host without placeholders"},
		{"user in the host", `{"http":{"method":"GET","url":"https://a@b/{{.x}}"}}`, "a host without placeholders"},
		{"whole URL from a value", `{"http":{"method":"GET","url":"{{.url}}"}}`, "a host without placeholders"},
		{"fragment", `{"http":{"method":"GET","url":"https://a/#{{.x}}"}}`, "a fragment is never sent"},
		{"placeholder in a URL", `{"http":{"method":"GET","url":"https://a/{{x}}"}}`, "a placeholder is written"},
		{"header name", `{"http":{"method":"GET","url":"https://a/","headers":{"a b":"c"}}}`, `header "a b"`},
		{"header value", `{"http":{"method":"GET","url":"https://a/","headers":{"a":"{{b}}"}}}`, "a placeholder is written"},
		{"key header", `{"http":{"method":"GET","url":"https://a/","key_header":"a:b"}}`, `key_header "a:b"`},
		{"status", `{"http":{"method":"GET","url":"https://a/","expect":[42]}}`, "expect 42"},
		{"body", `{"http":{"method":"POST","url":"https://a/","body":["{{x}}"]}}`, "a placeholder is written"},
		{"member name in a body", `{"http":{"method":"POST","url":"https://a/","body":{"{{.x}}":1}}}`, "takes no placeholder"},
		{"server from a value", `{"mcp":{"server":"{{.x}}","tool":"t"}}`, "takes no placeholder"},
		{"no tool", `{"mcp":{"server":"s"}}`, "tool is empty"},
		{"arguments", `{"mcp":{"server":"s","tool":"t","args":{"a":{"b":"{{"}}}}`, "a placeholder is written"},
		{"handler from a value", `{"handler":"{{.x}}"}`, "takes no placeholder"},
		{"gone without a command", `{"handler":"x","gone":["y"]}`, "only for command and shell"},
		{"gone that is always there", `{"command":["x"],"gone":[""]}`, "an empty text is in every output"},
		{"no object", `[]`, "cannot unmarshal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Compensation{Handler: "before"}
			require.ErrorContains(t, json.Unmarshal([]byte(test.text), &c), test.want)
			assert.Equal(t, Compensation{Handler: "before"}, c, "nothing is half read")
		})
	}
	_, err := json.Marshal(Compensation{Handler: "a", Impossible: "b"})
	require.ErrorContains(t, err, "handler and impossible", "what can't be read is not written")
	require.ErrorContains(t, Compensation{MCP: &ToolUse{Server: "s", Tool: "t", Args: map[string]any{"a": func() {}}}}.Validate(), "no JSON value")
}

func FuzzCompensation(f *testing.F) {
	f.Add([]byte(`{"command":["gh","{{.url}}"]}`))
	f.Add([]byte(`{"http":{"method":"POST","url":"http://a/{{.x}}","body":{"a":[1,"{{.y.z}}"]}}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c, again Compensation
		if json.Unmarshal(text, &c) != nil {
			return
		}
		written, err := json.Marshal(c)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(written, &again))
		twice, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(twice))
	})
}
