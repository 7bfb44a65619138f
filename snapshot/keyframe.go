package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// keyframeVersion is the first byte of a keyframe.
const keyframeVersion = 1

// Keyframe is the whole state as of the frame seq, with what the deltas after it
// must know: how many rows each bucket has, their pasts, and the rows. It is not
// compressed.
func (s *Set) Keyframe(seq int64) []byte {
	size := 1 + 2*buckets
	for it := range s.items() {
		size += len(it.encoded) + 5
	}
	body := append(make([]byte, 0, size), keyframeVersion)
	for _, b := range s.buckets {
		n := 0
		if b != nil {
			n = len(b.items)
		}
		body = binary.AppendUvarint(body, uint64(n))
	}
	for it := range s.items() {
		past := uint64(0)
		if it.at != unknown {
			past = uint64(seq-it.at) + 1
		}
		body = binary.AppendUvarint(body, past)
		body = append(body, it.depth)
	}
	for it := range s.items() {
		body = append(body, it.encoded...)
	}
	return body
}

// items hands out the rows in the order of buckets.
func (s *Set) items() func(yield func(item) bool) {
	return func(yield func(item) bool) {
		for _, b := range s.buckets {
			if b == nil {
				continue
			}
			for _, it := range b.items {
				if !yield(it) {
					return
				}
			}
		}
	}
}

// ParseKeyframe reads what Keyframe wrote of the frame seq, and keeps it: body
// must not be changed afterwards. Compare the root: in what somebody else wrote,
// a row may be in a bucket where it is not found, and then no state has that
// root.
func ParseKeyframe(seq int64, body []byte) (*Set, error) {
	// The rows of a large state are megabytes, of which most are never looked at:
	// they are not copied.
	s, err := parseKeyframe(seq, unsafe.String(unsafe.SliceData(body), len(body)))
	if err != nil {
		return nil, fmt.Errorf("keyframe: %w", err)
	}
	return s, nil
}

func parseKeyframe(seq int64, body string) (*Set, error) {
	if body == "" || body[0] != keyframeVersion {
		return nil, errors.New("of no known version")
	}
	rest := body[1:]
	s := &Set{owner: new(token)}
	var counts [buckets]int
	for i := range counts {
		n, after, err := cutNumber(rest)
		if err != nil || n > uint64(len(after)) {
			return nil, errNotCanonical
		}
		counts[i], rest = int(n), after
		s.n += int(n)
	}
	if s.n > len(rest) {
		return nil, errNotCanonical
	}
	items := make([]item, s.n)
	var err error
	for i := range items {
		if rest, err = items[i].cutPast(seq, rest); err != nil {
			return nil, err
		}
	}
	for i, n := range counts {
		if n > 0 {
			s.buckets[i], items = &bucket{items: items[:n:n], owner: s.owner}, items[n:]
		}
	}
	if err := s.cutRows(rest); err != nil {
		return nil, err
	}
	return s, nil
}

// cutRows takes the rows of all buckets off s, of which nothing may be left. Many
// are read on two cores.
func (s *Set) cutRows(rest string) error {
	front, back := rest, ""
	if s.n >= crowd {
		for _, b := range s.buckets[:buckets/2] {
			if b == nil {
				continue
			}
			for range b.items {
				var err error
				if _, rest, err = cutText(rest); err != nil {
					return err
				}
			}
		}
		front, back = front[:len(front)-len(rest)], rest
	}
	if back == "" {
		return cutBuckets(s.buckets[:], front)
	}
	other := make(chan error, 1)
	go func() { other <- cutBuckets(s.buckets[:buckets/2], front) }()
	err := cutBuckets(s.buckets[buckets/2:], back)
	return errors.Join(<-other, err)
}

func cutBuckets(all []*bucket, s string) (err error) {
	for _, b := range all {
		if b == nil {
			continue
		}
		if s, err = b.cutRows(s); err != nil {
			return err
		}
	}
	if s != "" {
		return errNotCanonical
	}
	return nil
}

// cutRows takes the rows of a bucket off the front of s.
func (b *bucket) cutRows(s string) (string, error) {
	last := ""
	for i := range b.items {
		it := &b.items[i]
		rest, err := it.cutRow(s)
		if err != nil {
			return "", err
		}
		if it.key <= last {
			return "", errNotCanonical
		}
		last, s = it.key, rest
	}
	return s, nil
}

func (it *item) cutPast(seq int64, s string) (string, error) {
	past, s, err := cutNumber(s)
	if err != nil || s == "" || past > 1<<62 || s[0] >= chain || past == 0 && s[0] != 0 {
		return "", errNotCanonical
	}
	it.at, it.depth = unknown, s[0]
	if past != 0 {
		it.at = seq - int64(past-1)
		if it.at < 0 {
			return "", errNotCanonical
		}
	}
	return s[1:], nil
}

func (it *item) cutRow(s string) (string, error) {
	body, rest, err := cutText(s)
	if err != nil {
		return "", err
	}
	it.encoded = s[:len(s)-len(rest)]
	it.key, err = checkRow(body)
	return rest, err
}
