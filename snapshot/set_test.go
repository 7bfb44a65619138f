package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func hash(n byte) (h Hash) {
	h[0] = n
	return h
}

// full has a value in every field.
func full(key string) Row {
	return Row{Key: key, Kind: "sh", State: Done, Attempt: 2, Iter: 300, Decl: hash(1), Input: hash(2), Out: hash(3),
		Tree: "00ff", Deps: []string{"a", "b"}, After: "a", Control: 1 << 31, Carried: true}
}

func setOf(rows ...Row) *Set {
	s := NewSet()
	for _, r := range rows {
		s.Put(r)
	}
	return s
}

// rows makes rows that differ in every field, and often have the same key.
var rows = rapid.Custom(func(t *rapid.T) Row {
	pick := func(what string, n int) int { return rapid.IntRange(0, n).Draw(t, what) }
	r := Row{
		Key:     fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"a", "~loop/", "\xff\x00"}).Draw(t, "prefix"), pick("key", 12)),
		Kind:    rapid.SampledFrom([]string{"", "sh", "agent"}).Draw(t, "kind"),
		State:   State(pick("state", len(states)-1)),
		Attempt: uint32(pick("attempt", 2)), Iter: uint32(pick("iter", 2)) * 1000, Control: uint32(pick("control", 1)),
		Decl: hash(byte(pick("decl", 1))), Input: hash(byte(pick("input", 2))), Out: hash(byte(pick("out", 2))),
		Tree:    rapid.SampledFrom([]string{"", "ab", "abcd"}).Draw(t, "tree"),
		After:   rapid.SampledFrom([]string{"", "w"}).Draw(t, "after"),
		Carried: rapid.Bool().Draw(t, "carried"),
	}
	for i := range pick("deps", 2) {
		r.Deps = append(r.Deps, fmt.Sprintf("d%d", i))
	}
	return r
})

// A state is what it holds, not how it came about.
func TestRootIsOfTheRowsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := map[string]Row{}
		s := NewSet()
		var kept []*Set
		var keptRoots []Hash
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			r := rows.Draw(t, "row")
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				_, was := model[r.Key]
				require.Equal(t, was, s.Delete(r.Key))
				delete(model, r.Key)
			case 1:
				s.Root() // so that what is remembered may be wrong
			case 2:
				kept, keptRoots = append(kept, s.Clone()), append(keptRoots, s.Root())
			default:
				s.Put(r)
				model[r.Key] = r
			}
			require.Equal(t, len(model), s.Len())
		}
		other := NewSet()
		for _, r := range model {
			other.Put(r)
		}
		require.Equal(t, other.Root(), s.Root())
		for i, k := range kept {
			k.rooted = false
			for _, b := range k.buckets {
				if b != nil {
					b.hashed = false
				}
			}
			require.Equal(t, keptRoots[i], k.Root(), "a clone was changed with the set")
		}
		for key, r := range model {
			got, ok := s.Get(key)
			require.True(t, ok)
			require.True(t, r.Equal(got), "%v, got %v", r, got)
		}
		last := ""
		for r := range s.Rows() {
			require.Greater(t, r.Key, last)
			last = r.Key
		}
	})
}

// Clones may be used at the same time: what they share is not written to.
func TestClonesGoTheirOwnWays(t *testing.T) {
	s := setOf(full("a"), full("b"), full("c"))
	clone := s.Clone()
	for _, b := range clone.buckets {
		require.True(t, b == nil || b.hashed)
	}
	var wg sync.WaitGroup
	for i, c := range []*Set{s, clone} {
		wg.Go(func() {
			r := full("a")
			r.Iter = uint32(i)
			c.Put(r)
			c.Root()
		})
	}
	wg.Wait()
	assert.NotEqual(t, s.Root(), clone.Root())
}

// Every field counts, and no two ways of saying something are the same.
func TestRootTellsApart(t *testing.T) {
	base := full("k")
	roots := map[Hash]string{NewSet().Root(): "empty", setOf(base).Root(): "base"}
	for name, change := range map[string]func(*Row){
		"key": func(r *Row) { r.Key = "l" }, "kind": func(r *Row) { r.Kind = "agent" }, "state": func(r *Row) { r.State = Failed },
		"attempt": func(r *Row) { r.Attempt++ }, "iter": func(r *Row) { r.Iter++ }, "decl": func(r *Row) { r.Decl = hash(9) },
		"input": func(r *Row) { r.Input = hash(9) }, "out": func(r *Row) { r.Out = hash(9) }, "no out": func(r *Row) { r.Out = Hash{} },
		"tree": func(r *Row) { r.Tree = "00fe" }, "no tree": func(r *Row) { r.Tree = "" }, "deps": func(r *Row) { r.Deps = []string{"ab"} },
		"no deps": func(r *Row) { r.Deps = nil }, "after": func(r *Row) { r.After = "b" }, "control": func(r *Row) { r.Control++ },
		"carried":          func(r *Row) { r.Carried = false },
		"key into kind":    func(r *Row) { r.Key, r.Kind = "ks", "h" },
		"out becomes decl": func(r *Row) { r.Decl, r.Out = r.Out, r.Decl },
	} {
		r := base
		change(&r)
		root := setOf(r).Root()
		assert.Empty(t, roots[root], name)
		roots[root] = name
		assert.False(t, r.Equal(base), name)
	}
	one, two := base, base
	one.Key, two.Key = "1", "2"
	assert.Empty(t, roots[setOf(one, two).Root()])
}

