package vcs

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

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
	wr.Plain = opt.Quick
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
	if w.repo == nil {
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
	b := &builder{s: s, modes: prev.Modes}
	if fresh {
		b.modes = commonModes(s.dirs)
	}
	if err := b.build(); err != nil {
		return nil, cache, err
	}
	same := !s.touched() && prev.Commit != "" && prev.Capture != nil && git.equal(prev.Git)
	var commit Commit
	var tree string
	if same {
		commit, tree = prev.Commit, prev.Capture.Tree
	} else if commit, tree, err = b.commit(git, prev.Commit); err != nil {
		return nil, cache, err
	}
	cp := s.report(commit, tree, git)
	cp.Stats.Objects = wr.Len()
	if fresh {
		go w.store.Unread() // else the end of the process takes a millisecond longer
	}
	if err := wr.Commit(opt.Sync); err != nil {
		return nil, cache, fmt.Errorf("store: %w", err)
	}
	if !same || digest != prev.Rules || prev.Boot != bootID() || cache.doubtful {
		next := facts{Root: [2]uint64{w.dev, w.ino}, Store: w.storeID, Rules: digest, Modes: b.modes, Scan: s.start, Boot: bootID(),
			Commit: commit, Capture: cp, Git: git, Generation: w.store.Generation(), Packs: w.packNames()}
		var st fileStat
		if err := statPath(w.packDir(), &st); err == nil {
			next.PackTime = st.mtime
		}
		cache.facts = next
		if cache.resident {
			cache.unsaved = true
		} else if err := cache.update(w.cachePath()); err != nil {
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
		if !d.told || d.touched.Load() {
			d.tally()
		}
		cp.Stats.Files += d.files
		if d.odd {
			d.report(cp)
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

// tally counts what report is asked for of a directory, so that it need not be
// counted again before the directory is touched.
func (d *dirRec) tally() {
	d.files, d.odd, d.told = 0, false, true
	for i := range d.entries {
		switch e := &d.entries[i]; e.class {
		case classFile:
			d.files++
			d.odd = d.odd || e.flags&flagTorn != 0
		case classLink, classIgnoredFile:
			d.files++
		case classSkipped, classSpecial:
			d.odd = true
		}
	}
}

// report adds what is odd in a directory.
func (d *dirRec) report(cp *Capture) {
	for i := range d.entries {
		e := &d.entries[i]
		switch {
		case e.class == classFile && e.flags&flagTorn != 0:
			cp.NotCaptured = append(cp.NotCaptured, Missing{join(d.path, string(d.name(e))), Changing.String(), e.size})
		case e.class == classSkipped:
			cp.NotCaptured = append(cp.NotCaptured, Missing{join(d.path, string(d.name(e))), e.reason.String(), e.size})
		case e.class == classSpecial:
			cp.Special = append(cp.Special, join(d.path, string(d.name(e))))
		}
	}
}
