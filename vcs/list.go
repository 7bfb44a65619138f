package vcs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// found is a name that a directory was found to hold.
type found struct {
	first    uint64 // its first bytes, in an order that agrees with that of names
	off, len int
	kind     byte
}

// first8 are the first bytes of a name, as a number.
func first8(name []byte) uint64 {
	var b [8]byte
	copy(b[:], name)
	return binary.BigEndian.Uint64(b[:])
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
		if string(name) == stageName || at == 0 && string(name) == s.own {
			return
		}
		wk.found = append(wk.found, found{first: first8(name), off: len(wk.names), len: len(name), kind: kind})
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
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
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
	all := string(wk.names)
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
		e, err := s.classify(d, fd, all[f.off:f.off+f.len+1], f.kind, chain)
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
func (s *scanner) classify(d *dirRec, fd int, cname string, kind byte, chain *ignore.Chain) (entry, error) {
	name := cname[:len(cname)-1]
	e := entry{child: -1}
	if kind == dtUnknown {
		var st fileStat
		if err := statName(fd, name, &st); err != nil {
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

// reservedName tells that no git tree may hold name: a spelling of .git on some
// filesystem that folds case, drops trailing dots or has short names.
func reservedName(name string) bool {
	if len(name) < 4 || len(name) > 64 || name[0] != '.' && name[0]|0x20 != 'g' && name[0] < 0x80 {
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
	if strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 }) < 0 {
		return false // nothing in it is ignored
	}
	bare := strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name)
	return bare != name && strings.EqualFold(bare, ".git")
}
