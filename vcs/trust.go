package vcs

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

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
