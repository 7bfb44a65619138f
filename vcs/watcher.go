package vcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
)

// A Watcher captures a worktree at the cost of what changed since its last
// capture. It keeps the stat cache in memory and is told by the kernel which
// directories to look at.
//
// What it is told is a hint. After an overflow, without enough watches, when
// rules or the index moved, and every now and then in any case, it scans
// everything. Two kinds of write go by unseen until then: through a memory
// mapping, and through a hard link in another directory. A capture that must
// not miss them is one with Rescan, or of the Worktree.
//
// Its methods, and those of its Worktree, are for one goroutine at a time.
type Watcher struct {
	w     *Worktree
	cache *statCache // nil: load it
	file  fileStat   // the cache file as we read or wrote it

	notify   *fsnotify.Watcher // nil: not watching yet
	watched  map[string]bool   // paths of directories with a watch
	known    map[string]int32  // path of a directory -> its record
	knownLen int               // records when known was made
	stopped  chan struct{}     // closed when the reader of notify ends

	changed  chan struct{} // something happened; holds one
	captures int           // since all was looked at
	checked  int64         // when all was looked at, since boot
	saved    int64         // when the cache file was written
	cookies  int

	mu     sync.Mutex // guards what the reader of notify writes
	dirty  map[string]bool
	all    bool   // look at everything
	moved  bool   // a watched directory was renamed: names of watches are wrong
	cookie string // event that is waited for
	seen   chan struct{}
	noRoom bool // some directory could not be watched
}

const (
	watchChecks  = 500                     // captures after which all is looked at
	watchCheck   = int64(10 * time.Minute) // likewise, time
	watchSave    = int64(30 * time.Second) // between writes of the cache file
	watchPatient = 2 * time.Second         // for an event of our own to come through
)

// NewWatcher begins to watch. The first capture scans everything.
func NewWatcher(w *Worktree) (*Watcher, error) {
	wt := &Watcher{w: w, changed: make(chan struct{}, 1), saved: bootNow()}
	if err := os.MkdirAll(wt.cookieDir(), 0o700); err != nil {
		return nil, err
	}
	wt.reset()
	return wt, nil
}

// Close stops watching and saves what the stat cache file lacks.
func (wt *Watcher) Close() error {
	wt.unwatch()
	if wt.cache == nil {
		return nil
	}
	defer wt.forget()
	if !wt.cache.unsaved || wt.w.held != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchPatient)
	defer cancel()
	lk, err := lockFile(ctx, wt.w.lockPath("capture"))
	if err != nil {
		return nil // somebody is capturing and will write a newer one
	}
	defer lk.unlock()
	if !wt.fileIsOurs() {
		return nil
	}
	return wt.save()
}

// fileIsOurs tells that the cache file is as we left it. Another's is kept: it
// may be of a later state, and is no worse in any case.
func (wt *Watcher) fileIsOurs() bool {
	var now fileStat
	return statPath(wt.w.cachePath(), &now) != nil || now == wt.file
}

// Capture is Worktree.Capture. While the worktree is held for a move, with
// Rescan or NoCaps, it is exactly that.
func (wt *Watcher) Capture(ctx context.Context, opt CaptureOptions) (*Capture, error) {
	if wt.w.held != nil || opt.Rescan || opt.NoCaps {
		return wt.w.Capture(ctx, opt)
	}
	lk, err := lockFile(ctx, wt.w.lockPath("capture"))
	if err != nil {
		return nil, err
	}
	defer lk.unlock()
	began := bootNow()
	sources, err := wt.w.outerRules()
	if err != nil {
		return nil, err
	}
	digest := wt.w.rulesDigest(sources)
	cp, err := wt.capture(ctx, opt, sources, digest)
	if err != nil {
		wt.forget()
		wt.mark(func() { wt.all = true })
		return nil, err
	}
	cp.Stats.Took = time.Duration(bootNow() - began)
	writeStamp(lk.f, stamp{Began: began, Commit: cp.Commit})
	return opt.then(cp, nil)
}

