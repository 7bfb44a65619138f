package vcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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
	dents   []byte
	read    []byte
	found   []found
	names   []byte
	tracked cursor // only while seeding
}

type found struct {
	off, len int
	kind     byte
}

// chunk is how many entries of one directory a worker takes at once.
const chunk = 512

// run visits every directory. It is called again while again is set: something
// moved under the scan in a way that one pass cannot make sense of.
func (s *scanner) run() error {
	s.cond = sync.NewCond(&s.mu)
	for try := 0; ; try++ {
		s.again.Store(false)
		s.push(task{dir: 0})
		var wg sync.WaitGroup
		for range max(2, min(runtime.GOMAXPROCS(0), 8)) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				s.work(&worker{dents: make([]byte, 64<<10)})
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
		return s.lookAll(wk, d, fd, 0, n)
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

// rulesMoved tells whether d's own .gitignore is not what it was.
func (s *scanner) rulesMoved(d *dirRec, fd int) (bool, error) {
	if d.ignoreAt < 0 || d.flags&dirFresh != 0 {
		return false, nil
	}
	e := &d.entries[d.ignoreAt]
	var st fileStat
	if err := statAt(fd, d.cname(e), &st); err != nil || !st.isReg() {
		return true, nil // gone or replaced
	}
	if e.sameStat(&st) && e.flags&flagRacy == 0 {
		return false, nil
	}
	data, err := s.readRules(d)
	if err != nil {
		return true, err
	}
	return object.Sum(object.Blob, data) != e.id, nil
}

// readRules returns the content of d's .gitignore, nil when it has none. A link
// is not followed, as git does not.
func (s *scanner) readRules(d *dirRec) ([]byte, error) {
	data, err := readBeneath(s.rootfd, join(d.path, ".gitignore"))
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR):
		return nil, nil
	}
	// Guessing would widen what is captured, and one day deleted.
	return nil, &IgnoreError{Path: join(d.path, ".gitignore"), Err: err}
}

func readBeneath(rootfd int, rel string) ([]byte, error) {
	fd, err := openBeneath(rootfd, rel, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	return io.ReadAll(f)
}

// inside is the chain of rules for the entries of d.
func (s *scanner) inside(d *dirRec) (*ignore.Chain, error) {
	s.chainMu.Lock()
	defer s.chainMu.Unlock()
	return s.insideLocked(d)
}

func (s *scanner) insideLocked(d *dirRec) (*ignore.Chain, error) {
	if d.inside != nil {
		return d.inside, nil
	}
	data, err := s.readRules(d)
	if err != nil {
		return nil, err
	}
	switch {
	case d.parent < 0:
		d.inside = s.outer.WithFile(data)
	case d.flags&dirNested != 0:
		outer, err := s.nestedRules(d)
		if err != nil {
			return nil, err
		}
		d.inside = outer.WithFile(data)
	default:
		up, err := s.insideLocked(s.dir(d.parent))
		if err != nil {
			return nil, err
		}
		name := d.path[strings.LastIndexByte(d.path, '/')+1:]
		if d.flags&dirUnderIgnored != 0 {
			d.inside = up.EnterIgnored(name)
		} else {
			d.inside = up.Enter(name, data)
		}
	}
	return d.inside, nil
}

// nestedRules are the rules outside the worktree of a nested repository.
func (s *scanner) nestedRules(d *dirRec) (*ignore.Chain, error) {
	src := slices.Clone(s.opt.rules.global)
	if r, err := repo.Discover(s.abs(d.path), s.opt.repoOptions()); err == nil {
		data, err := os.ReadFile(filepath.Join(r.CommonDir, "info", "exclude"))
		if err == nil {
			src = append(src, ignore.Source{Name: "info/exclude", Data: data})
		} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return nil, &IgnoreError{Path: join(d.path, ".git/info/exclude"), Err: err}
		}
	}
	return ignore.Root(ignore.Options{FoldCase: s.fold}, src...), nil
}

