package vcs

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// scanner brings a stat cache up to date with the disk: a directory whose own
// stamps have not moved is not listed, a file whose stamps have not moved is
// not read. Directories are visited from the root down, in parallel.
type scanner struct {
	ctx       context.Context
	opt       *Options
	root      string
	rootfd    int
	dirs      []*dirRec // grows under mu
	store     *object.Store
	writer    *object.Writer
	index     *trackedSet      // nil outside git, and while nothing needs it
	attrs     *repo.Attributes // which files git would convert; only while seeding
	outer     *ignore.Chain
	fold      bool
	noExec    bool // core.fileMode is off: the index knows what is executable
	links     bool // some directories are submodules
	sparse    bool
	fresh     bool           // no cache: everything is new
	only      map[int32]bool // what to visit (true) or to pass through; nil: everything
	noCaps    bool
	progress  func(done int)
	loadIndex func() *trackedSet // for a directory that must be listed after all
	indexOnce sync.Once
	own       string // name of our folder in the root of a plain worktree
	start     int64  // clock of files when the scan began
	again     atomic.Bool
	counts    scanCounts
	mu        sync.Mutex
	cond      *sync.Cond
	stack     []task
	open      int // tasks taken or waiting
	err       error
	chainMu   sync.Mutex
}

// scanCounts is what a scan did, for Stats.
type scanCounts struct {
	listed, stated, hashed, seeded, bytes atomic.Int64
}

// task is a directory to visit, or a part of its entries to look at.
type task struct {
	dir      int32
	from, to int
	fd       *sharedFd // nil: visit
}

// sharedFd is a directory descriptor closed by the last who needs it.
type sharedFd struct {
	fd   int
	uses atomic.Int32
}

func (f *sharedFd) release() {
	if f.uses.Add(-1) == 0 {
		unix.Close(f.fd)
	}
}

// worker is what one goroutine of a scan reuses.
type worker struct {
	roams   *roamer
	dents   []byte
	read    []byte
	found   []found
	names   []byte
	tracked cursor // only while seeding, as the next
	seeds   []seed
	blobs   []object.HeaderOf // of the seeds
}

// chunk is how many entries of one directory a worker takes at once.
const chunk = 512

// manyDirs is from how many directories on a worker roams.
const manyDirs = 64

// run visits every directory. It is called again while again is set: something
// moved under the scan in a way that one pass cannot make sense of.
func (s *scanner) run() error {
	s.cond = sync.NewCond(&s.mu)
	for try := 0; ; try++ {
		s.again.Store(false)
		s.push(task{dir: 0})
		many := s.only == nil && len(s.dirs) >= manyDirs
		var wg sync.WaitGroup
		for range max(2, min(runtime.GOMAXPROCS(0), 8)) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				wk := &worker{dents: make([]byte, 64<<10)}
				if many {
					wk.roams = roam()
				}
				s.work(wk)
				wk.roams.end()
			}()
		}
		wg.Wait()
		if s.err != nil {
			return s.err
		}
		if !s.again.Load() || try == 3 {
			return nil
		}
		s.only = nil
	}
}

func (s *scanner) push(ts ...task) {
	s.mu.Lock()
	s.stack = append(s.stack, ts...)
	s.open += len(ts)
	s.mu.Unlock()
	s.cond.Broadcast()
}

func (s *scanner) work(wk *worker) {
	for {
		s.mu.Lock()
		for len(s.stack) == 0 && s.open > 0 {
			s.cond.Wait()
		}
		if len(s.stack) == 0 {
			s.mu.Unlock()
			return
		}
		t := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		d, failed := s.dirs[t.dir], s.err != nil
		s.mu.Unlock()

		var err error
		switch {
		case failed: // drain
			if t.fd != nil {
				t.fd.release()
			}
		case s.ctx.Err() != nil:
			err = s.ctx.Err()
			if t.fd != nil {
				t.fd.release()
			}
		case t.fd == nil:
			err = s.visit(wk, d, t.dir)
		default:
			err = s.lookAll(wk, d, t.fd.fd, t.from, t.to)
			t.fd.release()
		}

		s.mu.Lock()
		if err != nil && s.err == nil {
			s.err = err
		}
		s.open--
		done := s.open == 0
		s.mu.Unlock()
		if done {
			s.cond.Broadcast()
		}
	}
}

