package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPaths(t *testing.T) {
	paths := Paths(20000)
	require.Len(t, paths, 20000)
	dirs := map[string]int{}
	for _, p := range paths {
		dirs[filepath.Dir(p)]++
		assert.Contains(t, []int{2, 3}, strings.Count(p, "/"), p)
	}
	assert.Len(t, dirs, 200)
	for dir, n := range dirs {
		assert.Equal(t, 100, n, dir)
	}
}

func TestTextIsAboutFourKiB(t *testing.T) {
	total := 0
	for _, p := range Paths(500) {
		total += len(Text(p, 0))
	}
	assert.InDelta(t, 4096, total/500, 300)
}

func TestChanged(t *testing.T) {
	for _, text := range []string{"", "no end", "one\n", "one\ntwo\nthree\n", "\n\n"} {
		got := Changed([]byte(text), "x", 1)
		assert.NotEqual(t, text, string(got))
		assert.Equal(t, got, Changed([]byte(text), "x", 1), "equal arguments")
		assert.NotEqual(t, got, Changed([]byte(text), "x", 2), "another version of %q", text)
	}
	before, after := string(Text("a", 0)), string(Text("a", 7))
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	require.Len(t, b, len(a), "as many lines as before")
	differ := 0
	for i := range a {
		if a[i] != b[i] {
			differ++
		}
	}
	assert.Equal(t, 1, differ)
}

func TestShuffledPrefixesNest(t *testing.T) {
	paths := Paths(300)
	got := Shuffled(paths)
	assert.ElementsMatch(t, paths, got)
	assert.NotEqual(t, paths, got)
	assert.Equal(t, got, Shuffled(paths))
}

func TestSession(t *testing.T) {
	steps := Session(Paths(2000), 200)
	files := map[string]bool{}
	for i, s := range steps {
		assert.Equal(t, i+1, s.Version)
		assert.Contains(t, []int{1, 2, 3}, len(s.Paths))
		for _, p := range s.Paths {
			files[p] = true
		}
	}
	assert.LessOrEqual(t, len(files), 20, "it keeps coming back")
	assert.Equal(t, steps, Session(Paths(2000), 200))
}

// Two copies stay equal under equal edits, and a copy has what its original has.
func TestCopyAndEdit(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	require.NoError(t, Generate(from, 250))
	require.NoError(t, os.Chmod(filepath.Join(from, "area00/pkg000/file00.txt"), 0o755))
	require.NoError(t, os.Symlink("area00", filepath.Join(from, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(from, "left"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(from, "left", "out"), nil, 0o644))

	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, Copy(from, a, "left"))
	require.NoError(t, Copy(from, b, "left"))
	assert.NoDirExists(t, filepath.Join(a, "left"))
	target, err := os.Readlink(filepath.Join(a, "link"))
	require.NoError(t, err)
	assert.Equal(t, "area00", target)
	for _, p := range Paths(250) {
		want, err := os.Stat(filepath.Join(from, p))
		require.NoError(t, err)
		got, err := os.Stat(filepath.Join(a, p))
		require.NoError(t, err)
		assert.Equal(t, want.Mode(), got.Mode(), p)
		assert.Equal(t, want.ModTime(), got.ModTime(), p)
		assert.Equal(t, want.Size(), got.Size(), p)
	}

	changed := Shuffled(Paths(250))[:5]
	require.NoError(t, Edit(a, changed, 3))
	require.NoError(t, Edit(b, changed, 3))
	for _, p := range changed {
		before, err := os.ReadFile(filepath.Join(from, p))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(a, p))
		require.NoError(t, err)
		other, err := os.ReadFile(filepath.Join(b, p))
		require.NoError(t, err)
		assert.NotEqual(t, before, got, p)
		assert.Equal(t, got, other, p)
	}

	require.NoError(t, Empty(a, "area00"))
	entries, err := os.ReadDir(a)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Error(t, Copy(from, b), "never into a folder that is there")
}

func TestBytes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "x"), make([]byte, 10), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b", "y"), make([]byte, 32), 0o644))
	got, err := Bytes(dir)
	require.NoError(t, err)
	assert.EqualValues(t, 42, got)
}
