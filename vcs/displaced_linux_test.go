package vcs

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// late is what a sweep found written to files that had been displaced.
type late struct {
	t     *testing.T
	w     *Worktree
	found []map[string]string // of each rescue, contents by path
}

func (l *late) keep(c Commit, paths []string) error {
	files, err := l.w.Files(l.t.Context(), c)
	require.NoError(l.t, err)
	got := make(map[string]string)
	for _, f := range files {
		if f.New.Kind == KindFile {
			text, err := l.w.Content(f.New)
			require.NoError(l.t, err)
			got[f.Path] = string(text)
		}
	}
	assert.Len(l.t, got, len(paths))
	l.found = append(l.found, got)
	return nil
}

func (l *late) sweep() int64 {
	l.t.Helper()
	n, err := l.w.SweepDisplaced(l.t.Context(), l.keep)
	require.NoError(l.t, err)
	return n
}

func appendTo(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	return f
}

// What a restore displaced stays until it is swept, and goes then.
func TestDisplacedStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plain")
	write(t, dir, "a", "one")
	write(t, dir, "b", "one")
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	write(t, dir, "a", "two")
	write(t, dir, "new", "three")
	assert.False(t, w.HasDisplaced())
	_, n, err := w.Restore(t.Context(), one.Commit)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	stages, err := w.stages()
	require.NoError(t, err)
	assert.Empty(t, stages)
	all, err := w.heaps()
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, heap{dir: all[0].dir, seq: 1, files: 2, bytes: 8}, all[0])
	l := &late{t: t, w: w}
	assert.EqualValues(t, 8, l.sweep())
	assert.Empty(t, l.found, "nobody has written to them")
	assert.False(t, w.HasDisplaced())
	assert.NoDirExists(t, w.displacedDir())
	assert.Zero(t, l.sweep())

	require.NoError(t, os.Remove(filepath.Join(dir, "a")))
	_, n, err = w.Restore(t.Context(), one.Commit)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.False(t, w.HasDisplaced(), "nothing was displaced")
}

// A program that has a file open for writing goes on writing to it after it was
// displaced. What it wrote is found, but not before it is done.
func TestDisplacedAreStillWritten(t *testing.T) {
	defer func(was int64) { writersPatience = was }(writersPatience)
	writersPatience = 1
	dir := filepath.Join(t.TempDir(), "plain")
	write(t, dir, "log", "one\n")
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	write(t, dir, "log", "one\ntwo\n")
	write(t, dir, "new.log", "")
	w.forgetLast()
	ctx := context.Background()
	release, err := w.Hold(ctx)
	require.NoError(t, err)
	now, err := w.Capture(ctx, CaptureOptions{Sync: true})
	require.NoError(t, err)
	changes, err := w.Diff(ctx, now.Commit, one.Commit)
	require.NoError(t, err)
	s, err := w.Stage(ctx, "test", changes)
	require.NoError(t, err)
	log, fresh := appendTo(t, filepath.Join(dir, "log")), appendTo(t, filepath.Join(dir, "new.log"))
	log.WriteString("three\n") // before the swap: what the plan did not see
	require.NoError(t, s.Swap(ctx))
	_, err = s.Verify(ctx)
	require.NoError(t, err)
	l := &late{t: t, w: w}
	c, paths, err := s.Rescue(ctx, false)
	require.NoError(t, err)
	require.NoError(t, l.keep(c, paths))
	require.Equal(t, []map[string]string{{"log": "one\ntwo\nthree\n"}}, l.found)
	require.NoError(t, s.Settle())
	require.NoError(t, s.Discard())
	release()
	assert.Equal(t, "one\n", string(read(t, filepath.Join(dir, "log"))))

	l.found = nil
	assert.Zero(t, l.sweep(), "two files are open")
	fresh.WriteString("late\n")
	require.NoError(t, fresh.Close())
	assert.Zero(t, l.sweep(), "one file is open")
	assert.Empty(t, l.found)
	require.NoError(t, log.Close())
	assert.NotZero(t, l.sweep())
	// The log was rescued before, as it has stayed.
	assert.Equal(t, []map[string]string{{"new.log": "late\n"}}, l.found)
}

