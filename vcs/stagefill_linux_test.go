package vcs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A filesystem without unnamed files, and one that will not name them, are
// served like any other.
func TestRestoreUnnamed(t *testing.T) {
	for _, cannot := range []string{"", "not made", "not named"} {
		t.Run(cannot, func(t *testing.T) {
			testOnlyUnnamed = cannot
			defer func() { testOnlyUnnamed = "" }()
			dir := filepath.Join(t.TempDir(), "plain")
			for i := range 40 {
				write(t, dir, fmt.Sprintf("d%d/f%d", i%3, i), fmt.Sprint("one ", i))
				write(t, dir, fmt.Sprintf("gone/f%d", i), fmt.Sprint("gone ", i))
			}
			require.NoError(t, os.Chmod(filepath.Join(dir, "d0/f0"), 0o604))
			w := open(t, dir, Options{Create: true})
			one := capture(t, w)
			for i := range 40 {
				write(t, dir, fmt.Sprintf("d%d/f%d", i%3, i), fmt.Sprint("two ", i))
			}
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "gone")))
			_, n, err := w.Restore(context.Background(), one.Commit)
			require.NoError(t, err)
			assert.Equal(t, 40+42, n) // the directory is made, and given its bits
			assert.Equal(t, one.Commit, capture(t, w).Commit)
			left, err := w.stages()
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

// What replaces a file has its owner and group, whatever its directory hands
// down; what comes new has the directory's group.
func TestRestoreGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir := filepath.Join(t.TempDir(), "plain")
	write(t, dir, "d/old", "one")
	write(t, dir, "d/new", "one")
	require.NoError(t, os.Chown(filepath.Join(dir, "d"), 0, 4321))
	require.NoError(t, os.Chmod(filepath.Join(dir, "d"), 0o755|os.ModeSetgid))
	require.NoError(t, os.Chown(filepath.Join(dir, "d/old"), 1234, 0))
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	write(t, dir, "d/old", "two")
	require.NoError(t, os.Remove(filepath.Join(dir, "d/new")))
	_, _, err := w.Restore(context.Background(), one.Commit)
	require.NoError(t, err)
	for name, want := range map[string][2]uint32{"d/old": {1234, 0}, "d/new": {0, 4321}} {
		fi, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		st := fi.Sys().(*syscall.Stat_t)
		assert.Equal(t, want, [2]uint32{st.Uid, st.Gid}, name)
	}
}
