package ledger

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// tmpfs mounts a small file system, or skips the test.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

func TestReadOnlyDirectory(t *testing.T) {
	dir := tmpfs(t, "8m")
	path := filepath.Join(dir, "ledger.db")
	db := open(t, path, Options{})
	require.NoError(t, note(db, 1))
	remount := func(flags uintptr) { require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "")) }
	for _, keepLog := range []bool{true, false} {
		require.NoError(t, db.Close())
		if !keepLog {
			require.NoError(t, os.Remove(path+"-wal"))
			require.NoError(t, os.Remove(path+"-shm"))
		}
		remount(unix.MS_RDONLY)
		for _, o := range []Options{{}, {ReadOnly: true}} {
			ro := open(t, path, o)
			require.Error(t, ro.ReadOnly())
			assert.Equal(t, 1, count(t, ro))
			var readOnly *ReadOnlyError
			require.ErrorAs(t, note(ro, 2), &readOnly)
			require.NoError(t, ro.Close())
		}
		remount(0)
		db = open(t, path, Options{})
	}
}

func TestDiskFull(t *testing.T) {
	dir := tmpfs(t, "1m")
	path := filepath.Join(dir, "ledger.db")
	db := open(t, path, Options{})
	ballast := filepath.Join(dir, "ballast")
	written, n := 0, 0
	for ; n < 10_000; n++ {
		err := db.Update(context.Background(), func(tx *Tx) error { return tx.Audit("me", "note", string(make([]byte, 3000))) })
		if err == nil {
			written++
			if n == 20 {
				f, err := os.Create(ballast)
				require.NoError(t, err)
				for err == nil {
					_, err = f.Write(make([]byte, 4096))
				}
				require.ErrorIs(t, err, syscall.ENOSPC)
				f.Close()
			}
			continue
		}
		var full *FullError
		require.ErrorAs(t, err, &full)
		break
	}
	require.Less(t, n, 10_000)
	assert.Equal(t, written, count(t, db), "reads go on")
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, note(db, 1))
	problems, err := db.Check(context.Background())
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Equal(t, written+1, count(t, db))
}
