package retcon_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
)

// What is waited for is answered as the workflow's schema for it asks.
func TestHintAnswersWhatIsAsked(t *testing.T) {
	for _, test := range []struct{ schema, value string }{
		{`None`, `true`},
		{`{"type": "boolean"}`, `true`},
		{`{"enum": ["ship it", "hold"]}`, `'"ship it"'`},
		{`{"type": "integer", "minimum": 5}`, `5`},
		{`{"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}`, `'{"yes":true}'`},
		{`{"type": "string", "pattern": "^v[0-9]+$"}`, `JSON`}, // nobody knows
	} {
		p := newFolder(t)
		p.write("gate.star", fmt.Sprintf("def main(ctx):\n    return signal(\"go on\", schema = %s).out()\n", test.schema))
		r, err := p.RunWorkflow(ctx, retcon.RunOptions{File: "gate.star"})
		require.NoError(t, err)
		want := []string{"retcon signal r1 'go on' --value " + test.value + " --resume"}
		assert.Equal(t, want, r.Resume)
		shown, err := p.Show(ctx, retcon.ShowOptions{At: "r1"})
		require.NoError(t, err)
		assert.Equal(t, want, shown.Resume)
	}
}

// Only what can be gone on with is said to be, and where it would be gone on
// from.
func TestHintResumes(t *testing.T) {
	p := newFolder(t)
	p.write("flow.star", "def main(ctx):\n    sh(\"true\", name=\"one\").out()\n    sh(\"test -e ok\", name=\"two\").out()\n")
	_, err := p.RunWorkflow(ctx, retcon.RunOptions{File: "flow.star"})
	require.NoError(t, err)
	resume := func(at string) []string {
		shown, err := p.Show(ctx, retcon.ShowOptions{At: at})
		require.NoError(t, err)
		return shown.Resume
	}
	assert.Equal(t, []string{"retcon resume r1"}, resume("r1"))
	assert.Empty(t, resume("r1@0"))
	p.write("ok", "")
	_, err = p.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: "r1"})
	require.NoError(t, err)
	assert.Empty(t, resume("r1"))
	_, err = p.Exec(ctx, retcon.ExecOptions{Argv: []string{"false"}, Run: func(context.Context, []string) (int, error) { return 1, nil }})
	require.NoError(t, err)
	assert.Empty(t, resume("last"), "a command is no workflow")
}
