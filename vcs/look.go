package vcs

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/retcon-dev/retcon/vcs/internal/object"
	"golang.org/x/sys/unix"
)

// lookAll brings the entries [from, to) of d up to date.
func (s *scanner) lookAll(wk *worker, d *dirRec, fd int, from, to int) error {
	var st fileStat
	wk.tracked.dir = nil
	n, at := 0, wk.roams.to(fd)
	for i := from; i < to; i++ {
		e := &d.entries[i]
		switch e.class {
		case classFile, classLink, classIgnoredFile, classSpecial:
		case classSkipped:
			if e.reason == Reserved {
				continue
			}
		default:
			continue
		}
		n++
		if err := statAt(at, d.cname(e), &st); err != nil {
			if err == unix.ENOENT {
				s.missing(d, e)
				continue
			}
			return &os.PathError{Op: "stat", Path: s.abs(join(d.path, string(d.name(e)))), Err: err}
		}
		if e.sameStat(&st) && e.flags&(flagRacy|flagTorn) == 0 && (e.class != classSkipped || e.reason == TooLarge && !s.noCaps) {
			continue
		}
		if err := s.look(wk, d, fd, e, &st); err != nil {
			return err
		}
	}
	if len(wk.seeds) > 0 {
		if err := s.sow(wk, d, fd); err != nil {
			return err
		}
	}
	if total := s.counts.stated.Add(int64(n)); s.progress != nil {
		s.progress(int(total))
	}
	return nil
}

// missing notes that e is not there any more although its directory was listed.
func (s *scanner) missing(d *dirRec, e *entry) {
	e.class = classGone
	d.changed.Store(true)
	d.touched.Store(true)
	d.stale.Store(true)
	s.again.Store(true)
}

// look reads what is behind an entry whose stamps are new.
func (s *scanner) look(wk *worker, d *dirRec, fd int, e *entry, st *fileStat) error {
	d.touched.Store(true)
	ignored := e.class == classIgnoredFile
	switch {
	case st.isDir(): // a file became a directory after the listing
		s.missing(d, e)
		return nil
	case st.isLink():
		if ignored {
			*e = entry{nameOff: e.nameOff, nameLen: e.nameLen, class: classIgnored, child: -1}
			d.changed.Store(true)
			return nil
		}
		return s.lookLink(d, fd, e, st)
	case !st.isReg():
		if e.class != classSpecial || e.mode != st.mode {
			d.changed.Store(true)
		}
		e.class, e.id = classSpecial, object.ID{}
		e.setStat(st)
		e.flags &^= flagRacy
		return nil
	}
	limit := s.opt.MaxFile
	if ignored {
		limit = s.opt.IgnoredMax
	}
	if st.size > limit && !(s.noCaps && !ignored) {
		if ignored && string(d.name(e)) != ".gitignore" {
			*e = entry{nameOff: e.nameOff, nameLen: e.nameLen, class: classIgnored, child: -1}
			d.changed.Store(true)
			return nil
		}
		s.skip(d, e, st, TooLarge)
		return nil
	}
	if !ignored && s.fresh && e.mtime == 0 && e.class == classFile {
		if id, ok := s.vouched(wk, d, e, st); ok {
			wk.seeds, wk.blobs = append(wk.seeds, seed{e, *st}), append(wk.blobs, object.HeaderOf{ID: id})
			return nil
		}
	}
	return s.lookFile(wk, d, fd, e)
}

func (s *scanner) skip(d *dirRec, e *entry, st *fileStat, why Reason) {
	if e.class != classSkipped || e.reason != why || e.size != st.size || e.mtime != st.mtime || e.mode != st.mode {
		d.changed.Store(true)
	}
	e.class, e.reason, e.id = classSkipped, why, object.ID{}
	e.setStat(st)
	e.flags &^= flagRacy | flagTorn
}

func (s *scanner) lookLink(d *dirRec, fd int, e *entry, st *fileStat) error {
	target, err := readLinkAt(fd, string(d.name(e)), st.size)
	if err == unix.ENOENT || err == unix.EINVAL {
		s.missing(d, e)
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "readlink", Path: s.abs(join(d.path, string(d.name(e)))), Err: err}
	}
	id := object.Sum(object.Blob, target)
	if e.class != classLink || e.id != id {
		if err := s.writer.AddHashed(id, object.Blob, target); err != nil {
			return err
		}
		d.changed.Store(true)
	}
	e.class, e.reason, e.id = classLink, Captured, id
	e.setStat(st)
	e.flags &^= flagRacy | flagTorn | flagExec
	if s.racy(st) {
		e.flags |= flagRacy
	}
	s.counts.hashed.Add(1)
	return nil
}

