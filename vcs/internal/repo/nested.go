//go:build unix

package repo

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// IsNested reports whether the directory at path is the root of a repository
// of its own: a boundary for whoever walks the worktree around it. Neither
// path nor its .git may be a symbolic link.
func IsNested(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd) // read only
	return IsNestedAt(fd)
}

// IsNestedAt is IsNested for an open directory. It costs one system call when
// the directory has no .git.
func IsNestedAt(dirfd int) bool {
	switch modeAt(dirfd, ".git") {
	case unix.S_IFREG:
		return namesGitDir(dirfd)
	case unix.S_IFDIR:
		return modeAt(dirfd, ".git/HEAD") != 0 &&
			(modeAt(dirfd, ".git/commondir") != 0 ||
				modeAt(dirfd, ".git/objects") != 0 && modeAt(dirfd, ".git/refs") != 0)
	}
	return false
}

// namesGitDir reports whether the .git file has the form of one. Where it
// leads does not matter: a submodule whose git directory is missing today is
// still a boundary.
func namesGitDir(dirfd int) bool {
	fd, err := unix.Openat(dirfd, ".git", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return true // git, too, takes a .git it may not read for a boundary
	}
	defer unix.Close(fd) // read only
	var buf [8]byte
	n, err := unix.Read(fd, buf[:])
	return err != nil || bytes.Equal(buf[:n], []byte("gitdir: "))
}

// modeAt returns the file type of a name, or 0.
func modeAt(dirfd int, name string) uint32 {
	var st unix.Stat_t
	if err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0
	}
	return uint32(st.Mode) & unix.S_IFMT
}
