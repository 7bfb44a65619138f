//go:build darwin || freebsd

package ledger

import "golang.org/x/sys/unix"

// journalFor chooses for a ledger in dir. An answer the kernel refuses is
// taken for a remote file system: Truncate is slower there, never wrong.
func journalFor(dir string) Journal {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Truncate
	}
	if uint64(s.Flags)&uint64(unix.MNT_LOCAL) == 0 {
		return Truncate
	}
	return WAL
}
