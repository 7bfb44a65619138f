package ledger

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/internal/crash"
)

// The test binary runs itself as the other processes.
var (
	childPath  = flag.String("child.path", "", "run as another process: append to this ledger")
	childCount = flag.Int("child.count", 0, "how often")
	childName  = flag.String("child.name", "", "in whose name")
	childWhat  = flag.String("child.what", "checkpoints", "what to append: checkpoints, frames, or everything there is")
	childDie   = flag.String("child.die", "", "die at this point…")
	childVisit = flag.Int("child.visit", 0, "…at this visit")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *childPath == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child appends, and says on stdout what has been acknowledged.
func child() error {
	visits := 0
	crash.Hook = func(name string) {
		if name != *childDie {
			return
		}
		if visits++; visits == *childVisit {
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		}
	}
	if *childWhat != "checkpoints" {
		return childOfFrames()
	}
	db, err := Open(*childPath, Options{BusyTimeout: time.Minute})
	if err != nil {
		return err
	}
	for i := range *childCount {
		write := db.Update
		if i%10 == 9 {
			write = db.Commit
		}
		err := write(context.Background(), func(tx *Tx) error {
			commit := fmt.Sprintf("%040x", i)
			w, err := tx.EnsureWorktree(Worktree{Path: "/w", Kind: KindPlain})
			if err != nil {
				return err
			}
			_, err = tx.AppendCheckpoint(Checkpoint{WorktreeID: w.ID, Tier: TierTool, Commit: commit, Tree: commit,
				Actor: *childName, Note: strconv.Itoa(i)})
			if err != nil {
				return err
			}
			return tx.Audit(*childName, "append", strconv.Itoa(i))
		})
		if err != nil {
			return fmt.Errorf("append %d: %w", i, err)
		}
		fmt.Println(i)
	}
	db.CloseFast()
	return nil
}

func start(t *testing.T, path, name string, count int, more ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	args := append([]string{"-child.path=" + path, "-child.name=" + name, "-child.count=" + strconv.Itoa(count)}, more...)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, out
}

// acknowledged reads how many appends a child has told of, and calls enough
// when it was told of some number of them.
func acknowledged(out io.Reader, at int, enough func()) (n int) {
	for s := bufio.NewScanner(out); s.Scan(); {
		if s.Text() != strconv.Itoa(n) {
			continue // cut off by the kill
		}
		if n++; n == at {
			enough()
		}
	}
	return n
}

// verify checks the ledger, and that every writer's appends are there once, in
// order, with none missing.
func verify(t *testing.T, path string) (kept map[string]int) {
	t.Helper()
	db := open(t, path, Options{})
	problems, err := db.Check(context.Background())
	require.NoError(t, err)
	require.Empty(t, problems)
	kept = map[string]int{}
	require.NoError(t, db.View(context.Background(), func(tx *Tx) error {
		w, err := tx.WorktreeAt("/w")
		if err != nil {
			return nil // nobody came so far
		}
		last := int64(0)
		return tx.CheckpointsAfter(w.ID, 0, func(c Checkpoint) error {
			assert.Equal(t, last+1, c.ID)
			last = c.ID
			assert.Equal(t, strconv.Itoa(kept[c.Actor]), c.Note, "appends of %s", c.Actor)
			kept[c.Actor]++
			return nil
		})
	}))
	return kept
}

func TestProcesses(t *testing.T) {
	count := 300
	if testing.Short() {
		count = 40
	}
	path := filepath.Join(t.TempDir(), "ledger.db") // which the eight race to create
	var cmds []*exec.Cmd
	var wg sync.WaitGroup
	for i := range 8 {
		cmd, out := start(t, path, fmt.Sprint("p", i), count)
		cmds = append(cmds, cmd)
		wg.Go(func() { io.Copy(io.Discard, out) })
	}
	wg.Wait()
	for _, cmd := range cmds {
		require.NoError(t, cmd.Wait())
	}
	kept := verify(t, path)
	assert.Len(t, kept, 8)
	for name, n := range kept {
		assert.Equal(t, count, n, name)
	}
}

func TestRacingCreation(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "ledger.db")
		var cmds []*exec.Cmd
		for i := range 8 {
			cmd, _ := start(t, path, fmt.Sprint("p", i), 1)
			cmds = append(cmds, cmd)
		}
		for _, cmd := range cmds {
			require.NoError(t, cmd.Wait())
		}
		assert.Len(t, verify(t, path), 8)
	}
}

// TestKill dies at every point by name, at several visits, among two other
// writers; and what was acknowledged must be there.
func TestKill(t *testing.T) {
	for _, point := range []string{"ledger.create", "ledger.journal", "ledger.begin", "ledger.commit", "ledger.committed"} {
		for _, visit := range []int{1, 2, 7} {
			if visit > 1 && (point == "ledger.create" || point == "ledger.journal") {
				continue
			}
			t.Run(fmt.Sprint(point, " ", visit), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "ledger.db")
				victim, out := start(t, path, "victim", 50, "-child.die="+point, "-child.visit="+strconv.Itoa(visit))
				n := acknowledged(out, 0, nil)
				require.ErrorContains(t, victim.Wait(), "killed")
				kept := verify(t, path)["victim"]
				if point == "ledger.committed" && visit > 1 { // the first is the schema's
					n++ // committed, and died before it could say so
				}
				assert.Equal(t, n, kept)
				other, out := start(t, path, "other", 5)
				assert.Equal(t, 5, acknowledged(out, 0, nil))
				require.NoError(t, other.Wait())
				verify(t, path)
			})
		}
	}
}

// TestKillAtAnyTime kills writers from outside, wherever they are, while others
// write.
func TestKillAtAnyTime(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	said := map[string]int{}
	for round := range rounds {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range 3 {
			name := fmt.Sprintf("p%d.%d", round, i)
			cmd, out := start(t, path, name, 100_000)
			wg.Go(func() {
				n := acknowledged(out, 5+17*i+3*round, func() { cmd.Process.Kill() })
				mu.Lock()
				defer mu.Unlock()
				said[name] = n
			})
			t.Cleanup(func() { cmd.Wait() })
		}
		wg.Wait()
	}
	kept := verify(t, path)
	total := 0
	for name, n := range said {
		assert.Contains(t, []int{n, n + 1}, kept[name], "acknowledged by %s", name)
		total += n
	}
	t.Logf("%d appends acknowledged", total)
	assert.NotZero(t, total)
}

func TestWriteLockTimesOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	holder := open(t, path, Options{})
	waiter := open(t, path, Options{BusyTimeout: 50 * time.Millisecond})
	require.NoError(t, holder.Update(context.Background(), func(tx *Tx) error {
		var locked *LockedError
		require.ErrorAs(t, note(waiter, 1), &locked)
		assert.True(t, strings.HasSuffix(locked.Resource, lockName))
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, waiter.Update(ctx, func(tx *Tx) error { return nil }), context.DeadlineExceeded)
		assert.Equal(t, 0, count(t, waiter), "readers do not wait")
		return nil
	}))
	time.Sleep(time.Millisecond)
	require.NoError(t, note(waiter, 2))
}
