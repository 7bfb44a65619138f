package ledger

import "golang.org/x/sys/unix"

// remoteFilesystems are those that may be seen by several hosts, or that map
// shared memory badly, by the number statfs gives them.
var remoteFilesystems = map[uint32]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xfe534d42: "smb2",
	0xff534d42: "cifs",
	0x01021997: "9p",
	0x65735546: "fuse",
	0x73757245: "coda",
	0x5346414f: "afs",
	0x00c36400: "ceph",
	0x0bd00bd0: "lustre",
	0x47504653: "gpfs",
	0x786f4256: "vboxsf",
}

// journalFor chooses for a ledger in dir. An answer the kernel refuses is
// taken for a remote file system: Truncate is slower there, never wrong.
func journalFor(dir string) Journal {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Truncate
	}
	if _, remote := remoteFilesystems[uint32(s.Type)]; remote {
		return Truncate
	}
	return WAL
}
