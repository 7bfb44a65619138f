package retcon_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/workflow"
)

const gate = `
def main(ctx):
    built = sh("echo one >built", name="build")
    signal("approve", of=built).out()
    return "released"
`

func TestRunWorkflow(t *testing.T) {
	p := newFolder(t)
	p.write("flows/gate.star", gate)
	var seen []string
	r, err := p.RunWorkflow(ctx, retcon.RunOptions{File: "flows/gate.star", Name: "gate", On: func(e retcon.Progress) { seen = append(seen, e.Kind) }})
	require.NoError(t, err)
	assert.Equal(t, retcon.StatusWaiting, r.Status)
	assert.Equal(t, []string{"approve"}, r.Waits)
	assert.Equal(t, []string{"retcon signal r1 approve --value true --resume"}, r.Resume)
	assert.Contains(t, seen, retcon.Settled)

	_, err = p.Signal(ctx, retcon.SignalOptions{Run: "gate", Name: "aprove", Value: []byte("true")})
	assert.Equal(t, []string{"retcon signal r1 approve"}, retcon.Explain(err).Hints)
	sent, err := p.Signal(ctx, retcon.SignalOptions{Run: "gate", Name: "approve", Value: []byte("true")})
	require.NoError(t, err)
	assert.False(t, sent.Live)
	r, err = p.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: "last"})
	require.NoError(t, err)
	assert.Equal(t, retcon.StatusOK, r.Status)
	assert.JSONEq(t, `"released"`, string(r.Value))

	c, err := p.Resolve(ctx, "gate@build.after")
	require.NoError(t, err)
	again, err := p.Resolve(ctx, "r1@-1")
	require.NoError(t, err)
	assert.Equal(t, c.Commit, again.Commit)
	_, err = p.Resolve(ctx, "r1@approve.before")
	assert.Equal(t, retcon.CodeNotFound, code(err), "it was never tried")
}

// What can't begin leaves nothing.
func TestRunWorkflowRefuses(t *testing.T) {
	p := newFolder(t)
	p.write("bad.star", "def main(ctx)\n")
	outside := filepath.Join(t.TempDir(), "out.star")
	require.NoError(t, os.WriteFile(outside, []byte("x = 1\n"), 0o600))
	require.NoError(t, os.Symlink(outside, p.path("link.star")))
	for _, test := range []struct{ file, code string }{
		{"none.star", retcon.CodeNotFound}, {".", retcon.CodeFailed}, {"none/x.star", retcon.CodeNotFound},
		{"bad.star", retcon.CodeBody}, {"link.star", retcon.CodeFailed},
	} {
		_, err := p.RunWorkflow(ctx, retcon.RunOptions{File: test.file})
		require.Error(t, err, test.file)
		assert.Equal(t, test.code, code(err), "%s: %v", test.file, err)
	}
	all, err := p.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Empty(t, all)
}

// A run whose process died between two tasks is seen to be dead, and is settled
// by the next verb that writes.
func TestDeadWorkflow(t *testing.T) {
	p := newFolder(t)
	p.write("gate.star", gate)
	_, err := p.RunWorkflow(ctx, retcon.RunOptions{File: "gate.star"})
	require.NoError(t, err)
	db, err := ledger.Open(filepath.Join(p.Folder(), "ledger.db"), ledger.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Update(ctx, func(tx *ledger.Tx) error { return tx.SetRunStatus(1, ledger.StatusRunning) }))
	require.NoError(t, db.Close())
	all, err := p.Runs(ctx, 0)
	require.NoError(t, err)
	assert.True(t, all[0].Dead)
	c, err := p.CancelRun(ctx, retcon.CancelOptions{Run: "r1"})
	require.NoError(t, err)
	assert.Zero(t, c.Stopped)
	all, err = p.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Equal(t, retcon.StatusCancelled, all[0].Status)
	assert.False(t, all[0].Dead)
}

func TestExplainRun(t *testing.T) {
	for _, test := range []struct {
		err        error
		code, hint string
	}{
		{&workflow.BodyError{At: "a.star:1:2", Message: "bad", Hint: "good"}, retcon.CodeBody, "good"},
		{&workflow.InputError{What: "input", Field: "who", Value: "3", Origin: "-i", Reason: "no"}, retcon.CodeUsage, ""},
		{&workflow.DivergedError{Code: workflow.DivergedExtra}, workflow.DivergedExtra, ""},
		{&workflow.FinishedError{Run: 3}, retcon.CodeRefused, "retcon show r3"},
		{&workflow.LiveError{Run: 3, Err: errors.New("x")}, retcon.CodeLocked, "retcon runs"},
		{&workflow.NotWorkflowError{Run: 3, Source: "exec"}, retcon.CodeUsage, "retcon runs"},
		{&workflow.WaitError{Run: 3, Name: "x"}, retcon.CodeNotFound, "retcon show r3"},
		{&ledger.SignalReuseError{Key: "k"}, retcon.CodeRequestKeyReuse, ""},
		{&retcon.StoppedError{Run: "r3", Err: &ledger.FullError{}}, retcon.CodeFailed, "retcon gc --dry-run"},
		{&retcon.RunError{Run: "x"}, retcon.CodeNotFound, "retcon runs"},
		{&timeline.NoFramesError{Run: 3}, retcon.CodeNotFound, "retcon snapshots --run r3"},
		{&timeline.AmbiguousPointError{Run: 3, Point: "a", Candidates: []string{"a~1"}}, retcon.CodeNotFound, "retcon show r3 --task 'a~1'"},
		{&timeline.DepthError{Run: 3}, retcon.CodeDamaged, "retcon doctor"},
	} {
		e := retcon.Explain(test.err)
		assert.Equal(t, test.code, e.Code, e.Message)
		if test.hint == "" {
			assert.Empty(t, e.Hints, e.Message)
		} else if assert.NotEmpty(t, e.Hints, e.Message) {
			assert.Equal(t, test.hint, e.Hints[0])
		}
	}
}
