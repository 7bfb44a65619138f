//go:build unix

package repo

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// deviceOf identifies the filesystem that path lies on.
func deviceOf(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, err
	}
	return uint64(st.Dev), nil
}

// inodeOf tells two files of one name apart.
func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
