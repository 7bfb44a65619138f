package vcs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Where making files is slow they are made elsewhere, and the restore is no
// other, whatever their directories hand down.
func TestRestoreFromRooms(t *testing.T) {
	for _, slow := range []time.Duration{0, time.Microsecond, time.Hour} { // one room after the other; then none
		t.Run(slow.String(), func(t *testing.T) {
			slowMake = slow
			defer func() { slowMake = slowMakeUsual }()
			dir := filepath.Join(t.TempDir(), "plain")
			for i := range 120 {
				write(t, dir, fmt.Sprintf("d%d/f%d", i%3, i), fmt.Sprint("one ", i))
			}
			require.NoError(t, os.Chmod(filepath.Join(dir, "d0/f0"), 0o604))
			group := os.Getegid()
			if os.Geteuid() == 0 { // only root gives files away
				group = 4321
				require.NoError(t, os.Chown(filepath.Join(dir, "d1"), -1, group))
			}
			require.NoError(t, os.Chmod(filepath.Join(dir, "d1"), 0o755|os.ModeSetgid))
			w := open(t, dir, Options{Create: true})
			one := capture(t, w)
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "d2")))
			for i := range 120 {
				if name := filepath.Join(dir, fmt.Sprintf("d%d/f%d", i%3, i)); i%3 != 2 {
					require.NoError(t, os.Remove(name))
				}
			}
			opened := 0
			testOnlyRoom = func() { opened++ }
			defer func() { testOnlyRoom = nil }()
			_, _, err := w.Restore(context.Background(), one.Commit)
			require.NoError(t, err)
			assert.Equal(t, one.Commit, capture(t, w).Commit)
			left, err := w.stages()
			require.NoError(t, err)
			assert.Empty(t, left)
			var st unix.Stat_t
			require.NoError(t, unix.Stat(filepath.Join(dir, "d1/f1"), &st))
			assert.EqualValues(t, group, st.Gid, "its directory's")
			if slow < time.Second {
				assert.Equal(t, maxRooms, opened)
			} else {
				assert.Zero(t, opened)
			}
		})
	}
}