// list reads the directory and merges what it finds with what was known.
func (s *scanner) list(wk *worker, d *dirRec, at int32, fd int, st *fileStat) error {
	s.counts.listed.Add(1)
	wk.found, wk.names = wk.found[:0], wk.names[:0]
	nested := false
	err := readDir(fd, wk.dents, func(name []byte, kind byte) {
		if string(name) == ".git" {
			nested = true
			return
		}
		if at == 0 && (string(name) == s.own || string(name) == stageName) {
			return
		}
		wk.found = append(wk.found, found{off: len(wk.names), len: len(name), kind: kind})
		wk.names = append(append(wk.names, name...), 0)
	})
	if err != nil {
		return &os.PathError{Op: "list", Path: s.abs(d.path), Err: err}
	}
	if nested && at != 0 {
		nested = repo.IsNestedAt(fd)
	} else {
		nested = false
	}
	if nested != (d.flags&dirNested != 0) {
		d.flags ^= dirNested
		d.changed.Store(true)
		s.chainMu.Lock()
		s.forgetRules(d)
		s.chainMu.Unlock()
		if up := s.dir(d.parent); up != nil {
			up.changed.Store(true)
		}
	}
	slices.SortFunc(wk.found, func(a, b found) int {
		return bytes.Compare(wk.names[a.off:a.off+a.len], wk.names[b.off:b.off+b.len])
	})
	s.chainMu.Lock()
	d.inside = nil // a second pass, or the rules moved
	s.chainMu.Unlock()
	chain, err := s.inside(d)
	if err != nil {
		return err
	}
	old, oldNames, wasFresh := d.entries, d.names, d.flags&dirFresh != 0
	next := &dirRec{entries: make([]entry, 0, len(wk.found)), names: make([]byte, 0, len(wk.names))}
	ignoredFiles := 0
	same, o := !wasFresh, 0
	keptDirs := make(map[int32]bool)
	d.ignoreAt = -1
	for _, f := range wk.found {
		name := wk.names[f.off : f.off+f.len]
		var was *entry
		for o < len(old) {
			c := bytes.Compare(oldNames[old[o].nameOff:old[o].nameOff+uint32(old[o].nameLen)], name)
			if c < 0 {
				o, same = o+1, false
				continue
			}
			if c == 0 {
				was = &old[o]
				o++
			}
			break
		}
		e, err := s.classify(d, fd, wk.names[f.off:f.off+f.len+1], f.kind, chain)
		if err != nil {
			return err
		}
		if e.class == classGone {
			same = false
			continue
		}
		if e.class == classIgnoredFile {
			ignoredFiles++
		}
		switch {
		case was == nil:
			same = false
		case was.class == e.class || was.class == classSkipped && e.class == classFile:
			keep := *was
			keep.nameOff, keep.nameLen = 0, 0
			keep.flags = keep.flags&^(flagTracked|flagWasDir) | e.flags&(flagTracked|flagWasDir)
			if s.noExec && (keep.flags^e.flags)&flagExec != 0 {
				keep.flags, same = keep.flags^flagExec, false
			}
			if e.class == classGitlink && keep.id != e.id {
				keep.id, same = e.id, false
			}
			e = keep
		case was.class == classIgnored && e.class == classIgnoredFile:
			// Bulk for its size or its number; look again.
		default:
			same = false
		}
		if e.class == classDir {
			if e.child < 0 {
				e.child = s.newDir(join(d.path, string(name)), at, e.flags)
			} else if ch, under := s.dir(e.child), d.flags&dirUnderIgnored != 0 || e.flags&flagTracked != 0; under != (ch.flags&dirUnderIgnored != 0) {
				ch.flags ^= dirUnderIgnored
				ch.relist, same = true, false
				ch.changed.Store(true)
			}
			keptDirs[e.child] = true
			e.flags &^= flagWasDir
		}
		if string(name) == ".gitignore" {
			d.ignoreAt = len(next.entries)
		}
		next.add(name, e)
	}
	if o < len(old) {
		same = false
	}
	for i := range old {
		if ch := old[i].child; ch >= 0 && !keptDirs[ch] {
			s.drop(s.dir(ch))
		}
	}
	if ignoredFiles > s.opt.IgnoredPerDir {
		for i := range next.entries {
			if e := &next.entries[i]; e.class == classIgnoredFile && i != d.ignoreAt {
				*e = entry{nameOff: e.nameOff, nameLen: e.nameLen, class: classIgnored, child: -1}
			}
		}
	}
	if s.sparse {
		s.addSparse(next, d, at, keptDirs)
		d.ignoreAt = -1
		for i := range next.entries {
			if string(next.name(&next.entries[i])) == ".gitignore" && next.entries[i].class != classSparse {
				d.ignoreAt = i
			}
		}
	}
	d.entries, d.names = next.entries, next.names
	if !same {
		d.changed.Store(true)
	}
	if d.parent >= 0 && (d.mode != st.mode || d.flags&dirUnreadable != 0) { // the parent notes the permission bits
		s.dir(d.parent).changed.Store(true)
	}
	d.setStat(st)
	d.stale.Store(false)
	d.flags &^= dirFresh | dirRacy | dirUnreadable | dirVirtual
	if s.racy(st) {
		d.flags |= dirRacy
	}
	d.touched.Store(true)
	return nil
}

