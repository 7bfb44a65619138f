package vcs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/vcs/internal/object"
	"golang.org/x/sys/unix"
)

// check marks a step whose displaced file is not, by its stamps, the one the
// capture saw, nor, by its bytes, the content the plan expects.
func (s *Staged) check(st *step, name string) {
	var is fileStat
	if err := statName(st.at.fd, name, &is); err != nil {
		st.odd = true
		return
	}
	st.displaced = is
	if e := s.seen(st.change.Path); e != nil && st.change.Old.ID == e.id.String() && e.flags&(flagRacy|flagTorn) == 0 &&
		e.ino == is.ino && e.size == is.size && e.mtime == is.mtime {
		return
	}
	id, err := s.hash(st.at.fd, name, &is, new([]byte))
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

// hash is the id of a file's content. It is read into buf, which may grow.
func (s *Staged) hash(fd int, name string, st *fileStat, buf *[]byte) (object.ID, error) {
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
		data, err := readOnce(f, *buf, st.size)
		*buf = data
		return object.Sum(object.Blob, data), err
	}
	h := object.NewHasher()
	h.Reset(object.Blob, st.size)
	if _, err := io.Copy(h, io.NewSectionReader(preader(f), 0, st.size+1)); err != nil {
		return object.ID{}, err
	}
	return h.Sum(), nil
}

// readOnce reads a file that should have size bytes, into buf if that has room.
func readOnce(fd int, buf []byte, size int64) ([]byte, error) {
	if int64(cap(buf)) <= size {
		buf = make([]byte, size+1)
	}
	buf = buf[:size+1]
	for n := 0; ; {
		var m int
		err := retry(func() (err error) { m, err = unix.Pread(fd, buf[n:], int64(n)); return err })
		if err != nil {
			return buf[:0], err
		}
		if n += m; m == 0 || n == len(buf) || int64(n) == size { // at size it would have had one more to give
			return buf[:n], nil
		}
	}
}

// Verify reads every path that was written and looks for every one that was
// removed. A path that is not what it should be takes the whole restore back:
// the error is a *VerifyError, or a *RollbackError when that failed.
func (s *Staged) Verify(ctx context.Context) (verified int, err error) {
	crash.Point("restore.verify")
	err = each(ctx, s.w, s.steps, cores(), func(st *step, h *hand) error {
		if st.kind == stepRmdir {
			return nil
		}
		if err := s.verify(st, h); err != nil {
			return &VerifyError{Path: st.change.Path, Err: err}
		}
		return nil
	})
	if err != nil {
		return 0, s.TakeBack(err)
	}
	for i := range s.steps {
		if s.steps[i].done {
			verified++
		}
	}
	crash.Point("restore.verified")
	return verified, nil
}

func (s *Staged) verify(st *step, h *hand) error {
	fd, base, err := h.parent(st.change.Path)
	if st.kind == stepRemove && (err == unix.ENOENT || err == unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
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
	id, err := s.hash(fd, base, &is, &h.buf)
	if err != nil {
		return err
	}
	if id != st.id {
		return errors.New("has other content")
	}
	return nil
}

// VerifyError says that a path is not what it was made to be. The restore has
// been taken back.
type VerifyError struct {
	Path string
	Err  error // what is there instead
}

func (e *VerifyError) Error() string { return fmt.Sprintf("%s: %v after the restore", e.Path, e.Err) }

func (e *VerifyError) Unwrap() error { return e.Err }
