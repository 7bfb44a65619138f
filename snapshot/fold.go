package snapshot

import (
	"errors"
	"fmt"
)

// Fold changes rows as the delta of the frame seq tells. See [Folding].
func (s *Set) Fold(seq int64, delta []byte) error {
	f := s.Folding(1)
	if err := f.Add(seq, delta); err != nil {
		return err
	}
	f.Close()
	return nil
}

// Folding folds many deltas into a set, and touches each row once however many
// tell of it. The set is as before until Close. After an error of Add nothing
// is to be had.
type Folding struct {
	set  *Set
	at   map[string]int32 // into rows
	rows []folded
	told []told
}

// folded is what the deltas so far have made of one row: what is encoded, unless
// the row is whole, and then what was told of it.
type folded struct {
	item
	place       int32 // in its bucket, where the set has the row
	first, last int32 // into told, and one
	bucket      byte
	there       bool // there is a row now
	whole       bool
}

// told is the fields of one entry, and where the next of the same row is.
type told struct {
	fields string
	next   int32
}

// Folding begins to fold about n deltas. The set must not be changed before it is
// closed.
func (s *Set) Folding(n int) *Folding {
	// A frame changes a row or two, and those that are changed often once more.
	return &Folding{set: s, at: make(map[string]int32, n), rows: make([]folded, 0, n), told: make([]told, 0, 2*n)}
}

var errNoFollow = errors.New("does not follow this state")

// Add folds the delta of a frame that comes after those added before. An error
// says that it is no delta, or none that could follow the state.
func (f *Folding) Add(seq int64, delta []byte) error {
	return eachEntry(string(delta), func(e Entry) error {
		r := f.row(e.Key)
		if err := r.fold(seq, e); err != nil {
			return fmt.Errorf("row %.80q: %w", e.Key, err)
		}
		if r.there {
			f.tell(r, e.fields)
		}
		return nil
	})
}

func (f *Folding) row(key string) *folded {
	i, ok := f.at[key]
	if !ok {
		i = int32(len(f.rows))
		r := folded{item: item{key: key, at: unknown}, bucket: bucketOf(key)}
		if b := f.set.buckets[r.bucket]; b != nil {
			i, there := b.find(key)
			if r.place, r.there = int32(i), there; there {
				r.item = b.items[i]
			}
		}
		f.rows = append(f.rows, r)
		f.at[r.key] = i
	}
	return &f.rows[i]
}

func (r *folded) fold(seq int64, e Entry) error {
	switch {
	case e.Back == 0 && r.there && r.at != unknown,
		e.Back != 0 && (!r.there || r.at != seq-e.Back),
		e.Gone && !r.there:
		return errNoFollow
	case e.Gone:
		*r = folded{item: item{key: r.key, at: unknown}, bucket: r.bucket, place: r.place}
		return nil
	case e.Whole:
		*r = folded{item: item{key: r.key}, bucket: r.bucket, place: r.place, whole: true}
	case r.depth+1 >= chain:
		return errNoFollow
	default:
		r.depth++
	}
	r.there, r.at = true, seq
	return nil
}

// tell adds fields to what was told of a row.
func (f *Folding) tell(r *folded, fields string) {
	f.told = append(f.told, told{fields: fields})
	n := int32(len(f.told))
	if r.last == 0 {
		r.first = n
	} else {
		f.told[r.last-1].next = n
	}
	r.last = n
}

// Close makes the set what the deltas say.
func (f *Folding) Close() {
	for i := range f.rows {
		r := &f.rows[i]
		if !r.there {
			f.set.Delete(r.key)
			continue
		}
		f.encode(r)
		f.set.putAt(r.bucket, int(r.place), r.item)
	}
	f.at, f.rows, f.told = nil, nil, nil
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
