package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// survey lists what is there.
func (r *repacker) survey() error {
	set := r.s.rescan(r.s.cur.Load())
	own := readRepacked(r.s.dir)
	for _, p := range set.packs {
		if filepath.Dir(p.base) != r.s.packDir() {
			continue // of an alternate: not ours
		}
		var st unix.Stat_t
		if err := unix.Stat(p.packPath(), &st); err != nil {
			return &os.PathError{Op: "stat", Path: p.packPath(), Err: err}
		}
		r.packs = append(r.packs, &oldPack{
			pack: p, size: st.Size, shared: st.Nlink > 1, ours: own[filepath.Base(p.base)],
		})
	}
	r.loose = map[ID]looseInfo{}
	for i := range 256 {
		sub := fmt.Sprintf("%02x", i)
		names, err := readNames(filepath.Join(r.s.objects[0], sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, n := range names {
			id, err := looseID(sub, n)
			if err != nil {
				continue
			}
			path := filepath.Join(r.s.objects[0], sub, n)
			var st unix.Stat_t
			if err := unix.Stat(path, &st); err != nil {
				return &os.PathError{Op: "stat", Path: path, Err: err}
			}
			r.loose[id] = looseInfo{path, st.Size, st.Nlink > 1}
		}
	}
	open, err := r.s.pendings()
	if err != nil {
		return err
	}
	for _, n := range open {
		path := filepath.Join(r.s.dir, n)
		f, err := os.Open(path)
		if err != nil {
			continue // its owner is done
		}
		if flockNow(f, unix.LOCK_EX) == nil {
			r.pending = append(r.pending, path)
		}
		f.Close()
	}
	return nil
}

// judge decides which packs stay. An unreadable one stops the repack: what
// it holds may be alive.
func (r *repacker) judge() error {
	for _, p := range r.packs {
		x, err := p.index()
		if err != nil {
			return err
		}
		order := x.byOffset()
		for k, i := range order {
			if _, ok := r.mark.index[x.id(int(i))]; !ok {
				continue
			}
			end := p.size - 20
			if k+1 < len(order) {
				end = x.offset(int(order[k+1]))
			}
			p.live++
			p.bytes += end - x.offset(int(i))
		}
		switch {
		case p.live == 0:
		case p.shared:
			p.keep = p.bytes >= p.size/10
		case !r.opt.Full && p.size >= keepAbove:
			p.keep = p.bytes >= p.size/5*4
		}
	}
	if !r.opt.Full {
		r.keepLone()
	}
	return r.trustKept()
}

// trustKept reads what would be left with its copy in a pack that is kept,
// since another copy goes: it may be the good one.
func (r *repacker) trustKept() error {
	for _, p := range r.packs {
		if p.keep || p.live == 0 {
			continue
		}
		x, err := p.index()
		if err != nil {
			return err
		}
		for i := range x.count {
			id := x.id(i)
			if _, live := r.mark.index[id]; !live {
				continue
			}
			if err := r.verifyKept(id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *repacker) verifyKept(id ID) error {
	for _, k := range r.packs {
		if !k.keep {
			continue
		}
		x, err := k.index()
		if err != nil {
			return err
		}
		if i := x.find(&id); i >= 0 {
			return k.verify(id, x.offset(i), &r.s.cache)
		}
	}
	return nil
}

// keepLone keeps the pack of the last repack when there would be nothing else
// to write.
func (r *repacker) keepLone() {
	var lone *oldPack
	for _, p := range r.packs {
		if p.live == 0 || p.keep {
			continue
		}
		if lone != nil {
			return
		}
		lone = p
	}
	if lone == nil || !lone.ours {
		return
	}
	if x, err := lone.index(); err != nil || x.count != lone.live {
		return
	}
	lone.keep = true
	if len(r.homeless()) > 0 {
		lone.keep = false
	}
}

// homeless returns the nodes that are in nothing that stays.
func (r *repacker) homeless() []int32 {
	stay := r.staying()
	var out []int32
	for i := range r.mark.nodes {
		n := &r.mark.nodes[i]
		if n.off > 0 || stay.has(&n.id) {
			continue
		}
		if l, ok := r.loose[n.id]; ok && l.shared {
			continue
		}
		out = append(out, int32(i))
	}
	return out
}

type packList []*pack

func (l packList) has(id *ID) bool {
	for _, p := range l {
		if x, err := p.index(); err == nil && x.find(id) >= 0 {
			return true
		}
	}
	return false
}

// staying returns the packs that will not be removed, those that came since
// the survey among them.
func (r *repacker) staying() packList {
	going := map[string]bool{}
	for _, p := range r.packs {
		if !p.keep {
			going[p.base] = true
		}
	}
	var stay packList
	for _, p := range r.s.set().packs {
		if !going[p.base] || r.isMade(p.base) {
			stay = append(stay, p)
		}
	}
	return stay
}

func (r *repacker) isMade(base string) bool {
	for _, m := range r.made {
		if m == base {
			return true
		}
	}
	return false
}
