package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/snapshot"
)

const childArg = "append-as-child"

// child appends frames to the branch that all children share, and prints how
// long each took, in nanoseconds.
func child(args []string) error {
	path, name := args[0], args[1]
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	db, err := ledger.Open(path, ledger.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	var h *ledger.Head
	took := make([]int64, n)
	for i := range n {
		began := time.Now()
		if err := db.Update(context.Background(), func(tx *ledger.Tx) (err error) { h, err = appendTo(tx, h, name, i); return err }); err != nil {
			return fmt.Errorf("append %d: %w", i, err)
		}
		took[i] = time.Since(began).Nanoseconds()
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}

// appendTo appends to the head that is known, or to the one that others have
// made since.
func appendTo(tx *ledger.Tx, h *ledger.Head, name string, i int) (*ledger.Head, error) {
	f := ledger.NewFrame{Kind: "outcome", Put: []snapshot.Row{{Key: name, Attempt: uint32(i + 1), Out: digest(name, uint64(i))}}}
	if h != nil {
		if _, err := tx.AppendFrame(h, f); !errors.Is(err, ledger.ErrStale) {
			return h, err
		}
	}
	b, err := tx.RunHead(1)
	if err != nil {
		return nil, err
	}
	if h, err = tx.LoadFrame(b.ID, ledger.Newest); err != nil {
		return nil, err
	}
	_, err = tx.AppendFrame(h, f)
	return h, err
}

// processes append side by side to one branch: the slowest append of all
// counts, and every one must be there.
func (f *frames) processes(ctx context.Context) error {
	const name, count, each = "slowest append, 8 processes × 1000", 8, 1000
	if !f.Wants(name) {
		return nil
	}
	r := f.Report.Row(name, "0.3 s", bench.Goal(1))
	var pairs []bench.Pair
	for round := range f.Rounds {
		f.Say("%s, round %d", name, round+1)
		slowest, err := f.processRound(ctx, round, count, each)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return f.Report.Add(r.Fail(err))
		}
		pairs = append(pairs, bench.Pair{Ours: bench.Usage{Wall: slowest}, Theirs: bench.Usage{Wall: 300 * time.Millisecond}})
	}
	return f.Report.Add(r.Measure(pairs, bench.Wall))
}

func (f *frames) processRound(ctx context.Context, round, count, each int) (time.Duration, error) {
	o, err := f.ours(fmt.Sprintf("processes-%d", round), 100, 1, 1)
	if err != nil {
		return 0, err
	}
	defer o.close()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	outs, errs, cmds := make([]bytes.Buffer, count), make([]bytes.Buffer, count), make([]*exec.Cmd, count)
	for i := range count {
		cmds[i] = exec.CommandContext(ctx, self, childArg, o.db.Path(), fmt.Sprint("p", i), strconv.Itoa(each))
		cmds[i].Stdout, cmds[i].Stderr = &outs[i], &errs[i]
		if err := cmds[i].Start(); err != nil {
			return 0, err
		}
	}
	var slowest int64
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, errs[i].String())
		}
		var took []int64
		if err := json.Unmarshal(outs[i].Bytes(), &took); err != nil {
			return 0, err
		}
		slowest = max(slowest, slices.Max(took))
	}
	return time.Duration(slowest), f.verify(ctx, o, count, each)
}

// verify looks whether everything is there, and whole.
func (f *frames) verify(ctx context.Context, o filled, count, each int) error {
	problems, err := o.db.Check(ctx)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s", problems[0])
	}
	return o.db.View(ctx, func(tx *ledger.Tx) error {
		h, err := tx.LoadFrame(o.head.Branch, ledger.Newest)
		if err != nil {
			return err
		}
		if h.Seq != int64(count*each) {
			return fmt.Errorf("%d frames of %d", h.Seq, count*each)
		}
		for i := range count {
			if r, _ := h.Set.Get(fmt.Sprint("p", i)); r.Attempt != uint32(each) {
				return fmt.Errorf("p%d appended %d times", i, r.Attempt)
			}
		}
		return nil
	})
}
