package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
	"github.com/retcon-dev/retcon/vcs"
)

// travels are whole moves along a run, plan and all, in a folder of one file:
// what they cost beyond the look at that must not depend on how long the run is.
func (f *frames) travels(ctx context.Context) error {
	const long, short, tasks = 50000, 500, 100
	cases := []struct {
		name       string
		ledgerOnly bool
	}{{"rewind along a run, ledger only, 50000 frames", true}, {"rewind along a run, 50000 frames", false}}
	if !f.wants(cases[0].name, cases[1].name) {
		return nil
	}
	f.Say("make a run of %d frames, with attempts and checkpoints", long)
	big, err := f.recorded(ctx, "travel-long", tasks, long)
	if err != nil {
		return err
	}
	defer big.Close()
	small, err := f.recorded(ctx, "travel-short", tasks, short)
	if err != nil {
		return err
	}
	defer small.Close()
	for _, c := range cases {
		side := func(name string, w *retcon.Workspace, n int64) bench.Side {
			return bench.Side{Name: name, Run: func(ctx context.Context) (bench.Usage, error) {
				return timed(5, func(int) error { return thereAndBack(ctx, w, n-2, c.ledgerOnly) })
			}}
		}
		err := f.Play(ctx, ground.Race{Case: c.name, Goal: bench.Goal(2), Ours: side("retcon", big, long), Theirs: side("the same of 500", small, short)})
		if err != nil {
			return err
		}
	}
	return nil
}

// thereAndBack rewinds the run by a frame, and takes that back.
func thereAndBack(ctx context.Context, w *retcon.Workspace, frame int64, ledgerOnly bool) error {
	done, err := w.Rewind(ctx, retcon.TravelOptions{Run: "r1", Frame: frame, LedgerOnly: ledgerOnly})
	if err != nil {
		return err
	}
	if h := done.Plan.History; h == nil || h.Cut != 1 {
		return errors.New("it was not one frame that was cut off")
	}
	_, err = w.Undo(ctx, retcon.MoveOptions{Op: done.Op})
	return err
}

// recorded makes a folder in which a run has n frames, each the outcome of an
// attempt between two checkpoints.
func (f *frames) recorded(ctx context.Context, name string, tasks, n int) (*retcon.Workspace, error) {
	dir, err := f.Folder(name)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text\n"), 0o644); err != nil {
		return nil, err
	}
	if err := record(ctx, dir, newGraph(tasks, 1), n); err != nil {
		return nil, err
	}
	return retcon.Open(ctx, retcon.Options{Dir: dir, Now: time.Now})
}

func record(ctx context.Context, dir string, g *graph, n int) (err error) {
	w, err := vcs.Open(dir, vcs.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	now, err := w.Capture(ctx, vcs.CaptureOptions{Sync: true})
	if err != nil {
		return err
	}
	db, err := ledger.Open(filepath.Join(w.Folder(), "ledger.db"), ledger.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r := &recording{now: now, owner: checkpoint.Self(retcon.User), graph: g}
	err = db.Update(ctx, func(tx *ledger.Tx) (err error) {
		if r.worktree, err = (&checkpoint.Recorder{Ledger: db, Worktree: w, Host: r.owner.Host}).Ensure(tx); err != nil {
			return err
		}
		if r.run, err = tx.CreateRun(ledger.Run{Source: "bench", WorktreeID: r.worktree.ID}); err != nil {
			return err
		}
		r.head, err = tx.CreateBranch(r.run.ID)
		return err
	})
	const batch = 500
	for done := 0; err == nil && done < n; done += batch {
		err = db.Update(ctx, func(tx *ledger.Tx) error {
			for range min(batch, n-done) {
				if err := r.frame(tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return db.Update(ctx, func(tx *ledger.Tx) error { return tx.SetRunStatus(r.run.ID, ledger.OutcomeOK) })
}

// recording is a run that is being recorded.
type recording struct {
	now      *vcs.Capture
	owner    ledger.Owner
	graph    *graph
	worktree ledger.Worktree
	run      ledger.Run
	head     *ledger.Head
}

func (r *recording) checkpoint(tx *ledger.Tx, attempt int64, edge string) (ledger.Checkpoint, error) {
	return checkpoint.Append(tx, r.worktree.ID, r.now, checkpoint.Facts{},
		checkpoint.What{Tier: ledger.TierTool, Run: r.run.ID, Attempt: attempt, Edge: edge, Actor: retcon.User})
}

// frame records the next frame. The first has all tasks and no attempt.
func (r *recording) frame(tx *ledger.Tx) error {
	if r.head.Seq < 0 {
		first, err := r.checkpoint(tx, 0, "")
		if err == nil {
			_, err = tx.AppendFrame(r.head, ledger.NewFrame{Put: r.graph.all(), Kind: "start", Checkpoint: first.ID})
		}
		return err
	}
	rows := r.graph.step()
	a, err := tx.StartAttempt(ledger.Attempt{RunID: r.run.ID, Task: rows[0].Key, Owner: r.owner, Branch: r.head.Branch, StartSeq: r.head.Seq})
	if err != nil {
		return err
	}
	before, err := r.checkpoint(tx, a.ID, ledger.EdgeBefore)
	if err != nil {
		return err
	}
	if err := tx.SetAttemptBefore(a.ID, before.ID); err != nil {
		return err
	}
	after, err := r.checkpoint(tx, a.ID, ledger.EdgeAfter)
	if err != nil {
		return err
	}
	_, err = tx.AppendFrame(r.head, ledger.NewFrame{Put: rows, Kind: "outcome", Checkpoint: after.ID})
	if err != nil {
		return fmt.Errorf("frame %d: %w", r.head.Seq+1, err)
	}
	return tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeOK, After: after.ID, EndSeq: r.head.Seq})
}
