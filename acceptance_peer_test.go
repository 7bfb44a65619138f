package retcon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon"
)

// Fifteen scenarios in which the closest peer lost something, and what the
// study of it demands of us.

func TestE01IgnoredFilesStay(t *testing.T) {
	p := newCommitted(t)
	p.write(".gitignore", ".env\nnode_modules/\n*.log\n")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write(".env", "A=1\n")
	p.write("node_modules/m/index.js", "x")
	p.write("build.log", "x")
	p.write("a.txt", "2")
	p.restore("c1")
	for _, name := range []string{".env", "node_modules/m/index.js", "build.log"} {
		assert.FileExists(t, p.path(name))
	}
}

func TestE02UsersNoteStays(t *testing.T) {
	p := newCommitted(t)
	p.agent("echo 2 >a.txt")
	p.write("note.md", "mine")
	p.restore("r1@before")
	assert.Equal(t, "mine", p.read("note.md"))
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
}

func TestE03ShellEditBesideAToolEdit(t *testing.T) {
	p := newCommitted(t)
	p.agent("echo 2 >b.txt")
	r := p.exec("agent", func() { p.write("new", "by a tool"); p.shell("sed -i s/^/x/ a.txt") })
	assert.Equal(t, "~a.txt +new", names(r.Changes))
	p.restore("r2@before")
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
	p.gone("new")
}

func TestE04NothingButAShellEdit(t *testing.T) {
	p := newCommitted(t)
	r := p.agent("sed -i s/^/x/ a.txt")
	assert.NotEqual(t, r.Before.Commit, r.After.Commit)
	p.restore("r1@before")
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
}

func TestE05SymlinkOutside(t *testing.T) {
	out := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(out, []byte("private"), 0o600))
	p := newCommitted(t)
	require.NoError(t, os.Symlink(out, p.path("link")))
	p.checkpoint(retcon.CheckpointOptions{})
	var patch strings.Builder
	d, err := p.Diff(ctx, retcon.DiffOptions{From: "c1"})
	require.NoError(t, err)
	require.NoError(t, p.Patch(ctx, &patch, d, retcon.PatchOptions{}))
	assert.NotContains(t, patch.String(), "private")
	require.NoError(t, os.WriteFile(out, []byte("changed"), 0o600))
	p.remove("link")
	p.restore("c1")
	to, err := os.Readlink(p.path("link"))
	require.NoError(t, err)
	assert.Equal(t, out, to)
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, "changed", string(b), "nothing is written through it")
}

func TestE06ExecutableAgain(t *testing.T) {
	p := newCommitted(t)
	require.NoError(t, os.Chmod(p.path("a.txt"), 0o755))
	p.checkpoint(retcon.CheckpointOptions{})
	require.NoError(t, os.Chmod(p.path("a.txt"), 0o644))
	p.restore("c1")
	assert.EqualValues(t, 0o755, p.mode("a.txt").Perm())
}

func TestE07DeletedThenMadeAgain(t *testing.T) {
	p := newCommitted(t)
	p.remove("a.txt")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "again")
	p.restore("c1")
	p.gone("a.txt")
}

func TestE08RestoreFromASubdirectory(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	before := p.digest()
	p.write("a.txt", "2")
	p.write("sub/c.txt", "2")
	got := command(t, p.path("sub"), "", "restore c1 --yes")
	require.Equal(t, 0, got.code, got.err)
	assert.Equal(t, before, p.digest(), "and nothing was copied into sub")
}

func TestE09CleanAndSmudge(t *testing.T) {
	p := newRepo(t)
	git(t, p.dir, "config", "filter.x.clean", "tr a-z n-za-m")
	git(t, p.dir, "config", "filter.x.smudge", "tr a-z n-za-m")
	p.write(".gitattributes", "*.secret filter=x\n")
	p.write("f.secret", "words\n")
	git(t, p.dir, "add", "-A")
	git(t, p.dir, "commit", "-qm", "x")
	p.agent("echo other >f.secret")
	p.restore("r1@before")
	assert.Equal(t, "words\n", p.read("f.secret"))
	assert.Empty(t, git(t, p.dir, "status", "--porcelain"))
}

func TestE10CarriageReturns(t *testing.T) {
	p := newRepo(t)
	git(t, p.dir, "config", "core.autocrlf", "true")
	p.write("f", "a\r\nb\r\n")
	git(t, p.dir, "add", "f")
	git(t, p.dir, "commit", "-qm", "x")
	p.agent("echo other >f")
	p.restore("r1@before")
	assert.Equal(t, "a\r\nb\r\n", p.read("f"))
}

