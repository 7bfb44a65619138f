package ledger

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

// childOfFrames appends frames to the branch that all children share, and says
// on stdout what has been acknowledged. When asked for everything, each of them
// also moves the run back and forth, and clears away what is no longer needed.
func childOfFrames() error {
	ahead := time.Duration(0)
	db, err := Open(*childPath, Options{BusyTimeout: time.Minute, keyframes: 500,
		Now: func() time.Time { return time.Now().Add(ahead) }})
	if err != nil {
		return err
	}
	var h *Head
	for i := range *childCount {
		if err := db.Update(bg, func(tx *Tx) (err error) { h, err = appendAs(tx, h, *childName, i); return err }); err != nil {
			return fmt.Errorf("append %d: %w", i, err)
		}
		fmt.Println(i)
		if *childWhat == "everything" {
			if err := turn(db); err != nil {
				return fmt.Errorf("after append %d: %w", i, err)
			}
			ahead += 2 * MinSweepAge
		}
	}
	db.CloseFast()
	return nil
}

// appendAs appends what a named process does for the i-th time, to the head it
// knows or, when that has moved, to the newest.
func appendAs(tx *Tx, h *Head, name string, i int) (*Head, error) {
	run, err := sharedRun(tx)
	if err != nil {
		return nil, err
	}
	content, err := tx.PutContent(Prepare([]byte(fmt.Sprintf("%s did %d", name, i))))
	if err != nil {
		return nil, err
	}
	f := NewFrame{Kind: "test", Put: []snapshot.Row{{Key: name, Iter: uint32(i + 1), Out: content}},
		Events: []Event{{Type: "did", ExtID: fmt.Sprint(name, i), Content: content}}}
	if _, err := tx.PutSignal(Signal{RunID: run.ID, Name: name}); err != nil {
		return nil, err
	}
	if _, err := tx.AppendCell(Cell{RunID: run.ID, Op: name, Out: content}); err != nil {
		return nil, err
	}
	if h != nil {
		if _, err := tx.AppendFrame(h, f); !errors.Is(err, ErrStale) {
			return h, err
		}
	}
	if h, err = tx.LoadFrame(run.HeadBranch, Newest); err != nil {
		return nil, err
	}
	_, err = tx.AppendFrame(h, f)
	return h, err
}

// sharedRun is made by whoever comes first.
func sharedRun(tx *Tx) (Run, error) {
	r, err := tx.Run(1)
	if !errors.Is(err, ErrNotFound) {
		return r, err
	}
	w, err := tx.EnsureWorktree(Worktree{Path: "/w", Kind: KindPlain})
	if err != nil {
		return r, err
	}
	if r, err = tx.CreateRun(Run{Source: "test", WorktreeID: w.ID}); err != nil {
		return r, err
	}
	h, err := tx.CreateBranch(r.ID)
	r.HeadBranch = h.Branch
	return r, err
}