// forgetRules drops the chains of d and below: they hang on its own.
func (s *scanner) forgetRules(d *dirRec) {
	d.inside = nil
	for i := range d.entries {
		if ch := d.entries[i].child; ch >= 0 {
			c := s.dir(ch)
			c.relist = true
			s.forgetRules(c)
		}
	}
}

func (s *scanner) newDir(path string, parent int32, flags uint32) int32 {
	d := &dirRec{path: path, parent: parent, flags: dirFresh, ignoreAt: -1}
	d.changed.Store(true)
	d.touched.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if flags&flagTracked != 0 || s.dirs[parent].flags&dirUnderIgnored != 0 {
		d.flags |= dirUnderIgnored
	}
	s.dirs = append(s.dirs, d)
	return int32(len(s.dirs) - 1)
}

// tracked is the user's index, read when somebody first asks.
func (s *scanner) tracked() *trackedSet {
	s.indexOnce.Do(func() {
		if s.index == nil && s.loadIndex != nil {
			s.index = s.loadIndex()
		}
	})
	return s.index
}

// classify decides what a listed name is. cname ends in a NUL.
func (s *scanner) classify(d *dirRec, fd int, cname []byte, kind byte, chain *ignore.Chain) (entry, error) {
	name := string(cname[:len(cname)-1])
	e := entry{child: -1}
	if kind == dtUnknown {
		var st fileStat
		if err := statAt(fd, cname, &st); err != nil {
			return e, nil // gone since it was listed
		}
		switch {
		case st.isDir():
			kind = dtDir
		case st.isReg():
			kind = dtReg
		case st.isLink():
			kind = dtLink
		}
	}
	if reservedName(name) {
		e.class, e.reason = classSkipped, Reserved
		return e, nil
	}
	isDir := kind == dtDir
	ignored := chain.Match(name, isDir) == ignore.Ignored && !s.opt.included(join(d.path, name))
	switch {
	case isDir:
		e.class = classDir
		if s.links {
			if it, ok := s.tracked().in(d.path).entry(name); ok && it.gitlink {
				if !repo.IsNested(s.abs(join(d.path, name))) {
					e.class, e.id = classGitlink, it.id
				}
				return e, nil
			}
		}
		if ignored {
			if !s.tracked().below(join(d.path, name)) {
				e.class, e.flags = classIgnored, flagWasDir
				return e, nil
			}
			e.flags |= flagTracked
		}
		return e, nil
	case kind == dtReg:
		e.class = classFile
	case kind == dtLink:
		e.class = classLink
	default:
		e.class = classSpecial
		if ignored {
			e.class = classIgnored
		}
		return e, nil
	}
	if !ignored && !s.noExec {
		return e, nil
	}
	it, isTracked := s.tracked().in(d.path).entry(name)
	if s.noExec && it.exec {
		e.flags |= flagExec
	}
	if ignored {
		if isTracked {
			e.flags |= flagTracked
		} else if d.flags&dirUnderIgnored == 0 && kind == dtReg {
			e.class = classIgnoredFile
		} else {
			e.class = classIgnored
		}
	}
	return e, nil
}

// lookAll brings the entries [from, to) of d up to date.
func (s *scanner) lookAll(wk *worker, d *dirRec, fd int, from, to int) error {
	var st fileStat
	wk.tracked.dir = nil
	n := 0
	for i := from; i < to; i++ {
		e := &d.entries[i]
		switch e.class {
		case classFile, classLink, classIgnoredFile, classSpecial:
		case classSkipped:
			if e.reason == Reserved {
				continue
			}
		default:
			continue
		}
		n++
		if err := statAt(fd, d.cname(e), &st); err != nil {
			if err == unix.ENOENT {
				s.missing(d, e)
				continue
			}
			return &os.PathError{Op: "stat", Path: s.abs(join(d.path, string(d.name(e)))), Err: err}
		}
		if e.sameStat(&st) && e.flags&(flagRacy|flagTorn) == 0 && (e.class != classSkipped || e.reason == TooLarge && !s.noCaps) {
			continue
		}
		if err := s.look(wk, d, fd, e, &st); err != nil {
			return err
		}
	}
	if total := s.counts.stated.Add(int64(n)); s.progress != nil {
		s.progress(int(total))
	}
	return nil
}

// missing notes that e is not there any more although its directory was listed.
func (s *scanner) missing(d *dirRec, e *entry) {
	e.class = classGone
	d.changed.Store(true)
	d.touched.Store(true)
	d.stale.Store(true)
	s.again.Store(true)
}