// Roots are in every ledger there is: this one was computed by another program
// from the description of the form, and must never change.
func TestRootIsForEver(t *testing.T) {
	var list []Row
	for i := range 100 {
		list = append(list, full(fmt.Sprintf("task-%d", i)))
	}
	assert.Equal(t, "a381cfd2441af19f68dd33e00cd7911e2f9437d0763145ec8b2290a0ff31ee0a", setOf(list...).Root().String())
	assert.Equal(t, "de9062d6e2915f7974909414f7fc464b9aa76fdc7533894fe40ab2efb6c2cdc0", NewSet().Root().String())
}

func TestEncodingOfARow(t *testing.T) {
	for _, c := range []struct {
		name string
		row  Row
		want string
	}{
		{"nothing but a key", Row{Key: "k"}, "\x02\x01k"},
		{"every field", full("k"), "\x8d\x01\x01k" + "\x01\x02sh" + "\x02\x01\x03" + "\x03\x01\x02" + "\x04\x02\xac\x02" +
			"\x05\x20" + string(b32(1)) + "\x06\x20" + string(b32(2)) + "\x07\x20" + string(b32(3)) +
			"\x08\x02\x00\xff" + "\x09\x04\x01a\x01b" + "\x0a\x01a" + "\x0b\x05\x80\x80\x80\x80\x08" + "\x0c\x01\x01"},
	} {
		b, err := c.row.MarshalBinary()
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, string(b), c.name)
		var back Row
		require.NoError(t, back.UnmarshalBinary(b), c.name)
		assert.Equal(t, c.row, back, c.name)
	}
}

func b32(n byte) []byte {
	h := hash(n)
	return h[:]
}

func TestRowsThatAreRefused(t *testing.T) {
	for name, encoded := range map[string]string{
		"nothing":                   "",
		"no key":                    "\x01\x00",
		"too short":                 "\x03\x01k",
		"something behind":          "\x02\x01k!",
		"length longer than needed": "\x82\x00\x01k",
		"a field that says nothing": "\x04\x01k\x01\x00",
		"fields out of order":       "\x08\x01k\x02\x01\x01\x01\x01x",
		"a field twice":             "\x08\x01k\x01\x01x\x01\x01x",
		"unknown field":             "\x05\x01k\x0d\x01x",
		"state that is none":        "\x05\x01k\x02\x01\x07",
		"zero state":                "\x05\x01k\x02\x01\x00",
		"number longer than needed": "\x06\x01k\x03\x02\x81\x00",
		"number too large":          "\x09\x01k\x03\x05\x80\x80\x80\x80\x10",
		"short hash":                "\x05\x01k\x05\x01x",
		"zero hash":                 "\x24\x01k\x05\x20" + string(make([]byte, 32)),
		"dependencies not in order": "\x08\x01k\x09\x04\x01b\x01a",
		"dependency twice":          "\x08\x01k\x09\x04\x01a\x01a",
		"empty dependency":          "\x05\x01k\x09\x01\x00",
		"dependency too short":      "\x06\x01k\x09\x02\x05a",
		"carried twice":             "\x05\x01k\x0c\x01\x02",
	} {
		var r Row
		assert.Error(t, r.UnmarshalBinary([]byte(encoded)), name)
	}
	for name, r := range map[string]Row{
		"no key": {}, "state": {Key: "k", State: 7}, "tree of odd length": {Key: "k", Tree: "abc"}, "upper case": {Key: "k", Tree: "AB"},
		"unsorted": {Key: "k", Deps: []string{"b", "a"}}, "twice": {Key: "k", Deps: []string{"a", "a"}}, "empty": {Key: "k", Deps: []string{""}},
	} {
		assert.Error(t, r.Check(), name)
		_, err := r.MarshalBinary()
		assert.Error(t, err, name)
		assert.Panics(t, func() { NewSet().Put(r) }, name)
	}
}