// turn forks the run and rewinds the fork, takes that back, rewinds it again,
// and deletes for good what was cut off.
func turn(db *DB) error {
	var child Run
	err := db.Update(bg, func(tx *Tx) error {
		parent, err := sharedRun(tx)
		if err != nil {
			return err
		}
		if child, err = tx.CreateRun(Run{Source: "test", WorktreeID: parent.WorktreeID, Parent: parent.ID, Lineage: parent.ID}); err != nil {
			return err
		}
		b, err := tx.Fork(parent.HeadBranch, Newest, child.ID, "")
		if err != nil {
			return err
		}
		h, err := tx.LoadFrame(b.ID, Newest)
		if err != nil {
			return err
		}
		if _, err = tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{{Key: "fork"}}}); err != nil {
			return err
		}
		_, err = tx.PutContent(Prepare([]byte("nobody's, in " + child.UID)))
		return err
	})
	var ops []int64
	for _, do := range []func(tx *Tx, op int64) error{
		func(tx *Tx, op int64) error { _, err := tx.Rewind(child.ID, 0, op); return err },
		func(tx *Tx, op int64) error { _, err := tx.Unrewind(ops[0], op); return err },
		func(tx *Tx, op int64) error { _, err := tx.Rewind(child.ID, 0, op); return err },
	} {
		if err == nil {
			err = db.Update(bg, func(tx *Tx) error {
				o, err := tx.BeginOp(Op{Verb: "rewind", Worktrees: []OpWorktree{{WorktreeID: child.WorktreeID}}}, nil)
				if err != nil {
					return err
				}
				ops = append(ops, o.ID)
				if err := do(tx, o.ID); err != nil {
					return err
				}
				_, err = tx.FinishOp(o.ID, o.Token, ResultOK, "")
				return err
			})
		}
	}
	for _, op := range ops {
		if err == nil {
			err = db.Update(bg, func(tx *Tx) error { return tx.PruneOp(op, "test") })
		}
	}
	if err == nil {
		_, err = db.PurgeBranches(bg, db.now().Add(time.Hour))
	}
	if err == nil {
		_, err = db.SweepContents(bg, db.now())
	}
	return err
}

// verifyFrames checks the ledger and returns how often each process appended,
// as the newest state says; the events say the same.
func verifyFrames(t *testing.T, path string) (kept map[string]int) {
	t.Helper()
	b := &book{TB: t, db: open(t, path, Options{})}
	require.Empty(t, b.problems())
	kept = map[string]int{}
	b.view(func(tx *Tx) error {
		branch, err := tx.RunHead(1)
		if errors.Is(err, ErrNotFound) {
			return nil // nobody came so far
		}
		require.NoError(t, err)
		h, err := tx.LoadFrame(branch.ID, Newest)
		require.NoError(t, err)
		for r := range h.Set.Rows() {
			kept[r.Key] = int(r.Iter)
			_, err := tx.Content(r.Out)
			require.NoError(t, err)
		}
		events, err := tx.Events(branch.ID, EventQuery{Limit: 100_000})
		total := 0
		for _, n := range kept {
			total += n
		}
		assert.Len(t, events, total)
		return err
	})
	return kept
}

func TestProcessesAppendFrames(t *testing.T) {
	count := 100
	if testing.Short() {
		count = 20
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	var cmds []*exec.Cmd
	var wg sync.WaitGroup
	for i := range 8 {
		cmd, out := start(t, path, fmt.Sprint("p", i), count, "-child.what=frames")
		cmds = append(cmds, cmd)
		wg.Go(func() { assert.Equal(t, count, acknowledged(out, 0, nil)) })
	}
	wg.Wait()
	for _, cmd := range cmds {
		require.NoError(t, cmd.Wait())
	}
	kept := verifyFrames(t, path)
	assert.Len(t, kept, 8)
	for name, n := range kept {
		assert.Equal(t, count, n, name)
	}
}

// TestKillFrames dies at every point that there is about frames. What was
// acknowledged is there, nothing is half there, and others go on.
func TestKillFrames(t *testing.T) {
	points := []string{"ledger.branch", "ledger.frame.head", "ledger.frame.row", "ledger.frame.key", "ledger.event", "ledger.content",
		"ledger.cell", "ledger.signal", "ledger.rewind", "ledger.unrewind", "ledger.purge", "ledger.sweep"}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			victim, out := start(t, path, "victim", 30, "-child.what=everything", "-child.die="+point, "-child.visit=2")
			n := acknowledged(out, 0, nil)
			require.ErrorContains(t, victim.Wait(), "killed")
			assert.Equal(t, n, verifyFrames(t, path)["victim"])
			other, out := start(t, path, "other", 3, "-child.what=everything")
			assert.Equal(t, 3, acknowledged(out, 0, nil))
			require.NoError(t, other.Wait())
			kept := verifyFrames(t, path)
			assert.Equal(t, []int{n, 3}, []int{kept["victim"], kept["other"]}, strconv.Itoa(n))
		})
	}
}
