package snapshot

import (
	"slices"
	"strings"
)

// Change is one row in two states. Old is nil where the row is new, New where
// it is gone.
type Change struct {
	Key      string
	Old, New *Row
}

// Diff returns what leads from a to b, sorted by key. What both share costs
// nothing to compare.
func Diff(a, b *Set) []Change {
	var changes []Change
	for i := range buckets {
		x, y := a.buckets[i], b.buckets[i]
		if x != y {
			changes = diffBuckets(changes, x, y)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Key, b.Key) })
	return changes
}

// diffBuckets merges two sorted lists; either bucket may be missing.
func diffBuckets(changes []Change, a, b *bucket) []Change {
	var x, y []item
	if a != nil {
		x = a.items
	}
	if b != nil {
		y = b.items
	}
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].key < y[0].key:
			changes = append(changes, Change{Key: x[0].key, Old: x[0].row()})
			x = x[1:]
		case len(x) == 0 || y[0].key < x[0].key:
			changes = append(changes, Change{Key: y[0].key, New: y[0].row()})
			y = y[1:]
		default:
			if x[0].encoded != y[0].encoded {
				changes = append(changes, Change{Key: x[0].key, Old: x[0].row(), New: y[0].row()})
			}
			x, y = x[1:], y[1:]
		}
	}
	return changes
}

func (it item) row() *Row {
	r := decodeRow(it.encoded)
	return &r
}

// Invert turns changes round: what leads from a to b leads from b to a.
func Invert(changes []Change) []Change {
	back := make([]Change, len(changes))
	for i, c := range changes {
		back[i] = Change{Key: c.Key, Old: c.New, New: c.Old}
	}
	return back
}
