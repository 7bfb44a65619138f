package vcs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// Commit names a captured state of a worktree: 40 hexadecimal digits, opaque
// outside this package. Equal states have equal names.
type Commit string

// CaptureOptions say how careful a capture is.
type CaptureOptions struct {
	// Sync puts everything on disk before Capture returns. Without it a power
	// cut may take what the system had not yet written, and only that.
	Sync bool
	// NoCaps captures files of any size.
	NoCaps bool
	// Quick stores small files as they are, for a capture that somebody waits
	// for and that is seldom read. A Collect compresses them.
	Quick bool
	// Rescan distrusts the stat cache and reads every file.
	Rescan bool
	// Progress is told how many files have been looked at, from any goroutine.
	Progress func(done int)
	// Then is given what was found before another capture of the worktree can
	// begin: what it records is in the order of the captures. Its error is
	// Capture's.
	Then func(*Capture) error
}

// then ends a capture while its lock is held.
func (o *CaptureOptions) then(c *Capture, err error) (*Capture, error) {
	if err != nil || o.Then == nil {
		return c, err
	}
	if err := o.Then(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Capture is what a capture found.
type Capture struct {
	Commit      Commit    `json:"commit"`
	Tree        string    `json:"tree"` // as git write-tree names it, nested repositories aside
	Head        Head      `json:"head"`
	Operation   string    `json:"operation,omitempty"` // what git is in the middle of
	NotCaptured []Missing `json:"not_captured,omitempty"`
	Special     []string  `json:"special,omitempty"` // sockets, FIFOs, devices
	Nested      []string  `json:"nested,omitempty"`  // roots of repositories inside
	Stats       Stats     `json:"-"`
}

// Missing is a path whose content is not in the commit, or, with Changing, in
// it as it was at some moment of a change.
type Missing struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Size   int64  `json:"size"`
}

// Stats says what a capture cost.
type Stats struct {
	Files   int           // captured
	Listed  int           // directories read
	Stated  int           // files looked at
	Hashed  int           // files read
	Seeded  int           // files taken from the user's index without reading
	Bytes   int64         // read
	Objects int           // written
	Reused  bool          // another process captured after we asked; this is its answer
	Took    time.Duration // waiting for the lock not included
}

// Capture records the worktree as it is now. One capture of a worktree runs at
// a time; a capture that waited takes the answer of one that began after it was
// asked for.
//
// The commit is whole in the store when Capture returns, or there is an error
// and no commit. Hold Shared from before the call until the commit is recorded
// where the next Collect finds it.
func (w *Worktree) Capture(ctx context.Context, opt CaptureOptions) (*Capture, error) {
	arrived := bootNow()
	if w.held != nil {
		return opt.then(w.captureLocked(ctx, opt, w.held, 0))
	}
	lk, err := lockFile(ctx, w.lockPath("capture"))
	if err != nil {
		return nil, err
	}
	defer lk.unlock()
	return opt.then(w.captureLocked(ctx, opt, lk, arrived))
}

func (w *Worktree) captureLocked(ctx context.Context, opt CaptureOptions, lk *fileLock, arrived int64) (*Capture, error) {
	began := bootNow()
	sources, err := w.outerRules()
	if err != nil {
		return nil, err
	}
	digest := w.rulesDigest(sources)
	cache, err := w.loadCache(ctx, digest)
	if err != nil {
		return nil, err
	}
	if cache != nil && !opt.NoCaps && !opt.Rescan && arrived > 0 {
		if last := readStamp(lk.f); last.Began > arrived && last.Commit == cache.facts.Commit && cache.facts.Capture != nil {
			c := *cache.facts.Capture
			c.Stats = Stats{Reused: true}
			cache.close()
			return &c, nil
		}
	}
	cp, cache, err := w.scan(ctx, opt, cache, sources, digest)
	if w.forgetLast(); err == nil && w.held != nil {
		w.last = cache
	} else if cache != nil {
		defer cache.close()
	}
	if err != nil {
		return nil, err
	}
	cp.Stats.Took = time.Duration(bootNow() - began)
	writeStamp(lk.f, stamp{Began: began, Commit: cp.Commit})
	return cp, nil
}

// outerRules are the ignore rules outside the worktree.
func (w *Worktree) outerRules() ([]ignore.Source, error) {
	src := slices.Clone(w.opt.rules.global)
	if w.repo == nil {
		return src, nil
	}
	return readSource(src, w.repo.ExcludeFile())
}

// Shared keeps Collect from deleting anything until unlock is called. It waits
// while a Collect deletes, as long as ctx allows.
func (w *Worktree) Shared(ctx context.Context) (unlock func(), err error) {
	unlock, err = w.store.Shared(ctx)
	var locked *object.LockedError
	if errors.As(err, &locked) {
		return nil, &LockedError{What: "the store"}
	}
	return unlock, err
}
