package vcs

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Making a file takes some ten microseconds, unless the filesystem looks for
// room where there is little. Ext4 without a journal does not reuse an inode for
// minutes after it was freed, and whenever a file is made looks at all those that
// were freed in the directory's part of the disk: after a thousand files were
// removed, a restore into the same directories takes five times as long. So it is
// watched how long it takes, and files are made elsewhere when it takes long: in
// rooms of the stage, folders which the filesystem is asked to put far apart.

// A room is a folder in which files are made that get their names elsewhere.
type room struct{ fd int }

const (
	slowMakeUsual = 40 * time.Microsecond // on average, makes a place slow
	someMade      = 8                     // from so many files on
	maxRooms      = 4
)

var (
	slowMake     = slowMakeUsual
	testOnlyRoom func() // is called when a room is opened
)

// rooms are the rooms of one stage folder.
type rooms struct {
	now  atomic.Pointer[room] // nil: files are made where they belong
	mu   sync.Mutex
	all  []*room
	made int // files, in the newest
	took time.Duration
}

func (r *rooms) newest() *room { return r.now.Load() }

// judge notes how long making a file in a room took, and opens the next when it
// is slow.
func (r *rooms) judge(f *folder, in *room, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now.Load() != in {
		return // it has been left
	}
	r.made++
	r.took += took
	if r.made < someMade || r.took < slowMake*time.Duration(r.made) || len(r.all) == maxRooms {
		return
	}
	r.made, r.took = 0, 0
	name := "room-" + strconv.FormatUint(rand.Uint64(), 36) // ext4 goes by the name
	if err := unix.Mkdirat(f.fd, name, 0o700); err != nil && err != unix.EEXIST {
		return // then it stays slow
	}
	fd, err := openDirAt(f.fd, name)
	if err != nil {
		return
	}
	if testOnlyRoom != nil {
		testOnlyRoom()
	}
	r.all = append(r.all, &room{fd})
	r.now.Store(r.all[len(r.all)-1])
}

func (r *rooms) close() {
	for _, room := range r.all {
		unix.Close(room.fd)
	}
	r.now.Store(nil)
	r.all = nil
}
