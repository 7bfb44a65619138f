package vcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// CollectOptions say what a Collect keeps.
type CollectOptions struct {
	// Roots yields every commit that must stay, newest first, and returns the
	// error of yield. It is called more than once, the last time when nobody
	// is between capturing and recording.
	Roots func(yield func(Commit) error) error
	// Blobs yields every id of a PutBlob that must stay, likewise. May be nil.
	Blobs func(yield func(id string) error) error
	// Full packs anew what an earlier Collect has packed.
	Full bool
	// Progress is told what is done, in objects; total is 0 when unknown.
	Progress func(stage string, done, total int)
}

// Collected says what a Collect did.
type Collected struct {
	Live         int   // objects reached
	Packed       int   // of them, written anew
	Bytes        int64 // of the new pack
	PacksRemoved int
	PacksKept    int
	LooseRemoved int
	Freed        int64 // bytes of files removed that nobody else has
	Caches       int   // stat caches removed since they were of no use
}

// NoSpaceError says that the file system is too full for a Collect. Nothing was
// changed. Make room, or delete history and try again.
type NoSpaceError struct{ Need, Free int64 }

func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("not enough space to pack the store: %d bytes needed, %d free", e.Need, e.Free)
}

// Collect packs what is needed and removes the rest. Needed are the caller's
// roots, the newest capture of every worktree that shares the store, and the
// history that HEAD named in each of them, where the store has it: commits an
// agent made stay even after the user's git has dropped them.
//
// If anything that must stay cannot be read, nothing is removed and the error
// says what. One Collect runs at a time; the second gets a *LockedError. A
// process that dies at any moment loses nothing.
func (w *Worktree) Collect(ctx context.Context, opt CollectOptions) (Collected, error) {
	caches, err := w.dropCaches(ctx, w.cacheUsable)
	if err != nil {
		return Collected{}, err
	}
	st, err := w.repack(ctx, opt)
	if errors.Is(err, ErrMissing) {
		// Perhaps it is a cache that believes in what is gone. Its owner would
		// find out at the next capture, but may never make one.
		whole := func(c *statCache) bool {
			return w.cacheUsable(c) && !errors.Is(w.Complete(ctx, c.facts.Commit), ErrMissing)
		}
		more, derr := w.dropCaches(ctx, whole)
		if derr != nil {
			return Collected{}, derr
		}
		if caches += more; more > 0 {
			st, err = w.repack(ctx, opt)
		}
	}
	if err != nil {
		return Collected{}, collectError(err)
	}
	return Collected{Live: st.Live, Packed: st.Packed, Bytes: st.Bytes, PacksRemoved: st.PacksRemoved,
		PacksKept: st.PacksKept, LooseRemoved: st.LooseRemoved, Freed: st.Freed, Caches: caches}, nil
}

func (w *Worktree) repack(ctx context.Context, opt CollectOptions) (object.RepackStats, error) {
	ro := object.RepackOptions{
		Roots:     func(yield func(object.ID) error) error { return w.roots(&opt, yield) },
		Full:      opt.Full,
		FreeSpace: w.freeSpace,
		Progress:  opt.Progress,
		Crash:     func(name string) { crash.Point("collect." + name) },
	}
	if w.partial() {
		ro.Absent = func(id object.ID) bool { return !w.store.Has(id) }
	}
	return w.store.Repack(ctx, ro)
}

func collectError(err error) error {
	var full *object.NoSpaceError
	var locked *object.LockedError
	switch {
	case errors.As(err, &full):
		return &NoSpaceError{Need: full.Need, Free: full.Free}
	case errors.As(err, &locked):
		return &LockedError{What: "the store"}
	}
	return fmt.Errorf("collect: %w", err)
}

// partial tells that objects of the user's repository may lie at a remote only.
func (w *Worktree) partial() bool { return w.repo != nil && w.repo.Extensions().PartialClone != "" }

func (w *Worktree) freeSpace() int64 {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(w.packDir(), &st) }); err != nil {
		return 1<<63 - 1 // unknown: a full disk will say so itself, and nothing is lost by it
	}
	return int64(min(uint64(st.Bavail), (1<<63-1)/uint64(st.Bsize)) * uint64(st.Bsize))
}

