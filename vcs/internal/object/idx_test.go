package object

import (
	"bytes"
	"crypto/sha1"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Ids that are not evenly spread, as of somebody who chose them, are found too.
func TestIndexFindsWhateverTheSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Custom(func(t *rapid.T) (id ID) {
			copy(id[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "id"))
			switch rapid.IntRange(0, 5).Draw(t, "spread") {
			case 0:
				id[0] = 7
			case 1: // alike for longer than is compared at once
				copy(id[:19], bytes.Repeat([]byte{7}, 19))
			case 2:
				copy(id[:5], []byte{7, 0, 0, 0, 0})
			case 3:
				copy(id[:5], []byte{7, 255, 255, 255, 255})
			}
			return id
		})
		ids := rapid.SliceOfNDistinct(id, 0, 200, func(id ID) ID { return id }).Draw(t, "ids")
		slices.SortFunc(ids, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
		entries := make([]indexEntry, len(ids))
		for i := range ids {
			entries[i] = indexEntry{id: ids[i], offset: int64(i)}
		}
		data := appendIndex(nil, entries, ID{})
		sum := sha1.Sum(data)
		x, err := parseIndex("", append(data, sum[:]...))
		require.NoError(t, err)
		for i := range ids {
			require.Equal(t, i, x.find(&ids[i]))
		}
		other := id.Draw(t, "other")
		_, is := slices.BinarySearchFunc(ids, other, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
		require.Equal(t, is, x.find(&other) >= 0)
	})
}
