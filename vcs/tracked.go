package vcs

import (
	"sort"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// trackedSet is the user's index, grouped by directory. Its methods may be
// called on nil, which is an index without entries.
type trackedSet struct {
	index  *repo.Index
	groups map[string][]int32          // directory -> its direct entries, by name
	absent map[string]map[string]bool  // directory -> subdirectories with skip-worktree entries
	whole  map[string]map[string]int32 // directory -> subdirectories a sparse index folds into one entry
	links  bool                        // there are gitlinks
}

// tracked is the part of the set that concerns one directory.
type tracked struct {
	set *trackedSet
	dir string
	pos []int32
}

type trackedEntry struct {
	pos     int32
	id      object.ID
	gitlink bool
	exec    bool
}

func newTrackedSet(x *repo.Index) *trackedSet {
	t := &trackedSet{index: x, groups: make(map[string][]int32)}
	lastDir, last := "", []int32(nil)
	for i := range x.Entries {
		e := &x.Entries[i]
		name := x.Name(i)
		if e.Mode == repo.ModeDir {
			dir, base := split(strings.TrimSuffix(name, "/"))
			if t.whole == nil {
				t.whole = make(map[string]map[string]int32)
			}
			if t.whole[dir] == nil {
				t.whole[dir] = make(map[string]int32)
			}
			t.whole[dir][base] = int32(i)
			t.noteAbsent(dir)
			continue
		}
		if e.Mode == repo.ModeGitlink {
			t.links = true
		}
		dir, _ := split(name)
		if e.Flags&repo.SkipWorktree != 0 {
			t.noteAbsent(dir)
		}
		if dir != lastDir {
			t.groups[lastDir] = last
			lastDir, last = dir, t.groups[dir]
		}
		last = append(last, int32(i))
	}
	t.groups[lastDir] = last
	return t
}

// readAhead is an index that is read while something else goes on.
type readAhead struct {
	done chan struct{}
	x    *repo.Index
	set  *trackedSet
	err  error
}

// readAhead begins to read the index, which a first capture needs, while the
// store is made.
func (w *Worktree) readAhead() {
	if w.repo == nil || w.reason != "" {
		return
	}
	a := &readAhead{done: make(chan struct{})}
	w.ahead = a
	go func() {
		defer close(a.done)
		a.x, a.set, a.err = w.readTracked()
	}()
}

// take waits for the index; nil when nobody reads it.
func (a *readAhead) take() *readAhead {
	if a != nil {
		<-a.done
	}
	return a
}

func (w *Worktree) readTracked() (*repo.Index, *trackedSet, error) {
	x, err := w.repo.ReadIndex(repo.IndexOptions{})
	if err != nil {
		return nil, nil, err
	}
	return x, newTrackedSet(x), nil
}

// readIndex reads the index, unless what was read ahead is still what is there.
func (w *Worktree) readIndex(now repo.IndexSignature) (*repo.Index, *trackedSet, error) {
	a := w.ahead.take()
	w.ahead = nil
	if a != nil && a.err == nil && a.x.Signature == now {
		return a.x, a.set, nil
	}
	return w.readTracked()
}

func split(path string) (dir, base string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// noteAbsent notes that dir, and so each directory above it, holds entries that
// need not be on disk.
func (t *trackedSet) noteAbsent(dir string) {
	if t.absent == nil {
		t.absent = map[string]map[string]bool{}
	}
	for dir != "" {
		up, base := split(dir)
		if t.absent[up][base] {
			return
		}
		if t.absent[up] == nil {
			t.absent[up] = make(map[string]bool)
		}
		t.absent[up][base] = true
		dir = up
	}
	if t.absent[""] == nil {
		t.absent[""] = make(map[string]bool)
	}
}

// sparse tells that some entries need not be on disk.
func (t *trackedSet) sparse() bool { return t != nil && t.absent != nil }

func (t *trackedSet) in(dir string) tracked {
	if t == nil {
		return tracked{}
	}
	return tracked{set: t, dir: dir, pos: t.groups[dir]}
}

// below tells whether anything under the directory dir is tracked.
func (t *trackedSet) below(dir string) bool { return t != nil && t.index.HasPrefix(dir) }

func (t *trackedSet) tracks(path string) bool { return t != nil && t.index.Find(path) >= 0 }

// entry returns what the index says about name in this directory.
func (t tracked) entry(name string) (trackedEntry, bool) {
	if t.set == nil {
		return trackedEntry{}, false
	}
	x := t.set.index
	skip := len(t.dir)
	if skip > 0 {
		skip++
	}
	i := sort.Search(len(t.pos), func(i int) bool { return x.Name(int(t.pos[i]))[skip:] >= name })
	if i == len(t.pos) || x.Name(int(t.pos[i]))[skip:] != name {
		return trackedEntry{}, false
	}
	e := &x.Entries[t.pos[i]]
	return trackedEntry{pos: t.pos[i], id: object.ID(e.OID), gitlink: e.Mode == repo.ModeGitlink, exec: e.Mode == repo.ModeExec}, true
}

// addSparse adds to next, the new listing of d, what the index has there and
// the sparse checkout left out.
func (s *scanner) addSparse(next, d *dirRec, at int32, kept map[int32]bool) {
	t := s.index
	have := make(map[string]bool, len(next.entries))
	for i := range next.entries {
		have[string(next.name(&next.entries[i]))] = true
	}
	for _, pos := range t.groups[d.path] {
		e := &t.index.Entries[pos]
		_, base := split(t.index.Name(int(pos)))
		if e.Flags&repo.SkipWorktree != 0 && e.Stage == 0 && !have[base] {
			next.add([]byte(base), entry{class: classSparse, mode: e.Mode, id: object.ID(e.OID), child: -1})
			have[base] = true
		}
	}
	for base, pos := range t.whole[d.path] {
		if !have[base] {
			next.add([]byte(base), entry{class: classSparse, mode: repo.ModeDir, id: object.ID(t.index.Entries[pos].OID), child: -1})
			have[base] = true
		}
	}
	for base := range t.absent[d.path] {
		if have[base] {
			continue
		}
		child := s.newDir(join(d.path, base), at, 0)
		c := s.dir(child)
		c.flags = dirVirtual
		s.addSparse(c, c, child, kept)
		c.sort()
		next.add([]byte(base), entry{class: classDir, child: child})
	}
	next.sort()
}

// cursor walks along the tracked names of a directory while its entries are
// looked at in the same order.
type cursor struct {
	dir   *dirRec
	in    tracked
	at    int
	attrs *repo.Attributes // nil until somebody asks
}

// next is the position in the index of an entry of d.
func (c *cursor) next(set *trackedSet, d *dirRec, e *entry) (pos int32, ok bool) {
	if c.dir != d {
		*c = cursor{dir: d, in: set.in(d.path)}
	}
	skip := len(d.path)
	if skip > 0 {
		skip++
	}
	name := d.name(e)
	for ; c.at < len(c.in.pos); c.at++ {
		pos = c.in.pos[c.at]
		switch is := set.index.Name(int(pos))[skip:]; {
		case is == string(name):
			return pos, true
		case is > string(name):
			return 0, false
		}
	}
	return 0, false
}

// seed is a file that the index vouches for.
type seed struct {
	e  *entry
	st fileStat
}

// vouched tells that the stamps which the index noted are the file's, and
// returns its blob. Where git may have converted the content the index proves
// nothing about the bytes on disk.
func (s *scanner) vouched(wk *worker, d *dirRec, e *entry, st *fileStat) (object.ID, bool) {
	pos, ok := wk.tracked.next(s.index, d, e)
	if !ok {
		return object.ID{}, false
	}
	x := s.index.index
	ie := &x.Entries[pos]
	if ie.Stage != 0 || ie.Flags != 0 || ie.Smudged() || x.Racy(int(pos)) ||
		ie.Size != uint32(st.size) || ie.Ino != uint32(st.ino) || !sameTime(ie.Mtime, st.mtime) || !sameTime(ie.Ctime, st.ctime) ||
		ie.Mode != repo.ModeFile && ie.Mode != repo.ModeExec {
		return object.ID{}, false
	}
	if wk.tracked.attrs == nil {
		wk.tracked.attrs = s.attrsOf(d)
	}
	if wk.tracked.attrs.MayConvert(string(d.name(e))) {
		return object.ID{}, false
	}
	return object.ID(ie.OID), true
}

// sow takes the ids of files from the index, as git would, when the blob there
// has the file's size; the others are read.
func (s *scanner) sow(wk *worker, d *dirRec, fd int) error {
	s.store.Headers(wk.blobs)
	for i, sd := range wk.seeds {
		if b := &wk.blobs[i]; b.Err == nil && b.Kind == object.Blob && b.Size == sd.st.size {
			s.counts.seeded.Add(1)
			s.keep(d, sd.e, &sd.st, b.ID, false)
			continue
		}
		if err := s.lookFile(wk, d, fd, sd.e); err != nil {
			return err
		}
	}
	wk.seeds, wk.blobs = wk.seeds[:0], wk.blobs[:0]
	return nil
}

func sameTime(t repo.Timestamp, ns int64) bool {
	return t.Sec == uint32(ns/1e9) && (t.Nsec == uint32(ns%1e9) || t.Nsec == 0)
}

// attrsOf is the chain of attribute rules for the entries of d.
func (s *scanner) attrsOf(d *dirRec) *repo.Attributes {
	s.chainMu.Lock()
	defer s.chainMu.Unlock()
	return s.attrsLocked(d)
}

func (s *scanner) attrsLocked(d *dirRec) *repo.Attributes {
	if d.attrs != nil {
		return d.attrs
	}
	var data []byte
	if _, ok := d.find(".gitattributes"); ok {
		data, _ = readBeneath(s.rootfd, join(d.path, ".gitattributes")) // unreadable: git could not read it either
	}
	switch {
	case d.parent < 0:
		d.attrs = s.attrs.WithFile(data)
	default:
		_, base := split(d.path)
		d.attrs = s.attrsLocked(s.dir(d.parent)).Enter(base, data)
	}
	return d.attrs
}
