package object

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The lock between those who rely on objects and the one who deletes them is
// a flock on gc.lock. Its first eight bytes count the deletions, so that a
// process knows when what it remembers may be gone.
const lockName = "gc.lock"

// Shared takes the shared lock: until unlock, no object that is here is
// deleted. Hold it from before the first Has of a capture until the
// checkpoint is recorded where Repack's roots come from. It waits while a
// repack is deleting, no longer than ctx allows; then the error is a
// *LockedError.
func (s *Store) Shared(ctx context.Context) (unlock func(), err error) {
	f, err := s.lock(ctx, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	stale := s.gen != readGeneration(s.dir)
	s.mu.Unlock()
	if set := s.cur.Load(); stale && set != nil {
		s.rescan(set)
	}
	return func() { release(f) }, nil
}

// sharedWait is Shared for those who were given no context.
func (s *Store) sharedWait() (unlock func(), err error) {
	wait := s.LockWait
	if wait == 0 {
		wait = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return s.Shared(ctx)
}

// Generation counts the repacks that have deleted something. Whoever
// remembers that an object is here must forget it when the number has
// changed.
func (s *Store) Generation() uint64 { return readGeneration(s.dir) }

func (s *Store) lock(ctx context.Context, how int) (*os.File, error) {
	if s.dir == "" {
		return nil, ErrReadOnly
	}
	return flock(ctx, filepath.Join(s.dir, lockName), how)
}

// flock opens path and locks it, trying again until ctx is done.
func flock(ctx context.Context, path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 10*time.Millisecond) {
		err := flockNow(f, how)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("%w: %w", &LockedError{Path: path}, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// release gives a lock back and closes its file. Closing alone would not do
// while a child that is just being started still has a copy of the descriptor.
func release(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // nothing to do about it: the close comes next
	f.Close()
}

// flockNow takes the lock or returns EWOULDBLOCK.
func flockNow(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func readGeneration(dir string) uint64 {
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return 0 // no repack ever ran
	}
	defer f.Close()
	var b [8]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return 0 // the same
	}
	return binary.BigEndian.Uint64(b[:])
}

// bumpGeneration is called with the exclusive lock, before the first
// deletion.
func bumpGeneration(f *os.File) error {
	var b [8]byte
	_, _ = f.ReadAt(b[:], 0) // empty the first time
	binary.BigEndian.PutUint64(b[:], binary.BigEndian.Uint64(b[:])+1)
	if _, err := f.WriteAt(b[:], 0); err != nil {
		return fmt.Errorf("count the repack: %w", err)
	}
	return f.Sync()
}
