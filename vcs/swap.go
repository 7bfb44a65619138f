package vcs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
)

// RollbackError says that a restore failed and could not be wholly taken back:
// the worktree is neither what it was nor what it was to become. What was
// displaced is still in the stage, which must not be discarded.
type RollbackError struct {
	Cause error // why it had to be taken back
	Err   error // why it could not be
}

func (e *RollbackError) Error() string {
	return fmt.Sprintf("%v; and what was there could not all be put back: %v", e.Cause, e.Err)
}
func (e *RollbackError) Unwrap() []error { return []error{e.Cause, e.Err} }

// TakeBack rolls back because of cause, which it returns, or a *RollbackError.
func (s *Staged) TakeBack(cause error) error {
	if err := s.Rollback(); err != nil {
		return &RollbackError{Cause: cause, Err: err}
	}
	return cause
}

// Swap carries out the steps by renames. If one fails, all that were done are
// taken back, in reverse, and the worktree is what it was, unless the error is
// a *RollbackError. Until Settle a power cut can take any of the renames.
func (s *Staged) Swap(ctx context.Context) error {
	crash.Point("restore.swap")
	for rest := s.steps; len(rest) > 0; {
		writes := slices.IndexFunc(rest, func(st step) bool { return st.kind != stepWrite })
		if writes < 0 {
			writes = len(rest)
		}
		if writes >= crowd {
			if err := s.doWrites(ctx, rest[:writes]); err != nil {
				return s.TakeBack(err)
			}
		}
		for i := range rest[:max(writes, 1)] {
			st := &rest[i]
			if st.done {
				continue
			}
			err := ctx.Err()
			if err == nil {
				err = s.do(st)
			}
			if err != nil {
				return s.TakeBack(fmt.Errorf("restore %s: %w", st.change.Path, err))
			}
			crash.Point("restore.swap.step")
		}
		rest = rest[max(writes, 1):]
	}
	s.closeWritable()
	crash.Point("restore.swapped")
	return nil
}

// Settle puts what is there now on disk, and gives up what was displaced: it is
// removed, or stays where SweepDisplaced finds it. After it nothing can be taken
// back. Call it when the worktree is as it should be, and what had to be rescued is
// in the store.
//
// Removing does not wait for the disk: what is displaced is in the capture that the
// move began with, and that one is on disk.
//
// The error is a *RollbackError: it is not known what a power cut would leave.
func (s *Staged) Settle() error {
	synced := make(chan error, 1)
	go func() {
		s.awaitEarly()
		synced <- s.sync()
	}()
	if !s.keepsDisplaced() {
		s.empty()
	}
	s.settled = true
	crash.Point("restore.emptied")
	if err := <-synced; err != nil {
		return &RollbackError{Cause: err, Err: errors.New("it is removed")}
	}
	crash.Point("restore.settled")
	return nil
}

// syncEarly begins to write to disk what is staged, while it is swapped in and
// verified, when that is much: Settle then has little left to wait for.
func (s *Staged) syncEarly() {
	if len(s.steps) < crowd {
		return
	}
	s.early = make(chan struct{})
	go func() {
		defer close(s.early)
		_ = s.sync() // Settle's says what is wrong
	}()
}

func (s *Staged) awaitEarly() {
	if s.early != nil {
		<-s.early
	}
}

// testOnlySync stands for syncFS.
var testOnlySync func(fd int) error

// Rollback takes back every step that was done, the last first.
func (s *Staged) Rollback() error {
	var errs []error
	for i := len(s.steps) - 1; i >= 0; i-- {
		st := &s.steps[i]
		if !st.done {
			continue
		}
		if err := s.undo(st); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", st.change.Path, err))
			continue
		}
		st.done = false
		crash.Point("restore.rollback.step")
	}
	s.closeWritable()
	s.awaitEarly()
	return errors.Join(append(errs, s.sync())...)
}

// sync puts what was renamed on disk, in every mount.
func (s *Staged) sync() error {
	sync := syncFS
	if testOnlySync != nil {
		sync = testOnlySync
	}
	if err := sync(s.w.rootfd); err != nil {
		return fmt.Errorf("sync %s: %w", s.w.root, err)
	}
	for _, f := range s.folders {
		if f.mount == "" {
			continue
		}
		if err := sync(f.fd); err != nil {
			return fmt.Errorf("sync %s: %w", f.mount, err)
		}
	}
	return nil
}

// parent is an open descriptor of the directory a path lies in.
func (s *Staged) parent(path string) (int, string, error) {
	dir, base := split(path)
	if fd, ok := s.dirs[dir]; ok {
		return fd, base, nil
	}
	if len(s.dirs) >= 128 {
		s.closeDirs()
	}
	fd, err := openDirAt(s.w.rootfd, dir)
	if err != nil {
		return -1, base, err
	}
	s.dirs[dir] = fd
	return fd, base, nil
}

// forget closes descriptors of path and of what lies below it: it is about to
// be something else.
func (s *Staged) forget(path string) {
	for dir, fd := range s.dirs {
		if dir == path || len(dir) > len(path) && dir[:len(path)] == path && dir[len(path)] == '/' {
			unix.Close(fd)
			delete(s.dirs, dir)
		}
	}
}

// writable lends us the right to write in a directory of ours that denies it.
func (s *Staged) writable(path string, err error) bool {
	if err != unix.EACCES && err != unix.EPERM {
		return false
	}
	dir, _ := split(path)
	if _, ok := s.opened[dir]; ok {
		return false
	}
	fd, _, perr := s.parent(path)
	var st fileStat
	if perr != nil || statFd(fd, &st) != nil || st.mode&0o200 != 0 {
		return false
	}
	if unix.Fchmod(fd, st.perm()|0o700) != nil {
		return false
	}
	s.opened[dir] = st.perm()
	return true
}

