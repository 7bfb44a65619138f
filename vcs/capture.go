package vcs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// Commit names a captured state of a worktree: 40 hexadecimal digits, opaque
// outside this package. Equal states have equal names.
type Commit string

// CaptureOptions say how careful a capture is.
type CaptureOptions struct {
	// Sync puts everything on disk before Capture returns. Without it a power
	// cut may take what the system had not yet written, and only that.
	Sync bool
	// NoCaps captures files of any size.
	NoCaps bool
	// Rescan distrusts the stat cache and reads every file.
	Rescan bool
	// Progress is told how many files have been looked at, from any goroutine.
	Progress func(done int)
	// Then is given what was found before another capture of the worktree can
	// begin: what it records is in the order of the captures. Its error is
	// Capture's.
	Then func(*Capture) error
}

// then ends a capture while its lock is held.
func (o *CaptureOptions) then(c *Capture, err error) (*Capture, error) {
	if err != nil || o.Then == nil {
		return c, err
	}
	if err := o.Then(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Capture is what a capture found.
type Capture struct {
	Commit      Commit    `json:"commit"`
	Tree        string    `json:"tree"` // as git write-tree names it, nested repositories aside
	Head        Head      `json:"head"`
	Operation   string    `json:"operation,omitempty"` // what git is in the middle of
	NotCaptured []Missing `json:"not_captured,omitempty"`
	Special     []string  `json:"special,omitempty"` // sockets, FIFOs, devices
	Nested      []string  `json:"nested,omitempty"`  // roots of repositories inside
	Stats       Stats     `json:"-"`
}

// Missing is a path whose content is not in the commit, or, with Changing, in
// it as it was at some moment of a change.
type Missing struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Size   int64  `json:"size"`
}

// Stats says what a capture cost.
type Stats struct {
	Files   int           // captured
	Listed  int           // directories read
	Stated  int           // files looked at
	Hashed  int           // files read
	Seeded  int           // files taken from the user's index without reading
	Bytes   int64         // read
	Objects int           // written
	Reused  bool          // another process captured after we asked; this is its answer
	Took    time.Duration // waiting for the lock not included
}

// Capture records the worktree as it is now. One capture of a worktree runs at
// a time; a capture that waited takes the answer of one that began after it was
// asked for.
//
// The commit is whole in the store when Capture returns, or there is an error
// and no commit. Hold Shared from before the call until the commit is recorded
// where the next Collect finds it.
func (w *Worktree) Capture(ctx context.Context, opt CaptureOptions) (*Capture, error) {
	arrived := bootNow()
	if w.held != nil {
		return opt.then(w.captureLocked(ctx, opt, w.held, 0))
	}
	lk, err := lockFile(ctx, w.lockPath("capture"))
	if err != nil {
		return nil, err
	}
	defer lk.unlock()
	return opt.then(w.captureLocked(ctx, opt, lk, arrived))
}

func (w *Worktree) captureLocked(ctx context.Context, opt CaptureOptions, lk *fileLock, arrived int64) (*Capture, error) {
	began := bootNow()
	sources, err := w.outerRules()
	if err != nil {
		return nil, err
	}
	digest := w.rulesDigest(sources)
	cache, err := w.loadCache(ctx, digest)
	if err != nil {
		return nil, err
	}
	if cache != nil && !opt.NoCaps && !opt.Rescan && arrived > 0 {
		if last := readStamp(lk.f); last.Began > arrived && last.Commit == cache.facts.Commit && cache.facts.Capture != nil {
			c := *cache.facts.Capture
			c.Stats = Stats{Reused: true}
			cache.close()
			return &c, nil
		}
	}
	cp, cache, err := w.scan(ctx, opt, cache, sources, digest)
	if w.forgetLast(); err == nil && w.held != nil {
		w.last = cache
	} else if cache != nil {
		defer cache.close()
	}
	if err != nil {
		return nil, err
	}
	cp.Stats.Took = time.Duration(bootNow() - began)
	writeStamp(lk.f, stamp{Began: began, Commit: cp.Commit})
	return cp, nil
}

// outerRules are the ignore rules outside the worktree.
func (w *Worktree) outerRules() ([]ignore.Source, error) {
	src := slices.Clone(w.opt.rules.global)
	if w.repo == nil {
		return src, nil
	}
	return readSource(src, w.repo.ExcludeFile())
}

// loadCache returns the stat cache if it is of this worktree, this store and
// these rules.
func (w *Worktree) loadCache(ctx context.Context, digest string) (*statCache, error) {
	c, err := loadStatCache(w.cachePath())
	if err != nil || c == nil {
		return nil, nil // it is a cache
	}
	f := &c.facts
	if f.Root != [2]uint64{w.dev, w.ino} || f.Store != w.storeID || f.Commit == "" {
		c.close()
		return nil, nil
	}
	if f.Rules != digest {
		for _, d := range c.dirs {
			d.relist = true
			for i := range d.entries { // limits may have moved
				if e := &d.entries[i]; e.class == classSkipped && e.reason == TooLarge {
					e.mtime = 0
				}
			}
		}
	}
	if f.Boot != bootID() {
		// A power cut may have taken what was not synced.
		if _, err := w.store.SetAside(ctx); err != nil {
			c.close()
			return nil, err
		}
	}
	if !w.packsAreThere(f) {
		w.doubt(c)
	}
	return c, nil
}

// packsAreThere tells that no pack the cache relied on has gone.
func (w *Worktree) packsAreThere(f *facts) bool {
	if f.Generation != w.store.Generation() {
		return false
	}
	var st fileStat
	if err := statPath(w.packDir(), &st); err != nil {
		return false
	}
	if st.mtime == f.PackTime {
		return true
	}
	have := w.packNames()
	for i := 0; i+packName <= len(f.Packs); i += packName {
		if !strings.Contains(have, f.Packs[i:i+packName]) {
			return false
		}
	}
	return true
}

const packName = 12 // digits of a pack's name that are kept

func (w *Worktree) packDir() string { return filepath.Join(w.folder, "store.git", "objects", "pack") }

func (w *Worktree) packNames() string {
	entries, err := os.ReadDir(w.packDir())
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, e := range entries {
		if n, ok := strings.CutPrefix(e.Name(), "pack-"); ok && strings.HasSuffix(n, ".pack") && len(n) > packName {
			b.WriteString(n[:packName])
		}
	}
	return b.String()
}

// doubt looks for every object the cache believes in, and forgets what belongs
// to those that are gone: they are read and written again.
func (w *Worktree) doubt(c *statCache) {
	gone := func(id object.ID) bool { return !id.IsZero() && !w.store.Has(id) }
	for _, d := range c.dirs {
		if gone(d.tree) || gone(d.aux) || d.flags&dirNested != 0 {
			d.changed.Store(true)
			d.tree, d.aux = object.ID{}, object.ID{}
			d.touched.Store(true)
		}
		for i := range d.entries {
			e := &d.entries[i]
			if e.class == classFile || e.class == classLink || e.class == classIgnoredFile {
				if gone(e.id) {
					e.id, e.mtime = object.ID{}, 0
					d.changed.Store(true)
					d.touched.Store(true)
				}
			}
		}
	}
	// Trees above a doubtful one, and aux parts, are cheap to make again.
	for i := len(c.dirs) - 1; i > 0; i-- {
		if c.dirs[i].changed.Load() {
			c.dirs[c.dirs[i].parent].changed.Store(true)
		}
	}
	c.facts.Git.Tree, c.facts.Git.Imported, c.facts.Commit = "", "", ""
	c.doubtful = true
}

// scan brings the cache up to date and writes the commit.
func (w *Worktree) scan(ctx context.Context, opt CaptureOptions, cache *statCache, sources []ignore.Source, digest string) (*Capture, *statCache, error) {
	fresh := cache == nil
	if fresh {
		root := &dirRec{parent: -1, flags: dirFresh, ignoreAt: -1}
		root.changed.Store(true)
		root.touched.Store(true)
		cache = &statCache{dirs: []*dirRec{root}}
	}
	wr := w.store.NewWriter()
	defer wr.Abort()
	prev := cache.facts
	git, set, err := w.gitSide(prev.Git, wr, fresh || !w.execMatters() || cache.sparse())
	if err != nil {
		return nil, cache, err
	}
	s := &scanner{ctx: ctx, opt: &w.opt, root: w.root, rootfd: w.rootfd, dirs: cache.dirs, store: w.store, writer: wr,
		outer: ignore.Root(ignore.Options{FoldCase: w.foldCase()}, sources...), fold: w.foldCase(),
		noExec: !w.execMatters(), fresh: fresh && w.reason == "" && !opt.Rescan, noCaps: opt.NoCaps, start: coarseNow(), progress: opt.Progress}
	s.index, s.loadIndex = set, w.lazyIndex
	s.links, s.sparse = git.Links, git.Sparse
	s.only = cache.only
	if w.kind == Plain {
		s.own = "." + StoreName
	}
	if opt.Rescan && !fresh {
		for _, d := range cache.dirs {
			d.relist = true
			for i := range d.entries {
				d.entries[i].mtime = 0
			}
		}
	}
	if s.fresh {
		s.attrs = w.outerAttributes()
	}
	if set != nil && !fresh {
		if s.retrack(git.Signature != prev.Git.Signature) {
			s.only = nil
		}
	}
	if err := s.run(); err != nil {
		return nil, cache, err
	}
	cache.dirs = s.dirs
	s.nestedHeads()
	b := &builder{s: s, modes: prev.Modes, check: fresh || cache.doubtful}
	if fresh {
		b.modes = commonModes(s.dirs)
	}
	if err := b.build(); err != nil {
		return nil, cache, err
	}
	commit, tree, err := b.commit(git, cache.facts.Commit)
	if err != nil {
		return nil, cache, err
	}
	cp := s.report(commit, tree, git)
	cp.Stats.Objects = wr.Len()
	if err := wr.Commit(opt.Sync); err != nil {
		return nil, cache, fmt.Errorf("store: %w", err)
	}
	if fresh || s.touched() || commit != prev.Commit || !git.equal(prev.Git) || digest != prev.Rules || prev.Boot != bootID() || cache.doubtful {
		next := facts{Root: [2]uint64{w.dev, w.ino}, Store: w.storeID, Rules: digest, Modes: b.modes, Scan: s.start, Boot: bootID(),
			Commit: commit, Capture: cp, Git: git, Generation: w.store.Generation(), Packs: w.packNames()}
		var st fileStat
		if err := statPath(w.packDir(), &st); err == nil {
			next.PackTime = st.mtime
		}
		cache.facts = next
		if cache.resident {
			cache.unsaved = true
		} else if err := cache.save(w.cachePath()); err != nil {
			return nil, cache, fmt.Errorf("stat cache: %w", err)
		}
	}
	cache.facts.Commit, cache.facts.Capture = commit, cp
	return cp, cache, nil
}

// execMatters tells that the executable bit on disk is the file's.
func (w *Worktree) execMatters() bool { return w.repo == nil || w.repo.Settings.FileMode }

func (c *statCache) sparse() bool {
	return c != nil && c.facts.Git.Sparse
}

// lazyIndex reads the index for a scan that needs it after all.
func (w *Worktree) lazyIndex() *trackedSet {
	if w.repo == nil || w.reason != "" {
		return nil
	}
	x, err := w.repo.ReadIndex(repo.IndexOptions{})
	if err != nil || x.Entries == nil {
		return nil
	}
	return newTrackedSet(x)
}

// outerAttributes are the attribute rules that hold everywhere.
func (w *Worktree) outerAttributes() *repo.Attributes {
	var sources [][]byte
	for _, path := range []string{w.repo.Settings.AttributesFile, w.repo.AttributesFile()} {
		if data, err := os.ReadFile(path); err == nil {
			sources = append(sources, data)
		}
	}
	return repo.AttrRoot(repo.AttributeOptions{FoldCase: w.foldCase()}, sources...)
}

// retrack marks the directories in which an ignored name has become tracked or
// a tracked one is not any more, and tells whether there are any.
func (s *scanner) retrack(moved bool) (any bool) {
	if !moved {
		return false
	}
	all := s.index.sparse() || s.index.links || s.noExec
	for _, d := range s.dirs {
		if all || d.flags&dirVirtual != 0 {
			d.relist, any = true, true
			continue
		}
		for i := range d.entries {
			e := &d.entries[i]
			var is bool
			switch {
			case e.class == classIgnored && e.flags&flagWasDir != 0:
				is = s.index.below(join(d.path, string(d.name(e))))
			case e.class == classIgnored, e.class == classIgnoredFile, e.flags&flagTracked != 0:
				is = s.index.tracks(join(d.path, string(d.name(e))))
			case e.class == classDir && s.dirs[e.child].flags&dirUnderIgnored != 0:
				is = s.index.below(join(d.path, string(d.name(e))))
				if !is {
					d.relist = true
				}
				continue
			case e.class == classGitlink:
				d.relist = true
				continue
			default:
				continue
			}
			if is != (e.flags&flagTracked != 0) {
				d.relist = true
			}
		}
		any = any || d.relist
	}
	return any
}

// nestedHeads notes where the HEAD of each nested repository is.
func (s *scanner) nestedHeads() {
	for _, d := range s.dirs {
		if d.gone || d.flags&dirNested == 0 {
			continue
		}
		up := s.dirs[d.parent]
		_, base := split(d.path)
		i, ok := up.find(base)
		if !ok {
			continue
		}
		var head object.ID
		if r, err := repo.Open(s.abs(d.path), s.opt.repoOptions()); err == nil {
			if h, err := r.Head(); err == nil && h.ID != "" {
				head, _ = object.ParseID(h.ID) // a sha256 id cannot stand in a tree: none
			}
		}
		if up.entries[i].id != head {
			up.entries[i].id = head
			up.changed.Store(true)
			up.touched.Store(true)
		}
	}
}

// touched tells whether the cache file is out of date.
func (s *scanner) touched() bool {
	for _, d := range s.dirs {
		if d.touched.Load() || d.gone {
			return true
		}
	}
	return false
}

func (a gitFacts) equal(b gitFacts) bool {
	return a.Head == b.Head && a.Operation == b.Operation && a.Signature == b.Signature && a.Tree == b.Tree &&
		a.Imported == b.Imported && a.Sparse == b.Sparse && a.Degraded == b.Degraded
}

// commit writes the root of the commit, unless it is known.
func (b *builder) commit(git gitFacts, known Commit) (Commit, string, error) {
	root := b.s.dirs[0]
	m := meta{Version: 1, Modes: b.modes, Root: root.mode & 0o7777, Operation: git.Operation, Sparse: git.Sparse,
		Extra: git.Extra, Degraded: git.Degraded}
	if git.Head != (Head{}) {
		m.Head = &git.Head
	}
	js, err := m.encode()
	if err != nil {
		return "", "", err
	}
	metaID, tree := object.Sum(object.Blob, js), root.tree
	if root.tree.IsZero() {
		tree = object.Sum(object.Tree, nil)
	}
	in := []object.TreeEntry{
		{Mode: object.ModeFile, Name: "meta", ID: metaID},
		{Mode: object.ModeDir, Name: "tree", ID: tree},
	}
	if !root.aux.IsZero() {
		in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: "aux", ID: root.aux})
	}
	if git.Tree != "" {
		id, err := object.ParseID(git.Tree)
		if err != nil {
			return "", "", err
		}
		in = append(in, object.TreeEntry{Mode: object.ModeDir, Name: "index", ID: id})
	}
	object.SortEntries(in)
	data := object.AppendTree(nil, in)
	id := object.Sum(object.Tree, data)
	if Commit(id.String()) == known {
		return known, tree.String(), nil
	}
	if root.tree.IsZero() {
		if _, err := b.add(object.Tree, nil); err != nil {
			return "", "", err
		}
	}
	if _, err := b.add(object.Blob, js); err != nil {
		return "", "", err
	}
	_, err = b.add(object.Tree, data)
	return Commit(id.String()), tree.String(), err
}

