package vcs

import (
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// donor is the worktree a checkout is made from: where it still has a content,
// its blocks can be shared.
type donor struct {
	w     *Worktree
	cache *statCache
	dirs  map[string]*dirRec
	never atomic.Bool
	once  sync.Once
}

// cloneFrom is the size from which sharing blocks is worth its calls.
const cloneFrom = 32 << 10

// testOnlyClone stands for cloneFile.
var testOnlyClone func(to, from int) error

func newDonor(w *Worktree) *donor { return &donor{w: w} }

func (n *donor) close() {
	if n.cache != nil {
		n.cache.close()
	}
}

// load reads the stat cache of the newest capture.
func (n *donor) load() {
	c, err := loadStatCache(n.w.cachePath())
	if err != nil || c == nil || c.facts.Root != [2]uint64{n.w.dev, n.w.ino} {
		if c != nil {
			c.close()
		}
		n.never.Store(true)
		return
	}
	n.cache, n.dirs = c, make(map[string]*dirRec, len(c.dirs))
	for _, d := range c.dirs {
		n.dirs[d.path] = d
	}
}

// give makes the empty file share the blocks of the file at the same path, if
// that is known to have the content id. It tells whether it did; the file is
// empty still when it did not.
func (n *donor) give(to int, dir, name string, id object.ID) (bool, error) {
	if n.never.Load() {
		return false, nil
	}
	n.once.Do(n.load)
	d := n.dirs[dir]
	if d == nil {
		return false, nil
	}
	i, ok := d.find(name)
	if !ok {
		return false, nil
	}
	e := &d.entries[i]
	if e.class != classFile || e.id != id || e.size < cloneFrom || e.flags&(flagRacy|flagTorn) != 0 {
		return false, nil
	}
	from, err := openBeneath(n.w.rootfd, join(dir, name), unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return false, nil
	}
	defer unix.Close(from)
	if !unmoved(from, e) {
		return false, nil
	}
	clone := cloneFile
	if testOnlyClone != nil {
		clone = testOnlyClone
	}
	switch err := clone(to, from); {
	case err == nil && unmoved(from, e):
		return true, nil
	case err == nil, errors.Is(err, unix.ENOSPC), errors.Is(err, unix.ETXTBSY):
	default: // other filesystems, or one that cannot
		n.never.Store(true)
	}
	return false, unix.Ftruncate(to, 0)
}

func unmoved(fd int, e *entry) bool {
	var st fileStat
	return statFd(fd, &st) == nil && e.sameStat(&st)
}
