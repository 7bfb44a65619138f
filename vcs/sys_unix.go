//go:build unix

package vcs

import (
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileStat is what the stat cache keeps of an inode.
type fileStat struct {
	mode         uint32 // type and permission bits, as st_mode
	size         int64
	mtime, ctime int64 // nanoseconds since the epoch
	ino, dev     uint64
	nlink        uint64
}

func (s *fileStat) perm() uint32  { return s.mode & 0o7777 }
func (s *fileStat) isDir() bool   { return s.mode&unix.S_IFMT == unix.S_IFDIR }
func (s *fileStat) isReg() bool   { return s.mode&unix.S_IFMT == unix.S_IFREG }
func (s *fileStat) isLink() bool  { return s.mode&unix.S_IFMT == unix.S_IFLNK }
func (s *fileStat) newest() int64 { return max(s.mtime, s.ctime) }

func fromStat(st *unix.Stat_t, out *fileStat) {
	out.mode = uint32(st.Mode)
	out.size = st.Size
	out.mtime, out.ctime = statTimes(st)
	out.ino, out.dev = uint64(st.Ino), uint64(st.Dev)
	out.nlink = uint64(st.Nlink)
}

// statAt stats name, NUL-terminated, in the directory dirfd without following
// a symbolic link. The hot loop of a capture: no allocation.
func statAt(dirfd int, name []byte, out *fileStat) error {
	var st unix.Stat_t
	if errno := rawStatAt(dirfd, unsafe.Pointer(unsafe.SliceData(name)), &st); errno != 0 {
		return errno
	}
	fromStat(&st, out)
	return nil
}

func statName(dirfd int, name string, out *fileStat) error {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return err
	}
	fromStat(&st, out)
	return nil
}

func statFd(fd int, out *fileStat) error {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return err
	}
	fromStat(&st, out)
	return nil
}

func statPath(path string, out *fileStat) error {
	return statName(unix.AT_FDCWD, path, out)
}

// retry repeats f while a signal interrupts it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func openRoot(path string) (int, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// openDirAt opens the directory rel, slash separated, below rootfd. No
// component of rel may be a symbolic link: a directory replaced by a link while
// we walk is an error (ELOOP, ENOTDIR), never a way out of the root.
func openDirAt(rootfd int, rel string) (int, error) {
	if rel == "" {
		rel = "."
	}
	return openBeneath(rootfd, rel, unix.O_RDONLY|unix.O_DIRECTORY)
}

// openByComponent is openBeneath where the kernel has no openat2.
func openByComponent(rootfd int, rel string, flags int) (int, error) {
	fd := rootfd
	for {
		name, rest, more := strings.Cut(rel, "/")
		mode := flags
		if more {
			mode = unix.O_RDONLY | unix.O_DIRECTORY
		}
		var next int
		err := retry(func() (err error) {
			next, err = unix.Openat(fd, name, mode|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			return err
		})
		if fd != rootfd {
			unix.Close(fd)
		}
		if err != nil || !more {
			return next, err
		}
		fd, rel = next, rest
	}
}

func readLinkAt(dirfd int, name string, size int64) ([]byte, error) {
	buf := make([]byte, max(size+1, 256))
	for {
		var n int
		err := retry(func() (err error) { n, err = unix.Readlinkat(dirfd, name, buf); return err })
		if err != nil {
			return nil, err
		}
		if n < len(buf) {
			return buf[:n], nil
		}
		buf = make([]byte, 2*len(buf))
	}
}
