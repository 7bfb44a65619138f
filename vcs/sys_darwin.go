package vcs

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func statTimes(st *unix.Stat_t) (mtime, ctime int64) {
	return st.Mtim.Nano(), st.Ctim.Nano()
}

func rawStatAt(dirfd int, name unsafe.Pointer, st *unix.Stat_t) syscall.Errno {
	err := retry(func() error {
		return unix.Fstatat(dirfd, unix.BytePtrToString((*byte)(name)), st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if errno, ok := err.(syscall.Errno); ok {
		return errno
	}
	return 0
}

func openBeneath(rootfd int, rel string, flags int) (int, error) {
	return openByComponent(rootfd, rel, flags)
}

func coarseNow() int64 { return time.Now().UnixNano() } // APFS stamps files from the fine clock

func bootNow() int64 {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return 0
	}
	return time.Now().UnixNano() - tv.Nano()
}

func readDir(fd int, _ []byte, f func(name []byte, kind byte)) error {
	dup, err := unix.Dup(fd)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(dup), "dir")
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		kind := byte(dtUnknown)
		switch t := e.Type(); {
		case t.IsDir():
			kind = dtDir
		case t.IsRegular():
			kind = dtReg
		case t&os.ModeSymlink != 0:
			kind = dtLink
		}
		f([]byte(e.Name()), kind)
	}
	return nil
}

const (
	dtUnknown = unix.DT_UNKNOWN
	dtDir     = unix.DT_DIR
	dtReg     = unix.DT_REG
	dtLink    = unix.DT_LNK
)

func renameat2(fromfd int, from string, tofd int, to string, flags uint) error {
	return unix.RenameatxNp(fromfd, from, tofd, to, uint32(flags))
}

// There are no files without a name here.
// heritageOf is not known: access control lists may be handed down.
func heritageOf(int) (h heritage, ok bool) { return h, false }

func apart(int) {}

func openUnnamed(int, uint32) (int, error) { return -1, unix.ENOTSUP }

func nameUnnamed(int, int, string) error { return unix.ENOTSUP }

const (
	renameSwap = unix.RENAME_SWAP
	renameExcl = unix.RENAME_EXCL
)

func syncFS(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	return err
}

// bootID tells one boot of the machine from the next.
func bootID() string {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return "unknown"
	}
	return time.Unix(tv.Unix()).String()
}

// mountID tells which mount a directory is in: what a rename cannot leave.
func mountID(fd int) (uint64, error) {
	var st fileStat
	err := statFd(fd, &st)
	return st.dev, err
}