// report collects what the caller is told.
func (s *scanner) report(commit Commit, tree string, git gitFacts) *Capture {
	cp := &Capture{Commit: commit, Tree: tree, Head: git.Head, Operation: git.Operation}
	for _, d := range s.dirs {
		if d.gone {
			continue
		}
		if d.flags&dirNested != 0 {
			cp.Nested = append(cp.Nested, d.path)
		}
		if d.flags&dirUnreadable != 0 {
			cp.NotCaptured = append(cp.NotCaptured, Missing{Path: d.path, Reason: Unreadable.String()})
		}
		for i := range d.entries {
			e := &d.entries[i]
			switch {
			case e.class == classFile:
				cp.Stats.Files++
				if e.flags&flagTorn != 0 {
					cp.NotCaptured = append(cp.NotCaptured, Missing{join(d.path, string(d.name(e))), Changing.String(), e.size})
				}
			case e.class == classLink || e.class == classIgnoredFile:
				cp.Stats.Files++
			case e.class == classSkipped:
				cp.NotCaptured = append(cp.NotCaptured, Missing{join(d.path, string(d.name(e))), e.reason.String(), e.size})
			case e.class == classSpecial:
				cp.Special = append(cp.Special, join(d.path, string(d.name(e))))
			}
		}
	}
	slices.SortFunc(cp.NotCaptured, func(a, b Missing) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(cp.Special)
	slices.Sort(cp.Nested)
	c := &s.counts
	cp.Stats.Listed, cp.Stats.Stated, cp.Stats.Hashed = int(c.listed.Load()), int(c.stated.Load()), int(c.hashed.Load())
	cp.Stats.Seeded, cp.Stats.Bytes = int(c.seeded.Load()), c.bytes.Load()
	return cp
}

// Shared keeps Collect from deleting anything until unlock is called. It waits
// while a Collect deletes, as long as ctx allows.
func (w *Worktree) Shared(ctx context.Context) (unlock func(), err error) {
	unlock, err = w.store.Shared(ctx)
	var locked *object.LockedError
	if errors.As(err, &locked) {
		return nil, &LockedError{What: "the store"}
	}
	return unlock, err
}
