package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
)

const buckets = 256

// Set is a state: rows by key, with a root that is the same for the same rows
// and for no others. The zero value is empty and ready to use. One goroutine at
// a time may use it, reading included; a clone is independent of it.
type Set struct {
	buckets [buckets]*bucket
	n       int
	root    Hash
	rooted  bool // root is up to date
	owner   *token
}

// token tells whose buckets may be changed in place. A clone shares buckets
// until one side changes them.
type token struct{ _ byte }

// bucket holds the rows whose hashed key begins with one byte, sorted by key.
type bucket struct {
	items  []item
	hash   Hash
	hashed bool
	owner  *token
}

// item is a row in canonical form, and what a delta must know of its past.
type item struct {
	key     string
	encoded string
	at      int64 // the frame that changed it last; unknown when it was only put
	depth   uint8 // how many deltas lead back to one that has all of it
}

// unknown is the past of a row that no frame has told of.
const unknown = -1

// NewSet returns an empty set.
func NewSet() *Set { return &Set{} }

func bucketOf(key string) byte {
	var scratch [128]byte
	h := sha256.Sum256(append(scratch[:0], key...))
	return h[0]
}

// find is slices.BinarySearchFunc, written out: nothing else is called as often
// when a state is loaded.
func (b *bucket) find(key string) (int, bool) {
	low, high := 0, len(b.items)
	for low < high {
		if middle := (low + high) / 2; b.items[middle].key < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(b.items) && b.items[low].key == key
}

func (s *Set) item(key string) (item, bool) {
	b := s.buckets[bucketOf(key)]
	if b == nil {
		return item{}, false
	}
	i, ok := b.find(key)
	if !ok {
		return item{}, false
	}
	return b.items[i], true
}

// writable returns a bucket, for this set alone.
func (s *Set) writable(at byte) *bucket {
	if s.owner == nil {
		s.owner = new(token)
	}
	b := s.buckets[at]
	switch {
	case b == nil:
		b = &bucket{owner: s.owner}
	case b.owner != s.owner:
		b = &bucket{items: slices.Clone(b.items), owner: s.owner}
	}
	b.hashed, s.rooted = false, false
	s.buckets[at] = b
	return b
}

func (s *Set) put(it item) { s.putAt(bucketOf(it.key), 0, it) }

// putAt is put for a bucket and the place in it where the row was last seen, if
// it was.
func (s *Set) putAt(at byte, i int, it item) {
	b := s.writable(at)
	if i >= len(b.items) || b.items[i].key != it.key {
		var ok bool
		if i, ok = b.find(it.key); !ok {
			b.items = slices.Insert(b.items, i, it)
			s.n++
			return
		}
	}
	b.items[i] = it
}

// Put adds a row, or replaces the one with its key. The row must pass
// [Row.Check].
func (s *Set) Put(r Row) {
	if err := r.Check(); err != nil {
		panic("BUG: " + err.Error())
	}
	s.put(item{key: strings.Clone(r.Key), encoded: encodeRow(&r), at: unknown})
}

// Delete removes a row and tells whether there was one.
func (s *Set) Delete(key string) bool {
	if _, ok := s.item(key); !ok {
		return false
	}
	b := s.writable(bucketOf(key))
	i, _ := b.find(key)
	b.items = slices.Delete(b.items, i, i+1)
	s.n--
	return true
}

// Get returns the row with a key.
func (s *Set) Get(key string) (Row, bool) {
	it, ok := s.item(key)
	if !ok {
		return Row{}, false
	}
	return decodeRow(it.encoded), true
}

// Has tells that a row is there as it is.
func (s *Set) Has(r *Row) bool {
	it, ok := s.item(r.Key)
	var room [512]byte
	return ok && string(appendRow(room[:0], r)) == bodyOf(it.encoded)
}

// InState returns the keys of the rows that are in a state, in no order.
func (s *Set) InState(state State) (keys []string) {
	for it := range s.items() {
		if stateOf(it.encoded) == state {
			keys = append(keys, it.key)
		}
	}
	return keys
}

// Len is how many rows there are.
func (s *Set) Len() int { return s.n }

// Rows hands out the rows in the order of their keys.
func (s *Set) Rows() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for _, it := range s.sorted() {
			if !yield(decodeRow(it.encoded)) {
				return
			}
		}
	}
}

func (s *Set) sorted() []item {
	items := make([]item, 0, s.n)
	for _, b := range s.buckets {
		if b != nil {
			items = append(items, b.items...)
		}
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.key, b.key) })
	return items
}

// Clone returns a set that goes its own way. It costs no more than Root,
// whatever the size.
func (s *Set) Clone() *Set {
	s.Root() // a bucket that is shared is not written to, not even its hash
	c := *s
	s.owner, c.owner = nil, nil // whoever changes a shared bucket first copies it
	return &c
}

// Root is the hash of the whole state. It depends on the rows alone, and costs
// what has changed since it was last asked for.
//
// The rows are parted into 256 buckets by the first byte of their hashed key
// and sorted by key within; the root is the hash over the buckets' hashes. The
// first byte of what is hashed keeps buckets, roots and contents apart.
func (s *Set) Root() Hash {
	if s.rooted {
		return s.root
	}
	var room [32 + buckets*33]byte
	top := append(room[:0], 1)
	top = append(top, "retcon.state.v1"...)
	top = binary.AppendUvarint(top, uint64(s.n))
	s.sum()
	for i, b := range s.buckets {
		if b == nil || len(b.items) == 0 {
			continue
		}
		top = append(top, byte(i))
		top = append(top, b.hash[:]...)
	}
	s.root, s.rooted = sha256.Sum256(top), true
	return s.root
}

// crowd is how many rows are hashed on two cores: those of a state that was
// just loaded, and not those that a frame changes.
const crowd = 4096

// sum computes the hashes of buckets that are not known.
func (s *Set) sum() {
	rows := 0
	for _, b := range s.buckets {
		if b != nil && !b.hashed {
			rows += len(b.items)
		}
	}
	if rows < crowd {
		sumBuckets(s.buckets[:])
		return
	}
	var other sync.WaitGroup
	other.Go(func() { sumBuckets(s.buckets[:buckets/2]) })
	sumBuckets(s.buckets[buckets/2:])
	other.Wait()
}

func sumBuckets(all []*bucket) {
	var rows [4096]byte // enough for most buckets
	scratch := rows[:0]
	for _, b := range all {
		if b != nil && len(b.items) > 0 {
			scratch = b.sum(scratch)
		}
	}
}

// sum computes the bucket's hash unless it is known. It uses scratch and returns
// it for the next one.
func (b *bucket) sum(scratch []byte) []byte {
	if b.hashed {
		return scratch
	}
	rows := append(scratch[:0], 0)
	for _, it := range b.items {
		rows = append(rows, it.encoded...)
	}
	b.hash, b.hashed = sha256.Sum256(rows), true
	return rows
}

// String is for messages: how many rows, and the root.
func (s *Set) String() string { return fmt.Sprintf("%d rows, root %s", s.n, s.Root().Short()) }
