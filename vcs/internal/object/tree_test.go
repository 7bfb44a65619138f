package object

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func parsed(data []byte) (entries []TreeEntry, err error) {
	for e, err := range ParseTree(data) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Order and form are git's: its mktree gives the same id.
func TestTreeLikeGit(t *testing.T) {
	names := []string{"a", "a.b", "a0", "a-b", "ab", "b", "\xff\xfe", "sp ace", "tab\t", "é", "a.", "A"}
	s := newStore(t)
	blob := put(t, s, []byte("x"))[0]
	w := s.NewWriter()
	empty, err := w.Add(Tree, nil)
	require.NoError(t, err)
	require.NoError(t, w.Commit(false))
	modes := []uint32{ModeFile, ModeExec, ModeSymlink, ModeDir, ModeGitlink}
	rapid.Check(t, func(rt *rapid.T) {
		var entries []TreeEntry
		for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 8, rapid.ID[string]).Draw(rt, "names") {
			e := TreeEntry{rapid.SampledFrom(modes).Draw(rt, "mode"), n, blob}
			switch {
			case e.IsDir():
				e.ID = empty
			case e.IsGitlink():
				e.ID = ID{7} // in another repository
			}
			entries = append(entries, e)
		}
		var in strings.Builder
		for _, e := range entries {
			kind := map[bool]string{true: "tree", false: "blob"}[e.IsDir()]
			if e.IsGitlink() {
				kind = "commit"
			}
			fmt.Fprintf(&in, "%06o %s %s\t%s\x00", e.Mode, kind, e.ID, e.Name)
		}
		want, err := tryGit("", []byte(in.String()), "--git-dir="+s.Dir(), "mktree", "-z")
		require.NoError(t, err, want)
		SortEntries(entries)
		data := AppendTree(nil, entries)
		require.Equal(t, strings.TrimSpace(want), Sum(Tree, data).String())
		require.Equal(t, TreeSize(entries), len(data))
		back, err := parsed(data)
		require.NoError(t, err)
		require.Equal(t, entries, back)
	})
}

func TestMalformedTree(t *testing.T) {
	id := string(make([]byte, 20))
	good := "100644 a\x00" + id
	tests := map[string]string{
		"no mode":        " a\x00" + id,
		"no space":       "100644",
		"mode 0":         "0 a\x00" + id,
		"mode not octal": "100648 a\x00" + id,
		"mode too long":  "10064400 a\x00" + id,
		"no name":        "100644 \x00" + id,
		"slash":          "100644 a/b\x00" + id,
		"no NUL":         "100644 abc",
		"short id":       "100644 a\x00" + id[:19],
		"rest":           good + "1",
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parsed([]byte(data))
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
	n := 0
	for range ParseTree([]byte(good + good)) {
		n++
		break
	}
	assert.Equal(t, 1, n, "iteration can be left")
}

func FuzzTree(f *testing.F) {
	f.Add([]byte("100644 a\x00" + string(make([]byte, 20))))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parsed(data)
		if err != nil {
			typed(t, err)
			return
		}
		if again := AppendTree(nil, entries); len(again) == len(data) { // but for leading zeroes of modes
			require.Equal(t, data, append([]byte{}, again...))
		}
	})
}

func TestParseID(t *testing.T) {
	id := Sum(Blob, []byte("hello\n"))
	assert.Equal(t, "ce013625030ba8dba906f756967f9e9ca394464a", id.String())
	back, err := ParseID(id.String())
	require.NoError(t, err)
	assert.Equal(t, id, back)
	for _, s := range []string{"", "ce01", id.String() + "0", strings.Repeat("g", 40)} {
		_, err := ParseID(s)
		assert.Error(t, err, s)
	}
	assert.True(t, ID{}.IsZero())
}

// Differing leaves out what is in both trees, and nothing else.
func TestDiffering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) []TreeEntry {
			var out []TreeEntry
			names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "a.b", "a-", "ab", "b", "b0", "c", "d"}), func(s string) string { return s }).Draw(t, what)
			for _, name := range names {
				mode := rapid.SampledFrom([]uint32{ModeFile, ModeExec, ModeDir}).Draw(t, "mode")
				out = append(out, TreeEntry{Mode: mode, Name: name, ID: ID{byte(rapid.IntRange(1, 2).Draw(t, "id"))}})
			}
			SortEntries(out)
			return out
		}
		a, b := draw("a"), draw("b")
		not := func(in, others []TreeEntry) (out []TreeEntry) {
			for _, e := range in {
				if !slices.Contains(others, e) {
					out = append(out, e)
				}
			}
			return out
		}
		as, bs, err := Differing(AppendTree(nil, a), AppendTree(nil, b))
		if err != nil || !slices.Equal(as, not(a, b)) || !slices.Equal(bs, not(b, a)) {
			t.Fatalf("%v and %v: %v and %v, %v", a, b, as, bs, err)
		}
	})
	good := AppendTree(nil, []TreeEntry{{Mode: ModeFile, Name: "a", ID: ID{1}}})
	for _, bad := range [][]byte{good[:len(good)-1], []byte("100644 a"), []byte("x"), append(good[:len(good):len(good)], 0)} {
		if _, _, err := Differing(good, bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", bad, err)
		}
		if _, _, err := Differing(bad, good); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
