package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// agrees checks that Discover finds what git finds from the same directory.
func agrees(t *testing.T, g git) *Repo {
	t.Helper()
	r, err := Discover(g.dir, Options{})
	require.NoError(t, err)
	assert.Equal(t, g.run("rev-parse", "--show-toplevel"), r.Root)
	assert.Equal(t, g.run("rev-parse", "--absolute-git-dir"), r.GitDir)
	common, err := filepath.EvalSymlinks(g.run("rev-parse", "--path-format=absolute", "--git-common-dir"))
	require.NoError(t, err)
	assert.Equal(t, common, r.CommonDir)
	return r
}

func TestDiscoverLayouts(t *testing.T) {
	t.Run("root and subdirectory", func(t *testing.T) {
		g := newGit(t)
		g.write("a/b/c", "")
		agrees(t, g)
		r := agrees(t, g.at("a/b"))
		assert.False(t, r.Linked)
	})
	t.Run("through a symlink", func(t *testing.T) {
		g := newGit(t)
		g.write("a/b", "")
		require.NoError(t, os.Symlink(filepath.Join(g.dir, "a"), g.home+"/link"))
		agrees(t, g.at(g.home+"/link"))
	})
	t.Run("linked worktree", func(t *testing.T) {
		g := newGit(t)
		g.commit("one")
		g.run("worktree", "add", "-q", "../linked")
		r := agrees(t, g.at("../linked"))
		assert.True(t, r.Linked)
		head, err := r.Head()
		require.NoError(t, err)
		assert.Equal(t, "refs/heads/linked", head.Ref)
	})
	t.Run("worktrees with config of their own", func(t *testing.T) {
		g := newGit(t)
		g.commit("one")
		g.run("worktree", "add", "-q", "../linked")
		g.run("config", "extensions.worktreeConfig", "true")
		g.at("../linked").run("config", "--worktree", "core.ignorecase", "true")
		assert.True(t, agrees(t, g.at("../linked")).Settings.IgnoreCase)
		assert.False(t, agrees(t, g).Settings.IgnoreCase)
	})
	t.Run("submodule", func(t *testing.T) {
		g := newGit(t)
		g.commit("one")
		other := newGit(t)
		other.commit("other")
		g.run("submodule", "add", "-q", other.dir, "sub/x")
		r := agrees(t, g.at("sub/x"))
		assert.False(t, r.Linked)
		assert.Equal(t, filepath.Join(g.dir, ".git/modules/sub/x"), r.GitDir)
	})
	t.Run("separate git dir", func(t *testing.T) {
		g := newGit(t, "--separate-git-dir", filepath.Join(t.TempDir(), "elsewhere"))
		agrees(t, g)
	})
	t.Run("bare with worktrees", func(t *testing.T) {
		g := newGit(t)
		g.commit("one")
		g.run("clone", "-q", "--bare", ".", "../project/.bare")
		p := g.at("../project")
		p.write(".git", "gitdir: ./.bare\n")
		p.run("worktree", "add", "-q", "feature")
		assert.True(t, agrees(t, p.at("feature")).Linked)
		_, err := Discover(p.dir, Options{})
		assert.ErrorIs(t, err, ErrBare)
		_, err = Discover(p.at(".bare").dir, Options{})
		assert.ErrorIs(t, err, ErrBare)
	})
	t.Run("bare, and inside .git", func(t *testing.T) {
		g := newGit(t)
		_, err := Discover(g.at(".git/refs/heads").dir, Options{})
		assert.ErrorIs(t, err, ErrBare)
		g.run("init", "-q", "--bare", "../bare")
		_, err = Discover(g.at("../bare/objects").dir, Options{})
		assert.ErrorIs(t, err, ErrBare)
	})
	t.Run("core.worktree", func(t *testing.T) {
		g := newGit(t)
		g.write("real/file", "")
		g.run("config", "core.worktree", "../real")
		agrees(t, g)
		require.NoError(t, os.RemoveAll(g.at("real").dir))
		r := g.open()
		assert.Equal(t, g.dir, r.Root)
		assert.NotEmpty(t, r.Warnings)
	})
	t.Run("every extension", func(t *testing.T) {
		for _, ext := range []string{"noop=1", "noop-v1=1", "worktreeConfig=true", "partialClone=origin",
			"preciousObjects=true", "objectFormat=sha1", "refStorage=files", "relativeWorktrees=true"} {
			for _, version := range []string{"0", "1"} {
				g := newGit(t)
				id := g.commit("one")
				key, value, _ := strings.Cut(ext, "=")
				g.run("config", "core.repositoryformatversion", version)
				g.run("config", "-f", ".git/config", "extensions."+key, value)
				r := g.open()
				reason, yes := r.FilesOnly()
				assert.False(t, yes, "%s: %s", ext, reason)
				head, err := r.Head()
				require.NoError(t, err)
				assert.Equal(t, Head{Ref: "refs/heads/main", ID: id}, head, ext)
			}
		}
	})
}

