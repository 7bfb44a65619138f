package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
)

// bytes are how much a frame takes in the file, keyframes and all that SQLite
// adds included, when there are so many that no keyframe counts too much.
func (f *frames) bytes(context.Context) error {
	for _, row := range []struct {
		tasks, frames int
		goal          float64
	}{{10, 4000, 200}, {100, 4000, 250}, {1000, 8000, 400}, {10000, 24000, 400}} {
		name := fmt.Sprintf("bytes per frame, %d tasks", row.tasks)
		if !f.Wants(name) {
			continue
		}
		f.Say("%s", name)
		r := f.Report.Row(name, fmt.Sprintf("%.0f B", row.goal), bench.Goal(1))
		size, err := f.perFrame(row.tasks, row.frames)
		if err != nil {
			r = r.Fail(err)
		} else {
			r = r.Compare(size, row.goal, "B")
		}
		if err := f.Report.Add(r); err != nil {
			return err
		}
	}
	return nil
}

func (f *frames) perFrame(tasks, n int) (float64, error) {
	dir, err := f.Folder(fmt.Sprintf("bytes-%d", tasks))
	if err != nil {
		return 0, err
	}
	o, err := newOurs(dir, 500)
	if err != nil {
		return 0, err
	}
	defer o.close()
	g := newGraph(tasks, 1)
	if err := fill(o, g, 1); err != nil {
		return 0, err
	}
	before, err := o.size()
	if err != nil {
		return 0, err
	}
	for range n {
		if err := o.append(g.step()); err != nil {
			return 0, err
		}
	}
	if err := o.flush(); err != nil {
		return 0, err
	}
	after, err := o.size()
	return float64(after-before) / float64(n), err
}

// timed does something some times and returns what one of them cost.
func timed(n int, do func(i int) error) (bench.Usage, error) {
	began := time.Now()
	for i := range n {
		if err := do(i); err != nil {
			return bench.Usage{}, err
		}
	}
	return bench.Usage{Wall: time.Since(began) / time.Duration(n)}, nil
}

// appending is a side that appends n frames, each a transaction.
func appending(name string, s store, g *graph, n int) bench.Side {
	return bench.Side{Name: name, Run: func(context.Context) (bench.Usage, error) {
		return timed(n, func(int) error { return s.append(g.step()) })
	}}
}

const (
	jsonName      = "JSON per frame"
	hamtName      = "HAMT"
	langgraphName = "LangGraph SqliteSaver"
)

// appends are frames of a run of 1,000 tasks.
func (f *frames) appends(ctx context.Context) error {
	const name, tasks = "append a frame, 1000 tasks", 1000
	if !f.Wants(name) {
		return nil
	}
	o, err := f.ours("append", tasks, 1, 1)
	if err != nil {
		return err
	}
	defer o.close()
	dir, err := f.Folder("append-json")
	if err != nil {
		return err
	}
	j, err := newJSONFrames(dir)
	if err != nil {
		return err
	}
	defer j.close()
	g := newGraph(tasks, 1)
	if err := fill(j, g, 1); err != nil {
		return err
	}
	return f.Play(ctx, ground.Race{Case: name, Goal: bench.Goal(1.0 / 20),
		Ours: appending("retcon", o, o.graph, 200), Theirs: appending(jsonName, j, g, 20)})
}

// filled is a ledger with frames, and where its graph stands.
type filled struct {
	*ours
	graph *graph
}

func (f *frames) ours(folder string, tasks, n, batch int) (filled, error) {
	dir, err := f.Folder(folder)
	if err != nil {
		return filled{}, err
	}
	o, err := newOurs(dir, max(batch, 1))
	if err != nil {
		return filled{}, err
	}
	g := newGraph(tasks, 1)
	if err := fill(o, g, n); err != nil {
		return filled{}, err
	}
	o.batch = 1
	return filled{o, g}, nil
}

