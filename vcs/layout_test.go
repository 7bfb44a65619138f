package vcs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layout is a worktree as git, or its user, may have laid it out.
type layout struct {
	dir    string // open here
	root   string // top of the worktree; dir when empty
	change string // a file to change; "a" when empty
	add    string // a file to make; "more/new" when empty
	opt    Options
	noTree bool   // git cannot make a tree of it, or not ours
	kind   Kind   // Git when empty
	only   string // part of why it is captured by its files only
	check  func(t *testing.T, w *Worktree, c *Capture)
}

// committed is a repository with a few files and one commit.
func committed(t testing.TB) string {
	t.Helper()
	dir := newRepo(t)
	fill(t, dir)
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	return dir
}

func fill(t testing.TB, dir string) {
	t.Helper()
	write(t, dir, "a", "1\n")
	write(t, dir, "d/b", "2\n")
	write(t, dir, "d/e/c", "3\n")
	write(t, dir, "other/f", "4\n")
	write(t, dir, ".gitignore", "*.log\n")
}

// withConfig adds lines to the repository's configuration.
func withConfig(t testing.TB, dir, lines string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(git(t, dir, "rev-parse", "--absolute-git-dir"), "config"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(lines)
	require.NoError(t, errors.Join(err, f.Close()))
}

func extension(t *testing.T, dir, name, value string) {
	t.Helper()
	git(t, dir, "config", "core.repositoryformatversion", "1")
	git(t, dir, "config", "extensions."+name, value)
}

// gitFails runs git where it is meant to stop.
func gitFails(t *testing.T, dir string, args ...string) {
	t.Helper()
	script := `"$@" >/dev/null 2>&1; test $? -ne 0`
	git(t, dir, append([]string{"-c", "alias.fails=!f() { " + script + "; }; cd \"${GIT_PREFIX:-.}\" && f git", "fails"}, args...)...)
}

func isSparse(paths ...string) func(*testing.T, *Worktree, *Capture) {
	return func(t *testing.T, w *Worktree, c *Capture) {
		s := states(t, w, c.Commit)
		for _, p := range paths {
			assert.True(t, s[p].Sparse, "%s counts as present: %+v", p, s[p])
		}
		assert.False(t, s["a"].Sparse)
	}
}

func operation(name string) func(*testing.T, *Worktree, *Capture) {
	return func(t *testing.T, w *Worktree, c *Capture) {
		assert.Equal(t, name, c.Operation)
		_, op, err := w.Describe(c.Commit)
		assert.NoError(t, err)
		assert.Equal(t, name, op)
	}
}

var layouts = []struct {
	name string
	make func(t *testing.T) layout
}{
	{"ordinary", func(t *testing.T) layout { return layout{dir: committed(t)} }},
	{"opened in a subdirectory", func(t *testing.T) layout {
		dir := committed(t)
		return layout{dir: filepath.Join(dir, "d/e"), root: dir}
	}},
	{"through a symbolic link", func(t *testing.T) layout {
		dir := committed(t)
		link := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(dir, link))
		return layout{dir: link, root: dir}
	}},
	{"linked worktree", func(t *testing.T) layout {
		dir := committed(t)
		wt := filepath.Join(t.TempDir(), "wt")
		git(t, dir, "worktree", "add", "-q", wt)
		write(t, filepath.Join(dir, ".git/info"), "exclude", "*.tmp\n")
		write(t, wt, "x.tmp", "ignored by the common exclude file")
		return layout{dir: wt, kind: Linked, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, filepath.Join(dir, ".git", StoreName), w.Folder())
			assert.Equal(t, "refs/heads/wt", c.Head.Ref)
		}}
	}},
	{"worktree of a bare repository", func(t *testing.T) layout {
		dir := committed(t)
		bare := filepath.Join(t.TempDir(), "bare.git")
		git(t, dir, "clone", "-q", "--bare", dir, bare)
		wt := filepath.Join(t.TempDir(), "wt")
		git(t, bare, "worktree", "add", "-q", wt)
		return layout{dir: wt, kind: Linked}
	}},
	{"worktreeConfig", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "config", "extensions.worktreeConfig", "true")
		wt := filepath.Join(t.TempDir(), "wt")
		git(t, dir, "worktree", "add", "-q", wt)
		git(t, wt, "config", "--worktree", "core.fileMode", "false")
		require.NoError(t, os.Chmod(filepath.Join(wt, "a"), 0o755))
		return layout{dir: wt, kind: Linked}
	}},
	{"separate git directory", func(t *testing.T) layout {
		dir := filepath.Join(t.TempDir(), "repo")
		git(t, filepath.Dir(dir), "init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(filepath.Dir(dir), "elsewhere"), dir)
		fill(t, dir)
		return layout{dir: dir}
	}},
	{"submodule", func(t *testing.T) layout {
		return layout{dir: filepath.Join(withSubmodule(t), "sub"), kind: Submodule}
	}},
	{"around a submodule", func(t *testing.T) layout {
		dir := withSubmodule(t)
		return layout{dir: dir, change: "sub/a", check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, []string{"sub"}, c.Nested)
			assert.Equal(t, "1\n", content(t, w, c.Commit, "sub/a"))
		}}
	}},
	{"around a submodule that is not there", func(t *testing.T) layout {
		dir := filepath.Join(t.TempDir(), "clone")
		git(t, filepath.Dir(dir), "clone", "-q", withSubmodule(t), dir)
		return layout{dir: dir, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, KindGitlink, states(t, w, c.Commit)["sub"].Kind)
		}}
	}},
	{"nested repository", func(t *testing.T) layout {
		dir := committed(t)
		require.NoError(t, os.Rename(committed(t), filepath.Join(dir, "inner")))
		return layout{dir: dir, change: "inner/d/b", check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, "2\n", content(t, w, c.Commit, "inner/d/b"))
		}}
	}},
	{"nested repository with a git file", func(t *testing.T) layout {
		dir := committed(t)
		git(t, committed(t), "worktree", "add", "-q", filepath.Join(dir, "inner"))
		outside := committed(t)
		require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
		return layout{dir: dir, change: "inner/d/b", check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, []string{"inner"}, c.Nested)
			assert.Equal(t, KindLink, states(t, w, c.Commit)["link"].Kind)
			assert.NotContains(t, states(t, w, c.Commit), "link/a")
		}}
	}},
	{"nested repository without a commit", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "init", "-q", "inner")
		write(t, dir, "inner/a", "1")
		return layout{dir: dir, change: "inner/a", noTree: true} // git add refuses it
	}},
	{"nested repositories that are ignored", func(t *testing.T) layout {
		dir := committed(t)
		write(t, dir, ".gitignore", "node_modules/\n")
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "node_modules"), 0o755))
		require.NoError(t, os.Rename(committed(t), filepath.Join(dir, "node_modules/x")))
		return layout{dir: dir, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Empty(t, c.Nested)
			assert.Equal(t, KindIgnored, states(t, w, c.Commit)["node_modules"].Kind)
		}}
	}},
	{"unborn", func(t *testing.T) layout {
		dir := newRepo(t)
		fill(t, dir)
		return layout{dir: dir, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, Head{Ref: "refs/heads/main"}, c.Head)
		}}
	}},
	{"empty", func(t *testing.T) layout { return layout{dir: newRepo(t)} }},
	{"detached", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "checkout", "-q", "--detach")
		return layout{dir: dir, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, Head{ID: git(t, dir, "rev-parse", "HEAD")}, c.Head)
		}}
	}},
	{"merge with conflicts", func(t *testing.T) layout {
		dir := diverged(t)
		gitFails(t, dir, "merge", "-q", "side")
		return layout{dir: dir, check: operation("merge")}
	}},
	{"rebase with conflicts", func(t *testing.T) layout {
		dir := diverged(t)
		gitFails(t, dir, "rebase", "-q", "side")
		return layout{dir: dir, check: operation("rebase")}
	}},
	{"cherry-pick with conflicts", func(t *testing.T) layout {
		dir := diverged(t)
		gitFails(t, dir, "cherry-pick", "side")
		return layout{dir: dir, check: operation("cherry-pick")}
	}},
	{"sparse checkout", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "sparse-checkout", "set", "--cone", "d")
		return layout{dir: dir, add: "new", check: isSparse("other/f")}
	}},
	{"sparse checkout, sparse index", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "sparse-checkout", "set", "--cone", "--sparse-index", "other")
		return layout{dir: dir, add: "new", check: isSparse("d")}
	}},
	{"sparse checkout by patterns", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "sparse-checkout", "set", "--no-cone", "/*", "!/d/e/")
		return layout{dir: dir, check: isSparse("d/e/c")}
	}},
	{"split index", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "update-index", "--split-index")
		write(t, dir, "new", "n")
		git(t, dir, "add", "new")
		write(t, dir, "t.log", "tracked")
		git(t, dir, "add", "-f", "t.log")
		return layout{dir: dir}
	}},
	{"index without a checksum", func(t *testing.T) layout {
		dir := committed(t)
		// The version of git at hand may not know the option: the zeros are what it writes.
		path := filepath.Join(dir, ".git/index")
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		copy(b[len(b)-20:], make([]byte, 20))
		require.NoError(t, os.WriteFile(path, b, 0o644))
		git(t, dir, "config", "index.skipHash", "true")
		return layout{dir: dir}
	}},
	{"index of version 4", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "update-index", "--index-version", "4")
		return layout{dir: dir}
	}},
	{"intent to add", func(t *testing.T) layout {
		dir := committed(t)
		write(t, dir, "later", "1")
		git(t, dir, "add", "-N", "later")
		return layout{dir: dir}
	}},
	{"assume unchanged", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "update-index", "--assume-unchanged", "a")
		want := gitTree(t, dir)
		return layout{dir: dir, noTree: true, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, want, c.Tree)
		}} // git would not look at the file we change
	}},
	{"damaged index", func(t *testing.T) layout {
		dir := committed(t)
		write(t, dir, ".git/index", "no index")
		return layout{dir: dir, noTree: true}
	}},
	{"alternates", func(t *testing.T) layout {
		dir := filepath.Join(t.TempDir(), "clone")
		git(t, filepath.Dir(dir), "clone", "-q", "--shared", committed(t), dir)
		return layout{dir: dir}
	}},
	{"relative alternates", func(t *testing.T) layout {
		source := committed(t)
		dir := filepath.Join(filepath.Dir(source), "clone")
		git(t, filepath.Dir(dir), "clone", "-q", "--shared", source, dir)
		write(t, dir, ".git/objects/info/alternates", "../../../repo/.git/objects\n")
		return layout{dir: dir}
	}},
	{"partial clone", func(t *testing.T) layout {
		source := committed(t)
		write(t, source, "d/b", "newer\n")
		git(t, source, "commit", "-qam", "two")
		git(t, source, "config", "uploadpack.allowFilter", "true")
		git(t, source, "config", "uploadpack.allowAnySHA1InWant", "true")
		dir := filepath.Join(t.TempDir(), "clone")
		git(t, filepath.Dir(dir), "clone", "-q", "--filter=blob:none", "file://"+source, dir)
		require.NoError(t, os.RemoveAll(source)) // what was promised can never be had
		return layout{dir: dir}
	}},
	{"sha256", func(t *testing.T) layout {
		dir := filepath.Join(t.TempDir(), "repo")
		git(t, filepath.Dir(dir), "init", "-q", "--object-format=sha256", dir)
		fill(t, dir)
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-qm", "one")
		return layout{dir: dir, noTree: true, only: "sha256"}
	}},
	{"reftable", func(t *testing.T) layout {
		dir := committed(t)
		extension(t, dir, "refStorage", "reftable")
		return layout{dir: dir, noTree: true, only: "reftable"} // git 2.39 knows nothing of it
	}},
	{"extension nobody knows", func(t *testing.T) layout {
		dir := committed(t)
		extension(t, dir, "fromTheFuture", "true")
		return layout{dir: dir, noTree: true, only: "fromthefuture"}
	}},
	{"extension noop", func(t *testing.T) layout {
		dir := committed(t)
		extension(t, dir, "noop", "true")
		return layout{dir: dir}
	}},
	{"extension preciousObjects", func(t *testing.T) layout {
		dir := committed(t)
		extension(t, dir, "preciousObjects", "true")
		return layout{dir: dir}
	}},
	{"extension partialClone", func(t *testing.T) layout {
		dir := committed(t)
		extension(t, dir, "partialClone", "origin")
		return layout{dir: dir}
	}},
	{"extension objectFormat sha1", func(t *testing.T) layout {
		dir := committed(t)
		extension(t, dir, "objectFormat", "sha1")
		return layout{dir: dir}
	}},
	{"extension refStorage files", func(t *testing.T) layout {
		dir := committed(t)
		extension(t, dir, "refStorage", "files")
		return layout{dir: dir, noTree: true} // git 2.39 does not know it
	}},
	{"extension relativeWorktrees", func(t *testing.T) layout {
		dir := committed(t)
		extension(t, dir, "relativeWorktrees", "true")
		return layout{dir: dir, noTree: true} // likewise
	}},
	{"configuration git dies of", func(t *testing.T) layout {
		dir := committed(t)
		withConfig(t, dir, "[core\n\tnot a = [line\n\"\n")
		return layout{dir: dir, noTree: true}
	}},
	{"configuration other libraries die of", func(t *testing.T) layout {
		dir := committed(t)
		withConfig(t, dir, "[branch \"x\"]\n\tmerge = foo\n\trebase = merges\n[remote \"o\"]\n\tfetch = ^refs/x\n[pack]\n\twindow = 1k\n")
		return layout{dir: dir}
	}},
	{"hostile configuration", func(t *testing.T) layout {
		dir := committed(t)
		withConfig(t, dir, "[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = /bin/false\n[core]\n\thooksPath = /nonexistent\n\tfsmonitor = /bin/false\n\teditor = /bin/false\n")
		return layout{dir: dir}
	}},
	{"file modes off", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "config", "core.fileMode", "false")
		git(t, dir, "update-index", "--chmod=+x", "d/b")
		require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0o755))
		return layout{dir: dir, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, uint32(0o755), states(t, w, c.Commit)["a"].Mode, "what is on disk")
			git(t, dir, "update-index", "--chmod=+x", "other/f")
			assert.Equal(t, gitTree(t, dir), capture(t, w).Tree, "the index says what is executable")
		}}
	}},
	{"case folded", func(t *testing.T) layout {
		dir := committed(t)
		git(t, dir, "config", "core.ignoreCase", "true")
		write(t, dir, "X.LOG", "ignored in any case")
		return layout{dir: dir, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.True(t, states(t, w, c.Commit)["X.LOG"].Ignored)
		}}
	}},
	{"worktree elsewhere", func(t *testing.T) layout {
		dir := committed(t)
		root := filepath.Join(t.TempDir(), "tree")
		require.NoError(t, os.Mkdir(root, 0o755))
		fill(t, root)
		git(t, dir, "config", "core.worktree", root)
		return layout{dir: dir, root: root, noTree: true, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, git(t, dir, "rev-parse", "HEAD^{tree}"), c.Tree)
		}}
	}},
	{"plain folder", func(t *testing.T) layout {
		dir := filepath.Join(t.TempDir(), "plain")
		fill(t, dir)
		write(t, dir, "x.log", "ignored: the rules hold without git, too")
		return layout{dir: dir, opt: Options{Create: true}, kind: Plain, noTree: true, check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.True(t, states(t, w, c.Commit)["x.log"].Ignored)
			assert.NotContains(t, states(t, w, c.Commit), "."+StoreName)
		}}
	}},
	{"folder of two repositories", func(t *testing.T) layout {
		dir := filepath.Join(t.TempDir(), "both")
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.Rename(committed(t), filepath.Join(dir, "be")))
		require.NoError(t, os.Rename(committed(t), filepath.Join(dir, "fe")))
		return layout{dir: dir, opt: Options{Create: true}, kind: Plain, noTree: true, change: "fe/d/b", check: func(t *testing.T, w *Worktree, c *Capture) {
			assert.Equal(t, []string{"be", "fe"}, c.Nested)
			assert.Equal(t, "1\n", content(t, w, c.Commit, "be/a"))
		}}
	}},
}

