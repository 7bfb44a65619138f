package object

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RepackOptions says what to keep. Roots is required.
type RepackOptions struct {
	// Roots yields every tree and commit that must stay, newest first, and
	// returns the error of yield. It is called twice: to find what to pack,
	// and again when nobody is between writing and recording.
	Roots func(yield func(ID) error) error

	// Absent tells objects that were never here, as those a partial clone
	// left at its remote. Any other that is missing stops the repack.
	Absent func(ID) bool

	// Full also packs anew what an earlier repack has packed.
	Full bool

	// FreeSpace returns the bytes free where the store is; nil is not to ask.
	FreeSpace func() int64

	// Progress is told what is done, in objects; total is 0 when unknown.
	Progress func(stage string, done, total int)

	// Crash is called at each step with its name, so that a test can die
	// there.
	Crash func(name string)
}

// RepackStats says what a Repack did.
type RepackStats struct {
	Live         int // objects reached
	Packed       int // of them, written anew
	Deltas       int // of those, as deltas
	Bytes        int64
	PacksRemoved int
	PacksKept    int
	LooseRemoved int
	Freed        int64 // bytes of files removed that nobody else has
}

// keepAbove is the size of a pack which is kept, when it is mostly alive,
// rather than written anew. Tests lower it.
var keepAbove int64 = 64 << 20

// Repack writes what the roots reach into one pack, small, and removes the
// rest. Packs shared with the user's repository cost nothing and stay while a
// tenth of them is alive; large ones that are mostly alive stay too.
//
// If anything reachable cannot be read, nothing is removed: the error says
// what. One repack runs at a time, the second gets a *LockedError. Readers
// and writers go on meanwhile; for the removal it waits, as long as ctx
// allows, until no shared lock is held. A process that dies at any moment
// loses nothing; the next repack removes what it left.
func (s *Store) Repack(ctx context.Context, opt RepackOptions) (RepackStats, error) {
	if s.dir == "" {
		return RepackStats{}, ErrReadOnly
	}
	if opt.Crash == nil {
		opt.Crash = func(string) {}
	}
	one, err := os.OpenFile(filepath.Join(s.dir, "repack.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return RepackStats{}, fmt.Errorf("repack: %w", err)
	}
	defer release(one)
	if err := flockNow(one, unix.LOCK_EX); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return RepackStats{}, &LockedError{Path: one.Name()}
		}
		return RepackStats{}, fmt.Errorf("repack: %w", err)
	}
	r := &repacker{s: s, opt: opt, mark: newMarker(s, opt)}
	if err := r.run(ctx); err != nil {
		return r.stats, fmt.Errorf("repack: %w", err)
	}
	return r.stats, nil
}

// A repacker is one run. What was there when it began is in packs and loose;
// nothing else is ever removed.
type repacker struct {
	s     *Store
	opt   RepackOptions
	mark  *marker
	stats RepackStats

	packs   []*oldPack
	loose   map[ID]looseInfo
	pending []string // of dead processes
	made    []string // packs written, without suffix
}

type oldPack struct {
	*pack
	size   int64
	shared bool // with somebody's repository
	ours   bool // made by an earlier repack
	live   int
	bytes  int64 // of live objects
	keep   bool
}

type looseInfo struct {
	path   string
	size   int64
	shared bool
}

func (r *repacker) run(ctx context.Context) error {
	if err := r.survey(); err != nil {
		return err
	}
	if err := r.mark.all(ctx, r.opt.Roots); err != nil {
		return err
	}
	r.opt.Crash("marked")
	if err := r.judge(); err != nil {
		return err
	}
	if err := r.pack(ctx, r.homeless()); err != nil {
		return err
	}
	r.opt.Crash("packed")

	lock, err := r.s.lock(ctx, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer release(lock)
	r.opt.Crash("locked")
	r.s.rescan(r.s.cur.Load())
	if err := r.mark.all(ctx, r.opt.Roots); err != nil {
		return err
	}
	if late := r.homeless(); len(late) > 0 {
		if err := r.pack(ctx, late); err != nil {
			return err
		}
		r.opt.Crash("late")
	}
	r.stats.Live = len(r.mark.nodes)
	return r.sweep(lock)
}
