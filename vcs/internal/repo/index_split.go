package repo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// indexLink is the extension of a split index: the shared file it builds on,
// and which of that file's entries are deleted or replaced.
type indexLink struct {
	base     OID // zero: nothing is shared
	deleted  []bool
	replaced []bool
}

func parseLink(b []byte) (*indexLink, error) {
	l := &indexLink{}
	if len(b) < len(l.base) {
		return nil, errors.New("truncated link to a shared index")
	}
	b = b[copy(l.base[:], b):]
	if len(b) == 0 {
		return l, nil
	}
	var err error
	if l.deleted, b, err = parseEWAH(b); err != nil {
		return nil, err
	}
	l.replaced, _, err = parseEWAH(b)
	return l, err
}

// unsplit puts the shared file's entries and x's own together. Entries of x
// without a name come first and replace, in order, those that are marked. A
// shared file that is missing or unreadable leaves the index Degraded.
func (r *Repo) unsplit(x *Index, l *indexLink, opts IndexOptions) error {
	if l.base == (OID{}) {
		return x.checkOrder()
	}
	base, err := readIndexFile(filepath.Join(r.GitDir, "sharedindex."+l.base.String()))
	if err == nil && base.Raw == nil {
		err = errors.New("no such file")
	}
	if err == nil {
		_, err = base.decode(opts, true)
	}
	if err != nil {
		x.degrade(fmt.Sprintf("split index: shared file %s: %v", l.base, err))
		x.Entries, x.Tree = nil, nil
		return nil
	}
	if base.Degraded != "" {
		x.degrade(base.Degraded)
	}
	x.Sparse = x.Sparse || base.Sparse
	return x.merge(base, l)
}

func (x *Index) merge(base *Index, l *indexLink) error {
	own := x.Entries
	merged := make([]Entry, 0, len(base.Entries)+len(own))
	for i := range base.Entries {
		e := base.Entries[i]
		if marked(l.replaced, i) {
			if len(own) == 0 || own[0].nameLen != 0 {
				return errors.New("split index: too few replacements")
			}
			name, nameLen := e.name, e.nameLen
			e, own = own[0], own[1:]
			e.name, e.nameLen = name, nameLen
		}
		if !marked(l.deleted, i) {
			merged = append(merged, e)
		}
	}
	if len(base.Entries) < marksIn(l.deleted) || len(base.Entries) < marksIn(l.replaced) {
		return errors.New("split index: marks beyond the shared file")
	}
	shift := len(base.names)
	if shift+len(x.names) > maxIndex {
		return errors.New("split index: names too long")
	}
	for _, e := range own {
		if e.nameLen == 0 {
			return errors.New("split index: too many replacements")
		}
		e.name += uint32(shift)
		merged = append(merged, e)
	}
	x.names = base.names + x.names
	x.Entries = merged
	slices.SortStableFunc(x.Entries, func(a, b Entry) int {
		if c := strings.Compare(x.nameOf(&a), x.nameOf(&b)); c != 0 {
			return c
		}
		return int(a.Stage) - int(b.Stage)
	})
	return x.checkOrder()
}

func (x *Index) nameOf(e *Entry) string { return x.names[e.name : e.name+e.nameLen] }

func marked(bits []bool, i int) bool { return i < len(bits) && bits[i] }

// marksIn returns one more than the last bit that is set.
func marksIn(bits []bool) int {
	n := len(bits)
	for n > 0 && !bits[n-1] {
		n--
	}
	return n
}

// parseEWAH expands a compressed bitmap: runs of equal 64-bit words followed
// by literal ones, each group headed by a word that says how many.
func parseEWAH(b []byte) (bits []bool, rest []byte, err error) {
	bad := errors.New("bad bitmap in the link to a shared index")
	if len(b) < 8 {
		return nil, nil, bad
	}
	size, words := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	b = b[8:]
	if uint64(len(b)) < uint64(words)*8+4 || size > maxIndex/fixedPart {
		return nil, nil, bad
	}
	bits = make([]bool, size)
	at := 0
	put := func(word uint64) {
		for i := range 64 {
			if at+i < len(bits) {
				bits[at+i] = word>>i&1 == 1
			}
		}
		at += 64
	}
	for words > 0 {
		head := binary.BigEndian.Uint64(b)
		b, words = b[8:], words-1
		run, literals := head>>1&0xffffffff, uint32(head>>33)
		fill := uint64(0)
		if head&1 == 1 {
			fill = ^uint64(0)
		}
		for ; run > 0 && at < len(bits); run-- {
			put(fill)
		}
		if literals > words {
			return nil, nil, bad
		}
		for ; literals > 0; literals-- {
			put(binary.BigEndian.Uint64(b))
			b, words = b[8:], words-1
		}
	}
	return bits, b[4:], nil // a pointer used only while writing
}
