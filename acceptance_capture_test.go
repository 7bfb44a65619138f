package retcon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
)

// What a checkpoint covers.

func TestP01ShellEdits(t *testing.T) {
	p := newCommitted(t, "keep.txt", "c.txt")
	before := p.digest()
	r := p.agent("echo two >b.txt; rm keep.txt; mv c.txt d.txt; sed -i s/a/b/ a.txt; mkdir -p x/y; echo n >x/y/z")
	assert.Equal(t, "~a.txt ~b.txt -c.txt +d.txt -keep.txt +x/y/z", names(r.Changes))
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
}

func TestP02FirstVersionOfANewFile(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("n.txt", "v1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.agent("echo v2 >n.txt")
	p.restore("r1@before")
	assert.Equal(t, "v1", p.read("n.txt"))
	p.restore("c1")
	p.gone("n.txt")
	p.undo()
	assert.Equal(t, "v1", p.read("n.txt"))
}

func TestP03MovedFileIsNotResurrected(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.shell("mv a b")
	for range 20 {
		p.checkpoint(retcon.CheckpointOptions{Tier: retcon.TierWatch})
		p.gone("a")
		assert.Equal(t, "1", p.read("b"))
	}
}

func TestP04WhateverChangedComesBack(t *testing.T) {
	p := newRepo(t)
	for i := range 200 {
		p.write(fmt.Sprintf("d%d/f%03d", i%5, i), fmt.Sprintf("%d\n", i))
	}
	before := p.digest()
	p.checkpoint(retcon.CheckpointOptions{})
	var want []string
	var script strings.Builder
	for i := range 120 {
		name := fmt.Sprintf("d%d/f%03d", i%5, i)
		want = append(want, name)
		switch i % 3 {
		case 0:
			p.write(name, "by a tool")
		case 1:
			fmt.Fprintf(&script, "sed -i s/^/x/ %s\n", name)
		case 2:
			fmt.Fprintf(&script, "mv %s %s.moved\n", name, name)
			want = append(want, name+".moved")
		}
	}
	p.shell(script.String())
	r := p.restore("c1")
	assert.Equal(t, before, p.digest())
	slices.Sort(want)
	assert.Equal(t, want, steps(r.Plan), "the report lists what was changed, and nothing else")
	assert.Equal(t, len(want), r.Verified)
}

func TestP05EveryCheckpointStaysRestorable(t *testing.T) {
	p := newFolder(t)
	n := 150
	if testing.Short() {
		n = 30
	}
	for i := 1; i <= n; i++ {
		p.write("f", fmt.Sprint(i))
		p.checkpoint(retcon.CheckpointOptions{})
	}
	for _, i := range []int{1, n / 2, n} {
		q := p.reopen()
		q.restore(retcon.Ref(fmt.Sprintf("c%d", i)))
		assert.Equal(t, fmt.Sprint(i), q.read("f"))
	}
}

func TestP06NewFilesGo(t *testing.T) {
	p := newFolder(t)
	p.write("old", "1")
	before := p.digest()
	p.agent("mkdir -p x/y; echo z >x/y/z.txt; mkdir empty")
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
	p.gone("x")
}

func TestP07RenameByShell(t *testing.T) {
	for _, test := range []struct{ name, setting, script string }{
		{"one", "", "mv f00 g00"},
		{"git would see copies", "copies", "mv f00 g00; cp f01 g01"},
		{"a hundred", "", "for f in f*; do mv $f g$f; done"},
		{"with a small edit", "true", "mv f00 g00; echo more >>g00"},
		{"a directory", "", "mkdir d; mv f0* d; mv d e"},
		{"two names exchanged", "", "mv f00 t; mv f01 f00; mv t f01"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newRepo(t)
			if test.setting != "" {
				git(t, p.dir, "config", "diff.renames", test.setting)
			}
			for i := range 100 {
				p.write(fmt.Sprintf("f%02d", i), strings.Repeat(fmt.Sprintf("line %d\n", i), 20))
			}
			before := p.digest()
			p.agent(test.script)
			require.NotEqual(t, before, p.digest())
			p.restore("r1@before")
			assert.Equal(t, before, p.digest())
		})
	}
}

