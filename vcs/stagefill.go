package vcs

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// fill writes the new content of every path to the stage, on all cores.
func (s *Staged) fill(ctx context.Context) error {
	return each(ctx, s.w, s.steps, cores(), func(st *step, h *hand) error {
		switch {
		case st.kind != stepWrite:
			return nil
		case st.change.New.Kind == KindLink:
			_, target, err := s.w.store.ReadVerified(st.id, h.buf)
			if err != nil {
				return fmt.Errorf("%s: %w", st.change.Path, err)
			}
			return unix.Symlinkat(string(target), st.at.fd, st.name)
		}
		err := s.write(st, h)
		if err != nil {
			return fmt.Errorf("stage %s: %w", st.change.Path, err)
		}
		return nil
	})
}

// write makes a file in the stage. It gets its name there last: until then it
// has none, and is made in the directory it is for, from which it inherits what
// that hands down, and whose files a filesystem keeps together.
func (s *Staged) write(st *step, h *hand) error {
	parent, base, err := h.parent(st.change.Path)
	if err != nil {
		parent = -1 // it is yet to be made
	}
	fd, unnamed, err := s.create(st, h, parent)
	if err != nil {
		return err
	}
	if err = s.w.writeBlob(fd, st.id, &h.buf); err == nil {
		err = s.dress(st, fd, parent, base)
	}
	if err == nil && unnamed && nameUnnamed(fd, st.at.fd, st.name) != nil {
		unix.Close(fd)
		h.named = true
		return s.write(st, h)
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	return err
}

// create makes the file of a step, without a name when that can be had.
func (s *Staged) create(st *step, h *hand, parent int) (fd int, unnamed bool, err error) {
	if !h.named {
		if fd, err = s.make(st, h, parent); err == nil {
			return fd, true, nil
		}
	}
	name := st.name
	err = retry(func() (err error) {
		fd, err = unix.Openat(st.at.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
		return err
	})
	if err != nil {
		err = &os.PathError{Op: "create", Path: name, Err: err}
	}
	return fd, false, err
}

// make makes a file without a name: in the directory it is for, or in a room of
// the stage when there is none yet, or when that is slow and makes no difference.
func (s *Staged) make(st *step, h *hand, parent int) (int, error) {
	room, dirfd := st.at.rooms.newest(), parent
	if parent < 0 || room != nil && !h.handsDown(parent, st.at) {
		if dirfd = st.at.fd; room != nil {
			dirfd = room.fd
		}
	}
	began := bootNow()
	fd, err := openUnnamed(dirfd, st.change.New.Mode&0o777)
	if err == nil && (room == nil || dirfd == room.fd) {
		st.at.rooms.judge(st.at, room, time.Duration(bootNow()-began))
	}
	return fd, err
}

// dress gives a new file the mode it is to have and, where we may, the owner of
// the one it replaces.
func (s *Staged) dress(st *step, fd, parent int, base string) error {
	var is, was unix.Stat_t
	err := unix.Fstat(fd, &is)
	if err == nil && st.change.Old.Kind == KindFile && parent >= 0 &&
		unix.Fstatat(parent, base, &was, unix.AT_SYMLINK_NOFOLLOW) == nil && (was.Uid != is.Uid || was.Gid != is.Gid) {
		if unix.Fchown(fd, int(was.Uid), int(was.Gid)) == nil { // not in what we promise to restore
			is.Mode = 0 // it may have lost bits
		}
	}
	if want := st.change.New.Mode & 0o7777; err != nil || uint32(is.Mode)&0o7777 != want {
		return unix.Fchmod(fd, want)
	}
	return nil
}

// removers is how many remove files at once: more than there are cores, since
// some filesystems wait for the disk to hear of each block that is given back.
const removers = 8

// empty removes the files of the stage, on all cores. What it cannot remove
// Discard tries again, and reports.
func (s *Staged) empty() {
	_ = each(context.Background(), s.w, s.steps, removers, func(st *step, _ *hand) error {
		if st.at != nil && st.at.fd >= 0 {
			_ = unix.Unlinkat(st.at.fd, st.name, 0)
		}
		return nil
	})
}

// hand is what one goroutine of a restore works with.
type hand struct {
	rootfd int
	buf    []byte
	named  bool   // files without a name cannot be had here
	dir    string // which fd is of, when it is open
	fd     int
	hands  int8 // whether that directory hands something down: 1, -1, or 0 when nobody has asked
}

// heritage is what a directory hands down to files that are made in it.
type heritage struct {
	flags uint32 // of chattr
	label string // of SELinux
}

// handsDown tells that a new file in the directory, which h has open, may have
// another group, other rights or other attributes than one made in the stage.
func (h *hand) handsDown(parent int, at *folder) bool {
	if h.hands == 0 {
		h.hands = 1
		if its, ok := heritageOf(parent); ok && at.plain && its == at.heritage {
			h.hands = -1
		}
	}
	return h.hands > 0
}

// parent is an open descriptor, good until the next call, of the directory a
// path lies in. It is -1 when there is an error.
func (h *hand) parent(path string) (fd int, base string, err error) {
	dir, base := split(path)
	if h.fd >= 0 && h.dir == dir {
		return h.fd, base, nil
	}
	h.close()
	h.hands = 0
	if h.fd, err = openDirAt(h.rootfd, dir); err != nil {
		h.fd = -1
	}
	h.dir = dir
	return h.fd, base, err
}

func (h *hand) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
		h.fd = -1
	}
}

// handful is how many steps are taken at once: they are sorted by path, and
// those of one directory have much in common.
const handful = 16

func cores() int { return min(max(2, runtime.GOMAXPROCS(0)), 8) }

// each runs f for every step, n at once, until one fails.
func each(ctx context.Context, w *Worktree, steps []step, n int, f func(st *step, h *hand) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	work := func() {
		h := &hand{rootfd: w.rootfd, fd: -1, buf: make([]byte, 0, 64<<10)}
		defer h.close()
		for !failed.Load() {
			to := int(next.Add(handful))
			from := to - handful
			if from >= len(steps) {
				return
			}
			for i := from; i < min(to, len(steps)) && !failed.Load(); i++ {
				err := ctx.Err()
				if err == nil {
					err = f(&steps[i], h)
				}
				if err != nil {
					once.Do(func() { first = err })
					failed.Store(true)
				}
			}
		}
	}
	for range n {
		wg.Go(work)
	}
	wg.Wait()
	return first
}