func (wt *Watcher) capture(ctx context.Context, opt CaptureOptions, sources []ignore.Source, digest string) (*Capture, error) {
	now := bootNow()
	dirty, all := wt.take()
	c := wt.cache
	if c == nil || c.facts.Rules != digest || !wt.w.packsAreThere(&c.facts) ||
		wt.captures >= watchChecks || now-wt.checked > watchCheck {
		all = true
	}
	if all {
		if err := wt.reload(ctx, digest, now); err != nil {
			return nil, err
		}
	} else {
		c.only = wt.only(dirty)
	}
	wt.captures++
	cp, cache, err := wt.w.scan(ctx, opt, wt.cache, sources, digest)
	if wt.cache == nil { // the first of this worktree, saved by scan
		wt.cache = cache
	}
	if err != nil {
		return nil, err
	}
	if all && !cache.resident {
		cache.resident = true
		wt.noteFile()
	}
	cache.only, cache.doubtful = nil, false
	wt.settle()
	wt.cover()
	if cache.unsaved && now-wt.saved > watchSave {
		if err := wt.save(); err != nil {
			return nil, fmt.Errorf("stat cache: %w", err)
		}
	}
	c2 := *cp // the cache keeps the other
	return &c2, nil
}

// reload makes the cache the one in the file, or none. What only memory has is
// written first, when it is sound.
func (wt *Watcher) reload(ctx context.Context, digest string, now int64) error {
	if c := wt.cache; c != nil {
		if c.unsaved && c.facts.Generation == wt.w.store.Generation() && wt.fileIsOurs() {
			if err := wt.save(); err != nil {
				return fmt.Errorf("stat cache: %w", err)
			}
		}
		wt.forget()
	}
	c, err := wt.w.loadCache(ctx, digest)
	if err != nil {
		return err
	}
	wt.cache = c // scan saves it
	wt.mu.Lock()
	again := wt.moved || wt.notify == nil || wt.noRoom && now-wt.checked > watchCheck
	wt.mu.Unlock()
	if again {
		wt.reset()
	}
	wt.captures, wt.checked = 0, now
	wt.cover()
	wt.take() // what was new to watch is looked at now
	return nil
}

func (wt *Watcher) forget() {
	if wt.cache != nil {
		wt.cache.close()
		wt.cache = nil
	}
	wt.known, wt.knownLen = nil, 0
}

func (wt *Watcher) save() error {
	if err := wt.cache.save(wt.w.cachePath()); err != nil {
		return err
	}
	wt.cache.unsaved, wt.saved = false, bootNow()
	wt.noteFile()
	return nil
}

func (wt *Watcher) noteFile() {
	wt.file = fileStat{}
	_ = statPath(wt.w.cachePath(), &wt.file) // not there: then it is not what we wrote
}

// settle ends what lives for one capture only.
func (wt *Watcher) settle() {
	for _, d := range wt.cache.dirs {
		if d.changed.Load() {
			d.ignoreAt = -1
			if i, ok := d.find(".gitignore"); ok && d.entries[i].class != classSparse {
				d.ignoreAt = i
			}
			d.changed.Store(false)
		}
		d.touched.Store(false)
		d.stale.Store(false)
		d.relist, d.inside, d.attrs = false, nil, nil
	}
}

// only is the set of records behind dirty paths, and those on the way to them.
func (wt *Watcher) only(dirty map[string]bool) map[int32]bool {
	wt.index()
	only := make(map[int32]bool, 2*len(dirty)+1)
	only[0] = false
	for path := range dirty {
		at, ok := wt.known[path]
		if !ok {
			continue // not one of ours, or to be found by its parent
		}
		only[at] = true
		for at = wt.cache.dirs[at].parent; at >= 0; at = wt.cache.dirs[at].parent {
			if _, ok := only[at]; ok {
				break
			}
			only[at] = false
		}
	}
	return only
}

// index makes known follow the cache.
func (wt *Watcher) index() {
	if wt.known != nil && wt.knownLen == len(wt.cache.dirs) {
		return
	}
	wt.known = make(map[string]int32, len(wt.cache.dirs))
	for i, d := range wt.cache.dirs {
		if !d.gone {
			wt.known[d.path] = int32(i)
		}
	}
	wt.knownLen = len(wt.cache.dirs)
}

