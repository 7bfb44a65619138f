//go:build unix

package ledger

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockName is the file beside the ledger in which writers queue. SQLite's own
// lock is polled with growing sleeps, which starves the unlucky for seconds
// when many processes write; this one wakes the next at once.
const lockName = "write.lock"

// lockWriters waits until this call alone holds the write lock, as long as
// patience allows, and returns the function that lets go. Calls that overlap
// have the file open on their own, so that callers in one process exclude each
// other as processes do.
func (db *DB) lockWriters(ctx context.Context, patience time.Duration) (unlock func(), err error) {
	path := filepath.Join(filepath.Dir(db.path), lockName)
	f := db.idleLock.Swap(nil)
	if f == nil {
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, err
		}
	}
	unlock = func() { db.release(f) }
	switch err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err {
	case nil:
		return unlock, nil
	case unix.EWOULDBLOCK:
	default:
		f.Close()
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}

	got := make(chan error, 1)
	go func() { got <- flock(f, unix.LOCK_EX) }()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case err := <-got:
		if err != nil {
			f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
		return unlock, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = &LockedError{Resource: path}
	}
	go func() { <-got; db.release(f) }() // the wait can't be called off, only given back
	return nil, err
}

// release gives the lock back, and keeps one file for the next who asks. Closing
// alone would not do while a child that is just being started still has a copy
// of the descriptor.
func (db *DB) release(f *os.File) {
	err := flock(f, unix.LOCK_UN)
	if err == nil && !db.closed.Load() && db.idleLock.CompareAndSwap(nil, f) {
		if db.closed.Load() {
			db.closeLock()
		}
		return
	}
	f.Close() // which gives it back, whatever kept the other way from it
}

// closeLock closes the file that is kept.
func (db *DB) closeLock() {
	if f := db.idleLock.Swap(nil); f != nil {
		f.Close()
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
