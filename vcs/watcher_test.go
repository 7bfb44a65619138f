package vcs

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func watcher(t testing.TB, w *Worktree) *Watcher {
	t.Helper()
	wt, err := NewWatcher(w)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, wt.Close()) })
	return wt
}

func watched(t testing.TB, wt *Watcher) *Capture {
	t.Helper()
	c, err := wt.Capture(context.Background(), CaptureOptions{})
	require.NoError(t, err)
	return c
}

// stir moves directories and rules, which scramble does not.
func stir(t testing.TB, rng *rand.Rand, dir string) {
	t.Helper()
	path := func() string {
		return filepath.Join(dir, []string{"d", "d/e", "m", "m/n", "ign", "d/e/h"}[rng.Intn(6)])
	}
	switch rng.Intn(8) {
	case 0, 1:
		_ = os.Rename(path(), path()) // may well not be possible
	case 2:
		p := path()
		_ = os.RemoveAll(p)
		_ = os.MkdirAll(filepath.Join(p, "x", "y"), 0o755)
		_ = os.WriteFile(filepath.Join(p, "x", "y", "z"), fmt.Append(nil, rng.Intn(9)), 0o644)
	case 3:
		at := []string{".gitignore", "d/.gitignore", "m/.gitignore"}[rng.Intn(3)]
		rules := []string{"", "ign\n", "*.log\n", "z\n", "/a\nign/\n", "x/\n"}[rng.Intn(6)]
		if rng.Intn(4) == 0 {
			_ = os.Remove(filepath.Join(dir, at))
		} else {
			_ = os.WriteFile(filepath.Join(dir, at), []byte(rules), 0o644)
		}
	case 4:
		_ = os.WriteFile(filepath.Join(dir, ".git/info/exclude"), fmt.Appendf(nil, "b%d\n", rng.Intn(2)), 0o644)
	case 5:
		git(t, dir, "add", "-A")
	case 6:
		git(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
	case 7:
		_ = os.MkdirAll(filepath.Join(dir, "ign"), 0o755)
		_ = os.WriteFile(filepath.Join(dir, "ign", "a.log"), fmt.Append(nil, rng.Intn(9)), 0o644)
	}
}

func TestWatchedCaptureEqualsFullCapture(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 5
	}
	partly := 0
	for seed := range seeds {
		rng := rand.New(rand.NewSource(int64(seed)))
		dir := newRepo(t)
		scramble(t, rng, dir)
		w, full := open(t, dir, Options{}), open(t, dir, Options{})
		wt := watcher(t, w)
		for round := range 20 {
			switch rng.Intn(4) {
			case 0:
				scramble(t, rng, dir)
			case 1, 2:
				stir(t, rng, dir)
			case 3:
				write(t, dir, "steady/f", fmt.Sprint(rng.Int()))
			}
			got := watched(t, wt)
			if wt.captures > 1 {
				partly++
			}
			want, err := full.Capture(context.Background(), CaptureOptions{Rescan: true})
			require.NoError(t, err)
			if got.Commit != want.Commit {
				d, _ := w.Diff(context.Background(), want.Commit, got.Commit)
				t.Fatalf("seed %d round %d: watched %s, full %s: %+v", seed, round, got.Commit, want.Commit, d)
			}
		}
	}
	assert.Greater(t, partly, seeds*5, "most captures look at a part")
}

