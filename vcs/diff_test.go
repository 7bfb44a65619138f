package vcs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Diff looks only at what may differ. What it finds is what comparing all paths
// finds.
func TestDiffIsOfAllPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plain")
	write(t, dir, ".gitignore", "*.log\n")
	for i := range 12 {
		write(t, dir, fmt.Sprintf("d%d/f", i%4), fmt.Sprint(i))
		write(t, dir, fmt.Sprintf("d%d/sub/f%d", i%4, i), fmt.Sprint(i))
		write(t, dir, fmt.Sprintf("d%d/x.log", i%4), "ignored")
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "d0/f"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d1/empty"), 0o755))
	w := open(t, dir, Options{Create: true})
	states := func(c Commit) map[string]State {
		files, err := w.Files(context.Background(), c)
		require.NoError(t, err)
		all := make(map[string]State)
		for _, f := range files {
			all[f.Path] = f.New
		}
		return all
	}
	one := capture(t, w).Commit
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"content", func() { write(t, dir, "d0/f", "new") }},
		{"content beside an odd mode", func() { write(t, dir, "d0/sub/f0", "new") }},
		{"mode alone", func() { require.NoError(t, os.Chmod(filepath.Join(dir, "d2/f"), 0o640)) }},
		{"ignored", func() { write(t, dir, "d3/x.log", "changed") }},
		{"empty folder", func() { require.NoError(t, os.Remove(filepath.Join(dir, "d1/empty"))) }},
		{"folder gone", func() { require.NoError(t, os.RemoveAll(filepath.Join(dir, "d3"))) }},
		{"file for a folder", func() {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "d2/sub")))
			write(t, dir, "d2/sub", "file")
		}},
	} {
		step.do()
		two := capture(t, w).Commit
		require.NotEqual(t, one, two, step.name)
		diff, err := w.Diff(context.Background(), one, two)
		require.NoError(t, err)
		was, is := states(one), states(two)
		want := make(map[string]FileChange)
		for path := range was {
			if was[path] != is[path] {
				want[path] = FileChange{Path: path, Old: was[path], New: is[path]}
			}
		}
		for path := range is {
			if was[path] != is[path] {
				want[path] = FileChange{Path: path, Old: was[path], New: is[path]}
			}
		}
		for path, c := range want {
			if c.Old.Kind == "" {
				c.Old.Kind = KindAbsent
			}
			if c.New.Kind == "" {
				c.New.Kind = KindAbsent
			}
			want[path] = c
		}
		got := make(map[string]FileChange)
		for _, c := range diff {
			got[c.Path] = c
		}
		assert.Equal(t, want, got, step.name)
		one = two
	}
}