// lookFile reads a regular file, again while it changes under the reading.
func (s *scanner) lookFile(wk *worker, d *dirRec, dirfd int, e *entry) error {
	name := string(d.name(e))
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	var st fileStat
	switch err {
	case nil:
	case unix.ENOENT, unix.ELOOP, unix.ENXIO:
		s.missing(d, e)
		return nil
	case unix.EACCES, unix.EPERM, unix.EIO, unix.ETXTBSY:
		if err := statAt(dirfd, d.cname(e), &st); err != nil {
			s.missing(d, e)
			return nil
		}
		s.skip(d, e, &st, Unreadable)
		return nil
	default:
		return &os.PathError{Op: "open", Path: s.abs(join(d.path, name)), Err: err}
	}
	defer unix.Close(fd)
	for try := 0; ; try++ {
		if err := statFd(fd, &st); err != nil {
			return &os.PathError{Op: "stat", Path: s.abs(join(d.path, name)), Err: err}
		}
		id, err := s.readFile(wk, fd, &st, e)
		if err != nil {
			if errors.Is(err, unix.EIO) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EISDIR) {
				s.skip(d, e, &st, Unreadable)
				return nil
			}
			if !errors.Is(err, errMoved) {
				return fmt.Errorf("read %s: %w", s.abs(join(d.path, name)), err)
			}
		}
		var after fileStat
		if serr := statFd(fd, &after); serr != nil {
			return &os.PathError{Op: "stat", Path: s.abs(join(d.path, name)), Err: serr}
		}
		moved := err != nil || after.mtime != st.mtime || after.ctime != st.ctime || after.size != st.size
		if moved && try < 3 {
			continue
		}
		if err != nil { // it grew or shrank every time: there is no content to keep
			s.skip(d, e, &after, Changing)
			return nil
		}
		s.counts.hashed.Add(1)
		s.counts.bytes.Add(after.size)
		s.keep(d, e, &after, id, moved)
		return nil
	}
}

var errMoved = errors.New("changed while it was read")

// stream is the size from which a file is not held in memory.
const stream = 4 << 20

// readFile hashes the open file and adds it to the pack unless it is what we
// have. It fails with errMoved when the file does not have st.size bytes.
func (s *scanner) readFile(wk *worker, fd int, st *fileStat, e *entry) (object.ID, error) {
	if st.size >= stream {
		return s.readLarge(fd, st, e)
	}
	if int64(cap(wk.read)) <= st.size {
		wk.read = make([]byte, max(st.size+1, 256<<10))
	}
	data, err := readOnce(fd, wk.read, st.size)
	if err != nil {
		return object.ID{}, err
	}
	if int64(len(data)) != st.size {
		return object.ID{}, errMoved
	}
	id := object.Sum(object.Blob, data)
	if id == e.id {
		return id, nil
	}
	if s.writer.Had(id) {
		return id, nil
	}
	return id, s.writer.AddHashed(id, object.Blob, data)
}

func (s *scanner) readLarge(fd int, st *fileStat, e *entry) (object.ID, error) {
	section := func() io.Reader { return io.NewSectionReader(preader(fd), 0, st.size+1) }
	h := object.NewHasher()
	h.Reset(object.Blob, st.size)
	n, err := io.CopyBuffer(h, io.LimitReader(section(), st.size+1), make([]byte, 256<<10))
	if err != nil {
		return object.ID{}, err
	}
	if n != st.size {
		return object.ID{}, errMoved
	}
	id := h.Sum()
	if id == e.id || s.writer.Had(id) {
		return id, nil
	}
	got, err := s.writer.AddStream(st.size, section())
	if errors.Is(err, object.ErrChanged) || err == nil && got != id {
		return id, errMoved
	}
	return id, err
}

// preader reads a descriptor at an offset.
type preader int

func (p preader) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		var m int
		err := retry(func() (err error) { m, err = unix.Pread(int(p), b[n:], off+int64(n)); return err })
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}

// keep notes the content of a file.
func (s *scanner) keep(d *dirRec, e *entry, st *fileStat, id object.ID, torn bool) {
	exec := st.mode&0o100 != 0
	if s.noExec {
		exec = e.flags&flagExec != 0
	}
	was := *e
	if e.class != classIgnoredFile {
		e.class = classFile
	}
	e.reason, e.id = Captured, id
	e.setStat(st)
	e.flags &^= flagRacy | flagTorn | flagExec
	if exec {
		e.flags |= flagExec
	}
	if torn {
		e.flags |= flagTorn
	}
	if s.racy(st) {
		e.flags |= flagRacy
	}
	if was.class != e.class || was.id != id || was.mode != e.mode || (was.flags^e.flags)&(flagExec|flagTorn) != 0 {
		d.changed.Store(true)
	}
}

// racy tells that st is too close to the scan to be trusted next time: a write
// after our read could leave the same stamps. The rule is git's ("racy git"),
// with the change time as well, since the modification time can be set back.
func (s *scanner) racy(st *fileStat) bool {
	margin := int64(0)
	if st.mtime%1e9 == 0 && st.ctime%1e9 == 0 {
		margin = 2e9 // a filesystem that stamps whole seconds
	}
	return st.newest() >= s.start-margin
}