// closeWritable gives back the bits that writable took, unless a step set them.
func (s *Staged) closeWritable() {
	for dir, perm := range s.opened {
		if fd, err := openDirAt(s.w.rootfd, dir); err == nil {
			var st fileStat
			if statFd(fd, &st) == nil && st.perm() == perm|0o700 {
				_ = unix.Fchmod(fd, perm) // Verify sees it if it matters
			}
			unix.Close(fd)
		}
		delete(s.opened, dir)
	}
}

// crowd is how many files are swapped in at once, on all cores. Their order does
// not matter: directories are made before, and go after.
const crowd = 64

// doWrites does steps, but for those that need a right lent first.
func (s *Staged) doWrites(ctx context.Context, steps []step) error {
	s.seen("") // makes what all of them look up
	var one sync.Mutex
	return each(ctx, s.w, steps, cores(), func(st *step, h *hand) error {
		fd, base, err := h.parent(st.change.Path)
		if err == nil {
			err = s.doIn(st, fd, base)
		}
		switch err {
		case nil:
			st.done = true
			if crash.Hook != nil { // it need not bear being called twice at once
				one.Lock()
				defer one.Unlock()
				crash.Point("restore.swap.step")
			}
			return nil
		case unix.EACCES, unix.EPERM:
			return nil
		}
		return fmt.Errorf("restore %s: %w", st.change.Path, err)
	})
}

func (s *Staged) do(st *step) error {
	for {
		fd, base, err := s.parent(st.change.Path)
		if err == nil {
			err = s.doIn(st, fd, base)
		}
		if err == nil {
			st.done = true
			return nil
		}
		if !s.writable(st.change.Path, err) {
			return err
		}
	}
}

func (s *Staged) doIn(st *step, fd int, base string) error {
	name := st.name
	switch st.kind {
	case stepMkdir:
		err := unix.Mkdirat(fd, base, 0o700)
		if err == unix.EEXIST {
			var is fileStat
			if statName(fd, base, &is) == nil && is.isDir() {
				st.was = true // somebody made it meanwhile: not ours to remove
				return nil
			}
			if err := renameNew(fd, base, st.at.fd, name); err != nil {
				return err
			}
			st.odd = true // a file appeared there after the capture
			err = unix.Mkdirat(fd, base, 0o700)
		}
		return err
	case stepWrite:
		if st.change.Old.Kind == KindAbsent || st.was {
			err := renameNew(st.at.fd, name, fd, base)
			if err != unix.EEXIST {
				return err
			}
		}
		err := exchange(st.at.fd, name, fd, base)
		if err == unix.ENOENT { // it went away after the capture, or a directory made room
			return renameNew(st.at.fd, name, fd, base)
		}
		if err != nil {
			return err
		}
		st.was = true
		s.check(st, name)
		return nil
	case stepRemove:
		err := renameNew(fd, base, st.at.fd, name)
		if err == unix.ENOENT {
			return nil
		}
		if err != nil {
			return err
		}
		st.was = true
		s.check(st, name)
		return nil
	case stepRmdir:
		s.forget(st.change.Path)
		var was fileStat
		if err := statName(fd, base, &was); err != nil {
			if err == unix.ENOENT {
				return nil
			}
			return err
		}
		err := unix.Unlinkat(fd, base, unix.AT_REMOVEDIR)
		switch err {
		case nil:
			st.was, st.mode = true, was.perm()
		case unix.ENOENT:
		case unix.ENOTEMPTY, unix.EEXIST:
			if st.change.New.Kind == KindFile || st.change.New.Kind == KindLink {
				return fmt.Errorf("the directory holds files that were not captured: %w", err)
			}
			s.kept = append(s.kept, st.change.Path)
		case unix.EBUSY: // something is mounted there
			s.kept = append(s.kept, st.change.Path)
		case unix.ENOTDIR: // became a file since: somebody else's
			s.kept = append(s.kept, st.change.Path)
		default:
			return err
		}
		return nil
	default: // stepChmod
		var was fileStat
		if err := statName(fd, base, &was); err != nil {
			return err
		}
		if was.isLink() {
			return unix.ELOOP
		}
		st.mode, st.was = was.perm(), true
		return chmodAt(fd, base, st.change.New.Mode&0o7777)
	}
}

func (s *Staged) undo(st *step) error {
	fd, base, err := s.parent(st.change.Path)
	if err != nil {
		return err
	}
	name := st.name
	switch st.kind {
	case stepMkdir:
		if st.was {
			return nil
		}
		s.forget(st.change.Path)
		if err := unix.Unlinkat(fd, base, unix.AT_REMOVEDIR); err != nil && err != unix.ENOTEMPTY {
			return err
		}
		if st.odd {
			return renameNew(st.at.fd, name, fd, base)
		}
		return nil
	case stepWrite:
		if st.was {
			return exchange(st.at.fd, name, fd, base)
		}
		return renameNew(fd, base, st.at.fd, name)
	case stepRemove:
		if !st.was {
			return nil
		}
		return renameNew(st.at.fd, name, fd, base)
	case stepRmdir:
		if !st.was {
			return nil
		}
		if err := unix.Mkdirat(fd, base, 0o700); err != nil && err != unix.EEXIST {
			return err
		}
		return chmodAt(fd, base, st.mode)
	default:
		return chmodAt(fd, base, st.mode)
	}
}

// chmodAt sets permission bits without following a link.
func chmodAt(dirfd int, name string, mode uint32) error {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	if err == unix.EACCES { // a file its owner may not read
		return unix.Fchmodat(dirfd, name, mode, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, mode)
}
