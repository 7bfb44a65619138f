package vcs

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// writersPatience is for how many milliseconds, all in all, writers are waited
// for who have a file open that was displaced.
var writersPatience int64 = 1000

// awaitWriters makes sure that the files in the stage are as they will stay.
// Whoever had one open when it was displaced may go on writing into it, as an
// editor between opening and closing. They are waited for, and what was written
// since the file was looked at is seen. Nobody opens one anew: it has no name in
// the worktree. Who goes on for longer, as a program does with its log, is not
// waited for: the file stays among what was displaced, and SweepDisplaced finds
// what was written to it.
func (s *Staged) awaitWriters(ctx context.Context) error {
	var waited atomic.Int64
	return each(ctx, s.w, s.steps, cores(), func(st *step, _ *hand) error {
		if st.at == nil || st.kind == stepRmdir || st.kind == stepChmod || st.done && !st.was {
			return nil // nothing of it is in the stage
		}
		name := st.name
		if st.at.fd >= 0 {
			s.awaitWriter(st, st.at.fd, name, &waited)
			return nil
		}
		for _, name := range []string{name, name + displacedSuffix} { // of a crash: only its path is known
			s.awaitWriter(st, unix.AT_FDCWD, filepath.Join(st.at.dir, name), &waited)
		}
		return nil
	})
}

func (s *Staged) awaitWriter(st *step, dirfd int, name string, waited *atomic.Int64) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return // it is not there, is a link, or can't be read: then what check saw has to do
	}
	defer unix.Close(fd)
	for beingWritten(fd) {
		if waited.Add(1) > writersPatience {
			st.odd = true // as far as it has come
			return
		}
		time.Sleep(time.Millisecond)
	}
	if st.odd || !st.done {
		return // it is read anyway
	}
	// Displacing it has set its ctime: what is written later is not older.
	var is fileStat
	if statFd(fd, &is) == nil && is.size == st.displaced.size && is.mtime == st.displaced.mtime && is.mtime < st.displaced.ctime {
		return
	}
	id, err := s.hash(dirfd, name, &is, new([]byte))
	st.odd = err != nil || id.String() != st.change.Old.ID
}
