package vcs

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func statTimes(st *unix.Stat_t) (mtime, ctime int64) {
	return st.Mtim.Nano(), st.Ctim.Nano()
}

func rawStatAt(dirfd int, name unsafe.Pointer, st *unix.Stat_t) syscall.Errno {
	for {
		// Raw: the scheduler is not told. A stat of a warm inode takes less time
		// than telling it twice.
		_, _, errno := syscall.RawSyscall6(sysFstatat, uintptr(dirfd), uintptr(name), uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		if errno != unix.EINTR {
			return errno
		}
	}
}

var noOpenat2 atomic.Bool // the kernel or a sandbox refused it once

func openBeneath(rootfd int, rel string, flags int) (int, error) {
	if !noOpenat2.Load() {
		how := unix.OpenHow{
			Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
		}
		for {
			fd, err := unix.Openat2(rootfd, rel, &how)
			switch err {
			case nil:
				return fd, nil
			case unix.EINTR, unix.EAGAIN: // EAGAIN: a rename raced the resolution
				continue
			case unix.ENOSYS, unix.EPERM: // EPERM: seccomp filters of older container runtimes
				noOpenat2.Store(true)
				return openByComponent(rootfd, rel, flags)
			default:
				return -1, err
			}
		}
	}
	return openByComponent(rootfd, rel, flags)
}

// coarseNow is the clock that stamps files: never ahead of the mtime a write
// gets that starts after the call.
func coarseNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return 0 // then every file is racy and hashed again: slow, not wrong
	}
	return ts.Nano()
}

// bootNow is nanoseconds since boot, the same for all processes.
func bootNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// readDir calls f for each entry of the directory fd but "." and "..". kind is
// a DT_ constant, DT_UNKNOWN where the filesystem does not say. name is only
// valid during the call.
func readDir(fd int, buf []byte, f func(name []byte, kind byte)) error {
	for {
		var n int
		err := retry(func() (err error) { n, err = unix.Getdents(fd, buf); return err })
		if err != nil {
			return err
		}
		if n <= 0 {
			return nil
		}
		for b := buf[:n]; len(b) > 0; {
			d := (*unix.Dirent)(unsafe.Pointer(&b[0]))
			name := b[unsafe.Offsetof(d.Name):d.Reclen]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			kind := d.Type
			b = b[d.Reclen:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			f(name, kind)
		}
	}
}

const (
	dtUnknown = unix.DT_UNKNOWN
	dtDir     = unix.DT_DIR
	dtReg     = unix.DT_REG
	dtLink    = unix.DT_LNK
)

func renameat2(fromfd int, from string, tofd int, to string, flags uint) error {
	return retry(func() error { return unix.Renameat2(fromfd, from, tofd, to, flags) })
}

// testOnlyUnnamed says what a filesystem cannot do with files that have no name.
var testOnlyUnnamed string

// openUnnamed makes a file without a name, in the directory dirfd. Not every
// filesystem can.
func openUnnamed(dirfd int, perm uint32) (fd int, err error) {
	if testOnlyUnnamed == "not made" {
		return -1, unix.EOPNOTSUPP
	}
	err = retry(func() (err error) {
		fd, err = unix.Openat(dirfd, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, perm)
		return err
	})
	return fd, err
}

// heritageOf is what files made in the directory get from it.
func heritageOf(dirfd int) (h heritage, ok bool) {
	const (
		layout  = 0x1000 | 0x20000 | 0x40000 | 0x80000 | 0x10000000 // of the directory itself: FS_INDEX_FL, FS_TOPDIR_FL, FS_HUGE_FILE_FL, FS_EXTENT_FL, FS_INLINE_DATA_FL
		keyed   = 0x800                                             // FS_ENCRYPT_FL: each has a key of its own
		project = 0x20000000                                        // FS_PROJINHERIT_FL, and a number of its own
	)
	var st fileStat
	if statFd(dirfd, &st) != nil || st.mode&unix.S_ISGID != 0 {
		return h, false
	}
	flags, err := unix.IoctlGetUint32(dirfd, unix.FS_IOC_GETFLAGS)
	if err != nil && err != unix.ENOTTY && err != unix.EOPNOTSUPP && err != unix.ENOSYS && err != unix.EINVAL || flags&(keyed|project) != 0 {
		return h, false
	}
	h.flags = flags &^ layout
	// Access control lists and labels are extended attributes.
	var names [len(label) + 1]byte
	switch n, err := unix.Flistxattr(dirfd, names[:]); {
	case err == unix.EOPNOTSUPP || err == nil && n == 0:
		return h, true
	case err != nil || string(names[:n]) != label+"\x00":
		return h, false
	}
	var value [256]byte
	n, err := unix.Fgetxattr(dirfd, label, value[:])
	if err != nil {
		return h, false
	}
	h.label = string(value[:n])
	return h, true
}

const label = "security.selinux"

// apart asks the filesystem to put folders made in a directory far from each
// other, as chattr +T does. Not every filesystem is to be asked.
func apart(fd int) {
	const topDir = 0x20000 // FS_TOPDIR_FL
	if flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS); err == nil && flags&topDir == 0 {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags|topDir)) // a wish
	}
}

// nameUnnamed gives such a file a name, which must be free.
func nameUnnamed(fd, dirfd int, name string) error {
	if testOnlyUnnamed == "not named" {
		return unix.ENOENT
	}
	err := retry(func() error { return unix.Linkat(fd, "", dirfd, name, unix.AT_EMPTY_PATH) })
	if err == nil || err == unix.EEXIST {
		return err
	}
	from := "/proc/self/fd/" + strconv.Itoa(fd) // before Linux 6.10 only root may do without
	return retry(func() error { return unix.Linkat(unix.AT_FDCWD, from, dirfd, name, unix.AT_SYMLINK_FOLLOW) })
}

const (
	renameSwap = unix.RENAME_EXCHANGE
	renameExcl = unix.RENAME_NOREPLACE
)

func syncFS(fd int) error { return retry(func() error { return unix.Syncfs(fd) }) }

// bootID tells one boot of the machine from the next.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
})

// mountID tells which mount a directory is in: what a rename cannot leave. Two
// mounts of one filesystem differ, though their device number does not. Before
// Linux 5.8 the device number has to do.
func mountID(fd int) (uint64, error) {
	var st unix.Statx_t
	err := retry(func() error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st)
	})
	if err == nil && st.Mask&unix.STATX_MNT_ID != 0 {
		return st.Mnt_id, nil
	}
	var dev fileStat
	err = statFd(fd, &dev)
	return dev.dev, err
}
