package snapshot

import (
	"errors"
	"fmt"
	"slices"
)

// Fold changes rows as the delta of the frame seq tells. See [Folding].
func (s *Set) Fold(seq int64, delta []byte) error {
	f := NewFolding(1)
	if err := f.Add(seq, string(delta)); err != nil {
		return err
	}
	return f.Onto(s)
}

// Folding folds many deltas into a set, and touches each row once however many
// tell of it. The deltas are read before the set is needed.
type Folding struct {
	at   map[string]int32 // into rows
	rows []folded
	told []told
}

// folded is a row that deltas tell of.
type folded struct {
	item
	place       int32 // in its bucket, where the set has the row
	first, last int32 // into told, and one; of what makes the row
	bucket      byte
	known       bool // the set has the row
	there       bool // there is a row
	whole       bool // what was told is all of it
}

// told is one entry, whose key the row has, and where the next of the same row
// is.
type told struct {
	fields      string
	seq, back   int64
	next        int32
	gone, whole bool
}

// NewFolding begins to fold about n deltas.
func NewFolding(n int) *Folding {
	// A frame changes a row or two, and those that are changed often once more.
	return &Folding{at: make(map[string]int32, n), rows: make([]folded, 0, n), told: make([]told, 0, n+n/2)}
}

var errNoFollow = errors.New("does not follow this state")

// Add takes the delta of a frame that comes after those added before. An error
// says that it is no delta; then nothing is to be had.
func (f *Folding) Add(seq int64, delta string) error {
	return eachEntry(delta, func(e Entry) error {
		f.told = append(f.told, told{fields: e.fields, seq: seq, back: e.Back, gone: e.Gone, whole: e.Whole})
		n := int32(len(f.told))
		i, ok := f.at[e.Key]
		if !ok {
			f.at[e.Key] = int32(len(f.rows))
			f.rows = append(f.rows, folded{item: item{key: e.Key, at: unknown}, first: n, last: n})
			return nil
		}
		r := &f.rows[i]
		f.told[r.last-1].next, r.last = n, n
		return nil
	})
}

// Onto makes of the set what the deltas say. An error says which frame could not
// follow; then the set is as it was.
func (f *Folding) Onto(s *Set) error {
	if err := f.make(s); err != nil {
		return err
	}
	var more [buckets]int
	for i := range f.rows {
		if r := &f.rows[i]; r.there && !r.known {
			more[r.bucket]++
		}
	}
	for i, n := range more {
		if n > 0 {
			b := s.writable(byte(i))
			b.items = slices.Grow(b.items, n)
		}
	}
	for i := range f.rows {
		if r := &f.rows[i]; r.there {
			s.putAt(r.bucket, int(r.place), r.item)
		} else {
			s.Delete(r.key)
		}
	}
	f.at, f.rows, f.told = nil, nil, nil
	return nil
}

// manyRows is from how many rows on they are made on two cores.
const manyRows = 2048

// make makes the rows, and leaves the set alone.
func (f *Folding) make(s *Set) error {
	some := func(rows []folded) error {
		for i := range rows {
			if err := f.prove(&rows[i], s); err != nil {
				return err
			}
			if rows[i].there {
				f.encode(&rows[i])
			}
		}
		return nil
	}
	if len(f.rows) < manyRows {
		return some(f.rows)
	}
	other, half := make(chan error, 1), len(f.rows)/2
	go func() { other <- some(f.rows[:half]) }()
	err := some(f.rows[half:])
	if first := <-other; first != nil {
		return first
	}
	return err
}

// prove follows what was told of a row, from what the set has of it.
func (f *Folding) prove(r *folded, s *Set) error {
	r.bucket = bucketOf(r.key)
	if b := s.buckets[r.bucket]; b != nil {
		i, there := b.find(r.key)
		if r.place, r.known, r.there = int32(i), there, there; there {
			r.item = b.items[i]
		}
	}
	for i := r.first; i != 0; i = f.told[i-1].next {
		e := &f.told[i-1]
		if err := r.fold(e); err != nil {
			return fmt.Errorf("frame %d: row %.80q: %w", e.seq, r.key, err)
		}
		if e.whole {
			r.first = i
		} else if e.gone {
			r.first = e.next
		}
	}
	return nil
}

func (r *folded) fold(e *told) error {
	switch {
	case e.back == 0 && r.there && r.at != unknown,
		e.back != 0 && (!r.there || r.at != e.seq-e.back),
		e.gone && !r.there:
		return errNoFollow
	case e.gone:
		r.item, r.there, r.whole = item{key: r.key, at: unknown}, false, false
		return nil
	case e.whole:
		r.item, r.whole = item{key: r.key}, true
	case r.depth+1 >= chain:
		return errNoFollow
	default:
		r.depth++
	}
	r.there, r.at = true, e.seq
	return nil
}

// encode puts the fields that were told in the place of those that were there.
func (f *Folding) encode(r *folded) {
	var values [tags]string
	take := func(fields string) {
		for fields != "" {
			tag, v, rest, err := cutField(fields)
			if err != nil {
				panic("BUG: a row was not checked: " + err.Error())
			}
			values[tag], fields = v, rest
		}
	}
	if !r.whole {
		take(fieldsOf(r.encoded))
	}
	for i := r.first; i != 0; i = f.told[i-1].next {
		take(f.told[i-1].fields)
	}
	var scratch [512]byte
	b := appendText(scratch[:0], r.key)
	for tag := tagKind; tag < tags; tag++ {
		if v := values[tag]; v != "" {
			b = appendText(append(b, tag), v)
		}
	}
	r.encoded = withLength(b)
}

// bodyOf is an encoded row without its length.
func bodyOf(encoded string) string {
	body, _, err := cutText(encoded)
	if err != nil {
		panic("BUG: a row was not checked: " + err.Error())
	}
	return body
}

// fieldsOf is an encoded row without its key.
func fieldsOf(encoded string) string {
	_, fields, err := cutText(bodyOf(encoded))
	if err != nil {
		panic("BUG: a row was not checked: " + err.Error())
	}
	return fields
}
