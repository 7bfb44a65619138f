package timeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/retcon-dev/retcon/timeline"
)

// A file goes back although somebody else has removed the folder it was in.
func TestFolderRemovedByOthers(t *testing.T) {
	p := newPlace(t)
	p.write("d/e/x", "1")
	p.write("d/e/mine", "1")
	start := p.run(func() { p.write("d/e/x", "agent") })
	p.run(func() { p.remove("d/e/x") }) // another run
	p.remove("d")
	os.WriteFile(filepath.Join(p.root, "z"), nil, 0o644)
	res, err := p.m.Move(context.Background(), timeline.Request{To: start, Target: "r1@start", Conflicts: timeline.Theirs})
	if err != nil {
		t.Fatalf("%v %+v", err, res)
	}
	p.is("d/e/x", "1")
	p.is("d/e/mine", "") // removed by somebody else, and not needed
}

// The same for an undo.
func TestUndoFolderRemoved(t *testing.T) {
	p := newPlace(t)
	p.write("d/x", "1")
	p.write("d/y", "1")
	one := p.checkpoint()
	p.write("d/x", "2")
	p.restore(timeline.Request{To: one})
	p.remove("d")
	res, err := p.m.Undo(context.Background(), timeline.Request{Conflicts: timeline.Theirs})
	if err != nil {
		t.Fatalf("%v %+v", err, res)
	}
	p.is("d/x", "2")
}

// A folder that somebody has made a file of is not run over.
func TestFolderReplacedByOthers(t *testing.T) {
	p := newPlace(t)
	p.write("d/x", "1")
	one := p.checkpoint()
	p.write("d/x", "2")
	p.restore(timeline.Request{To: one})
	p.remove("d")
	p.write("d", "mine")
	_, err := p.m.Undo(context.Background(), timeline.Request{Conflicts: timeline.Theirs})
	var conflict *timeline.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("got %v", err)
	}
	p.is("d", "mine")
	if _, err := p.m.Undo(context.Background(), timeline.Request{Conflicts: timeline.Mine}); err != nil {
		t.Fatal(err)
	}
	p.is("d", "mine")
}
