package snapshot

import (
	"errors"
	"fmt"
)

// Fold changes rows as the delta of the frame seq tells. See [Folding].
func (s *Set) Fold(seq int64, delta []byte) error {
	f := s.Folding()
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
}

// folded is what the deltas so far have made of one row.
type folded struct {
	item
	there  bool // there is a row now
	whole  bool // all fields are in values; otherwise the rest is in encoded
	values [tags]string
	told   [tags]bool
}

// Folding begins to fold. The set must not be changed before it is closed.
func (s *Set) Folding() *Folding { return &Folding{set: s, at: map[string]int32{}} }

var errNoFollow = errors.New("does not follow this state")

// Add folds the delta of a frame that comes after those added before. An error
// says that it is no delta, or none that could follow the state.
func (f *Folding) Add(seq int64, delta []byte) error {
	return eachEntry(string(delta), func(e Entry) error {
		if err := f.row(e.Key).fold(seq, e); err != nil {
			return fmt.Errorf("row %.80q: %w", e.Key, err)
		}
		return nil
	})
}

func (f *Folding) row(key string) *folded {
	i, ok := f.at[key]
	if !ok {
		i = int32(len(f.rows))
		it, there := f.set.item(key)
		if !there {
			it = item{key: key, at: unknown}
		}
		f.rows = append(f.rows, folded{item: it, there: there})
		f.at[it.key] = i
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
		*r = folded{item: item{key: r.key, at: unknown}}
		return nil
	case e.Whole:
		*r = folded{item: item{key: r.key}, whole: true}
	case r.depth+1 >= chain:
		return errNoFollow
	default:
		r.depth++
	}
	r.there, r.at = true, seq
	return eachField(e.fields, func(tag byte, v string) error {
		r.values[tag], r.told[tag] = v, true
		return nil
	})
}

// Close makes the set what the deltas say.
func (f *Folding) Close() {
	for i := range f.rows {
		r := &f.rows[i]
		if !r.there {
			f.set.Delete(r.key)
			continue
		}
		r.encode()
		f.set.put(r.item)
	}
	f.at, f.rows = nil, nil
}

// encode puts the fields that were told in the place of those that were there.
func (r *folded) encode() {
	if !r.whole {
		body, _, err := cutText(r.encoded)
		if err == nil {
			_, body, err = cutText(body)
		}
		if err == nil {
			err = eachField(body, func(tag byte, v string) error {
				if !r.told[tag] {
					r.values[tag] = v
				}
				return nil
			})
		}
		if err != nil {
			panic("BUG: a row was not checked: " + err.Error())
		}
	}
	var scratch [512]byte
	b := appendText(scratch[:0], r.key)
	for tag := tagKind; tag < tags; tag++ {
		if v := r.values[tag]; v != "" {
			b = appendText(append(b, tag), v)
		}
	}
	r.encoded = withLength(b)
}