// cover watches the directories that are not watched yet. What happened in them
// before is found by looking at them once more.
func (wt *Watcher) cover() {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	if wt.notify == nil || wt.noRoom || wt.cache == nil {
		wt.all = true
		return
	}
	for _, d := range wt.cache.dirs {
		if d.gone || d.flags&dirVirtual != 0 || wt.watched[d.path] {
			continue
		}
		// Adding waits for the reader, which may wait for us.
		wt.mu.Unlock()
		err := wt.notify.Add(wt.w.root + "/" + d.path)
		wt.mu.Lock()
		switch {
		case err == nil:
			wt.watched[d.path] = true
			wt.dirty[d.path] = true
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOTDIR):
			// Its parent will say when that is over.
		default:
			wt.noRoom, wt.all = true, true
			return
		}
	}
}

// take waits until all that happened so far has been told, and returns what to
// look at.
func (wt *Watcher) take() (dirty map[string]bool, all bool) {
	told := wt.flush()
	wt.mu.Lock()
	defer wt.mu.Unlock()
	dirty, all = wt.dirty, wt.all || !told || wt.moved || wt.noRoom
	wt.dirty, wt.all = make(map[string]bool), false
	return dirty, all
}

// blind tells that changes may happen without notice.
func (wt *Watcher) blind() bool {
	wt.mu.Lock()
	defer wt.mu.Unlock()
	return wt.notify == nil || wt.noRoom
}

func (wt *Watcher) mark(f func()) {
	wt.mu.Lock()
	f()
	wt.mu.Unlock()
}

func (wt *Watcher) cookieDir() string { return filepath.Join(wt.w.folder, "watch") }

// flush makes an event of our own and waits for it: the kernel tells in order,
// so that what happened before it has been told too.
func (wt *Watcher) flush() bool {
	if wt.notify == nil {
		return false
	}
	wt.cookies++
	path := filepath.Join(wt.cookieDir(), fmt.Sprintf("%d-%p-%d", os.Getpid(), wt, wt.cookies))
	seen := make(chan struct{})
	wt.mark(func() { wt.cookie, wt.seen = path, seen })
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	f.Close()
	defer os.Remove(path)
	late := time.NewTimer(watchPatient)
	defer late.Stop()
	select {
	case <-seen:
		return true
	case <-wt.stopped:
	case <-late.C:
	}
	return false
}

// reset begins to watch anew. Where that is not possible, every capture scans.
func (wt *Watcher) reset() {
	wt.unwatch()
	wt.mark(func() {
		wt.watched, wt.dirty = make(map[string]bool), make(map[string]bool)
		wt.all, wt.moved, wt.noRoom = true, false, false
	})
	n, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil {
		return
	}
	if err := n.Add(wt.cookieDir()); err != nil {
		_ = n.Close() // nothing is watched
		return
	}
	wt.notify, wt.stopped = n, make(chan struct{})
	go wt.read(n, wt.stopped)
}

func (wt *Watcher) unwatch() {
	if wt.notify != nil {
		_ = wt.notify.Close() // descriptors of the kernel's; nothing can be lost
		<-wt.stopped
		wt.notify = nil
	}
}

// read turns events into dirty directories until n is closed.
func (wt *Watcher) read(n *fsnotify.Watcher, stopped chan struct{}) {
	defer close(stopped)
	events, errs := n.Events, n.Errors
	for events != nil || errs != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			wt.event(e)
		case _, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			wt.mark(func() { wt.all = true }) // an overflow, or something odd
			wt.signal()
		}
	}
}

func (wt *Watcher) event(e fsnotify.Event) {
	if strings.HasPrefix(e.Name, wt.w.folder+"/") {
		wt.mark(func() {
			if e.Name == wt.cookie && wt.seen != nil {
				close(wt.seen)
				wt.seen = nil
			}
		})
		return
	}
	rel, ok := strings.CutPrefix(e.Name+"/", strings.TrimSuffix(wt.w.root, "/")+"/")
	if !ok {
		wt.mark(func() { wt.all = true })
		return
	}
	rel = strings.Trim(rel, "/")
	dir, base := split(rel)
	if base == stageName || dir == "" && wt.w.kind == Plain && base == "."+StoreName {
		return
	}
	wt.mark(func() {
		wt.dirty[dir] = true
		if wt.watched[rel] {
			wt.dirty[rel] = true
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				delete(wt.watched, rel)
			}
			if e.Has(fsnotify.Rename) { // watches below it go on under the old name
				wt.moved, wt.all = true, true
			}
		}
	})
	wt.signal()
}

func (wt *Watcher) signal() {
	select {
	case wt.changed <- struct{}{}:
	default:
	}
}