// look reads what is behind an entry whose stamps are new.
func (s *scanner) look(wk *worker, d *dirRec, fd int, e *entry, st *fileStat) error {
	d.touched.Store(true)
	ignored := e.class == classIgnoredFile
	switch {
	case st.isDir(): // a file became a directory after the listing
		s.missing(d, e)
		return nil
	case st.isLink():
		if ignored {
			*e = entry{nameOff: e.nameOff, nameLen: e.nameLen, class: classIgnored, child: -1}
			d.changed.Store(true)
			return nil
		}
		return s.lookLink(d, fd, e, st)
	case !st.isReg():
		if e.class != classSpecial || e.mode != st.mode {
			d.changed.Store(true)
		}
		e.class, e.id = classSpecial, object.ID{}
		e.setStat(st)
		e.flags &^= flagRacy
		return nil
	}
	limit := s.opt.MaxFile
	if ignored {
		limit = s.opt.IgnoredMax
	}
	if st.size > limit && !(s.noCaps && !ignored) {
		if ignored && string(d.name(e)) != ".gitignore" {
			*e = entry{nameOff: e.nameOff, nameLen: e.nameLen, class: classIgnored, child: -1}
			d.changed.Store(true)
			return nil
		}
		s.skip(d, e, st, TooLarge)
		return nil
	}
	if !ignored && s.fresh && e.mtime == 0 && e.class == classFile {
		if id, ok := s.seed(wk, d, e, st); ok {
			s.counts.seeded.Add(1)
			s.keep(d, e, st, id, false)
			return nil
		}
	}
	return s.lookFile(wk, d, fd, e)
}

func (s *scanner) skip(d *dirRec, e *entry, st *fileStat, why Reason) {
	if e.class != classSkipped || e.reason != why || e.size != st.size || e.mtime != st.mtime || e.mode != st.mode {
		d.changed.Store(true)
	}
	e.class, e.reason, e.id = classSkipped, why, object.ID{}
	e.setStat(st)
	e.flags &^= flagRacy | flagTorn
}

func (s *scanner) lookLink(d *dirRec, fd int, e *entry, st *fileStat) error {
	target, err := readLinkAt(fd, string(d.name(e)), st.size)
	if err == unix.ENOENT || err == unix.EINVAL {
		s.missing(d, e)
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "readlink", Path: s.abs(join(d.path, string(d.name(e)))), Err: err}
	}
	id := object.Sum(object.Blob, target)
	if e.class != classLink || e.id != id {
		if err := s.writer.AddHashed(id, object.Blob, target); err != nil {
			return err
		}
		d.changed.Store(true)
	}
	e.class, e.reason, e.id = classLink, Captured, id
	e.setStat(st)
	e.flags &^= flagRacy | flagTorn | flagExec
	if s.racy(st) {
		e.flags |= flagRacy
	}
	s.counts.hashed.Add(1)
	return nil
}

// lookFile reads a regular file, again while it changes under the reading.
func (s *scanner) lookFile(wk *worker, d *dirRec, dirfd int, e *entry) error {
	name := string(d.name(e))
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	var st fileStat
	switch err {
	case nil:
	case unix.ENOENT, unix.ELOOP, unix.ENXIO:
		s.missing(d, e)
		return nil
	case unix.EACCES, unix.EPERM, unix.EIO, unix.ETXTBSY:
		if err := statAt(dirfd, d.cname(e), &st); err != nil {
			s.missing(d, e)
			return nil
		}
		s.skip(d, e, &st, Unreadable)
		return nil
	default:
		return &os.PathError{Op: "open", Path: s.abs(join(d.path, name)), Err: err}
	}
	defer unix.Close(fd)
	for try := 0; ; try++ {
		if err := statFd(fd, &st); err != nil {
			return &os.PathError{Op: "stat", Path: s.abs(join(d.path, name)), Err: err}
		}
		id, err := s.readFile(wk, fd, &st, e)
		if err != nil {
			if errors.Is(err, unix.EIO) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EISDIR) {
				s.skip(d, e, &st, Unreadable)
				return nil
			}
			if !errors.Is(err, errMoved) {
				return fmt.Errorf("read %s: %w", s.abs(join(d.path, name)), err)
			}
		}
		var after fileStat
		if serr := statFd(fd, &after); serr != nil {
			return &os.PathError{Op: "stat", Path: s.abs(join(d.path, name)), Err: serr}
		}
		moved := err != nil || after.mtime != st.mtime || after.ctime != st.ctime || after.size != st.size
		if moved && try < 3 {
			continue
		}
		if err != nil { // it grew or shrank every time: there is no content to keep
			s.skip(d, e, &after, Changing)
			return nil
		}
		s.counts.hashed.Add(1)
		s.counts.bytes.Add(after.size)
		s.keep(d, e, &after, id, moved)
		return nil
	}
}