// A file that has another name is not lost by what is done to it there, and one
// that nobody may read is kept all the same.
func TestDisplacedOddFiles(t *testing.T) {
	if asNobody(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "plain")
	for _, name := range []string{"linked", "closed", "link"} {
		write(t, dir, name, "one")
	}
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	require.NoError(t, os.Remove(filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "link")))
	write(t, dir, "linked", "two")
	write(t, dir, "closed", "two")
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.Link(filepath.Join(dir, "linked"), other))
	closed := appendTo(t, filepath.Join(dir, "closed"))
	defer closed.Close()
	defer func(was int64) { writersPatience = was }(writersPatience)
	writersPatience = 1
	_, _, err := w.Restore(t.Context(), one.Commit)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, []byte("by its other name"), 0o644))
	closed.WriteString(" more")
	require.NoError(t, closed.Chmod(0))
	require.NoError(t, closed.Close())
	l := &late{t: t, w: w}
	l.sweep()
	assert.Equal(t, []map[string]string{{"closed": "two more"}}, l.found)
	assert.False(t, w.HasDisplaced())
	got, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, "by its other name", string(got))
}

// What stays is bounded: a restore that displaces more removes it, and a move
// begins by making room.
func TestDisplacedAreBounded(t *testing.T) {
	for name, bound := range map[string]struct {
		bytes int64
		files int
	}{"bytes": {40, 1000}, "files": {1 << 20, 4}} {
		t.Run(name, func(t *testing.T) {
			defer func(b int64, f int) { displacedBytes, displacedFiles = b, f }(displacedBytes, displacedFiles)
			displacedBytes, displacedFiles = bound.bytes, bound.files
			dir := filepath.Join(t.TempDir(), "plain")
			write(t, dir, "a", "one")
			w := open(t, dir, Options{Create: true})
			one := capture(t, w)
			seqs := func() (out []int) {
				all, err := w.heaps()
				require.NoError(t, err)
				for _, h := range all {
					out = append(out, h.seq)
				}
				return out
			}
			for i := range 6 {
				write(t, dir, "a", "ten bytes"+strconv.Itoa(i))
				_, _, err := w.Restore(t.Context(), one.Commit)
				require.NoError(t, err)
			}
			assert.Equal(t, []int{1, 2, 3, 4}, seqs())
			l := &late{t: t, w: w}
			require.NoError(t, w.DiscardStages(t.Context(), l.keep))
			assert.Equal(t, []int{3, 4}, seqs(), "the oldest are gone")
			require.NoError(t, w.DiscardStages(t.Context(), l.keep))
			assert.Equal(t, []int{3, 4}, seqs())
			write(t, dir, "a", "more than all that is allowed, which are forty bytes")
			for i := range 5 {
				write(t, dir, "b"+strconv.Itoa(i), "")
			}
			_, _, err := w.Restore(t.Context(), one.Commit)
			require.NoError(t, err)
			assert.Equal(t, []int{3, 4}, seqs())
			stages, err := w.stages()
			require.NoError(t, err)
			assert.Empty(t, stages)
			assert.Empty(t, l.found)
		})
	}
}

// What was displaced in a worktree of our own goes with it.
func TestDisplacedGoWithTheirWorktree(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	c := capture(t, w)
	o := checkedOut(t, w, c.Commit, "one")
	write(t, o.Root(), "new", "1")
	_, _, err := o.Restore(t.Context(), c.Commit)
	require.NoError(t, err)
	require.DirExists(t, o.displacedDir())
	require.NoError(t, w.RemoveOwned(t.Context(), o.Root()))
	assert.NoDirExists(t, o.displacedDir())
}
