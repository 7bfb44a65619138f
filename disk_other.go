//go:build unix && !linux

package retcon

import (
	"fmt"
	"syscall"
)

// fileSystem returns the kind of file system a directory is on, and how many
// bytes are free there.
func fileSystem(dir string) (kind string, free int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "", 0, fmt.Errorf("file system of %s: %w", dir, err)
	}
	return "file system", int64(st.Bavail) * int64(st.Bsize), nil
}