func TestWatchedCaptureLooksAtWhatChanged(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, ".gitignore", "build/\n")
	write(t, dir, "build/deep/out", "ignored")
	for i := range 2000 {
		write(t, dir, fmt.Sprintf("d%d/e%d/f", i%100, i/100), fmt.Sprint(i))
	}
	w := open(t, dir, Options{})
	wt := watcher(t, w)
	watched(t, wt)
	watched(t, wt) // all directories are new to it
	for path := range wt.watched {
		assert.NotContains(t, path, "build")
	}
	assert.Len(t, wt.watched, 1+100+2000)

	idle := watched(t, wt)
	assert.Zero(t, idle.Stats.Stated)
	assert.Zero(t, idle.Stats.Objects)
	file, err := os.ReadFile(w.cachePath())
	require.NoError(t, err)
	write(t, dir, "d7/e7/f", "changed")
	write(t, dir, "build/deep/out", "changed")
	got := watched(t, wt)
	assert.Equal(t, 1, got.Stats.Stated)
	assert.Equal(t, 1, got.Stats.Hashed)
	assert.NotEqual(t, idle.Commit, got.Commit)
	now, err := os.ReadFile(w.cachePath())
	require.NoError(t, err)
	assert.Equal(t, file, now, "the cache stays in memory")

	write(t, dir, "d7/new/f", "new")
	watched(t, wt)
	write(t, dir, "d7/new/f", "newer") // in a directory that has just been found
	assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "d8")))
	assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
	assert.LessOrEqual(t, wt.captures, 10)

	require.NoError(t, wt.Close())
	racy := racyFiles(t, w)
	last := capture(t, open(t, dir, Options{}))
	assert.LessOrEqual(t, last.Stats.Hashed, racy, "Close saved the cache")
}

// racyFiles is how many files a capture must read again since they were written
// a moment before the last one.
func racyFiles(t testing.TB, w *Worktree) int {
	t.Helper()
	c, err := loadStatCache(w.cachePath())
	require.NoError(t, err)
	defer c.close()
	n := 0
	for _, d := range c.dirs {
		for i := range d.entries {
			if d.entries[i].flags&flagRacy != 0 {
				n++
			}
		}
	}
	return n
}

func TestWatcherFallsBackToAScan(t *testing.T) {
	for _, c := range []struct {
		name string
		hint func(t *testing.T, wt *Watcher)
		want bool
	}{
		{"nothing was told", func(*testing.T, *Watcher) {}, false},
		{"overflow", func(_ *testing.T, wt *Watcher) { wt.notify.Errors <- fsnotify.ErrEventOverflow }, true},
		{"no watches left", func(_ *testing.T, wt *Watcher) { wt.mark(func() { wt.noRoom = true }) }, true},
		{"not watching", func(_ *testing.T, wt *Watcher) { wt.unwatch() }, true},
		{"many captures", func(_ *testing.T, wt *Watcher) { wt.captures = watchChecks }, true},
		{"long ago", func(_ *testing.T, wt *Watcher) { wt.checked -= watchCheck + 1 }, true},
		{"a collection", func(t *testing.T, wt *Watcher) {
			_, err := wt.w.Collect(context.Background(), CollectOptions{Full: true})
			require.NoError(t, err)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for i := range 20 {
				write(t, dir, fmt.Sprintf("f%d", i), fmt.Sprint(i))
			}
			write(t, dir, "d/f", "old")
			wt := watcher(t, open(t, dir, Options{Create: true}))
			watched(t, wt)
			write(t, dir, "g", "for the next")
			before := watched(t, wt)
			require.NoError(t, wt.notify.Remove(filepath.Join(dir, "d"))) // deaf
			write(t, dir, "d/f", "changed unseen")
			c.hint(t, wt)
			after := watched(t, wt)
			assert.Equal(t, c.want, after.Commit != before.Commit)
			want, err := open(t, dir, Options{}).Capture(context.Background(), CaptureOptions{Rescan: true})
			require.NoError(t, err)
			assert.Equal(t, c.want, after.Commit == want.Commit)
			require.NoError(t, wt.w.Complete(context.Background(), after.Commit))
		})
	}
}

// Close does not put back an older state over one another process wrote.
func TestWatcherCloseLeavesANewerCache(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "f", "one")
	w := open(t, dir, Options{Create: true})
	wt := watcher(t, w)
	watched(t, wt)
	write(t, dir, "f", "two")
	watched(t, wt)
	require.True(t, wt.cache.unsaved)
	write(t, dir, "f", "three")
	want := capture(t, open(t, dir, Options{})).Commit
	require.NoError(t, wt.Close())
	c, err := loadStatCache(w.cachePath())
	require.NoError(t, err)
	defer c.close()
	assert.Equal(t, want, c.facts.Commit)
}

