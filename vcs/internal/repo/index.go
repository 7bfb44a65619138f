package repo

import (
	"strings"
)

// Index is git's index, as one read of the file found it. It is immutable and
// safe for concurrent use.
//
// Entries are sorted as git sorts them: by name as bytes, then by stage.
type Index struct {
	Entries []Entry
	Tree    *CacheTree // nil when there is none

	// Degraded says why this index must not be used to seed a cache: it is
	// in a form that was not, or not wholly, understood. Entries may then be
	// nil. "" when all is well.
	Degraded string

	// Sparse: there are entries for whole directories. Their mode is
	// ModeDir, their name ends in a slash, and their OID is a tree.
	Sparse bool

	Version   int            // of the file: 2, 3 or 4; 0 when there is none
	Raw       []byte         // the file itself; must not be modified
	Mtime     Timestamp      // of the file
	Signature IndexSignature // to tell later whether the file is still this one

	names string // every name, one after the other
}

// Entry is what the index knows about one path. It has no pointers, so that a
// hundred thousand of them are one allocation that the collector skips. Its
// name is [Index.Name].
type Entry struct {
	Ctime, Mtime  Timestamp
	Dev, Ino      uint32 // low bits
	Mode          uint32 // one of the Mode constants
	UID, GID      uint32
	Size          uint32 // low bits
	name, nameLen uint32
	OID           OID
	Flags         EntryFlags
	Stage         uint8 // 0, or 1 to 3 in a conflict: base, ours, theirs
}

// OID is a SHA-1 object id.
type OID [20]byte

// The modes git puts in an index.
const (
	ModeDir     = 0o040000 // only in a sparse index
	ModeFile    = 0o100644
	ModeExec    = 0o100755
	ModeSymlink = 0o120000
	ModeGitlink = 0o160000
)

// EntryFlags are the bits a user can set on an entry.
type EntryFlags uint8

const (
	AssumeValid  EntryFlags = 1 << iota // git does not look at the file
	SkipWorktree                        // the file is meant to be absent
	IntentToAdd                         // the path is known, its content is not
)

// Timestamp is a moment as the index stores it.
type Timestamp struct{ Sec, Nsec uint32 }

// Before reports whether t is earlier than u.
func (t Timestamp) Before(u Timestamp) bool {
	return t.Sec < u.Sec || t.Sec == u.Sec && t.Nsec < u.Nsec
}

// CacheTree is a tree object git has already written for a directory. Count
// is how many entries it covers; -1 when it is out of date, and OID is zero.
type CacheTree struct {
	Name     string // last component; "" at the top
	Count    int
	OID      OID
	Children []CacheTree
}

// Name returns the path of entry i.
func (x *Index) Name(i int) string {
	e := &x.Entries[i]
	return x.names[e.name : e.name+e.nameLen]
}

// Find returns the first entry, at whatever stage, for path; -1 when there is
// none.
func (x *Index) Find(path string) int {
	i := x.search(path)
	if i < len(x.Entries) && x.Name(i) == path {
		return i
	}
	return -1
}

// HasPrefix reports whether anything below the directory dir is tracked. The
// root is "".
func (x *Index) HasPrefix(dir string) bool {
	if dir == "" {
		return len(x.Entries) > 0
	}
	below := dir + "/"
	if i := x.search(below); i < len(x.Entries) && strings.HasPrefix(x.Name(i), below) {
		return true
	}
	return x.Sparse && x.inSparseDir(dir)
}

// inSparseDir reports whether a parent of dir is one entry of its own.
func (x *Index) inSparseDir(dir string) bool {
	for i := strings.LastIndexByte(dir, '/'); i > 0; i = strings.LastIndexByte(dir[:i], '/') {
		if x.Find(dir[:i+1]) >= 0 {
			return true
		}
	}
	return false
}

// search returns the first entry not before path.
func (x *Index) search(path string) int {
	low, high := 0, len(x.Entries)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if x.Name(mid) < path {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Racy reports whether entry i may have been changed after git looked at it
// without its time telling: git's rule is that an entry as young as the index
// proves nothing. Where a filesystem or git keeps whole seconds, seconds are
// compared.
func (x *Index) Racy(i int) bool { return racy(x.Entries[i].Mtime, x.Mtime) }

func racy(entry, index Timestamp) bool {
	if entry.Nsec == 0 || index.Nsec == 0 {
		return entry.Sec >= index.Sec
	}
	return !entry.Before(index)
}

// Smudged reports whether git has marked the entry as one to look at again,
// which it does by setting the size of a racy entry to 0. Such an entry
// proves nothing about an empty file.
func (e *Entry) Smudged() bool { return e.Size == 0 && e.OID != emptyBlob }

// emptyBlob is e69de29bb2d1d6434b8b29ae775ad8c2e48c5391.
var emptyBlob = OID{0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b,
	0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2, 0xe4, 0x8c, 0x53, 0x91}
