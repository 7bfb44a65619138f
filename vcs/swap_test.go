package vcs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
)

// A restore has nothing left to fall back on once it is settled, so it says
// when it cannot tell whether the disk has it, and until then keeps what it
// displaced.
func TestSettle(t *testing.T) {
	defer func() { testOnlySync = nil }()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "plain")
	write(t, dir, "a", "one")
	write(t, dir, "b", "one")
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	write(t, dir, "a", "two")
	require.NoError(t, os.Remove(filepath.Join(dir, "b")))

	a := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "a"))
		require.NoError(t, err)
		return string(data)
	}
	release, err := w.Hold(ctx)
	require.NoError(t, err)
	defer release()
	stage := func() *Staged {
		now, err := w.Capture(ctx, CaptureOptions{Sync: true})
		require.NoError(t, err)
		changes, err := w.Diff(ctx, now.Commit, one.Commit)
		require.NoError(t, err)
		s, err := w.Stage(ctx, "test", changes)
		require.NoError(t, err)
		return s
	}
	s := stage()
	require.NoError(t, s.Swap(ctx))
	assert.Equal(t, "one", a())
	require.NoError(t, s.Rollback(), "all that was displaced is there until it is settled")
	assert.Equal(t, "two", a())
	assert.NoFileExists(t, filepath.Join(dir, "b"))

	require.NoError(t, s.Discard())

	testOnlySync = func(int) error { return unix.EIO }
	s = stage()
	require.NoError(t, s.Swap(ctx), "a swap does not wait for the disk")
	err = s.Settle()
	var stuck *RollbackError
	require.ErrorAs(t, err, &stuck)
	require.ErrorIs(t, err, unix.EIO)
	assert.Equal(t, "one", a())
	require.NoError(t, s.Discard())
}

// What a quick capture stores as it is, a collection compresses.
func TestQuick(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "plain")
	for i := range 40 {
		write(t, dir, fmt.Sprint("f", i), strings.Repeat(fmt.Sprintf("line %d\n", i), 400))
	}
	w := open(t, dir, Options{Create: true})
	c, err := w.Capture(ctx, CaptureOptions{Quick: true})
	require.NoError(t, err)
	size := func() int64 {
		own, _, _, err := w.StoreSize()
		require.NoError(t, err)
		return own
	}
	plain := size()
	assert.Greater(t, plain, int64(40*400*6), "as they are")
	_, err = w.Collect(ctx, CollectOptions{Full: true, Roots: func(yield func(Commit) error) error { return yield(c.Commit) }})
	require.NoError(t, err)
	assert.Less(t, size(), plain/5)
	require.NoError(t, w.Complete(ctx, c.Commit))
}

// Many files are swapped in at once. When one of them can't be, all are taken
// back.
func TestSwapCrowd(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "plain")
	const files = 600
	set := func(text string) {
		for i := range files {
			write(t, dir, fmt.Sprintf("d%d/f%d", i%7, i), fmt.Sprint(text, i))
		}
	}
	tree := func() map[string]string {
		all := make(map[string]string)
		for i := range files {
			path := fmt.Sprintf("d%d/f%d", i%7, i)
			data, err := os.ReadFile(filepath.Join(dir, path))
			require.NoError(t, err)
			all[path] = string(data)
		}
		return all
	}
	set("one ")
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	before := tree()
	set("two ")
	after := tree()

	passed := 0
	crash.Hook = func(name string) {
		if name != "restore.swap.step" {
			return
		}
		if passed++; passed == 100 {
			stages, err := filepath.Glob(filepath.Join(w.Folder(), "worktrees", "*-stage-*", "*", fmt.Sprint(files-1)))
			assert.NoError(t, err)
			if assert.Len(t, stages, 1) {
				assert.NoError(t, os.Remove(stages[0]))
			}
		}
	}
	_, _, err := w.Restore(ctx, one.Commit)
	crash.Hook = nil
	require.ErrorIs(t, err, unix.ENOENT)
	assert.GreaterOrEqual(t, passed, 100)
	assert.Equal(t, after, tree(), "all is taken back")

	_, n, err := w.Restore(ctx, one.Commit)
	require.NoError(t, err)
	assert.Equal(t, files, n)
	assert.Equal(t, before, tree())
}

// Among many files, those in a directory that denies it are swapped in too.
func TestSwapCrowdReadOnly(t *testing.T) {
	if asNobody(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "plain")
	set := func(text string) {
		for i := range 200 {
			write(t, dir, fmt.Sprintf("d%d/f%d", i%3, i), fmt.Sprint(text, i))
		}
	}
	set("one ")
	locked := filepath.Join(dir, "d1")
	require.NoError(t, os.Chmod(locked, 0o555))
	t.Cleanup(func() { os.Chmod(locked, 0o755) })
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	require.NoError(t, os.Chmod(locked, 0o755))
	set("two ")
	require.NoError(t, os.Chmod(locked, 0o555))
	_, n, err := w.Restore(context.Background(), one.Commit)
	require.NoError(t, err)
	assert.Equal(t, 200, n)
	assert.Equal(t, one.Commit, capture(t, w).Commit)
}

// A restore that nobody keeps a record of takes all back when somebody has
// written to a path meanwhile: those bytes would be found by nobody.
func TestRestoreAmongWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plain")
	write(t, dir, "a", "one")
	write(t, dir, "b", "one")
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	write(t, dir, "a", "two")
	write(t, dir, "b", "two")
	crash.Hook = func(name string) {
		if name == "restore.staged" {
			write(t, dir, "a", "somebody's")
		}
	}
	_, _, err := w.Restore(context.Background(), one.Commit)
	crash.Hook = nil
	require.ErrorContains(t, err, "restore a: somebody has written to it meanwhile")
	for path, want := range map[string]string{"a": "somebody's", "b": "two"} {
		got, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), path)
	}
}
