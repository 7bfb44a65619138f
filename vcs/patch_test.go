package vcs

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Random states with every kind of path; git is the judge.
func TestPatchAppliesWithGit(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		rng := rand.New(rand.NewSource(int64(seed)))
		dir := newRepo(t)
		w := open(t, dir, Options{})
		scramble(t, rng, dir)
		writeLinesAt(t, rng, dir)
		from := capture(t, w).Commit
		copied := filepath.Join(t.TempDir(), "copy")
		if out, err := exec.Command("cp", "-a", dir, copied).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		scramble(t, rng, dir)
		writeLinesAt(t, rng, dir)
		to := capture(t, w).Commit
		changes, err := w.Diff(context.Background(), from, to)
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, w.Patch(&b, changes, PatchOptions{Context: rng.Intn(4)}))
		if b.Len() > 0 {
			patch := filepath.Join(t.TempDir(), "patch")
			require.NoError(t, os.WriteFile(patch, b.Bytes(), 0o600))
			args := []string{"apply", "--whitespace=nowarn"}
			git(t, copied, append(args, "--unidiff-zero", patch)...)
		}
		if got, want := gitTree(t, copied), gitTree(t, dir); got != want {
			t.Fatalf("seed %d: git apply made %s, want %s\n%s", seed, got, want, b.String())
		}
	}
}

// writeLinesAt writes a text of few different lines, now and then without a
// last line end.
func writeLinesAt(t testing.TB, rng *rand.Rand, dir string) {
	t.Helper()
	for _, name := range []string{"text", "sub dir/text with blanks", "tab\t\"quoted\"\\é"} {
		var b strings.Builder
		for range rng.Intn(40) {
			fmt.Fprintf(&b, "line %d\n", rng.Intn(8))
		}
		if rng.Intn(3) == 0 {
			b.WriteString("no end")
		}
		write(t, dir, name, b.String())
	}
}

func TestPatchText(t *testing.T) {
	dir := newRepo(t)
	w := open(t, dir, Options{MaxFile: 3 << 20})
	write(t, dir, "text", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n")
	write(t, dir, "bin", "a\x00b")
	write(t, dir, "sh", "#!/bin/sh\n")
	write(t, dir, "gone", "x")
	write(t, dir, "kind", "file\n")
	write(t, dir, "large", strings.Repeat("x\n", maxText/2+1))
	require.NoError(t, os.Symlink("here", filepath.Join(dir, "link")))
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	from := capture(t, w).Commit

	write(t, dir, "text", "one\ntwo\nTHREE\nfour\nfive\nsix\nseven\neight\nnine")
	write(t, dir, "bin", "a\x00c")
	require.NoError(t, os.Chmod(filepath.Join(dir, "sh"), 0o755))
	require.NoError(t, os.Remove(filepath.Join(dir, "gone")))
	require.NoError(t, os.Remove(filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("there", filepath.Join(dir, "link")))
	require.NoError(t, os.Remove(filepath.Join(dir, "kind")))
	require.NoError(t, os.Symlink("link", filepath.Join(dir, "kind")))
	write(t, dir, "new \"é\"", "n\n")
	write(t, dir, "empty", "")
	to := capture(t, w).Commit
	changes, err := w.Diff(context.Background(), from, to)
	require.NoError(t, err)

	var b bytes.Buffer
	require.NoError(t, w.Patch(&b, changes, PatchOptions{}))
	git(t, dir, "add", "-A")
	// Git also says what a hunk lies in, which is a guess.
	want := git(t, dir, "-c", "diff.noprefix=false", "diff", "--cached", "--no-renames", "--abbrev=7", "HEAD") + "\n"
	assert.Equal(t, withoutSections(want), b.String())

	stats, err := w.LineStats(changes)
	require.NoError(t, err)
	require.Len(t, stats, len(changes))
	byPath := make(map[string]FileStat)
	for _, s := range stats {
		byPath[s.Path] = s
	}
	assert.Equal(t, FileStat{Path: "text", Added: 2, Removed: 1, OldSize: 40, NewSize: 44}, byPath["text"])
	assert.Equal(t, FileStat{Path: "bin", Binary: true, OldSize: 3, NewSize: 3}, byPath["bin"])
	assert.Equal(t, FileStat{Path: "gone", Removed: 1, OldSize: 1}, byPath["gone"])
	assert.Equal(t, FileStat{Path: "empty"}, byPath["empty"])

	write(t, dir, "large", strings.Repeat("y\n", maxText/2+1))
	write(t, dir, "kind2", strings.Repeat("z", 4<<20)) // above MaxFile
	last := capture(t, w).Commit
	changes, err = w.Diff(context.Background(), to, last)
	require.NoError(t, err)
	b.Reset()
	require.NoError(t, w.Patch(&b, changes, PatchOptions{}))
	assert.Contains(t, b.String(), "Binary files a/large and b/large differ\n")
	assert.Contains(t, b.String(), "# kind2: none before, not captured (size) after\n")
}

func withoutSections(patch string) string {
	var b strings.Builder
	for l := range strings.Lines(patch) {
		if strings.HasPrefix(l, "@@") {
			if i := strings.Index(l[2:], "@@"); i >= 0 {
				l = l[:i+4] + "\n"
			}
		}
		b.WriteString(l)
	}
	return b.String()
}

// Whatever the texts, the edits make one of the other, and two hundred
// thousand lines without anything in common end.
func TestDiffLines(t *testing.T) {
	check := func(a, b [][]byte) []edit {
		t.Helper()
		edits := diffLines(a, b)
		var out [][]byte
		at, last := 0, -1
		for _, e := range edits {
			require.Greater(t, e.oldFrom+e.newFrom, last)
			require.Equal(t, e.newFrom, len(out)+e.oldFrom-at)
			out = append(append(out, a[at:e.oldFrom]...), b[e.newFrom:e.newTo]...)
			at, last = e.oldTo, e.oldTo+e.newTo
		}
		out = append(out, a[at:]...)
		require.Equal(t, string(bytes.Join(b, nil)), string(bytes.Join(out, nil)))
		return edits
	}
	rng := rand.New(rand.NewSource(1))
	random := func(n, kinds int) [][]byte {
		out := make([][]byte, n)
		for i := range out {
			out[i] = fmt.Appendf(nil, "%d\n", rng.Intn(kinds))
		}
		return out
	}
	for range 500 {
		check(random(rng.Intn(30), 5), random(rng.Intn(30), 5))
	}
	check(random(200_000, 3), random(200_000, 1<<40))
	a := random(20_000, 1<<40)
	b := bytes.Split(bytes.Join(a, nil), []byte("\n"))
	b = b[:len(b)-1]
	for i := range b {
		b[i] = append(b[i], '\n')
		if i%5 == 0 {
			b[i] = []byte("changed\n")
		}
	}
	assert.Len(t, check(a, b), 4000, "past the bound, lines that stand once hold the pieces together")
}
