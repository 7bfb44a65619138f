package sideeffect

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResolve(t *testing.T) {
	h := programs(t, "undo", "sh")
	h.Client = http.DefaultClient
	h.MCP = func(context.Context, ToolUse, string) (ToolAnswer, error) { return ToolAnswer{}, nil }
	h.Go = map[string]func(context.Context, Effect) error{"known": func(context.Context, Effect) error { return nil }}
	h.Env = append(h.Env, "TOKEN=s3cret")
	effect := Effect{
		Key: "r/t/c#0", Tool: "mcp__x__y", Command: "x y", Status: Succeeded,
		Args:   json.RawMessage(`{"title":"a; rm -rf /","n":12345678901234567890,"deep":{"list":[{"id":"q"}]},"yes":true,"none":null}`),
		Output: `{"content":[{"type":"text","text":"{\"id\":77,\"path\":\"../x?y=1&z\"}"}],"isError":false}`,
		Fields: map[string]string{"url": "https://a/1", "flag": "-rf", "dots": "..", "nul": "a\x00b", "crlf": "a\r\nB: c", "empty": ""},
	}
	for _, test := range []struct {
		name, undo string
		want       string // shown
		reason     Reason
		missing    []string
	}{
		{"a field", `{"command":["undo","{{.url}}"]}`, "undo https://a/1", "", nil},
		{"a value is one word", `{"command":["undo","{{.args.title}}"]}`, "undo 'a; rm -rf /'", "", nil},
		{"a number as it stood", `{"command":["undo","{{.args.n}}"]}`, "undo 12345678901234567890", "", nil},
		{"deep inside", `{"command":["undo","{{.args.deep.list.0.id}}={{.args.yes}}"]}`, "undo 'q=true'", "", nil},
		{"inside an MCP answer", `{"command":["undo","{{.output.id}}"]}`, "undo 77", "", nil},
		{"the key", `{"command":["undo","--key={{.key}}","{{.tool}}"]}`, "undo '--key=r/t/c#0' mcp__x__y", "", nil},
		{"a value is not looked at again", `{"command":["undo","{{.command}}","a{{.url}}b"]}`, "undo 'x y' ahttps://a/1b", "", nil},
		{"an option", `{"command":["undo","{{.flag}}"]}`, "", BadValue, nil},
		{"an option behind nothing", `{"command":["undo","{{.empty}}{{.flag}}"]}`, "", BadValue, nil},
		{"an option's value", `{"command":["undo","--x={{.flag}}"]}`, "undo '--x=-rf'", "", nil},
		{"after the last option", `{"command":["undo","--","a","{{.flag}}"]}`, "undo -- a -rf", "", nil},
		{"a NUL", `{"command":["undo","--","{{.nul}}"]}`, "", BadValue, nil},
		{"missing", `{"command":["undo","{{.id}}","{{.args.none}}","{{.args.deep}}","{{.id}}"]}`, "", MissingValue, []string{"id", "args.none", "args.deep"}},
		{"past the end of a list", `{"command":["undo","{{.args.deep.list.1.id}}"]}`, "", MissingValue, []string{"args.deep.list.1.id"}},
		{"no index", `{"command":["undo","{{.args.deep.list.x}}"]}`, "", MissingValue, []string{"args.deep.list.x"}},
		{"inside a string", `{"command":["undo","{{.args.title.x}}"]}`, "", MissingValue, []string{"args.title.x"}},
		{"the environment is for headers", `{"command":["undo","{{.env.TOKEN}}"]}`, "", MissingValue, []string{"env.TOKEN"}},
		{"a program that is not there", `{"command":["gone","x"]}`, "", NoHandler, nil},
		{"a script", `{"shell":{"text":"undo \"$1\"","args":["{{.flag}}"]}}`, `sh -c 'undo "$1"' sh -rf`, "", nil},
		{"a script with a NUL", `{"shell":{"text":"undo \"$1\"","args":["{{.nul}}"]}}`, "", BadValue, nil},
		{"a URL", `{"http":{"method":"DELETE","url":"https://a.example/t/{{.output.id}}"}}`, "DELETE https://a.example/t/77", "", nil},
		{"a value stays in its part of a path", `{"http":{"method":"DELETE","url":"https://a.example/t/{{.output.path}}/x"}}`, "DELETE https://a.example/t/..%2Fx%3Fy=1&z/x", "", nil},
		{"a value stays in its part of a query", `{"http":{"method":"DELETE","url":"https://a.example/?a={{.output.path}}&b=1"}}`, "DELETE https://a.example/?a=..%2Fx%3Fy%3D1%26z&b=1", "", nil},
		{"climbing", `{"http":{"method":"DELETE","url":"https://a.example/t/{{.dots}}/x"}}`, "", BadValue, nil},
		{"an empty part", `{"http":{"method":"DELETE","url":"https://a.example/t/{{.empty}}"}}`, "", BadValue, nil},
		{"a header that would be two", `{"http":{"method":"DELETE","url":"https://a.example/","headers":{"A":"{{.crlf}}"}}}`, "", BadValue, nil},
		{"a secret is not shown", `{"http":{"method":"DELETE","url":"https://a.example/","headers":{"A":"{{.env.TOKEN}}"}}}`, "DELETE https://a.example/", "", nil},
		{"a secret that is not there", `{"http":{"method":"DELETE","url":"https://a.example/","headers":{"A":"{{.env.OTHER}}"}}}`, "", MissingValue, []string{"env.OTHER"}},
		{"a missing value in a body", `{"http":{"method":"POST","url":"https://a.example/","body":{"a":["{{.id}}"]}}}`, "", MissingValue, []string{"id"}},
		{"an MCP tool", `{"mcp":{"server":"x","tool":"del","args":{"id":"{{.output.id}}","n":1}}}`, `x.del {"id":"77","n":1}`, "", nil},
		{"a missing value for an MCP tool", `{"mcp":{"server":"x","tool":"del","args":{"id":"{{.id}}"}}}`, "", MissingValue, []string{"id"}},
		{"a function", `{"handler":"known"}`, "handler known", "", nil},
		{"a function nobody has registered", `{"handler":"other"}`, "", NoHandler, nil},
		{"not needed", `{"not_needed":"it expires"}`, "nothing: it expires", "", nil},
		{"impossible", `{"impossible":"it is gone"}`, "", CannotUndo, nil},
		{"not known", `{}`, "", NoCompensation, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := effect
			require.NoError(t, json.Unmarshal([]byte(test.undo), &e.Compensation))
			call, err := Resolve(e, h)
			if test.reason != "" {
				var unresolved *UnresolvedError
				require.ErrorAs(t, err, &unresolved)
				assert.Equal(t, test.reason, unresolved.Reason)
				assert.Equal(t, test.missing, unresolved.Missing)
				assert.Equal(t, e, unresolved.Effect)
				assert.NotEmpty(t, unresolved.Unblock)
				assert.ErrorContains(t, err, "mcp__x__y (r/t/c#0): ")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, call.Shown)
			assert.Equal(t, e, call.Effect)
			text, err := json.Marshal(call)
			require.NoError(t, err)
			assert.NotContains(t, string(text), "s3cret")
		})
	}
}

