package retcon

import (
	"fmt"
	"syscall"
)

// magics are the file systems that people have, by the number the kernel gives.
var magics = map[int64]string{
	0xef53: "ext4", 0x9123683e: "btrfs", 0x58465342: "xfs", 0x01021994: "tmpfs", 0x794c7630: "overlay",
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb", 0x01021997: "9p", 0x65735546: "fuse",
	0x2fc12fc1: "zfs", 0xf2f52010: "f2fs", 0x4d44: "vfat", 0x5346544e: "ntfs", 0xca451a4e: "bcachefs",
}

// fileSystem returns the kind of file system a directory is on, and how many
// bytes are free there.
func fileSystem(dir string) (kind string, free int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "", 0, fmt.Errorf("file system of %s: %w", dir, err)
	}
	magic := int64(st.Type) & 0xffffffff
	kind, ok := magics[magic]
	if !ok {
		kind = fmt.Sprintf("file system %#x", magic)
	}
	return kind, int64(st.Bavail) * int64(st.Bsize), nil
}
