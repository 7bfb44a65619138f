package workflow_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/workflow"
)

// A body that can't be loaded is told with its place and, where there is
// something to do, a hint.
func TestBodyErrorsOnLoad(t *testing.T) {
	for _, test := range []struct {
		name, source, at, message, hint string
	}{
		{"no main", "x = 1\n", "main.star", "there is no function main", "def main(ctx)"},
		{"syntax", "def main(ctx):\n  x = = 1\n", "main.star:2:7", "want primary expression", ""},
		{"unknown name", "def main(ctx):\n  open('x')\n", "main.star:2:3", "undefined: open", "file("},
		{"import", "import os\ndef main(ctx): pass\n", "main.star:1:1", "got import", "load("},
		{"missing module", "load('lib.star', 'x')\ndef main(ctx): pass\n", "main.star:1:1", "can't read lib.star", ""},
		{"outside", "load('../lib.star', 'x')\ndef main(ctx): pass\n", "main.star:1:1", "does not lie below", ""},
		{"missing file", "T = file('t.md')\ndef main(ctx): pass\n", "main.star:1:9", "can't read t.md", ""},
		{"task on load", "sh('true')\ndef main(ctx): pass\n", "main.star:1:3", "declared in main", ""},
		{"schema", "INPUT = {'type': 7}\ndef main(ctx): pass\n", "main.star", "INPUT is not a JSON schema", ""},
		{"endless on load", "def f():\n  while True: pass\nf()\ndef main(ctx): pass\n", "main.star", "too many steps", "out()"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(test.source)
			var body *workflow.BodyError
			require.ErrorAs(t, err, &body)
			assert.Contains(t, body.At, test.at)
			assert.Contains(t, body.Message, test.message)
			assert.Contains(t, body.Hint, test.hint)
		})
	}
	_, err := load("a.star:\nload('b.star', 'x')\ndef main(ctx): pass\n", "b.star:\nload('a.star', 'y')\nx = 1\n")
	var body *workflow.BodyError
	require.ErrorAs(t, err, &body)
	assert.Contains(t, body.Message, "loaded by itself")
}

// A fault of a running body stops it where it stands, before anything was begun
// because of it.
func TestBodyErrors(t *testing.T) {
	for _, test := range []struct{ name, line, at, message, hint string }{
		{"bad fx", "sh('true', fx='x')", "main.star:2:5", "none of pure, read", ""},
		{"function as argument", "sh('true', env={'A': len})", "main.star:2:5", "env.A: a function is not data", ""},
		{"bad duration", "sh('true', timeout='soon')", "main.star:2:5", "no duration", "as \"90s\""},
		{"past", "sleep(0)", "main.star:2:8", "not in the future", ""},
		{"retry", "sh('true', retry={'times': 3})", "main.star:2:5", "none of max", ""},
		{"endless", "\n  while True: pass", "main.star", "too many steps", "out()"},
		{"recursion", "main(ctx)", "main.star:2", "called recursively", "loop()"},
		{"same key", "sh('a', name='n', key='k'); sh('b', name='n', key='k')", "", "a second task n[k]", ""},
		{"frozen", "\n  l = []\n  parallel({'a': lambda: l.append(1)})", "main.star:4", "frozen", "return its result"},
		{"choice", "choice([])", "main.star:2", "the list is empty", ""},
		{"unknown agent", "agent('a', prompt='x', using='nobody')", "main.star:2", "no agent", "claude"},
		{"number", "1 // 0", "main.star:2", "division by zero", ""},
		{"file in main", "file('x')", "main.star:2", "pinned when it is loaded", "at the top"},
		{"result", "return sh", "main.star", "can't be kept", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			r := l.start("def main(ctx):\n  " + test.line + "\n")
			assert.Equal(t, "failed", r.Status)
			assert.ErrorContains(t, r.Err, test.message)
			assert.Empty(t, l.ran())
			var body *workflow.BodyError
			if errors.As(r.Err, &body) {
				assert.Contains(t, body.At, test.at)
				assert.Contains(t, body.Hint, test.hint)
			}
		})
	}
}

func TestInputIsChecked(t *testing.T) {
	l := newLab(t)
	p := l.load(`
INPUT = {"type": "object", "properties": {"n": {"type": "integer"}, "who": {"type": "string", "default": "you"}}, "required": ["n"]}
def main(ctx):
    return [ctx.input["n"], ctx.input["who"]]
`)
	for _, bad := range []string{`{"n": "x"}`, `{}`, `[`, `{"n": 1.5}`} {
		_, err := workflow.Start(ctx, l.opt, p, "", []byte(bad))
		var wrong *workflow.InputError
		require.ErrorAs(t, err, &wrong, bad)
		assert.Equal(t, "-i", wrong.Origin)
	}
	require.NoError(t, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		runs, err := tx.Runs(ledger.RunQuery{})
		assert.Empty(t, runs, "nothing is written before the input is good")
		return err
	}))
	r, err := workflow.Start(ctx, l.opt, p, "", []byte(`{"n": 3}`))
	require.NoError(t, err)
	require.NoError(t, r.Err)
	assert.Equal(t, "[3,you]", shownValue(r.Value))
}
