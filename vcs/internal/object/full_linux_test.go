package object

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// On a full disk nothing half written gets a name, and what was there stays.
func TestDiskFull(t *testing.T) {
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(mount, unix.MNT_DETACH)) })
	s, err := Create(filepath.Join(mount, "store.git"))
	require.NoError(t, err)
	ids := put(t, s, text(1, 1000), noise(1, 1<<20))
	before, err := readNames(s.packDir())
	require.NoError(t, err)

	for name, add := range map[string]func(w *Writer) error{
		"streamed": func(w *Writer) error {
			_, err := w.AddStream(8<<20, &repeating{data: noise(2, 1<<20)})
			return err
		},
		"added": func(w *Writer) error {
			for i := range 8 {
				if _, err := w.Add(Blob, noise(uint64(3+i), 1<<20)); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		w := s.NewWriter()
		err = add(w)
		if err == nil {
			err = w.Commit(true)
		}
		require.ErrorIs(t, err, unix.ENOSPC, name)
		assert.Contains(t, err.Error(), s.packDir())
		assert.Error(t, w.Commit(true), "%s: it stays failed", name)
		after, err := readNames(s.packDir())
		require.NoError(t, err)
		assert.ElementsMatch(t, before, after, name)
	}
	for _, id := range ids {
		_, _, err := s.ReadVerified(id, nil)
		require.NoError(t, err)
	}
	put(t, s, []byte("there is room again"))
	fsck(t, s.Dir())
}
