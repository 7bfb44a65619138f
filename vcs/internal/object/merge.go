package object

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Every capture leaves a pack, and every process looks into all of them. So a
// Commit that finds many small ones copies them into one, as they are, and
// from time to time these into larger ones.
const (
	mergeAt   = 64       // packs of one size class
	mergeSize = 64 << 10 // below which is the first class
	mergeStep = 16       // from class to class
	mergeTop  = 16 << 20 // above which packs stay alone
)

// mergeSmall merges when it is time to. Objects only move, so it needs no
// lock against those who ask for them; against Repack it takes that one's,
// and does nothing if it is held.
func (s *Store) mergeSmall() error {
	set := s.cur.Load()
	if set == nil || len(set.packs) < mergeAt {
		return nil
	}
	one, err := os.OpenFile(filepath.Join(s.dir, "repack.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("merge packs: %w", err)
	}
	defer one.Close()
	if flockNow(one, unix.LOCK_EX) != nil {
		return nil // somebody is at it
	}
	if err := s.merge(s.mergeable(s.rescan(set))); err != nil {
		return fmt.Errorf("merge packs: %w", err)
	}
	return nil
}

// mergeable returns the packs of the lowest class that is full, and those
// below.
func (s *Store) mergeable(set *packSet) []*pack {
	alone := readRepacked(s.dir)
	for p := range readPartial(s.dir) {
		alone[p] = true
	}
	type sizedPack struct {
		p    *pack
		size int64
	}
	var all []sizedPack
	for _, p := range set.packs {
		var st unix.Stat_t
		if filepath.Dir(p.base) != s.packDir() || alone[filepath.Base(p.base)] || unix.Stat(p.packPath(), &st) != nil {
			continue
		}
		if st.Nlink == 1 && st.Size < mergeTop {
			all = append(all, sizedPack{p, st.Size})
		}
	}
	for limit := int64(mergeSize); limit <= mergeTop; limit *= mergeStep {
		var in []*pack
		for _, p := range all {
			if p.size < limit {
				in = append(in, p.p)
			}
		}
		if len(in) >= mergeAt {
			return in
		}
	}
	return nil
}

// merge copies packs into one and removes them. A pack that has deltas, or is
// damaged, is left as it is and not looked at again.
func (s *Store) merge(packs []*pack) error {
	if len(packs) == 0 {
		return nil
	}
	out := newPackOut(s.packDir())
	defer out.abort()
	m := &merger{out: out, seen: map[ID]bool{}}
	var gone []*pack
	alone := readRepacked(s.dir)
	left := len(alone)
	for _, p := range packs {
		ok, err := m.add(p)
		if err != nil {
			return err
		}
		if ok {
			gone = append(gone, p)
		} else {
			alone[filepath.Base(p.base)] = true
		}
	}
	if len(alone) > left {
		var lines []string
		for name := range alone {
			lines = append(lines, name)
		}
		if err := writeList(filepath.Join(s.dir, repackedName), lines); err != nil {
			return err
		}
	}
	if len(gone) < 2 {
		return nil
	}
	base, err := out.publish(true)
	if err != nil {
		return err
	}
	for _, p := range gone {
		if p.base == base {
			continue
		}
		for _, path := range []string{p.idxPath(), p.packPath()} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	s.rescan(s.cur.Load())
	return nil
}

type merger struct {
	out  *packOut
	seen map[ID]bool
}

// add copies the entries of a pack, if it has no deltas and every checksum is
// right.
func (m *merger) add(p *pack) (bool, error) {
	x, err := p.index()
	if err != nil {
		return false, skipDamaged(err)
	}
	f, err := p.open()
	if err != nil {
		return false, skipDamaged(err)
	}
	data := f.data
	if data == nil {
		data = make([]byte, f.size)
		if _, err := f.ReadAt(data, 0); err != nil {
			return false, skipDamaged(f.corrupt(0, noEOF(err)))
		}
	}
	entries := make([]indexEntry, x.count)
	for i := range entries {
		entries[i] = indexEntry{x.id(i), x.crc(i), x.offset(i)}
	}
	slices.SortFunc(entries, func(a, b indexEntry) int { return int(a.offset - b.offset) })
	raw := make([][]byte, len(entries))
	for i, e := range entries {
		end := f.size - 20
		if i+1 < len(entries) {
			end = entries[i+1].offset
		}
		if e.offset < packHeader || end <= e.offset || end > f.size-20 {
			return false, nil
		}
		raw[i] = data[e.offset:end]
		h, err := parseHeader(bytes.NewReader(raw[i]), e.offset)
		if err != nil || !h.kind.valid() || crc32.ChecksumIEEE(raw[i]) != e.crc {
			return false, nil
		}
	}
	for i, e := range entries {
		if m.seen[e.id] {
			continue
		}
		m.seen[e.id] = true
		if err := m.out.add(e.id, raw[i], e.crc); err != nil {
			return false, err
		}
	}
	return true, nil
}

func skipDamaged(err error) error {
	if errors.Is(err, ErrCorrupt) {
		return nil
	}
	return err
}
