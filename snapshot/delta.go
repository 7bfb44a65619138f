package snapshot

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// chain is how many deltas may be needed to know the whole of one row.
const chain = 16

// Entry is what one frame says of one row.
type Entry struct {
	Key string

	// Back is how many frames ago the row was changed before; 0 when the row
	// is new.
	Back int64

	// Gone tells that the row was deleted.
	Gone bool

	// Whole tells that nothing of the row is left out. Otherwise only the
	// fields that have changed are there, and the rest is as it was Back
	// frames ago.
	Whole bool

	fields string
}

// Row is the row after the frame, given the one before it. What is before a
// Whole entry does not matter.
func (e Entry) Row(before Row) Row {
	if e.Whole {
		before = Row{}
	}
	before.Key = e.Key
	_ = eachField(e.fields, func(tag byte, v string) error { before.setValue(tag, v); return nil }) // was checked
	return before
}

const (
	entryGone byte = 1 << iota
	entryWhole
)

// Advance changes rows as the frame seq does and returns the delta that tells
// of it, with the changes sorted by key. A row that is put as it was, or
// deleted where there is none, is no change. On an error, which is about a row
// or a key, the set is as before.
func (s *Set) Advance(seq int64, put []Row, drop []string) (delta []byte, changes []Change, err error) {
	entries := make([]entry, 0, len(put)+len(drop))
	for i := range put {
		if err := put[i].Check(); err != nil {
			return nil, nil, err
		}
		if e, ok := s.putEntry(seq, &put[i]); ok {
			entries = append(entries, e)
		}
	}
	for _, key := range drop {
		if old, ok := s.item(key); ok {
			entries = append(entries, entry{old: old, had: true, new: item{key: key}, gone: true})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.new.key, b.new.key) })
	for i := 1; i < len(entries); i++ {
		if entries[i].new.key == entries[i-1].new.key {
			return nil, nil, fmt.Errorf("row %q is changed twice in one frame", entries[i].new.key)
		}
	}
	delta = binary.AppendUvarint(nil, uint64(len(entries)))
	for _, e := range entries {
		delta = e.append(delta, seq)
		changes = append(changes, e.change())
		if e.gone {
			s.Delete(e.new.key)
		} else {
			s.put(e.new)
		}
	}
	return delta, changes, nil
}

// entry is an Entry in the making.
type entry struct {
	old, new item
	had      bool // there was a row
	gone     bool
	row      *Row
}

func (s *Set) putEntry(seq int64, r *Row) (entry, bool) {
	e := entry{row: r, new: item{encoded: encodeRow(r), at: seq}}
	if e.old, e.had = s.item(r.Key); !e.had {
		e.new.key = strings.Clone(r.Key)
		return e, true
	}
	e.new.key = e.old.key
	if e.old.at != unknown && e.old.depth+1 < chain {
		e.new.depth = e.old.depth + 1
	}
	return e, e.old.encoded != e.new.encoded
}

func (e *entry) append(b []byte, seq int64) []byte {
	var flags byte
	var back uint64
	if e.had && e.old.at != unknown {
		back = uint64(seq - e.old.at)
	}
	switch {
	case e.gone:
		flags = entryGone
	case e.new.depth == 0:
		flags = entryWhole
	}
	b = append(b, flags)
	b = appendText(b, e.new.key)
	b = binary.AppendUvarint(b, back)
	if e.gone {
		return b
	}
	var scratch [512]byte
	fields := scratch[:0]
	if flags == entryWhole {
		for tag := tagKind; tag < tags; tag++ {
			fields = appendField(fields, e.row, tag)
		}
	} else {
		fields = appendChanged(fields, decodeRow(e.old.encoded), e.row)
	}
	b = binary.AppendUvarint(b, uint64(len(fields)))
	return append(b, fields...)
}

// appendChanged appends the fields in which two rows differ, as the newer has
// them. One that says nothing any more has an empty value.
func appendChanged(b []byte, old Row, new *Row) []byte {
	var x, y [128]byte
	for tag := tagKind; tag < tags; tag++ {
		was, is := old.value(x[:0], tag), new.value(y[:0], tag)
		switch {
		case string(was) == string(is):
		case len(is) == 0:
			b = append(b, tag, 0)
		default:
			b = appendField(b, new, tag)
		}
	}
	return b
}

func (e *entry) change() Change {
	c := Change{Key: e.new.key}
	if e.had {
		c.Old = e.old.row()
	}
	if !e.gone {
		c.New = e.new.row()
	}
	return c
}

// DecodeDelta reads a delta, and nothing but what Advance could have written.
func DecodeDelta(delta []byte) ([]Entry, error) {
	var entries []Entry
	err := eachEntry(string(delta), func(e Entry) error { entries = append(entries, e); return nil })
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func eachEntry(delta string, do func(Entry) error) error {
	n, rest, err := cutNumber(delta)
	if err != nil {
		return fmt.Errorf("delta: %w", err)
	}
	last := ""
	for ; n > 0; n-- {
		var e Entry
		if e, rest, err = cutEntry(rest); err == nil && e.Key <= last {
			err = errNotCanonical
		}
		if err == nil {
			err = do(e)
		}
		if err != nil {
			return fmt.Errorf("delta: %w", err)
		}
		last = e.Key
	}
	if rest != "" {
		return fmt.Errorf("delta: %w", errNotCanonical)
	}
	return nil
}

// cutEntry takes an entry off the front of a delta.
func cutEntry(s string) (e Entry, rest string, err error) {
	if s == "" || s[0] > entryWhole {
		return e, "", errNotCanonical
	}
	e.Gone, e.Whole = s[0]&entryGone != 0, s[0]&entryWhole != 0
	if e.Key, s, err = cutText(s[1:]); err != nil {
		return e, "", err
	}
	back, s, err := cutNumber(s)
	if err != nil || back > 1<<62 {
		return e, "", errNotCanonical
	}
	e.Back = int64(back)
	if e.Key == "" || back == 0 && !e.Gone && !e.Whole {
		return e, "", errNotCanonical // there is nothing it could be a change of
	}
	if e.Gone {
		return e, s, nil
	}
	if e.fields, s, err = cutText(s); err != nil {
		return e, "", err
	}
	if !e.Whole && e.fields == "" {
		return e, "", errNotCanonical
	}
	return e, s, eachField(e.fields, func(tag byte, v string) error {
		if v == "" && !e.Whole {
			return nil
		}
		return checkValue(tag, v)
	})
}

// ChangedAt returns the frame that changed a row last, as far as the set was
// advanced or folded from the beginning.
func (s *Set) ChangedAt(key string) (seq int64, ok bool) {
	it, ok := s.item(key)
	return it.at, ok && it.at != unknown
}
