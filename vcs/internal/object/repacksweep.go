package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sweep removes. The exclusive lock is held, and everything alive is in what
// stays: that is checked once more, object by object.
func (r *repacker) sweep(lock *os.File) error {
	r.s.rescan(r.s.cur.Load())
	stay := r.staying()
	for i := range r.mark.nodes {
		id := &r.mark.nodes[i].id
		if l, ok := r.loose[*id]; !stay.has(id) && !(ok && l.shared) {
			if r.s.Has(*id) { // came loose meanwhile
				continue
			}
			return &MissingError{ID: *id}
		}
	}
	partial, packed := r.lists()
	if err := writeList(filepath.Join(r.s.dir, partialName), partial); err != nil {
		return err
	}
	if err := writeList(filepath.Join(r.s.dir, repackedName), packed); err != nil {
		return err
	}
	r.opt.Crash("listed")
	if err := bumpGeneration(lock); err != nil {
		return err
	}
	r.opt.Crash("counted")
	if err := r.removePacks(); err != nil {
		return err
	}
	if err := r.removeLoose(); err != nil {
		return err
	}
	r.opt.Crash("removed")
	for _, path := range r.pending {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := r.tidy(); err != nil {
		return err
	}
	r.s.rescan(r.s.cur.Load())
	r.opt.Crash("done")
	return nil
}

// lists returns the packs that keep dead objects, whose own mentions may now
// go, and those made by this and earlier repacks.
func (r *repacker) lists() (partial, packed []string) {
	for _, m := range r.made {
		packed = append(packed, filepath.Base(m))
	}
	before := readPartial(r.s.dir)
	for _, p := range r.packs {
		if !p.keep || r.isMade(p.base) {
			continue
		}
		name := filepath.Base(p.base)
		if x, err := p.index(); err != nil || x.count != p.live || before[name] {
			partial = append(partial, name)
		}
		if p.ours {
			packed = append(packed, name)
		}
	}
	return partial, packed
}

func (r *repacker) removePacks() error {
	for _, p := range r.packs {
		if p.keep || r.isMade(p.base) {
			r.stats.PacksKept++
			continue
		}
		// The index first: a pack without one is a left-over that gets removed.
		for _, path := range []string{p.idxPath(), p.packPath()} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r.opt.Crash("remove" + filepath.Ext(path))
		}
		r.stats.PacksRemoved++
		if !p.shared {
			r.stats.Freed += p.size
		}
	}
	return syncDir(r.s.packDir())
}

func (r *repacker) removeLoose() error {
	stay := r.staying()
	for id, l := range r.loose {
		if _, live := r.mark.index[id]; live && !stay.has(&id) {
			continue
		}
		if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.opt.Crash("remove.loose")
		r.stats.LooseRemoved++
		if !l.shared {
			r.stats.Freed += l.size
		}
	}
	for i := range 256 {
		os.Remove(filepath.Join(r.s.objects[0], fmt.Sprintf("%02x", i))) // only if empty
	}
	return nil
}

// tidy removes left-overs; the exclusive lock is held.
func (r *repacker) tidy() error {
	names, err := readNames(r.s.packDir())
	if err != nil {
		return err
	}
	var orphans []string
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, tempPrefix):
			if err := removeIdle(filepath.Join(r.s.packDir(), n)); err != nil {
				return err
			}
		case strings.HasSuffix(n, ".pack"):
			orphans = append(orphans, n)
		}
	}
	return removeOrphanFiles(r.s.packDir(), orphans)
}