func TestWatchedCaptureUnderHold(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "f", "one")
	w := open(t, dir, Options{Create: true})
	wt := watcher(t, w)
	watched(t, wt)
	release, err := w.Hold(context.Background())
	require.NoError(t, err)
	write(t, dir, "f", "two")
	held := watched(t, wt)
	release()
	assert.Equal(t, held.Commit, watched(t, wt).Commit)
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "f", "0")
	w := open(t, dir, Options{Create: true})
	done := errors.New("done")
	var seen []Commit
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	opt := WatchOptions{Debounce: 20 * time.Millisecond, MaxDelay: 200 * time.Millisecond}
	err := w.Watch(ctx, opt, func(ctx context.Context, capture func(context.Context, CaptureOptions) (*Capture, error)) error {
		c, err := capture(ctx, CaptureOptions{})
		if err != nil {
			return err
		}
		if len(seen) == 0 || seen[len(seen)-1] != c.Commit {
			seen = append(seen, c.Commit)
			write(t, dir, "f", fmt.Sprint(len(seen)))
		}
		if len(seen) == 4 {
			return done
		}
		return nil
	})
	require.ErrorIs(t, err, done)

	ctx, cancel = context.WithCancel(context.Background())
	err = w.Watch(ctx, opt, func(context.Context, func(context.Context, CaptureOptions) (*Capture, error)) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
}

// What happens in a directory between the scan that finds it and the watch on
// it is not told by anybody.
func TestWatcherLooksAgainAtNewDirectories(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "f", "f")
	wt := watcher(t, open(t, dir, Options{}))
	watched(t, wt)
	watched(t, wt)
	write(t, dir, "new/f", "0")
	n := 0
	_, err := wt.Capture(context.Background(), CaptureOptions{Progress: func(int) {
		n++
		if err := os.WriteFile(filepath.Join(dir, "new/f"), fmt.Appendf(nil, "written after it was read: %d", n), 0o644); err != nil {
			t.Error(err)
		}
	}})
	require.NoError(t, err)
	require.Positive(t, n)
	assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
}

// The watches below a directory that is renamed keep its old name.
func TestWatcherFollowsRenamedDirectories(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "d/sub/f", "0")
	write(t, dir, "other/g", "0")
	wt := watcher(t, open(t, dir, Options{}))
	for i, names := range [][2]string{{"d", "e"}, {"e", "other/e"}, {"other", "d"}} {
		require.NoError(t, os.Rename(filepath.Join(dir, names[0]), filepath.Join(dir, names[1])))
		for range 3 {
			assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
		}
		at := []string{"e/sub/f", "other/e/sub/f", "d/e/sub/f"}[i]
		write(t, dir, at, fmt.Sprint("changed ", i))
		assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree, "after %s", at)
	}
}

func TestWatcherFollowsTheIndex(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, ".gitignore", "ign/\n")
	write(t, dir, "d/e/ign/f", "ignored, for now")
	write(t, dir, "d/e/f", "f")
	git(t, dir, "add", "-A")
	wt := watcher(t, open(t, dir, Options{}))
	for range 3 {
		assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
	}
	git(t, dir, "add", "-f", "d/e/ign/f")
	assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
	write(t, dir, "d/e/ign/f", "tracked")
	assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
	git(t, dir, "rm", "-q", "-f", "--cached", "d/e/ign/f")
	assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
	write(t, dir, "d/.gitignore", "f\n")
	write(t, dir, "d/e/g/f", "ignored")
	git(t, dir, "rm", "-q", "--cached", "d/e/f")
	assert.Equal(t, gitTree(t, dir), watched(t, wt).Tree)
}