// What the caller has not given can't be used.
func TestResolveWithoutHandlers(t *testing.T) {
	for name, c := range map[string]Compensation{
		"command": {Command: []string{"sh"}},
		"http":    {HTTP: &Request{Method: "DELETE", URL: "https://a.example/"}},
		"mcp":     {MCP: &ToolUse{Server: "s", Tool: "t"}},
		"handler": {Handler: "x"},
	} {
		_, err := Resolve(Effect{Tool: "t", Status: Succeeded, Compensation: c}, Handlers{})
		var unresolved *UnresolvedError
		require.ErrorAs(t, err, &unresolved, name)
		assert.Equal(t, NoHandler, unresolved.Reason, name)
	}
}

func TestResolveUntrusted(t *testing.T) {
	h := programs(t, "undo")
	e := Effect{Tool: "t", Status: Succeeded, Source: "digest", Compensation: argv("undo")}
	reason := func(e Effect, h Handlers) Reason {
		_, err := Resolve(e, h)
		var unresolved *UnresolvedError
		if err == nil {
			return ""
		}
		require.ErrorAs(t, err, &unresolved)
		return unresolved.Reason
	}
	assert.Equal(t, Untrusted, reason(e, h), "nobody was asked")
	h.Trusted = func(source string) bool { return source == "other" }
	assert.Equal(t, Untrusted, reason(e, h))
	h.Trusted = func(source string) bool { return source == "digest" }
	assert.Empty(t, reason(e, h))
	e.Compensation = never("x")
	h.Trusted = nil
	assert.Equal(t, CannotUndo, reason(e, h), "trust would not help")
	e.Source, e.Compensation = "", argv("undo")
	assert.Empty(t, reason(e, h), "ours need no trust")
}

// A value the tool put in several places is nobody's.
func TestAmbiguousOutput(t *testing.T) {
	e := Effect{Output: `{"content":[{"type":"text","text":"{\"id\":1}"},{"type":"text","text":"{\"id\":2}"}]}`}
	_, ok := e.value("output.id")
	assert.False(t, ok)
	e.Output = `{"structuredContent":{"id":3},"content":[{"type":"text","text":"x"}]}`
	v, _ := e.value("output.id")
	assert.Equal(t, "3", v)
	e.Output = "\n42\n"
	v, _ = e.value("output")
	assert.Equal(t, "42", v)
	e.Output = "42\n43\n"
	_, ok = e.value("output")
	assert.False(t, ok, "one of two lines")
	e.Output = `{"id":1} {"id":2}`
	_, ok = e.value("output.id")
	assert.False(t, ok, "two documents")
}

func TestExecutable(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin", "folder"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "run"), nil, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "text"), nil, 0o644))
	bin := filepath.Join(dir, "bin")
	t.Chdir(dir)
	for _, test := range []struct {
		why, name string
		env       []string
		want      string
	}{
		{"in PATH", "run", []string{"PATH=/nowhere:" + bin}, filepath.Join(bin, "run")},
		{"the last PATH counts", "run", []string{"PATH=" + bin, "PATH=/nowhere"}, ""},
		{"no PATH", "run", nil, ""},
		{"not from the worktree", "run", []string{"PATH=bin:."}, ""},
		{"not executable", "text", []string{"PATH=" + bin}, ""},
		{"a folder", "folder", []string{"PATH=" + bin}, ""},
		{"by its path", "bin/run", nil, filepath.Join(bin, "run")},
		{"by its whole path", filepath.Join(bin, "run"), nil, filepath.Join(bin, "run")},
		{"by a path that is not there", "bin/other", nil, ""},
	} {
		got, ok := executable(test.name, dir, test.env)
		assert.Equal(t, test.want != "", ok, test.why)
		if ok {
			assert.Equal(t, test.want, got, test.why)
		}
	}
}
