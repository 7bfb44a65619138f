//go:build unix

package vcs

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileLock is an flock on a file of ours: it dies with its holder.
type fileLock struct{ f *os.File }

// lockFile waits for the exclusive lock on path as long as ctx allows.
func lockFile(ctx context.Context, path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &fileLock{f}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return l, nil
	}
	// A blocking flock wakes at once, in turn, but cannot be given up: it runs
	// beside us, and releases what it may still get after we have left.
	got := make(chan error, 1)
	go func() { got <- retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }) }()
	wait, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	select {
	case err := <-got:
		if err != nil {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		return l, nil
	case <-wait.Done():
		go func() { <-got; releaseFlock(f) }()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &LockedError{What: "the worktree"}
	}
}

// lockPatience bounds the wait for a lock: longer than the longest capture.
const lockPatience = 10 * time.Minute

func (l *fileLock) unlock() { releaseFlock(l.f) }

// releaseFlock gives a lock back and closes its file. Closing alone would not do
// while a child that is just being started still has a copy of the descriptor.
func releaseFlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // the close below would say what is wrong
	f.Close()
}

// stamp is what the last holder of the capture lock left in the lock file.
type stamp struct {
	Began  int64  `json:"began"` // since boot; after a reboot it is in the future or means nothing
	Boot   string `json:"boot"`
	Commit Commit `json:"commit"`
}

func readStamp(f *os.File) stamp {
	b := make([]byte, 256)
	n, _ := f.ReadAt(b, 0) // nothing to read: no stamp
	var s stamp
	if json.Unmarshal(b[:n], &s) != nil || s.Boot != bootID() {
		return stamp{}
	}
	return s
}

func writeStamp(f *os.File, s stamp) {
	s.Boot = bootID()
	b, err := json.Marshal(s)
	if err != nil {
		return
	}
	// A stamp that cannot be written only costs somebody a scan.
	if _, err := f.WriteAt(b, 0); err == nil {
		_ = f.Truncate(int64(len(b)))
	}
}
