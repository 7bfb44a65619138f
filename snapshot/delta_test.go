package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// history is a run of frames, made at random.
type history struct {
	sets   []*Set // after each frame
	deltas [][]byte
	told   [][]Change
}

func makeHistory(t *rapid.T, frames int) (h history) {
	s := NewSet()
	for seq := range frames {
		var put []Row
		var drop []string
		seen := map[string]bool{}
		for _, r := range rapid.SliceOfN(rows, 0, 4).Draw(t, "frame") {
			if seen[r.Key] {
				continue
			}
			seen[r.Key] = true
			if rapid.IntRange(0, 4).Draw(t, "drop") == 0 {
				drop = append(drop, r.Key)
			} else {
				put = append(put, r)
			}
		}
		before := s.Clone()
		delta, changes, err := s.Advance(int64(seq), put, drop)
		require.NoError(t, err)
		require.Equal(t, Diff(before, s), changes)
		h.deltas, h.told, h.sets = append(h.deltas, delta), append(h.told, changes), append(h.sets, s.Clone())
	}
	return h
}

// Folding the deltas, all of them or those after any keyframe, leads to the
// same states, pasts included: what would be written next is the same too.
func TestFoldingLeadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.IntRange(1, 40).Draw(t, "frames")
		h := makeHistory(t, frames)
		key := rapid.IntRange(-1, frames-1).Draw(t, "keyframe")
		end := rapid.IntRange(key, frames-1).Draw(t, "end")
		s := NewSet()
		if key >= 0 {
			var err error
			s, err = ParseKeyframe(int64(key), h.sets[key].Keyframe(int64(key)))
			require.NoError(t, err)
			require.Equal(t, h.sets[key].Root(), s.Root())
		}
		f := NewFolding(1)
		for seq := key + 1; seq <= end; seq++ {
			require.NoError(t, f.Add(int64(seq), string(h.deltas[seq])))
		}
		require.NoError(t, f.Onto(s))
		if end < 0 {
			return
		}
		require.Equal(t, h.sets[end].Root(), s.Root())
		require.Equal(t, h.sets[end].Keyframe(int64(end)), s.Keyframe(int64(end)))
	})
}

// What an entry tells, with the row before it, is the change.
func TestEntriesTellTheChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := makeHistory(t, 20)
		changed := map[string]int64{}
		for seq, delta := range h.deltas {
			entries, err := DecodeDelta(delta)
			require.NoError(t, err)
			require.Len(t, entries, len(h.told[seq]))
			for i, e := range entries {
				c := h.told[seq][i]
				require.Equal(t, c.Key, e.Key)
				require.Equal(t, c.New == nil, e.Gone)
				require.Equal(t, c.Old == nil, e.Back == 0)
				if c.Old != nil {
					require.Equal(t, changed[c.Key], int64(seq)-e.Back)
				}
				if c.New != nil {
					var before Row
					if c.Old != nil {
						before = *c.Old
					}
					require.True(t, c.New.Equal(e.Row(before)))
					at, ok := h.sets[seq].ChangedAt(c.Key)
					require.True(t, ok)
					require.Equal(t, int64(seq), at)
				}
				changed[c.Key] = int64(seq)
			}
		}
	})
}

// However often a row changes, a few deltas tell all of it.
func TestChainsEnd(t *testing.T) {
	s := NewSet()
	whole := 0
	for seq := range int64(100) {
		r := full("k")
		r.Iter = uint32(seq)
		delta, _, err := s.Advance(seq, []Row{r}, nil)
		require.NoError(t, err)
		entries, err := DecodeDelta(delta)
		require.NoError(t, err)
		if entries[0].Whole {
			whole++
			assert.Equal(t, int64(0), seq%chain)
		} else {
			assert.Less(t, len(delta), 16)
		}
	}
	assert.Equal(t, 7, whole)
}

