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
	"golang.org/x/sys/unix"
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

// Where making files is slow they are made elsewhere, but for those whose
// directory hands something down.
func TestRestoreHeritage(t *testing.T) {
	slowMake = 0
	defer func() { slowMake = slowMakeUsual }()
	const noAtime = 0x80                                               // FS_NOATIME_FL
	acl := []byte("\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff" + // owner
		"\x02\x00\x07\x00\xd2\x04\x00\x00\x04\x00\x05\x00\xff\xff\xff\xff" + // user 1234, group
		"\x10\x00\x07\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff") // mask, others
	dir := filepath.Join(t.TempDir(), "plain")
	for i := range 3 * crowd {
		write(t, dir, fmt.Sprintf("d%d/f%d", i%3, i), fmt.Sprint("one ", i))
	}
	require.NoError(t, unix.Setxattr(filepath.Join(dir, "d1"), "system.posix_acl_default", acl, 0))
	d2, err := unix.Open(filepath.Join(dir, "d2"), unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(d2)
	flags, err := unix.IoctlGetUint32(d2, unix.FS_IOC_GETFLAGS)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(d2, unix.FS_IOC_SETFLAGS, int(flags|noAtime)))
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	for i := range 3 * crowd {
		write(t, dir, fmt.Sprintf("d%d/f%d", i%3, i), fmt.Sprint("two ", i))
	}
	_, _, err = w.Restore(context.Background(), one.Commit)
	require.NoError(t, err)
	assert.Equal(t, one.Commit, capture(t, w).Commit)
	for i := range 3 * crowd {
		name := filepath.Join(dir, fmt.Sprintf("d%d/f%d", i%3, i))
		n, _ := unix.Getxattr(name, "system.posix_acl_access", nil)
		assert.Equal(t, i%3 == 1, n > 0, "%s has a list", name)
		f, err := os.Open(name)
		require.NoError(t, err)
		flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		require.NoError(t, err)
		assert.Equal(t, i%3 == 2, flags&noAtime != 0, "%s has the flag", name)
		f.Close()
	}
}
