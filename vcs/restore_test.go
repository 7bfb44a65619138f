package vcs

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// scramble changes a worktree at random: every kind of path becomes every other.
func scramble(t testing.TB, rng *rand.Rand, root string) {
	t.Helper()
	names := []string{"a", "b", "d/a", "d/b", "d/e/f", "d/e/g", "x y", "n\nl", "\xff\xfe", "run.sh"}
	for range 6 {
		p := filepath.Join(root, names[rng.Intn(len(names))])
		for dir := filepath.Dir(p); len(dir) > len(root); dir = filepath.Dir(dir) {
			if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
				os.Remove(dir)
			}
		}
		switch rng.Intn(7) {
		case 0, 1, 2:
			os.RemoveAll(p)
			os.MkdirAll(filepath.Dir(p), 0o755)
			mode := []os.FileMode{0o644, 0o755, 0o600, 0o444}[rng.Intn(4)]
			os.WriteFile(p, fmt.Appendf(nil, "%d", rng.Intn(5)), 0o644)
			os.Chmod(p, mode)
		case 3:
			os.RemoveAll(p)
		case 4:
			os.RemoveAll(p)
			os.MkdirAll(filepath.Dir(p), 0o755)
			os.Symlink(fmt.Sprint("to", rng.Intn(3)), p)
		case 5:
			os.RemoveAll(p)
			os.MkdirAll(p, 0o755)
		case 6:
			if fi, err := os.Lstat(p); err == nil && fi.Mode()&os.ModeSymlink == 0 {
				os.Chmod(p, []os.FileMode{0o700, 0o755, 0o750}[rng.Intn(3)])
			}
		}
	}
}

// The same where the filesystem cannot exchange two names.
func TestRestorePlainRename(t *testing.T) {
	testOnlyPlainRename = true
	defer func() { testOnlyPlainRename = false }()
	restoreRandom(t, 30)
}

func TestRestoreRandom(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	restoreRandom(t, rounds)
}

func restoreRandom(t *testing.T, rounds int) {
	t.Helper()
	for seed := range rounds {
		rng := rand.New(rand.NewSource(int64(seed)))
		dir := t.TempDir()
		w := open(t, dir, Options{Create: true})
		var seen []Commit
		for range 4 {
			scramble(t, rng, dir)
			seen = append(seen, capture(t, w).Commit)
		}
		for range 4 {
			to := seen[rng.Intn(len(seen))]
			if _, _, err := w.Restore(context.Background(), to); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if got := capture(t, w).Commit; got != to {
				d, _ := w.Diff(context.Background(), to, got)
				t.Fatalf("seed %d: restored %s, got %s: %+v", seed, to, got, d)
			}
			c, err := w.Capture(context.Background(), CaptureOptions{Rescan: true})
			if err != nil || c.Commit != to {
				t.Fatalf("seed %d: rescan %v %v", seed, c, err)
			}
		}
	}
}

// P33, P28: a restore touches only what differs: the others keep inode and
// times.
func TestRestoreLeavesOthersAlone(t *testing.T) {
	dir := newRepo(t)
	for i := range 300 {
		write(t, dir, fmt.Sprintf("d%d/f%d", i%10, i), fmt.Sprint(i))
	}
	w := open(t, dir, Options{})
	a := capture(t, w).Commit
	stat := func(p string) unix.Stat_t {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, p), &st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	before := make(map[int]unix.Stat_t)
	for i := range 300 {
		before[i] = stat(fmt.Sprintf("d%d/f%d", i%10, i))
	}
	write(t, dir, "d3/f3", "changed")
	if _, n, err := w.Restore(context.Background(), a); err != nil || n != 1 {
		t.Fatalf("restored %d paths, %v", n, err)
	}
	for i := range 300 {
		if i == 3 {
			continue
		}
		if now := stat(fmt.Sprintf("d%d/f%d", i%10, i)); now.Ino != before[i].Ino || now.Ctim != before[i].Ctim {
			t.Errorf("f%d was touched", i)
		}
	}
}