func TestAdvanceRefuses(t *testing.T) {
	s := setOf(full("a"))
	root := s.Root()
	for name, c := range map[string]struct {
		put  []Row
		drop []string
	}{
		"a row that is none":    {put: []Row{full("b"), {}}},
		"a row put twice":       {put: []Row{full("b"), full("b")}},
		"a row put and deleted": {put: []Row{{Key: "a"}}, drop: []string{"a"}},
	} {
		_, _, err := s.Advance(1, c.put, c.drop)
		require.Error(t, err, name)
		assert.Equal(t, root, s.Root(), name)
	}
	delta, changes, err := s.Advance(1, []Row{full("a")}, []string{"b"})
	require.NoError(t, err)
	assert.Empty(t, changes, "as it was")
	assert.Equal(t, []byte{0}, delta)
}

func TestFoldRefuses(t *testing.T) {
	base := func() *Set {
		s := NewSet()
		_, _, err := s.Advance(0, []Row{full("a")}, nil)
		require.NoError(t, err)
		return s
	}
	changed := full("a")
	changed.State = Failed
	good, _, err := base().Advance(5, []Row{changed}, nil)
	require.NoError(t, err)
	require.NoError(t, base().Fold(5, good))
	gone, _, err := base().Advance(5, nil, []string{"a"})
	require.NoError(t, err)
	fresh, _, err := NewSet().Advance(5, []Row{full("a")}, nil)
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		on    *Set
		seq   int64
		delta string
	}{
		{"nothing", base(), 5, ""},
		{"too few entries", base(), 5, "\x02" + string(good[1:])},
		{"something behind", base(), 5, string(good) + "x"},
		{"in another frame", base(), 6, string(good)},
		{"on a row that is not there", NewSet(), 5, string(good)},
		{"new where one is", base(), 5, string(fresh)},
		{"gone where none is", NewSet(), 5, string(gone)},
		{"gone in another frame", base(), 6, string(gone)},
		{"unknown flags", base(), 5, "\x01\x04\x01a\x00"},
		{"a change of nothing", base(), 5, "\x01\x00\x01a\x05\x00"},
		{"a change from nowhere", base(), 5, "\x01\x00\x01a\x00\x03\x02\x01\x04"},
		{"entries out of order", NewSet(), 5, "\x02\x02\x01b\x00\x00\x02\x01a\x00\x00"},
		{"the same row twice", NewSet(), 5, "\x02\x02\x01b\x00\x00\x02\x01b\x00\x00"},
		{"no key", NewSet(), 5, "\x01\x02\x00\x00\x00"},
		{"an empty value in a whole row", NewSet(), 5, "\x01\x02\x01b\x00\x02\x01\x00"},
	} {
		assert.Error(t, c.on.Fold(c.seq, []byte(c.delta)), c.name)
	}
	long := base()
	for seq := range int64(chain - 1) {
		r := full("a")
		r.Iter = uint32(seq)
		_, _, err := long.Advance(seq+1, []Row{r}, nil)
		require.NoError(t, err)
	}
	require.Error(t, long.Fold(chain, []byte("\x01\x00\x01a\x01\x03\x02\x01\x04")), "a chain longer than any that is written")
}

func TestKeyframesThatAreRefused(t *testing.T) {
	s := NewSet()
	for i := range 3 {
		_, _, err := s.Advance(int64(i), []Row{full(fmt.Sprint(i))}, nil)
		require.NoError(t, err)
	}
	good := s.Keyframe(2)
	_, err := ParseKeyframe(2, good)
	require.NoError(t, err)
	for n := range good {
		_, err := ParseKeyframe(2, good[:n])
		assert.Error(t, err, "cut at %d", n)
	}
	_, err = ParseKeyframe(2, append(good[:len(good):len(good)], 0))
	assert.Error(t, err)
	_, err = ParseKeyframe(1, good)
	assert.Error(t, err, "a row changed before the first frame")
	head, body := good[:1+buckets+2*3], good[1+buckets+2*3:]
	third := len(body) / 3
	swapped, err := ParseKeyframe(2, slices.Concat(head, body[third:2*third], body[:third], body[2*third:]))
	require.NoError(t, err)
	assert.NotEqual(t, s.Root(), swapped.Root(), "rows in buckets of others")
}