func FuzzRow(f *testing.F) {
	b, _ := full("k").MarshalBinary()
	f.Add(b)
	f.Add([]byte("\x02\x01k"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Row
		if r.UnmarshalBinary(b) != nil {
			return
		}
		again, err := r.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, b, again, "two ways to write %v", r)
	})
}

func TestDiff(t *testing.T) {
	a, b := full("a"), full("b")
	b2 := b
	b2.Out = hash(8)
	c := full("c")
	changes := Diff(setOf(a, b), setOf(b2, c))
	assert.Equal(t, []Change{{Key: "a", Old: &a}, {Key: "b", Old: &b, New: &b2}, {Key: "c", New: &c}}, changes)
	assert.Equal(t, changes, Invert(Diff(setOf(b2, c), setOf(a, b))))
	assert.Empty(t, Diff(setOf(a, b), setOf(b, a)))
	s := setOf(a, b)
	clone := s.Clone()
	assert.Empty(t, Diff(s, clone))
	clone.Delete("a")
	assert.Equal(t, []Change{{Key: "a", Old: &a}}, Diff(s, clone))
	assert.Empty(t, Diff(setOf(), setOf()))
}

func TestDiffLeadsFromOneToTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := setOf(rapid.SliceOf(rows).Draw(t, "a")...)
		b := a.Clone()
		for _, r := range rapid.SliceOf(rows).Draw(t, "b") {
			if r.Carried {
				b.Delete(r.Key)
			} else {
				b.Put(r)
			}
		}
		changes := Diff(a, b)
		require.True(t, slices.IsSortedFunc(changes, func(x, y Change) int { return compare(x.Key, y.Key) }))
		for _, c := range changes {
			if c.New == nil {
				require.True(t, a.Delete(c.Key))
			} else {
				require.True(t, c.Old == nil || !c.Old.Equal(*c.New))
				a.Put(*c.New)
			}
		}
		require.Equal(t, b.Root(), a.Root())
	})
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func TestWords(t *testing.T) {
	h := hash(0xab)
	text, err := json.Marshal(map[string]any{"state": Done, "hash": h, "none": Hash{}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"state":"done","hash":"`+h.String()+`","none":""}`, string(text))
	var back struct {
		State State
		Hash  Hash
		None  Hash
	}
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, Done, back.State)
	assert.Equal(t, h, back.Hash)
	assert.Equal(t, "ab0000000000", h.Short())
	assert.Error(t, json.Unmarshal([]byte(`{"State":"well"}`), &back))
	_, err = json.Marshal(State(9))
	require.Error(t, err)
	for _, s := range []string{"ab", h.String() + "00", "AB" + h.String()[2:], "zz" + h.String()[2:]} {
		_, err := ParseHash(s)
		assert.Error(t, err, s)
	}
	parsed, err := ParseHash(h.String())
	require.NoError(t, err)
	assert.Equal(t, h, parsed)
	assert.False(t, Waiting.Settled())
	assert.True(t, Skipped.Settled())
}

func TestHas(t *testing.T) {
	s := NewSet()
	row := Row{Key: "a", Kind: "sh", State: Done, Deps: []string{"b"}, Tree: "ab"}
	s.Put(row)
	other := row
	other.Attempt = 1
	another := row
	another.Key = "b"
	for want, r := range map[bool][]Row{true: {row}, false: {other, another}} {
		for _, r := range r {
			assert.Equal(t, want, s.Has(&r), r)
		}
	}
}

func TestInState(t *testing.T) {
	s := NewSet()
	for i, r := range []Row{{State: Done}, {Kind: "sh", State: Cancelled, Attempt: 3}, {Kind: "sh", Attempt: 5}, {State: Cancelled}} {
		r.Key = string(rune('a' + i))
		s.Put(r)
	}
	cancelled := s.InState(Cancelled)
	slices.Sort(cancelled)
	assert.Equal(t, []string{"b", "d"}, cancelled)
	assert.Equal(t, []string{"c"}, s.InState(Pending), "which has no field of its own")
}

// A large state has the root that it has when it grows row by row.
func TestRootOfManyRows(t *testing.T) {
	whole, grown := NewSet(), NewSet()
	for i := range 2*crowd + 7 {
		r := full(fmt.Sprint("task-", i))
		whole.Put(r)
		grown.Put(r)
		if i%500 == 0 {
			grown.Root()
		}
	}
	require.Equal(t, grown.Root(), whole.Root())
	whole.Put(full("task-1"))
	assert.Equal(t, grown.Root(), whole.Root())
	whole.Delete("task-9")
	assert.NotEqual(t, grown.Root(), whole.Root())
}