func TestP08DeletionIsPartOfACheckpoint(t *testing.T) {
	p := newCommitted(t)
	p.remove("a.txt")
	p.checkpoint(retcon.CheckpointOptions{})
	git(t, p.dir, "checkout", "a.txt")
	p.restore("c1")
	p.gone("a.txt")
	assert.Equal(t, " D a.txt", git(t, p.dir, "status", "--porcelain"))
}

func TestP09WhatIsTooLargeIsSaid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	p := openPlace(t, dir, retcon.Options{Create: true, Config: retcon.Config{MaxFile: 1 << 20}})
	p.write("big.bin", strings.Repeat("x", 2<<20))
	p.write("a", "1")
	c := p.checkpoint(retcon.CheckpointOptions{})
	assert.True(t, c.Partial)
	assert.Equal(t, []retcon.Missing{{Path: "big.bin", Reason: "size", Size: 2 << 20}}, c.NotCaptured)
	p.write("big.bin", "cut")
	p.write("a", "2")
	r := p.restore("c1")
	assert.Equal(t, []string{"a"}, steps(r.Plan))
	require.Len(t, r.Plan.NotRestorable, 1)
	assert.Equal(t, "big.bin", r.Plan.NotRestorable[0].Path)
	assert.Equal(t, "cut", p.read("big.bin"))
	assert.Equal(t, "1", p.read("a"))
}

func TestP10FolderWithoutGit(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	p.write("d/b", "1")
	before := p.digest()
	c := p.checkpoint(retcon.CheckpointOptions{})
	assert.NotEmpty(t, c.Commit)
	p.shell("rm -r d; echo 2 >a; echo n >new")
	p.restore("c1")
	assert.Equal(t, before, p.digest())
}

func TestP11TheFirstRunOfAll(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	before := p.digest()
	p.agent("echo 2 >a; echo n >new")
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
}

// A capture that could not be made after a command is told by Doctor, not lost.
func TestP12MissedCaptureIsTold(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	store := filepath.Join(p.Folder(), "store.git", "objects")
	_, err := p.Exec(ctx, retcon.ExecOptions{Argv: []string{"x"}, Run: runs(func() {
		require.NoError(t, os.Rename(store, store+".away"))
		require.NoError(t, os.WriteFile(store, nil, 0o600))
		p.write("a", "2")
	})})
	require.Error(t, err)
	require.NoError(t, os.Remove(store))
	require.NoError(t, os.Rename(store+".away", store))
	q := p.reopen()
	h, err := q.Doctor(ctx, retcon.DoctorOptions{})
	require.NoError(t, err)
	assert.False(t, h.OK)
	assert.True(t, slices.ContainsFunc(h.Checks, func(c retcon.Check) bool { return !c.OK && strings.Contains(c.Detail, "r1") }), "%+v", h.Checks)
	runs, err := q.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Empty(t, runs[0].After, "nothing stands for the capture that failed")
}

func TestP13FromASubdirectory(t *testing.T) {
	p := newCommitted(t)
	before := p.digest()
	below := openPlace(t, p.path("sub"), retcon.Options{})
	assert.Equal(t, p.Root(), below.Root())
	below.exec("agent", func() { p.write("a.txt", "changed"); p.write("new", "n") })
	below.restore("r1@before")
	assert.Equal(t, before, p.digest())
}

func TestP15IgnoredSinceIsNotDeleted(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{}) // without .env
	p.write(".env", "A=1\n")
	p.checkpoint(retcon.CheckpointOptions{}) // with it
	p.write(".gitignore", ".env\n")
	p.write(".env", "A=2\n")
	r := p.restore("c1")
	assert.Equal(t, "A=2\n", p.read(".env"))
	assert.Contains(t, kept(r.Plan), ".env")
}
