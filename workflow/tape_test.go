package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/cassette"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/workflow"
)

// Every attempt that runs something is on the tape, failed ones too, without
// what is secret.
func TestTape(t *testing.T) {
	l := newLab(t)
	l.opt.Tape = &cassette.Tape{DB: l.opt.Ledger, Key: []byte("0123456789abcdef0123456789abcdef")}
	r := l.start(`
def main(ctx):
    sh("echo a > f; echo out; echo err >&2", name="one", env={"API_TOKEN": "hunter2hunter2"}).out()
    sh("exit 3", name="two", retry=2).result()
    pure(lambda: 1).out()
`)
	require.NoError(t, r.Err)
	var cells []ledger.Cell
	require.NoError(t, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) (err error) {
		cells, err = tx.Cells(r.Run, ledger.CellQuery{})
		return err
	}))
	require.Len(t, cells, 3)
	assert.NotContains(t, string(cells[0].View), "hunter2")
	assert.NotEqual(t, cells[0].TreeIn, cells[0].TreeOut)
	assert.Equal(t, 3, *cells[1].Exit)
	assert.NotZero(t, cells[2].Flags&ledger.CellError)
	require.NoError(t, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		out, err := tx.Content(cells[0].Out)
		assert.JSONEq(t, `{"exit":0,"stdout":"out\n","stderr":"err\n","value":"out"}`, string(out))
		return err
	}))
}

// What was cut off on the tape is not carried: nobody has the whole of it.
func TestTruncatedIsNotCarried(t *testing.T) {
	l := newLab(t)
	l.opt.Tape = &cassette.Tape{DB: l.opt.Ledger, Max: 100}
	source := func(more string) string {
		return `
def main(ctx):
    sh("seq 1000", name="long", fx="read").out()
    sh("echo short", name="short", fx="read").out()
` + more
	}
	r := l.start(source(""))
	require.NoError(t, r.Err)
	l.ran()
	_, err := workflow.Resume(ctx, l.opt, r.Run, workflow.ResumeOptions{Program: l.load(`
def main(ctx):
    parallel({"x": lambda: [sh("seq 1000", name="long", fx="read").out(), sh("echo short", name="short", fx="read").out()]})
`)})
	require.NoError(t, err)
	assert.Equal(t, []string{"p0.x/long"}, l.ran())
}
