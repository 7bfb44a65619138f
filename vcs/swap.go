package vcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// Swap carries out the steps by renames. If one fails, all that were done are
// taken back, in reverse, and the worktree is what it was.
func (s *Staged) Swap(ctx context.Context) error {
	crash.Point("restore.swap")
	for i := range s.steps {
		st := &s.steps[i]
		err := ctx.Err()
		if err == nil {
			err = s.do(st)
		}
		if err != nil {
			err = fmt.Errorf("restore %s: %w", st.change.Path, err)
			if rerr := s.Rollback(); rerr != nil {
				return fmt.Errorf("%w; and putting back what was there: %w", err, rerr)
			}
			return err
		}
		crash.Point("restore.swap.step")
	}
	s.closeWritable()
	if err := syncFS(s.w.rootfd); err != nil {
		return errors.Join(fmt.Errorf("sync %s: %w", s.w.root, err), s.Rollback())
	}
	crash.Point("restore.swapped")
	return nil
}

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
	if err := syncFS(s.w.rootfd); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
	name := strconv.Itoa(st.n)
	switch st.kind {
	case stepMkdir:
		err := unix.Mkdirat(fd, base, 0o700)
		if err == unix.EEXIST {
			var is fileStat
			if statName(fd, base, &is) == nil && is.isDir() {
				st.was = true // somebody made it meanwhile: not ours to remove
				return nil
			}
			if err := renameNew(fd, base, s.fd, name); err != nil {
				return err
			}
			st.odd = true // a file appeared there after the capture
			err = unix.Mkdirat(fd, base, 0o700)
		}
		return err
	case stepWrite:
		if st.change.Old.Kind == KindAbsent || st.was {
			err := renameNew(s.fd, name, fd, base)
			if err != unix.EEXIST {
				return err
			}
		}
		err := exchange(s.fd, name, fd, base)
		if err == unix.ENOENT { // it went away after the capture, or a directory made room
			return renameNew(s.fd, name, fd, base)
		}
		if err != nil {
			return err
		}
		st.was = true
		s.check(st, name)
		return nil
	case stepRemove:
		err := renameNew(fd, base, s.fd, name)
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
	name := strconv.Itoa(st.n)
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
			return renameNew(s.fd, name, fd, base)
		}
		return nil
	case stepWrite:
		if st.was {
			return exchange(s.fd, name, fd, base)
		}
		return renameNew(fd, base, s.fd, name)
	case stepRemove:
		if !st.was {
			return nil
		}
		return renameNew(s.fd, name, fd, base)
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

// check marks a step whose displaced file is not, by its stamps, the one the
// capture saw, nor, by its bytes, the content the plan expects.
func (s *Staged) check(st *step, name string) {
	var is fileStat
	if err := statName(s.fd, name, &is); err != nil {
		st.odd = true
		return
	}
	if e := s.seen(st.change.Path); e != nil && st.change.Old.ID == e.id.String() && e.flags&(flagRacy|flagTorn) == 0 &&
		e.ino == is.ino && e.size == is.size && e.mtime == is.mtime {
		return
	}
	id, err := s.hash(s.fd, name, &is)
	st.odd = err != nil || id.String() != st.change.Old.ID
}

// seen is what the newest capture knows about a path; nil when nothing.
func (s *Staged) seen(path string) *entry {
	if s.w.last == nil {
		return nil
	}
	if s.byPath == nil {
		s.byPath = make(map[string]*dirRec, len(s.w.last.dirs))
		for _, d := range s.w.last.dirs {
			if !d.gone {
				s.byPath[d.path] = d
			}
		}
	}
	dir, base := split(path)
	d := s.byPath[dir]
	if d == nil {
		return nil
	}
	if i, ok := d.find(base); ok {
		return &d.entries[i]
	}
	return nil
}