// loads are of frames anywhere in the history of a run of 10,000 tasks.
func (f *frames) loads(ctx context.Context) error {
	const name, tasks, history = "load a frame, 10000 tasks", 10000, 12000
	if !f.Wants(name) {
		return nil
	}
	f.Say("make a history of %d tasks", tasks)
	o, err := f.ours("load", tasks, history, 500)
	if err != nil {
		return err
	}
	defer o.close()
	for _, peer := range []struct {
		name   string
		open   func(dir string) (store, error)
		frames int // as many as it takes: a load costs the same at any of them
		goal   float64
	}{
		{hamtName, func(dir string) (store, error) { return newHAMT(dir) }, 500, 1.0 / 5},
		{jsonName, func(dir string) (store, error) { return newJSONFrames(dir) }, 20, 1.0 / 10},
	} {
		dir, err := f.Folder("load-" + peer.name)
		if err != nil {
			return err
		}
		s, err := peer.open(dir)
		if err != nil {
			return err
		}
		err = fill(s, newGraph(tasks, 1), peer.frames)
		if err == nil {
			err = f.Play(ctx, ground.Race{Case: name, Goal: bench.Goal(peer.goal),
				Ours: loading("retcon", o, history), Theirs: loading(peer.name, s, peer.frames)})
		}
		if err := errors.Join(err, s.close()); err != nil {
			return err
		}
	}
	return nil
}

// loading is a side that loads frames taken by chance.
func loading(name string, s store, frames int) bench.Side {
	rng := rand.New(rand.NewPCG(1, 2))
	return bench.Side{Name: name, Run: func(context.Context) (bench.Usage, error) {
		return timed(5, func(int) error { return s.load(rng.Int64N(int64(frames))) })
	}}
}

// lengths are things that must not depend on how long a history is.
func (f *frames) lengths(ctx context.Context) error {
	const long, short, tasks = 50000, 500, 100
	cases := []struct {
		name string
		do   func(o filled, n int) func(i int) error
	}{
		{"fork, 50000 frames", forking}, {"rewind, 50000 frames", rewinding}, {"page of 200, 50000 frames", paging},
	}
	if !f.wants(cases[0].name, cases[1].name, cases[2].name) {
		return nil
	}
	f.Say("make a history of %d frames", long)
	big, err := f.ours("long", tasks, long, 500)
	if err != nil {
		return err
	}
	defer big.close()
	small, err := f.ours("short", tasks, short, 500)
	if err != nil {
		return err
	}
	defer small.close()
	for _, c := range cases {
		side := func(name string, o filled, n int) bench.Side {
			do := c.do(o, n)
			return bench.Side{Name: name, Run: func(context.Context) (bench.Usage, error) { return timed(20, do) }}
		}
		err := f.Play(ctx, ground.Race{Case: c.name, Goal: bench.Goal(2), Ours: side("retcon", big, long), Theirs: side("the same of 500", small, short)})
		if err != nil {
			return err
		}
	}
	return nil
}

func forking(o filled, n int) func(int) error {
	return func(int) error {
		return o.db.Update(context.Background(), func(tx *ledger.Tx) error {
			parent, err := tx.Run(o.run)
			if err != nil {
				return err
			}
			child, err := tx.CreateRun(ledger.Run{Source: "bench", WorktreeID: parent.WorktreeID, Parent: o.run, Lineage: parent.Lineage})
			if err != nil {
				return err
			}
			_, err = tx.Fork(o.head.Branch, int64(n/2), child.ID, "")
			return err
		})
	}
}

// rewinding goes half the way back, and takes that back.
func rewinding(o filled, n int) func(int) error {
	return func(int) error {
		return o.db.Update(context.Background(), func(tx *ledger.Tx) error {
			r, err := tx.Run(o.run)
			if err != nil {
				return err
			}
			ops := make([]int64, 2)
			for i := range ops {
				op, err := tx.BeginOp(ledger.Op{Verb: "rewind", Worktrees: []ledger.OpWorktree{{WorktreeID: r.WorktreeID}}}, nil)
				if err != nil {
					return err
				}
				ops[i] = op.ID
				if i == 0 {
					_, err = tx.Rewind(o.run, int64(n/2), op.ID)
				} else {
					_, err = tx.Unrewind(ops[0], op.ID)
				}
				if err != nil {
					return err
				}
				if _, err := tx.FinishOp(op.ID, op.Token, ledger.ResultOK, ""); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func paging(o filled, n int) func(int) error {
	return func(int) error {
		return o.db.View(context.Background(), func(tx *ledger.Tx) error {
			page, err := tx.Frames(o.head.Branch, ledger.FrameQuery{Before: int64(n/2 + 100), Limit: 200, Changed: true})
			if err == nil && len(page) != 200 {
				err = fmt.Errorf("%d frames on the page", len(page))
			}
			return err
		})
	}
}
