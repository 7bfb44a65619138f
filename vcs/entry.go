package vcs

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// class says what an entry of a directory is to us.
type class uint8

const (
	classGone        class = iota // vanished while we looked; dropped when the tree is built
	classFile                     // a regular file, in the tree
	classLink                     // a symbolic link, in the tree
	classDir                      // a directory that is entered
	classGitlink                  // a submodule that is not checked out: id and nothing else
	classSparse                   // in the index with skip-worktree, not on disk; oid and mode from the index
	classIgnoredFile              // ignored, small: captured beside the tree
	classIgnored                  // ignored: known by name, never touched
	classSpecial                  // socket, FIFO, device: noted, never opened
	classSkipped                  // not captured, reason says why
)

// Reason says why a path is not captured.
type Reason uint8

const (
	Captured   Reason = iota
	TooLarge          // larger than Options.MaxFile
	Unreadable        // permission denied or an I/O error
	Changing          // changed under every attempt to read it
	Reserved          // a spelling of .git, which no git tree may hold
)

func (r Reason) String() string {
	return [...]string{"captured", "size", "unreadable", "changing", "reserved"}[r]
}

const (
	flagRacy    = 1 << iota // written so close to the scan that equal stat data prove nothing
	flagTracked             // in the user's index although an ignore rule matches
	flagTorn                // content of a file that changed while it was read
	flagExec                // executable for git; differs from the mode where core.fileMode is off
	flagWasDir              // an ignored entry that is a directory
)

// entry is one name in a directory, as the stat cache keeps it: fixed size and
// without pointers, so that a file of them is mapped, not parsed.
type entry struct {
	nameOff      uint32 // in dirRec.names, where a NUL follows it
	nameLen      uint16
	class        class
	reason       Reason
	mode         uint32 // st_mode; for classSparse and classGitlink git's
	flags        uint32
	size         int64
	mtime, ctime int64
	ino          uint64
	child        int32 // index of the directory's record, -1 for none
	id           object.ID
}

func (e *entry) setStat(st *fileStat) {
	e.mode, e.size, e.mtime, e.ctime, e.ino = st.mode, st.size, st.mtime, st.ctime, st.ino
}

// sameStat tells that nothing the kernel stamps has moved since e was read.
func (e *entry) sameStat(st *fileStat) bool {
	return e.mtime == st.mtime && e.ctime == st.ctime && e.size == st.size &&
		e.ino == st.ino && e.mode == st.mode
}

const (
	dirRacy         = 1 << iota // listed so close to its last change that it must be listed again
	dirNested                   // the root of another repository
	dirVirtual                  // not on disk: holds sparse entries only
	dirUnderIgnored             // entered only for the tracked files in it
	dirUnreadable
	dirFresh // never listed: unknown to the cache
)

// dirRec is one directory of the worktree: what it held when it was last
// listed, and the trees made of it.
type dirRec struct {
	mode         uint32
	flags        uint32
	mtime, ctime int64
	ino, dev     uint64
	tree, aux    object.ID // zero: nothing to record
	parent       int32
	entries      []entry // sorted by name, bytewise
	names        []byte

	// What a Watcher keeps from capture to capture, see tally.
	told  bool
	odd   bool
	files int

	// The rest lives for one capture.
	path     string
	gone     bool
	changed  atomic.Bool      // what is captured of this directory differs from tree and aux
	touched  atomic.Bool      // the record differs from the cache file
	stale    atomic.Bool      // the listing is out of date
	relist   bool             // the rules or the index moved: list again
	ignoreAt int              // position of .gitignore in entries, -1 for none
	inside   *ignore.Chain    // chain of the entries, .gitignore included
	attrs    *repo.Attributes // likewise; only while seeding
}

func (d *dirRec) name(e *entry) []byte { return d.names[e.nameOff : e.nameOff+uint32(e.nameLen)] }

// cname is the name with its terminating NUL.
func (d *dirRec) cname(e *entry) []byte { return d.names[e.nameOff : e.nameOff+uint32(e.nameLen)+1] }

func (d *dirRec) sameStat(st *fileStat) bool {
	return d.mtime == st.mtime && d.ctime == st.ctime && d.ino == st.ino && d.dev == st.dev
}

func (d *dirRec) setStat(st *fileStat) {
	d.mode, d.mtime, d.ctime, d.ino, d.dev = st.mode, st.mtime, st.ctime, st.ino, st.dev
}

// find returns the position of name, or where it would be.
func (d *dirRec) find(name string) (int, bool) {
	return slices.BinarySearchFunc(d.entries, name, func(e entry, name string) int {
		return cmp.Compare(string(d.name(&e)), name)
	})
}

// add appends an entry; the caller sorts.
func (d *dirRec) add(name []byte, e entry) {
	e.nameOff, e.nameLen = uint32(len(d.names)), uint16(len(name))
	d.names = append(append(d.names, name...), 0)
	d.entries = append(d.entries, e)
}

func (d *dirRec) sort() {
	byName := func(a, b entry) int { return bytes.Compare(d.name(&a), d.name(&b)) }
	if !slices.IsSortedFunc(d.entries, byName) {
		slices.SortFunc(d.entries, byName)
	}
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
