package workflow_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/retcon-dev/retcon/workflow"
)

// steps is a body of n steps, one after the other, each with an outcome of 256
// bytes.
func steps(n int) workflow.GoProgram {
	payload := strings.Repeat("x", 250)
	return workflow.GoProgram{Name: "steps", Version: "1", Body: func(w *workflow.Context) (any, error) {
		for i := range n {
			workflow.Do(w, "step", func(_ context.Context, i int) (string, error) { return payload, nil }, i, workflow.TaskOptions{}).Out()
		}
		return nil, nil
	}}
}

func BenchmarkSteps(b *testing.B) {
	l := newLab(b)
	l.opt.On = nil
	size := func() int64 {
		var n int64
		for _, f := range []string{"ledger.db", "ledger.db-wal"} {
			if s, err := os.Stat(l.root + "/.retcon/" + f); err == nil {
				n += s.Size()
			}
		}
		return n
	}
	before := size()
	for b.Loop() {
		if r, err := workflow.StartGo(ctx, l.opt, steps(1000), "", nil); err != nil || r.Err != nil {
			b.Fatal(err, r)
		}
	}
	b.ReportMetric(float64(size()-before)/float64(b.N*1000), "B/step")
}