// diverged is a repository on main, with a branch side that conflicts.
func diverged(t *testing.T) string {
	t.Helper()
	dir := committed(t)
	git(t, dir, "checkout", "-qb", "side")
	write(t, dir, "a", "side\n")
	git(t, dir, "commit", "-qam", "side")
	git(t, dir, "checkout", "-q", "main")
	write(t, dir, "a", "main\n")
	git(t, dir, "commit", "-qam", "main")
	return dir
}

// withSubmodule is a repository with a submodule sub.
func withSubmodule(t *testing.T) string {
	t.Helper()
	dir := committed(t)
	git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", committed(t), "sub")
	git(t, dir, "commit", "-qm", "submodule")
	return dir
}

// TestLayouts captures every kind of worktree: the tree is git's, a second
// capture finds nothing, and a change is seen.
//
// P10 Not a git repository, P33 Submodules, P34 Dependencies with their own
// .git, P35 Nested repositories by .git file, links not followed, P36 Nested
// repositories in a parent folder, P37 .git is a file, P39 Signing, P53 Sparse
// checkout.
func TestLayouts(t *testing.T) {
	for _, tt := range layouts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := tt.make(t)
			if l.root == "" {
				l.root = l.dir
			}
			if l.kind == "" {
				l.kind = Git
			}
			if l.change == "" {
				l.change = "a"
			}
			if l.add == "" {
				l.add = "more/new"
			}
			w := open(t, l.dir, l.opt)
			assert.Equal(t, l.kind, w.Kind())
			if l.only == "" && l.kind != Plain {
				assert.Empty(t, w.FilesOnly())
			}
			assert.Contains(t, w.FilesOnly(), l.only)
			root, err := filepath.EvalSymlinks(l.root)
			require.NoError(t, err)
			require.Equal(t, root, w.Root())

			first := capture(t, w)
			if !l.noTree {
				assert.Equal(t, gitTree(t, l.root), first.Tree)
			}
			second := capture(t, w)
			assert.Equal(t, first.Commit, second.Commit)
			assert.Zero(t, second.Stats.Objects)
			if l.check != nil {
				l.check(t, w, first)
				second = capture(t, w)
			}

			write(t, l.root, l.change, "changed\n")
			write(t, l.root, l.add, "new\n")
			third := capture(t, w)
			if !l.noTree {
				assert.Equal(t, gitTree(t, l.root), third.Tree)
			}
			changes, err := w.Diff(context.Background(), second.Commit, third.Commit)
			require.NoError(t, err)
			paths := make([]string, len(changes))
			for i, c := range changes {
				paths[i] = c.Path
			}
			want := []string{l.change, l.add}
			if dir, _ := split(l.add); dir != "" {
				want = append(want, dir)
			}
			assert.ElementsMatch(t, want, paths)
			assert.Equal(t, "changed\n", content(t, w, third.Commit, l.change))
			git(t, filepath.Join(w.Folder(), "store.git"), "fsck", "--strict", "--no-dangling")
		})
	}
}

