package vcs

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// LockMove takes the lock that a move holds from before it looks until it is
// done. It does not wait: a *LockedError says who holds it. The lock dies with
// its process, so an open move whose lock is free is one whose process died.
func (w *Worktree) LockMove(holder string) (unlock func(), err error) {
	path := w.lockPath("move")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		b := make([]byte, 200)
		n, _ := f.ReadAt(b, 0) // who it is is a courtesy
		return nil, &LockedError{What: "the worktree", Holder: strings.TrimSpace(string(b[:n]))}
	}
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(holder+"\n"), 0)
	return func() { releaseFlock(f) }, nil
}
