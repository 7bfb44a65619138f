package vcs

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A Watcher does not count again what is in directories that nothing happened
// in, and still tells all of it.
func TestWatcherTells(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plain")
	write(t, dir, "a/f", "one")
	write(t, dir, "a/large", "too large")
	write(t, dir, "b/f", "one")
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "a/fifo"), 0o600))
	w := open(t, dir, Options{Create: true, MaxFile: 5})
	wt, err := NewWatcher(w)
	require.NoError(t, err)
	defer wt.Close()
	for _, step := range []struct {
		name    string
		do      func()
		files   int
		special []string
		large   int
	}{
		{"first", func() {}, 2, []string{"a/fifo"}, 1},
		{"elsewhere", func() { write(t, dir, "b/f", "two") }, 2, []string{"a/fifo"}, 1},
		{"elsewhere again", func() { write(t, dir, "b/g", "two") }, 3, []string{"a/fifo"}, 1},
		{"there", func() { require.NoError(t, os.Remove(filepath.Join(dir, "a/fifo"))) }, 3, nil, 1},
		{"large no more", func() { write(t, dir, "a/large", "fits") }, 4, nil, 0},
		{"folder gone", func() { require.NoError(t, os.RemoveAll(filepath.Join(dir, "b"))) }, 2, nil, 0},
	} {
		step.do()
		c, err := wt.Capture(context.Background(), CaptureOptions{})
		require.NoError(t, err)
		assert.Equal(t, step.files, c.Stats.Files, step.name)
		assert.Equal(t, step.special, c.Special, step.name)
		assert.Len(t, c.NotCaptured, step.large, step.name)
	}
}