func (s *Staged) hash(fd int, name string, st *fileStat) (object.ID, error) {
	if st.isLink() {
		target, err := readLinkAt(fd, name, st.size)
		return object.Sum(object.Blob, target), err
	}
	if !st.isReg() {
		return object.ID{}, errors.New("not a regular file")
	}
	var f int
	err := retry(func() (err error) {
		f, err = unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return object.ID{}, err
	}
	defer unix.Close(f)
	if st.size < stream {
		buf := make([]byte, st.size+1)
		n, err := preader(f).ReadAt(buf, 0)
		if err != nil && err != io.EOF {
			return object.ID{}, err
		}
		return object.Sum(object.Blob, buf[:n]), nil
	}
	h := object.NewHasher()
	h.Reset(object.Blob, st.size)
	if _, err := io.Copy(h, io.NewSectionReader(preader(f), 0, st.size+1)); err != nil {
		return object.ID{}, err
	}
	return h.Sum(), nil
}

// Verify reads every path that was written and looks for every one that was
// removed. A path that is not what it should be takes the whole restore back:
// the error is a *VerifyError.
func (s *Staged) Verify(ctx context.Context) (verified int, err error) {
	crash.Point("restore.verify")
	for _, kind := range []stepKind{stepWrite, stepRemove, stepMkdir, stepChmod} {
		err := s.each(ctx, kind, func(st *step, _ *[]byte) error {
			if err := s.verify(st); err != nil {
				return &VerifyError{Path: st.change.Path, Err: err}
			}
			return nil
		})
		if err != nil {
			return 0, errors.Join(err, s.Rollback())
		}
	}
	for i := range s.steps {
		if s.steps[i].done {
			verified++
		}
	}
	crash.Point("restore.verified")
	return verified, nil
}

func (s *Staged) verify(st *step) error {
	dir, base := split(st.change.Path)
	fd, err := openDirAt(s.w.rootfd, dir)
	if st.kind == stepRemove && (err == unix.ENOENT || err == unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var is fileStat
	err = statName(fd, base, &is)
	to := st.change.New
	switch st.kind {
	case stepRemove:
		if to.Kind != KindAbsent || err == unix.ENOENT {
			return nil // a directory has taken its place, or nothing
		}
		if err == nil {
			return errors.New("is there again")
		}
		return err
	case stepMkdir:
		if err == nil && !is.isDir() {
			err = unix.ENOTDIR
		}
		return err
	}
	if err != nil {
		return err
	}
	if to.Kind != KindLink && is.perm() != to.Mode&0o7777 {
		return fmt.Errorf("has mode %04o instead of %04o", is.perm(), to.Mode&0o7777)
	}
	if st.kind == stepChmod {
		return nil
	}
	if is.isLink() != (to.Kind == KindLink) {
		return errors.New("is not the kind of file it should be")
	}
	id, err := s.hash(fd, base, &is)
	if err != nil {
		return err
	}
	if id != st.id {
		return errors.New("has other content")
	}
	return nil
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

// Restore makes the worktree what target says, by one held, captured, staged,
// swapped and verified move without a ledger. It returns the commit of the
// worktree as it was. Paths that target does not know the content of are left
// alone, as are ignored ones.
func (w *Worktree) Restore(ctx context.Context, target Commit) (before Commit, changed int, err error) {
	release, err := w.Hold(ctx)
	if err != nil {
		return "", 0, err
	}
	defer release()
	c, err := w.Capture(ctx, CaptureOptions{Sync: true, NoCaps: true})
	if err != nil {
		return "", 0, err
	}
	changes, err := w.Diff(ctx, c.Commit, target)
	if err != nil {
		return c.Commit, 0, err
	}
	changes, _ = Restorable(changes)
	s, err := w.Stage(ctx, strconv.Itoa(os.Getpid()), changes)
	if err != nil {
		return c.Commit, 0, err
	}
	defer s.Discard()
	if err := s.Swap(ctx); err != nil {
		return c.Commit, 0, err
	}
	n, err := s.Verify(ctx)
	return c.Commit, n, err
}

// Restorable splits changes into those that going from Old to New can carry out,
// and the rest: a content is not known, the path is ignored or kept off the
// disk on one side, or it belongs to a nested repository that only one side
// has. Changes are sorted by path, as Diff returns them.
func Restorable(changes []FileChange) (do, rest []FileChange) {
	passed := make(map[string]bool) // directories whose content is passed over
	for _, c := range changes {
		switch {
		case len(passed) > 0 && below(c.Path, passed):
			rest = append(rest, c)
		case c.Old.Kind == KindRepo && c.New.Kind != KindRepo && c.New.Kind != KindDir:
			passed[c.Path] = true
			rest = append(rest, c)
		case !known(c.Old) || !known(c.New):
			// What is in a directory that one side could not look into, or did
			// not, is not absent there.
			if !mayHold(c.Old) || !mayHold(c.New) {
				passed[c.Path] = true
			}
			rest = append(rest, c)
		case c.Old.Kind == KindDir && c.New.Kind == KindRepo && c.Old.Mode == c.New.Mode:
			rest = append(rest, c)
		case !c.Old.Is(c.New):
			do = append(do, c)
		}
	}
	return do, rest
}

// below tells that a path lies in one of dirs. Between "a" and "a/b" there may
// be an "a-b".
func below(path string, dirs map[string]bool) bool {
	for i := range len(path) {
		if path[i] == '/' && dirs[path[:i]] {
			return true
		}
	}
	return false
}

// mayHold tells that what is below a path is told by changes of its own.
func mayHold(s State) bool {
	return s.Kind == KindAbsent || s.Kind == KindDir || s.Kind == KindRepo
}

func known(s State) bool {
	switch s.Kind {
	case KindAbsent, KindFile, KindLink, KindDir, KindRepo:
		return !s.Ignored && !s.Sparse
	}
	return false
}
