package timeline_test

import (
	"context"
	"errors"
	"testing"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

// What somebody writes between the capture and the swap is in a rescue
// checkpoint, and restoring that brings those paths back and no others.
func TestRescue(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("b", "1")
	p.write("d/x", "1")
	one := p.checkpoint()
	p.write("a", "2")
	p.write("new", "2")
	p.remove("d")
	p.write("other", "2")
	crash.Hook = func(name string) {
		if name == "move.restoring" {
			p.write("a", "written meanwhile")
			p.write("new", "this too")
			p.write("d/x", "and this")
		}
	}
	defer func() { crash.Hook = nil }()
	res := p.restore(timeline.Request{To: one})
	crash.Hook = nil
	p.is("a", "1")
	p.is("new", "")
	p.is("d/x", "1")
	if len(res.Rescued) != 3 || res.Rescue == "" {
		t.Fatalf("rescued %q in %q", res.Rescued, res.Rescue)
	}
	var row ledger.Checkpoint
	err := p.db.View(context.Background(), func(tx *ledger.Tx) error {
		all, err := tx.Checkpoints(ledger.CheckpointQuery{Worktree: p.m.WorktreeID, Limit: 1})
		if len(all) == 1 {
			row = all[0]
		}
		return err
	})
	if err != nil || row.Tier != ledger.TierRescue {
		t.Fatalf("%+v %v", row, err)
	}
	p.write("b", "later")
	p.restore(timeline.Request{To: row})
	p.is("a", "written meanwhile")
	p.is("new", "this too")
	p.is("d/x", "and this")
	p.is("b", "later")
}

// P73, P74: a step that fails takes all others back, and the operation says so.
func TestRollback(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("z", "1")
	one := p.checkpoint()
	p.write("a", "2")
	p.remove("z")
	p.write("m", "2")
	before := p.capture().Commit
	crash.Hook = func(name string) {
		if name == "restore.verify" {
			p.write("z", "by somebody, just now")
		}
	}
	defer func() { crash.Hook = nil }()
	_, err := p.m.Move(context.Background(), timeline.Request{To: one, Target: "c1"})
	crash.Hook = nil
	if err == nil {
		t.Fatal("verified what was not there")
	}
	if got := p.capture().Commit; got != before {
		t.Error("not rolled back")
	}
	err = p.db.View(context.Background(), func(tx *ledger.Tx) error {
		ops, err := tx.Ops(ledger.OpQuery{Limit: 1})
		if err == nil && (ops[0].Result != ledger.ResultRolledBack || ops[0].Worktrees[0].Rescue == "") {
			t.Errorf("the operation ended %q, rescue %q", ops[0].Result, ops[0].Worktrees[0].Rescue)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A rollback that fails half-way is not called one: the operation stays open,
// with what it displaced in the stage, and the next verb settles it.
func TestRollbackFails(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("d/x", "1")
	p.write("d/y", "1")
	one := p.checkpoint()
	p.write("a", "2")
	p.write("d/x", "2")
	before := p.capture().Commit
	crash.Hook = func(name string) {
		if name == "restore.verify" {
			p.write("a", "by somebody, just now") // so it must be taken back
			p.remove("d")                         // which cannot be
		}
	}
	defer func() { crash.Hook = nil }()
	_, err := p.m.Move(context.Background(), timeline.Request{To: one, Target: "c1"})
	crash.Hook = nil
	var failed *vcs.RollbackError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	open := func() (n int) {
		t.Helper()
		err := p.db.View(context.Background(), func(tx *ledger.Tx) error {
			ops, err := tx.OpenOps()
			n = len(ops)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if open() != 1 {
		t.Fatal("the operation was closed although the worktree is neither old nor new")
	}
	done, err := p.m.Recover(context.Background())
	if err != nil || len(done) != 1 || open() != 0 {
		t.Fatalf("recovered %+v, %v", done, err)
	}
	p.is("a", "1")
	p.is("d/x", "1")
	kept := false
	for _, path := range done[0].Rescued {
		kept = kept || path == "a"
	}
	if !kept {
		t.Errorf("what somebody wrote is not among what was rescued: %q", done[0].Rescued)
	}
	p.undo()
	p.is("a", "2")
	p.is("d/x", "2")
	p.is("d/y", "") // removed by somebody, not by the move
	var safety ledger.Checkpoint
	err = p.db.View(context.Background(), func(tx *ledger.Tx) error {
		op, err := tx.Op(done[0].Op)
		if err == nil {
			safety, err = tx.CheckpointByCommit(p.m.WorktreeID, op.Worktrees[0].Safety)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p.restore(timeline.Request{To: safety})
	if got := p.capture().Commit; got != before {
		t.Error("the safety checkpoint does not bring back all that was there")
	}
}