// Rows of one bucket stand in order, each once.
func TestKeyframeOfOneBucket(t *testing.T) {
	var keys []string
	for i := 0; len(keys) < 2; i++ {
		if key := fmt.Sprintf("%05d", i); bucketOf(key) == 7 {
			keys = append(keys, key)
		}
	}
	good := setOf(full(keys[0]), full(keys[1])).Keyframe(0)
	head, body := good[:1+buckets+2*2], good[1+buckets+2*2:]
	one, two := body[:len(body)/2], body[len(body)/2:]
	_, err := ParseKeyframe(0, slices.Concat(head, one, two))
	require.NoError(t, err)
	for name, rows := range map[string][]byte{"out of order": slices.Concat(two, one), "twice": slices.Concat(one, one)} {
		_, err = ParseKeyframe(0, slices.Concat(head, rows))
		assert.Error(t, err, name)
	}
}

func FuzzDelta(f *testing.F) {
	s := setOf(full("a"))
	delta, _, _ := s.Advance(3, []Row{full("b"), {Key: "a"}}, nil)
	f.Add(delta)
	delta, _, _ = s.Advance(4, []Row{{Key: "b", State: Failed}}, []string{"a"})
	f.Add(delta)
	f.Fuzz(func(t *testing.T, delta []byte) {
		entries, err := DecodeDelta(delta)
		if err != nil {
			return
		}
		for _, e := range entries {
			require.NoError(t, e.Row(full(e.Key)).Check())
		}
		on := NewSet()
		if on.Fold(7, delta) != nil {
			return
		}
		for r := range on.Rows() {
			require.NoError(t, r.Check())
		}
	})
}

func FuzzKeyframe(f *testing.F) {
	s := setOf(full("a"), full("b"))
	_, _, _ = s.Advance(3, []Row{full("c"), {Key: "a"}}, nil)
	f.Add(s.Keyframe(5))
	f.Add(NewSet().Keyframe(0))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := ParseKeyframe(5, body)
		if err != nil {
			return
		}
		require.Equal(t, body, s.Keyframe(5), "two ways to write a keyframe")
		other, misplaced := NewSet(), false
		for r := range s.Rows() {
			_, found := s.Get(r.Key)
			misplaced = misplaced || !found
			other.Put(r)
		}
		require.Equal(t, misplaced, other.Root() != s.Root())
	})
}

// A row that is told whole once more has nothing of what was told before: not a
// field that came and went while all were folded at once.
func TestFoldingForgetsBeforeWhole(t *testing.T) {
	s, f := NewSet(), NewFolding(1)
	wholes := 0
	for seq := range int64(3 * chain) {
		r := full("a")
		if r.Tree, r.Iter = "", uint32(seq); seq%3 == 0 {
			r.Tree = strings.Repeat("ab", 20)
		}
		delta, _, err := s.Advance(seq, []Row{r}, nil)
		require.NoError(t, err)
		entries, err := DecodeDelta(delta)
		require.NoError(t, err)
		if entries[0].Whole && r.Tree == "" {
			wholes++ // the tree was told before, and not this time
		}
		require.NoError(t, f.Add(seq, string(delta)))
		folded := NewSet()
		require.NoError(t, f.clone().Onto(folded))
		require.Equal(t, s.Root(), folded.Root(), "frame %d", seq)
	}
	require.Positive(t, wholes)
}

// clone is a folding that goes on by itself.
func (f *Folding) clone() *Folding {
	return &Folding{at: maps.Clone(f.at), rows: slices.Clone(f.rows), told: slices.Clone(f.told)}
}