// TestNoWorkspace refuses what cannot or should not be captured.
//
// P44 Home directory as workspace.
func TestNoWorkspace(t *testing.T) {
	plain := t.TempDir()
	_, err := Open(plain, Options{})
	assert.ErrorIs(t, err, ErrNotWorkspace)
	bare := filepath.Join(t.TempDir(), "bare.git")
	git(t, filepath.Dir(bare), "init", "-q", "--bare", bare)
	_, err = Open(bare, Options{})
	assert.ErrorIs(t, err, ErrBare)

	home := committed(t)
	for _, opt := range []Options{{Home: home}, {Home: filepath.Join(home, "d")}} {
		_, err = Open(home, opt)
		var wide *WideRootError
		require.ErrorAs(t, err, &wide)
		assert.Equal(t, home, wide.Root)
		_, err = os.Lstat(filepath.Join(home, ".git", StoreName))
		assert.ErrorIs(t, err, os.ErrNotExist, "refused before anything is written")
	}
	w := open(t, home, Options{Home: home, AllowWide: true})
	assert.Equal(t, gitTree(t, home), capture(t, w).Tree)
}

// TestGitEnvironment captures with nonsense in every GIT_ variable.
//
// P38 Inherited GIT_* variables never redirect.
func TestGitEnvironment(t *testing.T) {
	dir := committed(t)
	want := gitTree(t, dir)
	for _, name := range strings.Fields("GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES " +
		"GIT_COMMON_DIR GIT_CEILING_DIRECTORIES GIT_NAMESPACE GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_DEFAULT_HASH") {
		t.Setenv(name, "/nonexistent/garbage")
	}
	w := open(t, dir, Options{})
	assert.Equal(t, want, capture(t, w).Tree)
	write(t, dir, "a", "2")
	assert.Equal(t, gitTree(t, dir), capture(t, w).Tree)
	git(t, dir, "fsck")
}