var errMoved = errors.New("changed while it was read")

// stream is the size from which a file is not held in memory.
const stream = 4 << 20

// readFile hashes the open file and adds it to the pack unless it is what we
// have. It fails with errMoved when the file does not have st.size bytes.
func (s *scanner) readFile(wk *worker, fd int, st *fileStat, e *entry) (object.ID, error) {
	if st.size >= stream {
		return s.readLarge(fd, st, e)
	}
	if int64(cap(wk.read)) <= st.size {
		wk.read = make([]byte, max(st.size+1, 256<<10))
	}
	buf, n := wk.read[:st.size+1], 0
	for n < len(buf) {
		var m int
		err := retry(func() (err error) { m, err = unix.Pread(fd, buf[n:], int64(n)); return err })
		if err != nil {
			return object.ID{}, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	if int64(n) != st.size {
		return object.ID{}, errMoved
	}
	id := object.Sum(object.Blob, buf[:n])
	if id == e.id {
		return id, nil
	}
	if s.store.Has(id) {
		return id, nil
	}
	return id, s.writer.AddHashed(id, object.Blob, buf[:n])
}

func (s *scanner) readLarge(fd int, st *fileStat, e *entry) (object.ID, error) {
	section := func() io.Reader { return io.NewSectionReader(preader(fd), 0, st.size+1) }
	h := object.NewHasher()
	h.Reset(object.Blob, st.size)
	n, err := io.CopyBuffer(h, io.LimitReader(section(), st.size+1), make([]byte, 256<<10))
	if err != nil {
		return object.ID{}, err
	}
	if n != st.size {
		return object.ID{}, errMoved
	}
	id := h.Sum()
	if id == e.id || s.store.Has(id) {
		return id, nil
	}
	got, err := s.writer.AddStream(st.size, section())
	if errors.Is(err, object.ErrChanged) || err == nil && got != id {
		return id, errMoved
	}
	return id, err
}

// preader reads a descriptor at an offset.
type preader int

func (p preader) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		var m int
		err := retry(func() (err error) { m, err = unix.Pread(int(p), b[n:], off+int64(n)); return err })
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}

// keep notes the content of a file.
func (s *scanner) keep(d *dirRec, e *entry, st *fileStat, id object.ID, torn bool) {
	exec := st.mode&0o100 != 0
	if s.noExec {
		exec = e.flags&flagExec != 0
	}
	was := *e
	if e.class != classIgnoredFile {
		e.class = classFile
	}
	e.reason, e.id = Captured, id
	e.setStat(st)
	e.flags &^= flagRacy | flagTorn | flagExec
	if exec {
		e.flags |= flagExec
	}
	if torn {
		e.flags |= flagTorn
	}
	if s.racy(st) {
		e.flags |= flagRacy
	}
	if was.class != e.class || was.id != id || was.mode != e.mode || (was.flags^e.flags)&(flagExec|flagTorn) != 0 {
		d.changed.Store(true)
	}
}

// racy tells that st is too close to the scan to be trusted next time: a write
// after our read could leave the same stamps. The rule is git's ("racy git"),
// with the change time as well, since the modification time can be set back.
func (s *scanner) racy(st *fileStat) bool {
	margin := int64(0)
	if st.mtime%1e9 == 0 && st.ctime%1e9 == 0 {
		margin = 2e9 // a filesystem that stamps whole seconds
	}
	return st.newest() >= s.start-margin
}

func (s *scanner) abs(rel string) string {
	if rel == "" {
		return s.root
	}
	return s.root + "/" + rel
}

// reservedName tells that no git tree may hold name: a spelling of .git on some
// filesystem that folds case, drops trailing dots or has short names.
func reservedName(name string) bool {
	if len(name) < 4 || len(name) > 64 {
		return false
	}
	n := strings.TrimRight(name, " .")
	if i := strings.IndexByte(n, ':'); i >= 0 {
		n = n[:i] // an NTFS stream
	}
	return strings.EqualFold(n, ".git") || strings.EqualFold(n, "git~1") || hfsGit(name)
}

// hfsGit is reservedName for HFS+, which ignores some code points in names.
func hfsGit(name string) bool {
	if name[0] == '.' && strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 }) < 0 {
		return false
	}
	bare := strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name)
	return bare != name && strings.EqualFold(bare, ".git")
}
