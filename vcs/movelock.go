package vcs

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// LockMove takes the lock that a move holds from before it looks until it is
// done. It does not wait for it: a *LockedError says who holds it, and since when. The
// lock dies with its process, so an open move whose lock is free is one whose
// process died. now is when the caller takes it, by its clock.
func (w *Worktree) LockMove(holder string, now time.Time) (unlock func(), err error) {
	path := w.lockPath("move")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		held := readHolder(f)
		if held.Holder != "" || tries == 100 {
			f.Close()
			return nil, held
		}
		time.Sleep(2 * time.Millisecond) // it has been taken this moment, and is not yet signed
	}
	// Who it is is a courtesy: that it could not be written keeps nobody out.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(oneLine(holder)+"\n"+now.UTC().Format(time.RFC3339Nano)+"\n"), 0)
	return func() { releaseFlock(f) }, nil
}

// readHolder is the refusal of a lock: the file holds a line with who has it,
// and one with since when.
func readHolder(f *os.File) *LockedError {
	b := make([]byte, 400)
	n, _ := f.ReadAt(b, 0) // nothing to read: nobody known
	holder, rest, _ := strings.Cut(string(b[:n]), "\n")
	since, _, _ := strings.Cut(rest, "\n")
	e := &LockedError{What: "the worktree", Holder: strings.TrimSpace(holder)}
	if t, err := time.Parse(time.RFC3339Nano, since); err == nil {
		e.Since = t
	}
	return e
}

// oneLine is a name that fits in its line of the lock's file.
func oneLine(s string) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	return string(runes[:min(len(runes), 80)])
}
