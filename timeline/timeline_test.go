package timeline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

// place is a plain folder with a store, a ledger and a mover.
type place struct {
	t    testing.TB
	root string
	w    *vcs.Worktree
	db   *ledger.DB
	m    *timeline.Mover
}

func newPlace(t testing.TB) *place {
	t.Helper()
	return openPlace(t, t.TempDir())
}

func openPlace(t testing.TB, root string) *place {
	t.Helper()
	w, err := vcs.Open(root, vcs.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	db, err := ledger.Open(filepath.Join(w.Folder(), "ledger.db"), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: root, w: w, db: db}
	p.m = &timeline.Mover{W: w, DB: db, Actor: timeline.User, Owner: ledger.Owner{Name: "test", PID: int64(os.Getpid())},
		Alive: func(o ledger.Owner) bool { return o.PID == int64(os.Getpid()) }, Now: time.Now,
		Handlers: sideeffect.Handlers{Dir: root, Env: []string{"PATH=" + os.Getenv("PATH")}}}
	p.update(func(tx *ledger.Tx) error {
		dev, ino := w.Identity()
		row, err := tx.EnsureWorktree(ledger.Worktree{Path: w.Root(), Dev: dev, Ino: ino, Kind: string(w.Kind()), Host: "test"})
		p.m.WorktreeID = row.ID
		return err
	})
	t.Cleanup(func() {
		problems, err := db.Check(context.Background())
		if err != nil || len(problems) > 0 {
			t.Errorf("ledger: %v %v", problems, err)
		}
		db.Close()
		w.Close()
	})
	return p
}

func (p *place) update(f func(*ledger.Tx) error) {
	p.t.Helper()
	if err := p.db.Update(context.Background(), f); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) write(path, content string) {
	p.t.Helper()
	full := filepath.Join(p.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) remove(path string) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.root, path)); err != nil {
		p.t.Fatal(err)
	}
}

// is fails unless the file has this content; "" is for absent.
func (p *place) is(path, want string) {
	p.t.Helper()
	got, err := os.ReadFile(filepath.Join(p.root, path))
	if err != nil && !os.IsNotExist(err) && !strings.Contains(err.Error(), "not a directory") {
		p.t.Fatal(err)
	}
	if string(got) != want {
		p.t.Errorf("%s holds %q, want %q", path, got, want)
	}
}

func (p *place) capture() *vcs.Capture {
	p.t.Helper()
	c, err := p.w.Capture(context.Background(), vcs.CaptureOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// checkpoint takes a manual checkpoint.
func (p *place) checkpoint() ledger.Checkpoint {
	return p.mark(ledger.Checkpoint{Tier: ledger.TierManual})
}

func (p *place) mark(c ledger.Checkpoint) ledger.Checkpoint {
	p.t.Helper()
	cp := p.capture()
	c.WorktreeID, c.Commit, c.Tree, c.Actor, c.Stats = p.m.WorktreeID, string(cp.Commit), cp.Tree, "user", "{}"
	p.update(func(tx *ledger.Tx) (err error) {
		c, err = tx.AppendCheckpoint(c)
		return err
	})
	return c
}

// run does work as a run of one attempt and returns the checkpoint before it.
func (p *place) run(work func()) ledger.Checkpoint {
	p.t.Helper()
	var run ledger.Run
	var at ledger.Attempt
	p.update(func(tx *ledger.Tx) (err error) {
		if run, err = tx.CreateRun(ledger.Run{Source: "exec", Status: "running", WorktreeID: p.m.WorktreeID}); err != nil {
			return err
		}
		at, err = tx.StartAttempt(ledger.Attempt{RunID: run.ID, Task: "main", Number: 1})
		return err
	})
	before := p.mark(ledger.Checkpoint{Tier: ledger.TierTool, RunID: run.ID, AttemptID: at.ID, Edge: ledger.EdgeBefore})
	p.update(func(tx *ledger.Tx) error { return tx.SetAttemptBefore(at.ID, before.ID) })
	work()
	after := p.mark(ledger.Checkpoint{Tier: ledger.TierTool, RunID: run.ID, AttemptID: at.ID, Edge: ledger.EdgeAfter})
	p.update(func(tx *ledger.Tx) error {
		return tx.FinishAttempt(at.ID, ledger.Finish{Outcome: "ok", After: after.ID})
	})
	return before
}

func (p *place) restore(r timeline.Request) *timeline.Result {
	p.t.Helper()
	r.Target = fmt.Sprintf("c%d", r.To.ID)
	res, err := p.m.Move(context.Background(), r)
	if err != nil {
		p.t.Fatal(err)
	}
	return res
}

func (p *place) undo() *timeline.Result {
	p.t.Helper()
	res, err := p.m.Undo(context.Background(), timeline.Request{})
	if err != nil {
		p.t.Fatal(err)
	}
	return res
}

func (p *place) redo() *timeline.Result {
	p.t.Helper()
	res, err := p.m.Redo(context.Background(), timeline.Request{})
	if err != nil {
		p.t.Fatal(err)
	}
	return res
}
