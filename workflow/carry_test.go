package workflow_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/workflow"
)

// node is a part of a plan whose tasks are functions of what they are given and
// of the files they find: two of them with the same digest do the same.
type node struct {
	kind string // write, read, pure, par
	arg  int
	prev bool // it is given what came out before it
	kids [][]node
}

func randomPlan(r *rand.Rand, depth int) (plan []node) {
	for range 1 + r.IntN(3) {
		plan = append(plan, randomNode(r, depth))
	}
	return plan
}

func randomNode(r *rand.Rand, depth int) node {
	n := node{kind: []string{"write", "write", "read", "pure", "par"}[r.IntN(5)], arg: r.IntN(4), prev: r.IntN(2) == 0}
	if n.kind != "par" {
		return n
	}
	if depth > 0 {
		n.kind = "read"
		return n
	}
	for range 1 + r.IntN(3) {
		n.kids = append(n.kids, randomPlan(r, depth+1))
	}
	return n
}

// edit changes one thing somewhere in a plan.
func edit(r *rand.Rand, plan []node, depth int) []node {
	plan = slices.Clone(plan)
	at := r.IntN(len(plan))
	if n := &plan[at]; n.kind == "par" && r.IntN(3) > 0 {
		n.kids = slices.Clone(n.kids)
		switch i := r.IntN(len(n.kids)); r.IntN(4) {
		case 0:
			n.kids = append(n.kids, randomPlan(r, 1))
		case 1:
			if len(n.kids) > 1 {
				n.kids = slices.Delete(n.kids, i, i+1)
			}
		default:
			n.kids[i] = edit(r, n.kids[i], depth+1)
		}
		return plan
	}
	switch r.IntN(4) {
	case 0:
		plan[at].arg++
	case 1:
		plan = slices.Insert(plan, at, randomNode(r, depth))
	case 2:
		if len(plan) > 1 {
			plan = slices.Delete(plan, at, at+1)
		}
	default:
		plan[at].prev = !plan[at].prev
	}
	return plan
}

// given is what a task gets; name is the file a writer writes.
type given struct {
	Name, Prev string
	Arg        int
}

// made is what a task does: its value, which a writer also writes.
func made(kind string, in given, files map[string]string) string {
	h := sha256.New()
	if kind != "pure" {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(h, "%s=%s;", name, files[name])
		}
	}
	fmt.Fprint(h, kind, in)
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// simulate is what a run of the plan from scratch comes to.
func simulate(plan []node, prefix string, files map[string]string, prev string) string {
	for i, n := range plan {
		name := fmt.Sprintf("%s%d", prefix, i)
		if n.kind == "par" {
			before := maps.Clone(files)
			var outs []string
			for k, kid := range n.kids {
				own := maps.Clone(before)
				outs = append(outs, simulate(kid, fmt.Sprintf("%sb%d-", prefix, k), own, prev))
				for f, text := range own {
					if before[f] != text {
						files[f] = text
					}
				}
			}
			prev = strings.Join(outs, "+")
			continue
		}
		in := given{Name: name, Arg: n.arg}
		if n.prev {
			in.Prev = prev
		}
		prev = made(n.kind, in, files)
		if n.kind == "write" {
			files[name] = prev
		}
	}
	return prev
}

// program is the plan as a body. ran counts the tasks that were carried out.
func (l *lab) program(plan []node, ran *atomic.Int64) workflow.GoProgram {
	task := func(kind string) func(context.Context, given) (string, error) {
		return func(c context.Context, in given) (string, error) {
			ran.Add(1)
			files := map[string]string{}
			if kind != "pure" {
				files = readAll(workflow.Dir(c))
			}
			out := made(kind, in, files)
			if kind != "write" {
				return out, nil
			}
			return out, os.WriteFile(filepath.Join(workflow.Dir(c), in.Name), []byte(out), 0o644)
		}
	}
	fx := map[string]workflow.Fx{"write": workflow.FxWrite, "read": workflow.FxRead, "pure": workflow.FxPure}
	var run func(w *workflow.Context, plan []node, prefix, prev string) string
	run = func(w *workflow.Context, plan []node, prefix, prev string) string {
		for i, n := range plan {
			if n.kind == "par" {
				outs := make([]string, len(n.kids))
				var limbs []workflow.Branch
				for k, kid := range n.kids {
					limbs = append(limbs, workflow.Branch{Name: fmt.Sprint(k), Body: func(w *workflow.Context) error {
						outs[k] = run(w, kid, fmt.Sprintf("%sb%d-", prefix, k), prev)
						return nil
					}})
				}
				w.Parallel(limbs...)
				prev = strings.Join(outs, "+")
				continue
			}
			in := given{Name: fmt.Sprintf("%s%d", prefix, i), Arg: n.arg}
			if n.prev {
				in.Prev = prev
			}
			prev = workflow.Do(w, n.kind, task(n.kind), in, workflow.TaskOptions{Fx: fx[n.kind]}).Out()
		}
		return prev
	}
	return workflow.GoProgram{Name: "plan", Version: fmt.Sprint(plan), Body: func(w *workflow.Context) (any, error) {
		return run(w, plan, "f", ""), nil
	}}
}

func readAll(dir string) map[string]string {
	files := map[string]string{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if b, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
			files[e.Name()] = string(b)
		}
	}
	return files
}

// T99, T100: after an edit, what is carried and what runs again come to what a
// run from scratch comes to, files included; and a result made from other files
// is never kept.
func TestCarryEqualsScratch(t *testing.T) {
	edits := 300
	if testing.Short() {
		edits = 40
	}
	var again, kept int64
	for seed := 0; edits > 0; seed++ {
		l := newLab(t)
		l.opt.On = nil
		r := rand.New(rand.NewPCG(uint64(seed), 99))
		plan := randomPlan(r, 0)
		var ran atomic.Int64
		got, err := workflow.StartGo(ctx, l.opt, l.program(plan, &ran), "", nil)
		require.NoError(t, err)
		require.NoError(t, got.Err)
		run := got.Run
		for range 6 {
			edits--
			if r.IntN(5) > 0 {
				plan = edit(r, plan, 0)
			}
			want := map[string]string{}
			value := simulate(plan, "f", want, "")
			ran.Store(0)
			p := l.program(plan, &ran)
			got, err = workflow.ResumeGo(ctx, l.opt, run, p)
			if _, done := err.(*workflow.FinishedError); done {
				continue
			}
			require.NoError(t, err, "seed %d", seed)
			require.NoError(t, got.Err, "seed %d: %v", seed, plan)
			if value != got.Value {
				l.dump(run)
			}
			require.Equal(t, value, got.Value, "seed %d: %v", seed, plan)
			require.Equal(t, want, readAll(l.root), "seed %d: %v", seed, plan)
			again += ran.Load()
			for _, s := range got.Tasks {
				if s.Kind != workflow.KindMerge {
					kept++
				}
			}
		}
	}
	kept -= again
	t.Logf("%d tasks ran again, %d were kept", again, kept)
	require.Greater(t, kept, again/4, "something is kept")
}
