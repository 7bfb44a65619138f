package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHead(t *testing.T) {
	g := newGit(t)
	head := func() Head {
		t.Helper()
		h, err := g.open().Head()
		require.NoError(t, err)
		id, err := g.try("rev-parse", "-q", "--verify", "HEAD")
		if err != nil {
			id = ""
		}
		assert.Equal(t, strings.TrimSpace(id), h.ID)
		return h
	}
	assert.Equal(t, Head{Ref: "refs/heads/main"}, head(), "unborn")
	one := g.commit("one")
	assert.Equal(t, Head{Ref: "refs/heads/main", ID: one}, head())
	g.run("pack-refs", "--all")
	assert.NoFileExists(t, g.dir+"/.git/refs/heads/main")
	assert.Equal(t, Head{Ref: "refs/heads/main", ID: one}, head(), "packed")
	two := g.commit("two")
	assert.Equal(t, Head{Ref: "refs/heads/main", ID: two}, head(), "loose before packed")
	g.run("symbolic-ref", "refs/heads/alias", "refs/heads/main")
	g.run("symbolic-ref", "HEAD", "refs/heads/alias")
	assert.Equal(t, Head{Ref: "refs/heads/alias", ID: two}, head(), "a chain")
	g.run("checkout", "-q", "--detach", "main")
	assert.Equal(t, Head{ID: two}, head(), "detached")
	g.run("checkout", "-q", "-b", "deep/er/branch")
	assert.Equal(t, Head{Ref: "refs/heads/deep/er/branch", ID: two}, head())
	g.run("pack-refs", "--all", "--prune")
	require.NoError(t, os.MkdirAll(g.dir+"/.git/refs/heads/deep/er/branch", 0o755))
	assert.Equal(t, Head{Ref: "refs/heads/deep/er/branch", ID: two}, head(), "an empty folder in the way")
}

func TestHeadLegacySymlink(t *testing.T) {
	g := newGit(t)
	id := g.commit("one")
	require.NoError(t, os.Remove(g.dir+"/.git/HEAD"))
	require.NoError(t, os.Symlink("refs/heads/main", g.dir+"/.git/HEAD"))
	h, err := g.open().Head()
	require.NoError(t, err)
	assert.Equal(t, Head{Ref: "refs/heads/main", ID: id}, h)
}

func TestRef(t *testing.T) {
	g := newGit(t)
	one := g.commit("one")
	g.run("tag", "-a", "-m", "x", "v1")
	g.run("update-ref", "refs/worktree/mine", one)
	g.run("update-ref", "ORIG_HEAD", one)
	g.run("worktree", "add", "-q", "../linked")
	g.run("pack-refs", "--all")
	linked := g.at("../linked")
	linked.commit("two")
	for _, at := range []git{g, linked} {
		r := at.open()
		for _, name := range []string{"HEAD", "ORIG_HEAD", "refs/heads/main", "refs/heads/linked", "refs/tags/v1",
			"refs/worktree/mine", "refs/heads/absent", "refs/heads", "MERGE_HEAD"} {
			out, gitErr := at.try("rev-parse", "-q", "--verify", name)
			id, ok, err := r.Ref(name)
			require.NoError(t, err, name)
			assert.Equal(t, gitErr == nil, ok, name)
			if ok {
				assert.Equal(t, strings.TrimSpace(out), id, name)
			}
		}
	}
}

func TestBadRefs(t *testing.T) {
	g := newGit(t)
	g.commit("one")
	g.write(".git/refs/heads/garbage", "hello\n")
	g.write(".git/refs/heads/short", "0123456789\n")
	g.write(".git/refs/heads/escape", "ref: refs/../../../etc/passwd\n")
	g.write(".git/refs/heads/loop", "ref: refs/heads/loop\n")
	g.write(".git/refs/heads/empty", "")
	r := g.open()
	for _, name := range []string{"refs/heads/garbage", "refs/heads/short", "refs/heads/escape", "refs/heads/loop",
		"refs/heads/empty", "../config", "refs/heads/../x", "refs/heads/a..b", "", "refs//x", "refs/heads/x.lock", "a b", "refs/heads/.x"} {
		_, _, err := r.Ref(name)
		assert.ErrorIs(t, err, ErrBadRef, name)
	}
}

func TestOperation(t *testing.T) {
	conflict := func(t *testing.T) git {
		g := newGit(t)
		g.write("f", "0\n")
		g.commit("base")
		g.run("checkout", "-q", "-b", "side")
		g.write("f", "side\n")
		g.commit("s1")
		g.commit("s2")
		g.run("checkout", "-q", "main")
		g.write("f", "main\n")
		g.commit("m1")
		assert.Equal(t, "", g.open().Operation())
		return g
	}
	cases := []struct {
		want string
		do   func(g git)
	}{
		{"merge", func(g git) { g.try("merge", "side") }},
		{"rebase", func(g git) { g.try("rebase", "side") }},
		{"rebase", func(g git) { g.try("rebase", "--apply", "side") }},
		{"am", func(g git) {
			g.write("p", g.run("format-patch", "--stdout", "-1", "side~1")+"\n")
			g.try("am", "p")
		}},
		{"cherry-pick", func(g git) { g.try("cherry-pick", "side~1") }},
		{"cherry-pick", func(g git) {
			g.try("cherry-pick", "side~1", "side")
			g.run("checkout", "-q", "-f", "HEAD", "--", ".")
			g.run("reset", "-q")
			os.Remove(g.dir + "/.git/CHERRY_PICK_HEAD")
		}},
		{"revert", func(g git) { g.try("revert", "--no-edit", "main~1") }},
		{"bisect", func(g git) { g.run("bisect", "start") }},
	}
	for _, c := range cases {
		g := conflict(t)
		c.do(g)
		assert.Equal(t, c.want, g.open().Operation())
	}
}

func TestObjectDirs(t *testing.T) {
	g := newGit(t)
	g.commit("one")
	g.run("clone", "-q", "--shared", ".", "../b")
	g.run("clone", "-q", "--shared", "../b", "../c")
	dir := func(name string) string { return filepath.Join(filepath.Dir(g.dir), name) }
	c := g.at("../c")
	objects := func() []string {
		dirs, err := c.open().ObjectDirs()
		require.NoError(t, err)
		return dirs
	}
	want := []string{dir("c/.git/objects"), dir("b/.git/objects"), dir("work/.git/objects")}
	assert.Equal(t, want, objects(), "chained")
	c.write(".git/objects/info/alternates", "# comment\n\n../../../b/.git/objects\n/nowhere/objects\n")
	assert.Equal(t, want, objects(), "relative, comment, missing")
	g.write(".git/objects/info/alternates", "../../../c/.git/objects\n")
	assert.Equal(t, want, objects(), "a circle")
	os.Remove(g.dir + "/.git/objects/info/alternates")
	require.NoError(t, os.Rename(dir("b"), dir("b\n\xff\"q")))
	c.write(".git/objects/info/alternates", "\"../../../b\\n\\377\\\"q/.git/objects\"\n")
	want[1] = dir("b\n\xff\"q/.git/objects")
	assert.Equal(t, want, objects(), "quoted")
	assert.NotContains(t, c.run("count-objects", "-v"), "unable")
}