// roots yields the ids behind the caller's commits and blobs and the caches'
// commits.
func (w *Worktree) roots(opt *CollectOptions, yield func(object.ID) error) error {
	seen := make(map[Commit]bool)
	heads := make(map[string]bool)
	one := func(c Commit) error {
		if seen[c] {
			return nil
		}
		seen[c] = true
		id, err := object.ParseID(string(c))
		if err != nil {
			return fmt.Errorf("%w: %q", ErrNoCommit, c)
		}
		r, err := w.readCommit(c)
		if err != nil {
			return err
		}
		if err := yield(id); err != nil {
			return err
		}
		return w.besides(r, heads, yield)
	}
	if opt.Roots != nil {
		if err := opt.Roots(one); err != nil {
			return err
		}
	}
	if opt.Blobs != nil {
		err := opt.Blobs(func(id string) error {
			blob, err := object.ParseID(id)
			if err != nil {
				return err
			}
			return yield(blob)
		})
		if err != nil {
			return err
		}
	}
	return w.eachCache(func(_ string, c *statCache, err error) error {
		if err != nil || c == nil || !w.cacheUsable(c) {
			return err // a file that is no cache is trusted by nobody
		}
		return one(c.facts.Commit)
	})
}

// besides yields what a commit needs and its trees do not reach: HEAD, and the
// sides of a conflict in the index.
func (w *Worktree) besides(r *commitRoot, seen map[string]bool, yield func(object.ID) error) error {
	var more []string
	if r.meta.Head != nil {
		more = append(more, r.meta.Head.ID)
	}
	for _, x := range r.meta.Extra {
		if x.Mode != object.ModeGitlink {
			more = append(more, x.ID)
		}
	}
	for _, text := range more {
		if text == "" || seen[text] {
			continue
		}
		seen[text] = true
		if id, err := object.ParseID(text); err == nil && w.store.Has(id) { // a sha256 id is none of ours
			if err := yield(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// cacheUsable tells that a capture could believe c.
func (w *Worktree) cacheUsable(c *statCache) bool {
	if c.facts.Store != w.storeID {
		return false
	}
	_, err := w.readCommit(c.facts.Commit)
	return err == nil
}

// eachCache calls f for every file among the stat caches: c is nil when it is
// not one. The cache is closed when f returns.
func (w *Worktree) eachCache(f func(name string, c *statCache, err error) error) error {
	dir := filepath.Join(w.folder, "statcache")
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		c, err := loadStatCache(filepath.Join(dir, file.Name()))
		err = f(file.Name(), c, err)
		if c != nil {
			c.close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cacheOwner is the worktree that a file among the stat caches belongs to. It has
// another name than the file if a capture has left it that died while it saved.
func cacheOwner(name string) string {
	owner := strings.TrimRight(name, "0123456789")
	if owner == name || !strings.HasSuffix(owner, ".tmp") {
		return name
	}
	return strings.TrimSuffix(owner, ".tmp")
}

// dropCaches removes the files among the stat caches that keep refuses, each
// under its worktree's capture lock, and returns how many they were.
func (w *Worktree) dropCaches(ctx context.Context, keep func(*statCache) bool) (int, error) {
	var doomed []string
	err := w.eachCache(func(name string, c *statCache, err error) error {
		if err != nil || c == nil || cacheOwner(name) != name || !keep(c) {
			doomed = append(doomed, name)
		}
		return nil
	})
	n := 0
	for _, name := range doomed {
		gone, derr := w.dropCache(ctx, name, keep)
		if derr != nil {
			return n, derr
		}
		if gone {
			n++
		}
	}
	return n, err
}

func (w *Worktree) dropCache(ctx context.Context, name string, keep func(*statCache) bool) (bool, error) {
	owner := cacheOwner(name)
	if w.held == nil || owner != w.name {
		lk, err := lockFile(ctx, filepath.Join(w.folder, "locks", "capture-"+owner))
		if err != nil {
			return false, err
		}
		defer lk.unlock()
	}
	path := filepath.Join(w.folder, "statcache", name)
	if c, err := loadStatCache(path); err == nil && c != nil && owner == name {
		defer c.close()
		if keep(c) {
			return false, nil // its owner made a new one meanwhile
		}
	}
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
