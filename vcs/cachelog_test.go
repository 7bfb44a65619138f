package vcs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever a capture of these tests writes to its cache file is read back and
// compared: a directory that changed and was not noted as touched shows.
func init() {
	testOnlyUpdated = func(path string, c *statCache) {
		back, err := loadStatCache(path)
		if err != nil || back == nil {
			panic(fmt.Sprintf("cannot read back %s: %v", path, err))
		}
		defer back.close()
		if diff := lacks(c, back); diff != "" {
			panic(path + " lacks what the capture knows: " + diff)
		}
	}
}

// lacks tells what two caches do not have in common.
func lacks(a, b *statCache) string {
	mine := a.facts
	if mine.Capture != nil {
		c := *mine.Capture
		c.Stats = Stats{} // which are not kept
		mine.Capture = &c
	}
	if !assert.ObjectsAreEqual(mine, b.facts) {
		return fmt.Sprintf("facts\n%+v\n%+v", mine, b.facts)
	}
	byPath := map[string]*dirRec{}
	for _, d := range b.dirs {
		byPath[d.path] = d
	}
	for _, d := range a.dirs {
		if d.gone {
			continue
		}
		is := byPath[d.path]
		if is == nil {
			return "directory " + d.path
		}
		delete(byPath, d.path)
		if x, y := d.disk(0), is.disk(0); x != y {
			return fmt.Sprintf("record of %q: %+v, %+v", d.path, x, y)
		}
		for i := range d.entries {
			x, y := d.entries[i], is.entries[i]
			if child := x.child >= 0 && !a.dirs[x.child].gone; child != (y.child >= 0) || string(d.name(&x)) != string(is.name(&y)) {
				return fmt.Sprintf("entry %d of %q", i, d.path)
			}
			if x.child, y.child = 0, 0; x != y {
				return fmt.Sprintf("entry %q of %q: %+v, %+v", d.name(&x), d.path, x, y)
			}
		}
	}
	for path := range byPath {
		return "no directory " + path
	}
	return ""
}

// manyFiles writes n directories of 20 files.
func manyFiles(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		for j := range 20 {
			write(t, dir, fmt.Sprintf("d%02d/f%02d", i, j), "before")
		}
	}
	time.Sleep(20 * time.Millisecond) // so that a capture can trust the stamps
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func TestCacheIsAddedTo(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	manyFiles(t, dir, 30)
	capture(t, w)
	size := func() (int64, uint64) {
		var st fileStat
		require.NoError(t, statPath(w.cachePath(), &st))
		return st.size, st.ino
	}
	capture(t, w) // what was racy is not any more
	base, ino := size()
	var states []Commit
	added := 0
	for i := range 60 {
		write(t, dir, fmt.Sprintf("d%02d/f%02d", i%30, i%20), fmt.Sprint("after ", i))
		states = append(states, capture(t, w).Commit)
		now, is := size()
		assert.LessOrEqual(t, now, base+base/2+4096)
		if is == ino {
			added++
		}
		ino = is
	}
	assert.Greater(t, added, 40, "the file is written anew only now and then")
	assert.Less(t, added, 60, "it never is")
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(states))), 60)
	again, err := w.Capture(t.Context(), CaptureOptions{Rescan: true})
	require.NoError(t, err)
	assert.Equal(t, states[59], again.Commit)
}

// Whatever becomes of what was added, the next capture is right.
func TestCacheGroupsDamaged(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	manyFiles(t, dir, 30)
	capture(t, w)
	capture(t, w)
	base := read(t, w.cachePath())
	for i := range 3 {
		write(t, dir, fmt.Sprintf("d%02d/f00", i), "after")
		capture(t, w)
	}
	whole := read(t, w.cachePath())
	require.True(t, bytes.HasPrefix(whole, base), "nothing was added")
	want := capture(t, w).Commit
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 150 {
		damaged := slices.Clone(whole)
		switch at := len(base) + r.IntN(len(whole)-len(base)); round % 4 {
		case 0:
			damaged = damaged[:at]
		case 1:
			damaged[at] ^= 1 << r.IntN(8)
		case 2:
			damaged = append(damaged, whole[at:]...)
		default:
			clear(damaged[at:min(len(damaged), at+1+r.IntN(5000))])
		}
		require.NoError(t, os.WriteFile(w.cachePath(), damaged, 0o600))
		c, err := loadStatCache(w.cachePath())
		require.NoError(t, err)
		require.NotNil(t, c, "what was there before is lost with it")
		c.close()
		require.Equal(t, want, capture(t, w).Commit, "round %d", round)
		write(t, dir, "d07/f01", fmt.Sprint(round))
		one := capture(t, w).Commit
		require.NoError(t, os.Remove(filepath.Join(dir, "d07/f01")))
		require.NotEqual(t, want, one)
		write(t, dir, "d07/f01", "before")
		require.Equal(t, want, capture(t, w).Commit, "round %d", round)
	}
}