// visit lists d if it must be, looks at its entries, and queues the directories
// in it.
func (s *scanner) visit(wk *worker, d *dirRec, at int32) error {
	if s.only != nil && !s.only[at] && !d.relist && d.flags&dirFresh == 0 {
		return s.enter(d, false)
	}
	if d.flags&dirVirtual != 0 && !d.relist {
		return s.enter(d, false)
	}
	fd, err := openDirAt(s.rootfd, d.path)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		if d.flags&dirVirtual != 0 {
			return s.enter(d, true)
		}
		if at == 0 {
			return &os.PathError{Op: "open", Path: s.root, Err: err}
		}
		s.vanished(d)
		return nil
	case unix.EACCES, unix.EPERM, unix.EIO:
		if at == 0 {
			return &os.PathError{Op: "open", Path: s.root, Err: err}
		}
		return s.unreadable(d)
	default:
		return &os.PathError{Op: "open", Path: s.abs(d.path), Err: err}
	}
	shared := &sharedFd{fd: fd}
	shared.uses.Store(1)
	defer shared.release()

	var st fileStat
	if err := statFd(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: s.abs(d.path), Err: err}
	}
	if at != 0 && (d.flags&dirUnreadable != 0 || !d.sameStat(&st)) && !searchable(fd, &st) {
		return s.unreadable(d)
	}
	rules, err := s.rulesMoved(d, fd)
	if err != nil {
		return err
	}
	relist := d.relist || rules
	if relist || d.stale.Load() || d.flags&(dirRacy|dirFresh|dirUnreadable|dirVirtual) != 0 || !d.sameStat(&st) {
		ruled := d.ignoreAt >= 0
		switch err := s.list(wk, d, at, fd, &st); {
		case err == nil:
		case at != 0 && errors.Is(err, unix.ENOENT): // removed since it was opened
			s.vanished(d)
			return nil
		case at != 0 && errors.Is(err, unix.EIO):
			return s.unreadable(d)
		default:
			return err
		}
		relist = relist || !ruled && d.ignoreAt >= 0 // the first rules here, for all below
	}
	if s.fresh {
		s.attrsOf(d) // while d's entries are ours alone; whoever is below asks for them
	}
	if err := s.enter(d, relist); err != nil {
		return err
	}
	n := len(d.entries)
	if n <= chunk {
		err := s.lookAll(wk, d, fd, 0, n)
		if err == nil && !d.touched.Load() {
			d.tally() // here on all cores, and near at hand
		}
		return err
	}
	var parts []task
	for from := chunk; from < n; from += chunk {
		parts = append(parts, task{dir: at, from: from, to: min(from+chunk, n), fd: shared})
	}
	shared.uses.Add(int32(len(parts)))
	s.push(parts...)
	return s.lookAll(wk, d, fd, 0, chunk)
}

// enter queues the directories below d.
func (s *scanner) enter(d *dirRec, relist bool) error {
	var ts []task
	for i := range d.entries {
		if ch := d.entries[i].child; ch >= 0 {
			if relist {
				s.dir(ch).relist = true
			}
			if s.skips(ch) {
				continue
			}
			ts = append(ts, task{dir: ch})
		}
	}
	if len(ts) > 0 {
		s.push(ts...)
	}
	return nil
}

// skips tells that nothing at or below a directory has to be looked at.
func (s *scanner) skips(at int32) bool {
	if s.only == nil {
		return false
	}
	if _, on := s.only[at]; on {
		return false
	}
	d := s.dir(at)
	return !d.relist && d.flags&dirFresh == 0
}

func (s *scanner) dir(i int32) *dirRec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dirs[i]
}

// vanished drops d: it went away after its parent was listed.
func (s *scanner) vanished(d *dirRec) {
	parent := s.dir(d.parent)
	parent.stale.Store(true)
	s.drop(d)
	s.again.Store(true)
}

// drop marks d and all below it as gone.
func (s *scanner) drop(d *dirRec) {
	d.gone = true
	for i := range d.entries {
		if ch := d.entries[i].child; ch >= 0 {
			s.drop(s.dir(ch))
		}
	}
}

// unreadable notes that d is there and cannot be looked into.
func (s *scanner) unreadable(d *dirRec) error {
	parent := s.dir(d.parent)
	var st fileStat
	fd, err := openDirAt(s.rootfd, parent.path)
	if err == nil {
		_, base := split(d.path)
		err = statName(fd, base, &st)
		unix.Close(fd)
	}
	if err != nil || !st.isDir() { // it went away as well
		s.vanished(d)
		return nil
	}
	for i := range d.entries {
		if ch := d.entries[i].child; ch >= 0 {
			s.drop(s.dir(ch))
		}
	}
	if d.flags&dirUnreadable == 0 || d.mode != st.mode {
		d.changed.Store(true)
		d.touched.Store(true)
		parent.changed.Store(true) // who says so, whatever was in it
	}
	d.setStat(&st)
	d.entries, d.names, d.ignoreAt = nil, nil, -1
	d.flags = d.flags&^dirFresh | dirUnreadable | dirRacy
	return nil
}

// searchable tells whether names in the open directory can be looked up. One
// that can be listed and no more is as good as unreadable.
func searchable(fd int, st *fileStat) bool {
	if st.mode&0o111 == 0o111 {
		return true
	}
	var self fileStat
	return statName(fd, ".", &self) != unix.EACCES
}

func (s *scanner) abs(rel string) string {
	if rel == "" {
		return s.root
	}
	return s.root + "/" + rel
}
