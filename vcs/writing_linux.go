package vcs

import "golang.org/x/sys/unix"

// beingWritten tells that some process has the file open for writing, or mapped
// so. A lease is granted only when nobody has; it is given back at once. Where
// leases are not to be had, as on another's file, nobody is seen.
func beingWritten(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err != nil {
		return err == unix.EAGAIN
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK) // closing the file does it, too
	return false
}
