package retcon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/workflow"
)

// greeting is a program that writes to whom its input says it is written, as
// soon as there is ink.
func greeting(version string) workflow.GoProgram {
	write := func(ctx context.Context, to string) (int, error) {
		if _, err := os.Stat(filepath.Join(workflow.Dir(ctx), "ink")); err != nil {
			return 0, errors.New("there is no ink")
		}
		return len(to), os.WriteFile(filepath.Join(workflow.Dir(ctx), "letter"), []byte("dear "+to), 0o600)
	}
	return workflow.GoProgram{Name: "greeting", Version: version, Body: func(w *workflow.Context) (any, error) {
		var in struct{ To string }
		if err := w.Input(&in); err != nil {
			return nil, err
		}
		workflow.Shell(w, "paper", "echo white > paper", workflow.TaskOptions{}).Out()
		return workflow.Do(w, "write", write, in.To, workflow.TaskOptions{Fx: workflow.FxWrite}).Out(), nil
	}}
}

// A Go program's run is one like any other, but that the program resumes it: no
// command is named that would not.
func TestRunProgram(t *testing.T) {
	for _, version := range []string{"1", ""} {
		p := newFolder(t)
		program := greeting(version)
		var began []string
		o := retcon.RunOptions{Name: "greet", Input: []byte(`{"To": "anna"}`), On: func(e retcon.Progress) {
			if e.Kind == retcon.Started {
				began = append(began, e.Task)
			}
		}}
		dry := o
		dry.DryRun = true
		r, err := p.RunProgram(ctx, program, dry)
		require.NoError(t, err)
		assert.Equal(t, retcon.StatusLoaded, r.Status)
		runs, err := p.Runs(ctx, 0)
		require.NoError(t, err)
		require.Empty(t, runs)

		r, err = p.RunProgram(ctx, program, o)
		require.NoError(t, err)
		assert.Equal(t, retcon.StatusFailed, r.Status)
		assert.Equal(t, "there is no ink", r.Message)
		assert.Empty(t, r.Resume)
		require.Len(t, began, 2)

		shown, err := p.Show(ctx, retcon.ShowOptions{At: "greet"})
		require.NoError(t, err)
		assert.Empty(t, shown.Resume)
		assert.Equal(t, "greeting", shown.Definition.Program)
		_, err = p.ResumeWorkflow(ctx, retcon.ResumeOptions{Run: "greet"})
		assert.Equal(t, retcon.CodeRefused, code(err))
		assert.Equal(t, []string{"retcon show r1"}, retcon.Explain(err).Hints)

		p.write("ink", "blue")
		began = nil
		resume := retcon.ResumeOptions{Run: "greet", RunOptions: o}
		r, err = p.ResumeProgram(ctx, program, resume)
		require.NoError(t, err)
		assert.Equal(t, retcon.StatusOK, r.Status, r.Message)
		assert.JSONEq(t, "4", string(r.Value))
		assert.Len(t, began, 1, "the paper is there")
		assert.Equal(t, "dear anna", p.read("letter"))

		_, err = p.Rewind(ctx, retcon.TravelOptions{Run: "greet", Frame: 1})
		require.NoError(t, err)
		p.gone("letter")
		assert.Equal(t, "white\n", p.read("paper"))
		r, err = p.ResumeProgram(ctx, program, resume)
		require.NoError(t, err)
		assert.Equal(t, retcon.StatusOK, r.Status, r.Message)
		assert.Equal(t, "dear anna", p.read("letter"))
		_, err = p.ResumeProgram(ctx, program, resume)
		var finished *workflow.FinishedError
		require.ErrorAs(t, err, &finished)
	}
}

func TestRunProgramRefuses(t *testing.T) {
	p := newFolder(t)
	_, err := p.RunProgram(ctx, greeting("1"), retcon.RunOptions{Input: []byte(`{"To":`)})
	assert.Equal(t, retcon.CodeUsage, code(err))
	_, err = p.ResumeProgram(ctx, greeting("1"), retcon.ResumeOptions{Run: "r1"})
	assert.Equal(t, retcon.CodeNotFound, code(err))
}