// A staged change: without being asked the index stays as it is now, asked it
// is as it was, together with the files.
func TestE11StagedChange(t *testing.T) {
	p := newCommitted(t)
	p.write("a.txt", "staged\n")
	git(t, p.dir, "add", "a.txt")
	p.agent("git reset -q --hard")
	for _, index := range []bool{false, true} {
		_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before", Index: index})
		require.NoError(t, err)
		assert.Equal(t, "staged\n", p.read("a.txt"))
		want := " M a.txt"
		if index {
			want = "M  a.txt"
		}
		assert.Equal(t, want, git(t, p.dir, "status", "--porcelain"))
	}
}

func TestE12InsideASubmodule(t *testing.T) {
	lib := newCommitted(t)
	outer := newCommitted(t)
	git(t, outer.dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "m")
	got := command(t, outer.path("m"), "", "checkpoint")
	require.Equal(t, 0, got.code, got.err)
	assert.True(t, strings.HasPrefix(got.out, "c1\n"), got.out)
	outer.write("m/a.txt", "2")
	got = command(t, outer.path("m"), "", "restore c1 --yes")
	require.Equal(t, 0, got.code, got.err)
	assert.Equal(t, "a.txt\n", outer.read("m/a.txt"))
}

func TestE13TwoSessions(t *testing.T) {
	p := newCommitted(t)
	b := openPlace(t, p.dir, retcon.Options{Actor: "other"})
	p.exec("A", func() { p.write("a.txt", "by A"); p.write("by-a", "A") })
	b.exec("B", func() { b.write("b.txt", "by B"); b.write("by-b", "B") })
	r := p.restore("r1@before")
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
	p.gone("by-a")
	assert.Equal(t, "by B", p.read("b.txt"))
	assert.Equal(t, "B", p.read("by-b"))
	assert.ElementsMatch(t, []string{"b.txt", "by-b"}, kept(r.Plan))
}

// Also A04: what does not differ keeps inode and times.
func TestE14OneFileDiffers(t *testing.T) {
	p := newRepo(t)
	for i := range 308 {
		p.write(fmt.Sprintf("d%d/f%d", i%10, i), fmt.Sprint(i))
	}
	p.checkpoint(retcon.CheckpointOptions{})
	stat := func(i int) (st unix.Stat_t) {
		require.NoError(t, unix.Lstat(p.path(fmt.Sprintf("d%d/f%d", i%10, i)), &st))
		st.Atim = unix.Timespec{}
		return st
	}
	var before []unix.Stat_t
	for i := range 308 {
		before = append(before, stat(i))
	}
	p.write("d3/f3", "changed")
	r := p.restore("c1")
	assert.Equal(t, []string{"d3/f3"}, steps(r.Plan))
	for i := range 308 {
		if i != 3 {
			require.Equal(t, before[i], stat(i), "f%d was touched", i)
		}
	}
}

// A plan is agreed to, and carried out as it was shown or not at all.
func TestA02WhatWasShownIsWhatRuns(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "2")
	dry, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"a.txt"}, steps(dry.Plan))
	assert.Equal(t, "2", p.read("a.txt"))
	p.write("b.txt", "written since")
	assert.Equal(t, retcon.CodeStalePlan, p.refused(retcon.RestoreOptions{Ref: "c1", PlanID: dry.Plan.ID}))
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Confirm: func(*retcon.Plan) (bool, error) {
		p.write("a.txt", "while it was asked")
		return true, nil
	}})
	assert.Equal(t, retcon.CodeStalePlan, code(err))
	assert.Equal(t, "while it was asked", p.read("a.txt"))
	git(t, p.dir, "checkout", "-q", "b.txt")
	p.write("a.txt", "2")
	dry, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", DryRun: true})
	require.NoError(t, err)
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", PlanID: dry.Plan.ID})
	require.NoError(t, err)
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
}

// Whatever a restore removes, whoever made it, was stored first.
func TestA03SafetyAlways(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("mine", noise(1, 3000))
	before := p.digest()
	r, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Exact: true})
	require.NoError(t, err)
	p.gone("mine")
	require.NotEmpty(t, r.Safety)
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: retcon.Ref(r.Safety), Exact: true})
	require.NoError(t, err)
	assert.Equal(t, before, p.digest())
}
