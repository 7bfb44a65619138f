package workflow_test

import (
	"context"
	"strings"
	"testing"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/workflow"
)

// BenchmarkReplay resumes a run of 1,000 steps which is interrupted in the last
// one whenever it gets there.
func BenchmarkReplay(b *testing.B) {
	l := newLab(b)
	l.opt.On = nil
	payload := strings.Repeat("x", 250)
	var interrupt func()
	p := workflow.GoProgram{Name: "steps", Version: "1", Body: func(w *workflow.Context) (any, error) {
		for i := range 1000 {
			workflow.Do(w, "step", func(ctx context.Context, i int) (string, error) {
				if i == 999 {
					interrupt()
				}
				return payload, ctx.Err()
			}, i, workflow.TaskOptions{}).Out()
		}
		return nil, nil
	}}
	run := func(how func(ctx context.Context) (*workflow.Result, error)) {
		inside, cancel := context.WithCancel(ctx)
		defer cancel()
		interrupt = cancel
		if r, err := how(inside); err != nil || r.Status != ledger.OutcomeInterrupted {
			b.Fatal(err, r)
		}
	}
	run(func(ctx context.Context) (*workflow.Result, error) { return workflow.StartGo(ctx, l.opt, p, "", nil) })
	for b.Loop() {
		run(func(ctx context.Context) (*workflow.Result, error) { return workflow.ResumeGo(ctx, l.opt, 1, p) })
	}
}
