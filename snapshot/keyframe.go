package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// keyframeVersion is the first byte of a keyframe.
const keyframeVersion = 1

// Keyframe is the whole state as of the frame seq, with what the deltas after it
// must know. It is not compressed.
func (s *Set) Keyframe(seq int64) []byte {
	size := 16
	for _, b := range s.buckets {
		if b == nil {
			continue
		}
		for _, it := range b.items {
			size += len(it.encoded) + 5
		}
	}
	body := append(make([]byte, 0, size), keyframeVersion)
	body = binary.AppendUvarint(body, uint64(s.n))
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

// ParseKeyframe reads what Keyframe wrote of the frame seq, and nothing else.
func ParseKeyframe(seq int64, body []byte) (*Set, error) {
	s, err := parseKeyframe(seq, string(body))
	if err != nil {
		return nil, fmt.Errorf("keyframe: %w", err)
	}
	return s, nil
}

func parseKeyframe(seq int64, body string) (*Set, error) {
	if body == "" || body[0] != keyframeVersion {
		return nil, errors.New("of no known version")
	}
	n, rest, err := cutNumber(body[1:])
	if err != nil || n > uint64(len(rest)) {
		return nil, errNotCanonical
	}
	items := make([]item, n)
	for i := range items {
		if rest, err = items[i].cutPast(seq, rest); err != nil {
			return nil, err
		}
	}
	for i := range items {
		if rest, err = items[i].cutRow(rest); err != nil {
			return nil, err
		}
	}
	if rest != "" {
		return nil, errNotCanonical
	}
	return fill(items)
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

// fill makes a set of rows that stand in the order of buckets.
func fill(items []item) (*Set, error) {
	s := &Set{n: len(items), owner: new(token)}
	for first := 0; first < len(items); {
		at, end := bucketOf(items[first].key), first+1
		for end < len(items) && bucketOf(items[end].key) == at {
			if items[end].key <= items[end-1].key {
				return nil, errNotCanonical
			}
			end++
		}
		if first > 0 && at <= bucketOf(items[first-1].key) {
			return nil, errNotCanonical
		}
		s.buckets[at] = &bucket{items: items[first:end:end], owner: s.owner}
		first = end
	}
	return s, nil
}
