package workflow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/workflow"
)

// randomBody is a body whose shape follows from a seed, and whose tasks take
// their time as they like. What it does depends on outcomes alone.
func randomBody(seed uint64, delay func()) workflow.GoProgram {
	step := func(_ context.Context, n int) (int, error) {
		delay()
		if n%7 == 3 {
			return 0, fmt.Errorf("%d is unlucky", n)
		}
		return n*31 + 7, nil
	}
	var grow func(w *workflow.Context, r *rand.Rand, depth int) int
	grow = func(w *workflow.Context, r *rand.Rand, depth int) int {
		sum := 0
		var open []*workflow.Task[int]
		for range 1 + r.IntN(4) {
			switch kind := r.IntN(6); {
			case kind == 0 && depth < 2:
				var limbs []workflow.Branch
				sums := make([]int, 2+r.IntN(2))
				for i := range sums {
					inner := rand.New(rand.NewPCG(r.Uint64(), 1))
					limbs = append(limbs, workflow.Branch{Name: fmt.Sprint("b", i), Body: func(w *workflow.Context) error {
						sums[i] = grow(w, inner, depth+1)
						return nil
					}})
				}
				w.Parallel(limbs...)
				for _, s := range sums {
					sum += s
				}
			case kind == 1 && len(open) > 0:
				v, err := open[r.IntN(len(open))].Result()
				if err != nil {
					v = len(err.Error())
				}
				sum += v
			default:
				open = append(open, workflow.Do(w, "step", step, (sum+r.IntN(5))%100, workflow.TaskOptions{}))
			}
		}
		for _, t := range open {
			if v, err := t.Result(); err == nil {
				sum += v
			}
		}
		return sum % 1000
	}
	return workflow.GoProgram{Name: "random", Version: fmt.Sprint(seed), Body: func(w *workflow.Context) (any, error) {
		return grow(w, rand.New(rand.NewPCG(seed, 0)), 0), nil
	}}
}

// T98: the frames of a live run are those that a render from the top gives,
// whatever the order in which tasks end.
func TestLiveEqualsRender(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 30
	}
	l := newLab(t)
	l.opt.On = nil
	frames := int64(0)
	for seed := range uint64(runs) {
		var values []any
		for range 2 {
			p := randomBody(seed, func() { time.Sleep(time.Duration(rand.IntN(400)) * time.Microsecond) })
			got, err := workflow.StartGo(ctx, l.opt, p, "", nil)
			require.NoError(t, err)
			require.NoError(t, got.Err)
			values = append(values, got.Value)
			n, err := workflow.AuditGo(ctx, l.opt, got.Run, p)
			require.NoError(t, err, "seed %d", seed)
			frames += n
		}
		assert.Equal(t, values[0], values[1], "seed %d", seed)
	}
	t.Logf("%d runs, %d frames", 2*runs, frames)
}