func TestFilesOnly(t *testing.T) {
	cases := []struct{ version, key, value, want string }{
		{"1", "extensions.objectFormat", "sha256", "object format sha256"},
		{"1", "extensions.refStorage", "reftable", "ref storage reftable"},
		{"1", "extensions.fromTheFuture", "x", "unknown extension fromthefuture"},
		{"2", "core.bare", "false", "repository format version 2"},
		{"0", "extensions.fromTheFuture", "x", ""},
	}
	for _, c := range cases {
		g := newGit(t)
		g.commit("one")
		g.run("config", "-f", ".git/config", "core.repositoryformatversion", c.version)
		g.run("config", "-f", ".git/config", c.key, c.value)
		r := g.open()
		reason, yes := r.FilesOnly()
		assert.Equal(t, c.want, reason)
		assert.Equal(t, c.want != "", yes, c.want)
		_, err := r.Head()
		if c.value != "sha256" { // a SHA-1 head in a repository that denies it is broken
			assert.NoError(t, err, c.want)
		}
		if yes {
			assert.ErrorIs(t, r.WriteIndex(nil, IndexSignature{}), ErrFilesOnly)
		}
	}
	t.Run("reftable head", func(t *testing.T) {
		g := newGit(t)
		g.run("config", "-f", ".git/config", "core.repositoryformatversion", "1")
		g.run("config", "-f", ".git/config", "extensions.refStorage", "reftable")
		g.write(".git/HEAD", "ref: refs/heads/.invalid\n")
		head, err := g.open().Head()
		require.NoError(t, err)
		assert.Equal(t, Head{Unknown: true}, head)
	})
	t.Run("a real sha256 repository", func(t *testing.T) {
		g := newGit(t, "--object-format=sha256")
		id := g.commit("one")
		r := g.open()
		head, err := r.Head()
		require.NoError(t, err)
		assert.Equal(t, id, head.ID)
		x, err := r.ReadIndex(IndexOptions{})
		require.NoError(t, err)
		assert.Equal(t, "object format sha256", x.Degraded)
		assert.Nil(t, x.Entries)
	})
}

func TestDiscoverNot(t *testing.T) {
	plain := t.TempDir()
	_, err := Discover(plain, Options{})
	assert.ErrorIs(t, err, ErrNotRepository)
	_, err = Discover("relative", Options{})
	assert.Error(t, err)

	cases := []struct {
		name string
		make func(g git) // in a/, inside a repository
		want error       // nil: the outer repository is found
	}{
		{"empty .git directory", func(g git) { g.write(".git/x", "") }, nil},
		{"HEAD alone", func(g git) { g.write(".git/HEAD", "ref: refs/heads/main\n") }, nil},
		{"no objects", func(g git) {
			g.write(".git/HEAD", "ref: refs/heads/main\n")
			g.write(".git/refs/x", "")
		}, nil},
		{"garbage in HEAD", func(g git) {
			g.write(".git/HEAD", "garbage")
			g.write(".git/objects/x", "")
			g.write(".git/refs/x", "")
		}, nil},
		{"empty .git file", func(g git) { g.write(".git", "") }, ErrGitFile},
		{".git file of words", func(g git) { g.write(".git", "hello\n") }, ErrGitFile},
		{".git file to nowhere", func(g git) { g.write(".git", "gitdir: ../nowhere\n") }, ErrGitFile},
		{"dangling .git symlink", func(g git) { require.NoError(g.t, os.Symlink("nowhere", g.dir+"/.git")) }, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newGit(t)
			in := g.at("a")
			in.write("file", "")
			c.make(in)
			r, err := Discover(in.dir, Options{})
			out, gitErr := in.try("rev-parse", "--show-toplevel")
			if c.want != nil {
				assert.ErrorIs(t, err, c.want)
				assert.Error(t, gitErr, out)
				return
			}
			require.NoError(t, err)
			require.NoError(t, gitErr, out)
			assert.Equal(t, g.dir, r.Root)
		})
	}
}

func TestOpenDoesNotWalk(t *testing.T) {
	g := newGit(t)
	g.write("a/b", "")
	_, err := Open(g.at("a").dir, Options{})
	assert.ErrorIs(t, err, ErrNotRepository)
	_, err = Open(g.dir, Options{})
	assert.NoError(t, err)
}

func TestEnvironmentIsIgnored(t *testing.T) {
	g, other := newGit(t), newGit(t)
	t.Setenv("GIT_DIR", filepath.Join(other.dir, ".git"))
	t.Setenv("GIT_WORK_TREE", other.dir)
	t.Setenv("GIT_INDEX_FILE", "/nowhere")
	t.Setenv("HOME", other.home)
	assert.Equal(t, g.dir, g.open().Root)
}

func TestIsNested(t *testing.T) {
	g := newGit(t)
	g.commit("one")
	g.run("worktree", "add", "-q", "linked")
	g.run("init", "-q", "inner")
	g.write("plain/file", "")
	g.write("empty/.git", "")
	g.write("half/.git/HEAD", "ref: refs/heads/main\n")
	g.write("lost/.git", "gitdir: ../gone\n")
	require.NoError(t, os.Symlink("inner", g.dir+"/link"))
	require.NoError(t, os.MkdirAll(g.dir+"/linkgit", 0o755))
	require.NoError(t, os.Symlink("../inner/.git", g.dir+"/linkgit/.git"))
	for name, want := range map[string]bool{
		".": true, "linked": true, "inner": true, "lost": true,
		"plain": false, "plain/file": false, "missing": false,
		"empty": false, "half": false, "link": false, "linkgit": false,
	} {
		assert.Equal(t, want, IsNested(filepath.Join(g.dir, name)), name)
	}
}