// TestOuterRules reads ignore rules from every place git does.
func TestOuterRules(t *testing.T) {
	home := t.TempDir()
	write(t, home, ".config/git/ignore", "*.xdg\n")
	write(t, home, "excludes", "*.conf\n")
	dir := committed(t)
	for i, ext := range []string{"xdg", "conf", "info", "log"} {
		write(t, dir, "f."+ext, fmt.Sprint(i))
	}
	write(t, dir, ".git/info/exclude", "*.info\n")
	ignored := func(opt Options) (all []string) {
		w := open(t, dir, opt)
		for p, s := range states(t, w, capture(t, w).Commit) {
			if s.Ignored {
				all = append(all, p)
			}
		}
		return all
	}
	assert.ElementsMatch(t, []string{"f.info", "f.log"}, ignored(Options{}))
	assert.ElementsMatch(t, []string{"f.info", "f.log", "f.xdg"}, ignored(Options{Home: home}))
	assert.ElementsMatch(t, []string{"f.info", "f.log", "f.xdg"}, ignored(Options{XDGConfigHome: filepath.Join(home, ".config")}))
	write(t, home, ".gitconfig", "[core]\n\texcludesFile = ~/excludes\n")
	assert.ElementsMatch(t, []string{"f.info", "f.log", "f.conf"}, ignored(Options{Home: home}))
}
