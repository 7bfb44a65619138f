package vcs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/vcs/internal/object"
)

func keep(commits ...Commit) func(func(Commit) error) error {
	return func(yield func(Commit) error) error {
		for _, c := range commits {
			if err := yield(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// explode makes a loose file of every object in the store, so that a test can
// damage one.
func explode(t *testing.T, w *Worktree) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(w.packDir(), "pack-*"))
	require.NoError(t, err)
	aside := t.TempDir()
	for _, p := range packs {
		require.NoError(t, os.Rename(p, filepath.Join(aside, filepath.Base(p))))
	}
	packs, err = filepath.Glob(filepath.Join(aside, "*.pack"))
	require.NoError(t, err)
	for _, p := range packs {
		f, err := os.Open(p)
		require.NoError(t, err)
		cmd := exec.Command("git", "unpack-objects", "-q")
		cmd.Dir, cmd.Env, cmd.Stdin = filepath.Join(w.folder, "store.git"), gitEnv(), f
		out, err := cmd.CombinedOutput()
		f.Close()
		require.NoError(t, err, "%s", out)
	}
}

func TestCollectKeepsRootsAndTheNewest(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	var all []Commit
	for i := range 6 {
		for j := range 20 {
			write(t, dir, fmt.Sprintf("d%d/f", j), fmt.Sprint("content ", i, j))
		}
		all = append(all, capture(t, w).Commit)
	}
	var points []string
	crash.Hook = func(name string) { points = append(points, name) }
	got, err := w.Collect(ctx, CollectOptions{Roots: keep(all[3], all[1])})
	crash.Hook = nil
	require.NoError(t, err)
	assert.NotEmpty(t, points)
	for _, p := range points {
		assert.True(t, strings.HasPrefix(p, "collect."), p)
	}
	assert.Positive(t, got.Freed)
	for i, c := range all {
		err := w.Complete(ctx, c)
		if i == 1 || i == 3 || i == 5 {
			assert.NoError(t, err, "commit %d", i)
		} else {
			assert.ErrorIs(t, err, ErrMissing, "commit %d", i)
		}
	}
	assert.Equal(t, all[5], capture(t, w).Commit)
	problems, err := w.Verify(ctx, nil)
	require.NoError(t, err)
	assert.Empty(t, problems)

	for _, root := range []Commit{all[0], "nonsense"} {
		_, err = w.Collect(ctx, CollectOptions{Roots: keep(root)})
		assert.Error(t, err, "root %s", root)
	}
	assert.NoError(t, w.Complete(ctx, all[3]), "a root that cannot be read: nothing is removed")
}

// The commits an agent made outlive a rebase and the user's gc, and so do the
// sides of a conflict.
func TestCollectKeepsHead(t *testing.T) {
	ctx := context.Background()
	dir := newRepo(t)
	write(t, dir, "f", "one\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	git(t, dir, "checkout", "-qb", "side")
	write(t, dir, "f", "side\n")
	git(t, dir, "commit", "-qam", "side")
	side := git(t, dir, "rev-parse", "HEAD:f")
	git(t, dir, "checkout", "-q", "main")
	write(t, dir, "f", "main\n")
	git(t, dir, "commit", "-qam", "main")
	lost := git(t, dir, "rev-parse", "HEAD")
	cmd := exec.Command("git", "merge", "-q", "side")
	cmd.Dir, cmd.Env = dir, gitEnv()
	require.Error(t, cmd.Run(), "a conflict")
	w := open(t, dir, Options{})
	c := capture(t, w).Commit
	git(t, dir, "merge", "--abort")
	git(t, dir, "reset", "-q", "--hard", "HEAD~")
	git(t, dir, "branch", "-qD", "side")
	git(t, dir, "reflog", "expire", "--expire=now", "--all")
	git(t, dir, "gc", "-q", "--prune=now")
	capture(t, w)
	_, err := w.Collect(ctx, CollectOptions{Roots: keep(c)})
	require.NoError(t, err)
	store := filepath.Join(w.Folder(), "store.git")
	assert.Equal(t, "commit", git(t, store, "cat-file", "-t", lost))
	assert.Equal(t, "side", git(t, store, "cat-file", "-p", side))

	_, err = w.Collect(ctx, CollectOptions{Full: true})
	require.NoError(t, err)
	cmd = exec.Command("git", "cat-file", "-e", lost)
	cmd.Dir, cmd.Env = store, gitEnv()
	assert.Error(t, cmd.Run(), "nobody keeps it any more")
}

func TestCollectDropsUselessCaches(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	write(t, dir, "f", "old")
	capture(t, w)
	caches := filepath.Join(w.Folder(), "statcache")
	old, err := os.ReadFile(filepath.Join(caches, "main"))
	require.NoError(t, err)
	write(t, dir, "f", "new and longer")
	last := capture(t, w).Commit
	explode(t, w)
	w = open(t, dir, Options{})
	id := object.Sum(object.Blob, []byte("old")).String()
	require.NoError(t, os.Remove(filepath.Join(w.Folder(), "store.git", "objects", id[:2], id[2:])))
	require.NoError(t, os.WriteFile(filepath.Join(caches, "wt-believer"), old, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(caches, "wt-torn"), old[:len(old)/2], 0o600))
	for name, owner := range map[string]string{
		"main": "main", "main.tmp123": "main", "wt-a.tmp1.tmp55": "wt-a.tmp1", "wt-a.tmp": "wt-a.tmp", "wt-a.tmp1x": "wt-a.tmp1x", "wt-7": "wt-7",
	} {
		assert.Equal(t, owner, cacheOwner(name))
	}
	require.NoError(t, os.WriteFile(filepath.Join(caches, "main.tmp123"), nil, 0o600))
	got, err := w.Collect(ctx, CollectOptions{})
	require.NoError(t, err)
	assert.Equal(t, 3, got.Caches)
	left, err := os.ReadDir(caches)
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "main", left[0].Name())
	assert.NoError(t, w.Complete(ctx, last))
}

func TestCollectUnderHold(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	release, err := w.Hold(context.Background())
	require.NoError(t, err)
	defer release()
	require.NoError(t, os.WriteFile(w.cachePath(), []byte("not a cache"), 0o600))
	got, err := w.Collect(context.Background(), CollectOptions{})
	require.NoError(t, err)
	assert.Equal(t, 1, got.Caches)
}

func TestCollectErrors(t *testing.T) {
	var full *NoSpaceError
	require.ErrorAs(t, collectError(fmt.Errorf("repack: %w", &object.NoSpaceError{Need: 3, Free: 2})), &full)
	assert.Equal(t, NoSpaceError{Need: 3, Free: 2}, *full)
	var locked *LockedError
	require.ErrorAs(t, collectError(&object.LockedError{Path: "x"}), &locked)
	assert.ErrorIs(t, collectError(&object.MissingError{}), ErrMissing)
}

func TestCompleteNamesThePath(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	write(t, dir, "d/e/f", "content")
	c := capture(t, w).Commit
	require.NoError(t, w.Complete(context.Background(), c))
	explode(t, w)
	id := object.Sum(object.Blob, []byte("content")).String()
	file := filepath.Join(w.Folder(), "store.git", "objects", id[:2], id[2:])
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	w = open(t, dir, Options{})
	err = w.Complete(context.Background(), c)
	require.ErrorIs(t, err, ErrMissing)
	assert.ErrorContains(t, err, "d/e/f")

	data[len(data)-1] ^= 1
	require.NoError(t, os.WriteFile(file, data, 0o600))
	problems, err := w.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0].String(), id)
}

func TestStoreSizeTellsSharedFromOwn(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "f", strings.Repeat("shared", 1000))
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	git(t, dir, "gc", "-q")
	w := open(t, dir, Options{})
	own, shared, packs, err := w.StoreSize()
	require.NoError(t, err)
	assert.Zero(t, own)
	assert.Positive(t, shared)
	assert.Equal(t, 1, packs)
	write(t, dir, "g", "own")
	capture(t, w)
	own, _, _, err = w.StoreSize()
	require.NoError(t, err)
	assert.Positive(t, own)
}
