package timeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// P02, P06, P22, P30: files that came, went and changed; undo brings all of it
// back, redo does it again.
func TestRestoreUndoRedo(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("d/b", "1")
	os.Symlink("a", filepath.Join(p.root, "link"))
	one := p.checkpoint()
	p.write("a", "2")
	p.remove("d")
	p.write("x/y/z", "new")
	os.Chmod(filepath.Join(p.root, "a"), 0o755)
	p.remove("link")
	before := p.capture().Commit
	res := p.restore(timeline.Request{To: one})
	if string(p.capture().Commit) != one.Commit {
		t.Fatal("not restored")
	}
	if _, err := os.Lstat(filepath.Join(p.root, "x")); err == nil {
		t.Error("the directories created since are still there")
	}
	if res.Verified == 0 || res.Safety == "" {
		t.Errorf("result %+v", res)
	}
	for range 3 {
		p.undo()
		if got := p.capture().Commit; got != before {
			t.Fatal("undo did not bring back what was there")
		}
		p.redo()
		if got := p.capture().Commit; string(got) != one.Commit {
			t.Fatal("redo did not do it again")
		}
	}
	if _, err := p.m.Redo(context.Background(), timeline.Request{}); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("redo without an undo: %v", err)
	}
}

// P16, P21, P25: what somebody else made or changed is kept; what both changed
// is a conflict until somebody decides.
func TestRestoreOwnership(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	p.write("both", "1")
	p.write("mine", "1")
	start := p.run(func() {
		p.write("a", "agent")
		p.write("both", "agent")
		p.write("made/by/agent", "x")
	})
	p.write("both", "agent and me")
	p.write("mine", "me")
	p.write("output/run1.jsonl", "expensive")
	_, err := p.m.Move(context.Background(), timeline.Request{To: start, Target: "r1@start"})
	var conflict *timeline.ConflictError
	if !errors.As(err, &conflict) || len(conflict.Plan.Conflicts) != 1 || conflict.Plan.Conflicts[0].Path != "both" {
		t.Fatalf("got %v", err)
	}
	p.is("a", "agent")
	p.restore(timeline.Request{To: start, Conflicts: timeline.Mine})
	p.is("a", "1")
	p.is("both", "agent and me")
	p.is("mine", "me")
	p.is("output/run1.jsonl", "expensive")
	p.is("made/by/agent", "")
	p.undo()
	p.is("a", "agent")
	p.is("made/by/agent", "x")
	p.restore(timeline.Request{To: start, Conflicts: timeline.Theirs})
	p.is("both", "1")
	p.is("mine", "me")
	p.undo()
	p.is("both", "agent and me")
	p.restore(timeline.Request{To: start, Exact: true})
	p.is("mine", "1")
	p.is("output/run1.jsonl", "")
	p.undo()
	p.is("mine", "me")
	p.is("output/run1.jsonl", "expensive")
}

// Undo does not run over what was written after the move.
func TestUndoConflict(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	one := p.checkpoint()
	p.write("a", "2")
	p.restore(timeline.Request{To: one})
	p.write("a", "3, by hand")
	_, err := p.m.Undo(context.Background(), timeline.Request{})
	var conflict *timeline.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("got %v", err)
	}
	p.is("a", "3, by hand")
	if _, err := p.m.Undo(context.Background(), timeline.Request{Conflicts: timeline.Theirs}); err != nil {
		t.Fatal(err)
	}
	p.is("a", "2")
}

// P15, P78: an ignored file is put back when the run changed it, and otherwise
// left alone; bulk is never touched.
func TestRestoreIgnored(t *testing.T) {
	p := newPlace(t)
	p.write(".gitignore", ".env\nnode_modules/\n")
	p.write(".env", "secret=1")
	p.write("node_modules/x/i.js", "1")
	start := p.run(func() {
		p.write(".env", "secret=changed by agent")
		p.write("node_modules/x/i.js", "changed by agent")
	})
	p.restore(timeline.Request{To: start})
	p.is(".env", "secret=1")
	p.is("node_modules/x/i.js", "changed by agent")

	one := p.checkpoint()
	p.write(".env", "by me")
	p.write("a", "x")
	p.restore(timeline.Request{To: one})
	p.is(".env", "by me")
	p.is("a", "")
	p.restore(timeline.Request{To: one, Paths: []string{".env"}})
	p.is(".env", "secret=1")
}

func TestRestorePaths(t *testing.T) {
	p := newPlace(t)
	p.write("app/a", "1")
	p.write("lib/x", "1")
	one := p.checkpoint()
	p.write("app/a", "2")
	p.write("lib/x", "2")
	p.restore(timeline.Request{To: one, Paths: []string{"app"}})
	p.is("app/a", "1")
	p.is("lib/x", "2")
}

func TestRequestID(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	one := p.checkpoint()
	p.write("a", "2")
	first := p.restore(timeline.Request{To: one, RequestID: "k"})
	p.write("a", "3")
	again := p.restore(timeline.Request{To: one, RequestID: "k"})
	if !again.Replayed || again.Op != first.Op {
		t.Errorf("got %+v", again)
	}
	p.is("a", "3")
	_, err := p.m.Move(context.Background(), timeline.Request{To: one, RequestID: "k", Exact: true})
	var reuse *ledger.RequestKeyReuseError
	if !errors.As(err, &reuse) {
		t.Errorf("got %v", err)
	}
}

// P23: what was agreed to is what runs.
func TestBaseMoved(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	one := p.checkpoint()
	p.write("a", "2")
	_, err := p.m.Move(context.Background(), timeline.Request{To: one, Confirm: func(*timeline.Plan) (bool, error) {
		p.write("b", "meanwhile")
		return true, nil
	}})
	var moved *timeline.BaseMovedError
	if !errors.As(err, &moved) {
		t.Fatalf("got %v", err)
	}
	p.is("a", "2")
	_, err = p.m.Move(context.Background(), timeline.Request{To: one, Confirm: func(*timeline.Plan) (bool, error) { return false, nil }})
	if !errors.Is(err, timeline.ErrDeclined) {
		t.Fatalf("got %v", err)
	}
	p.is("a", "2")
}

func TestNothingToDo(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	one := p.checkpoint()
	if res := p.restore(timeline.Request{To: one}); !res.NothingToDo || res.Op != 0 {
		t.Errorf("got %+v", res)
	}
}

// P18, P19: an object that is gone stops the plan before anything is touched.
func TestRestoreMissingObject(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	one := p.checkpoint()
	p.write("a", "2")
	p.capture()
	packs, _ := filepath.Glob(filepath.Join(p.w.Folder(), "store.git/objects/pack/*"))
	for _, f := range packs {
		os.Remove(f)
	}
	p.w.Close()
	q := openPlace(t, p.root)
	if _, err := q.m.Move(context.Background(), timeline.Request{To: one}); err == nil {
		t.Fatal("restored from nothing")
	}
	q.is("a", "2")
}
