package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/retcon-dev/retcon/workflow"
)

// BenchmarkReplay resumes a run of 1,000 steps whose last one fails whenever it
// is tried.
func BenchmarkReplay(b *testing.B) {
	l := newLab(b)
	l.opt.On = nil
	payload := strings.Repeat("x", 250)
	p := workflow.GoProgram{Name: "steps", Version: "1", Body: func(w *workflow.Context) (any, error) {
		for i := range 1000 {
			workflow.Do(w, "step", func(_ context.Context, i int) (string, error) {
				if i == 999 {
					return "", errors.New("again")
				}
				return payload, nil
			}, i, workflow.TaskOptions{}).Out()
		}
		return nil, nil
	}}
	if _, err := workflow.StartGo(ctx, l.opt, p, "", nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := workflow.ResumeGo(ctx, l.opt, 1, p); err != nil {
			b.Fatal(err)
		}
	}
}
