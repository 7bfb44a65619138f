package vcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
)

// The files that a restore displaced are not removed at its end. What they held
// is in the capture that the restore began with; but whoever had one open may
// write to it for as long as they like, as a program does with its log. So they
// stay, out of sight, until Collect, or until there are too many: whoever
// removes them looks first for what was written since, and lets a file be that
// is still open for writing.

// What stays of each worktree, at most; a restore that displaces more than is
// left of it removes what it displaced.
var (
	displacedBytes int64 = 64 << 20
	displacedFiles       = 16 << 10
)

// displacedDir is where displaced files lie, a folder for each restore.
func (w *Worktree) displacedDir() string { return filepath.Join(w.folder, "displaced", w.name) }

// A heap is what one restore displaced. Its folder is a stage that was moved,
// and is named for the rest.
type heap struct {
	dir   string
	seq   int
	files int
	bytes int64
}

func (h heap) name() string { return fmt.Sprintf("%06d-%d-%d", h.seq, h.files, h.bytes) }

// heaps are those of this worktree, the oldest first.
func (w *Worktree) heaps() ([]heap, error) {
	entries, err := os.ReadDir(w.displacedDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []heap
	for _, e := range entries {
		h := heap{dir: filepath.Join(w.displacedDir(), e.Name())}
		// One of another name counts for nothing, and is the first to go.
		_, _ = fmt.Sscanf(e.Name(), "%d-%d-%d", &h.seq, &h.files, &h.bytes)
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b heap) int { return a.seq - b.seq })
	return out, nil
}

// keepsDisplaced decides whether what this restore displaced stays, and as what.
func (s *Staged) keepsDisplaced() bool {
	if s.dir != filepath.Join(s.w.folder, "worktrees", filepath.Base(s.dir)) {
		return false // it lies in the worktree: nothing may stay there
	}
	for _, f := range s.folders {
		if f.mount != "" {
			return false
		}
	}
	all, err := s.w.heaps()
	if err != nil {
		return false
	}
	var h heap
	for i := range s.steps {
		if st := &s.steps[i]; st.was && (st.kind == stepWrite || st.kind == stepRemove) || st.odd {
			h.files++
			h.bytes += st.displaced.size
		}
	}
	if h.files == 0 {
		return false
	}
	files, bytes := h.files, h.bytes
	for _, other := range all {
		files, bytes, h.seq = files+other.files, bytes+other.bytes, other.seq
	}
	if files > displacedFiles || bytes > displacedBytes {
		return false
	}
	h.seq++
	h.dir = filepath.Join(s.w.displacedDir(), h.name())
	s.heap = &h
	return true
}

// keepDisplaced moves the stage to where displaced files stay.
func (s *Staged) keepDisplaced() error {
	if err := s.noteRescued(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.w.displacedDir(), 0o700); err != nil {
		return err
	}
	return os.Rename(s.dir, s.heap.dir)
}

// noteRescued writes the manifest anew when some files are not what the plan
// saw: what they are is rescued, and known.
func (s *Staged) noteRescued() error {
	again := false
	for i := range s.steps {
		if st := &s.steps[i]; !st.rescued.IsZero() {
			c := *st.change
			c.Old.ID = st.rescued.String()
			st.change, again = &c, true
		}
	}
	if !again {
		return nil
	}
	if err := os.Remove(filepath.Join(s.dir, "manifest")); err != nil {
		return err
	}
	return s.manifest()
}

// SweepDisplaced removes the files that restores have displaced, after keep has
// recorded what was written to them since. What somebody still has open for
// writing stays, and what was displaced together with it. It returns how many
// bytes it has removed. Call it under the move lock.
func (w *Worktree) SweepDisplaced(ctx context.Context, keep func(c Commit, paths []string) error) (removed int64, err error) {
	return w.sweep(ctx, -1, -1, keep)
}

// HasDisplaced tells that there is something for SweepDisplaced.
func (w *Worktree) HasDisplaced() bool {
	all, err := w.heaps()
	return err != nil || len(all) > 0
}

// sweep removes the oldest heaps until what is left is not more than files and
// bytes.
func (w *Worktree) sweep(ctx context.Context, files int, bytes int64, keep func(c Commit, paths []string) error) (removed int64, err error) {
	all, err := w.heaps()
	if err != nil {
		return 0, err
	}
	var sum heap
	for _, h := range all {
		sum.files, sum.bytes = sum.files+h.files, sum.bytes+h.bytes
	}
	for _, h := range all {
		if sum.files <= files && sum.bytes <= bytes {
			break
		}
		gone, err := w.sweepHeap(ctx, h, keep)
		if err != nil {
			return removed, err
		}
		if gone {
			sum.files, sum.bytes, removed = sum.files-h.files, sum.bytes-h.bytes, removed+h.bytes
		}
	}
	_ = os.Remove(w.displacedDir()) // fails while something is in it
	return removed, nil
}

func (w *Worktree) sweepHeap(ctx context.Context, h heap, keep func(c Commit, paths []string) error) (gone bool, err error) {
	unshare, err := w.Shared(ctx)
	if err != nil {
		return false, err
	}
	defer unshare()
	s, err := w.openStage(h.dir, "")
	if err != nil || s == nil {
		return false, err
	}
	for i := range s.steps {
		open, err := stillWritten(filepath.Join(h.dir, s.steps[i].name))
		if err != nil || open {
			return false, err
		}
	}
	c, paths, err := s.rescue(ctx, true)
	if err != nil {
		return false, err
	}
	if c != "" {
		if err := keep(c, paths); err != nil {
			return false, err
		}
	}
	crash.Point("displaced.rescued")
	return true, s.Discard()
}

// stillWritten tells that somebody has a displaced file open for writing. One that
// has another name besides is removed: what is written to it is found there.
func stillWritten(path string) (bool, error) {
	var st fileStat
	err := statPath(path, &st)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !st.isReg():
		return false, nil
	case st.nlink > 1:
		return false, os.Remove(path)
	}
	if st.mode&0o400 == 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return false, err
		}
	}
	var fd int
	err = retry(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return false, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	return beingWritten(fd), nil
}
