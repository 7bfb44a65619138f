package vcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/retcon-dev/retcon/vcs/internal/object"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// Names and rules from one small alphabet, so that they meet.
var (
	someNames = []string{"a", "a", "b", "b", "c", "A", "a.b", "x.log", "y.log", "build", "out", ".gitignore", ".gitattributes",
		"-n", "!a", "#x", "[ab]", "*", " s", "t ", "q\"q", "q'\\", "n\nl", "r\r", "\xff\xfe", "\xc3\xa9", "e\xcc\x81", "\u516c.cpp", ".git2", "git", "a-", "a0"}
	someRules = []string{"*.log", "!x.log", "build", "build/", "!build/", "/a", "a", "!a", "a/", "*", "!*/", "!*.b", "**/b", "a/b", "a/**", "!a/b",
		"out/*", "!out/a", "[ab]", "\\!a", "\\#x", "\\[ab\\]", "t\\ ", "/*/b", "c/../a", "**", "/", "#a", "x.log  ", "\xff*", "?", "*/"}
	someContents = []string{"", "1\n", "2\n", "three", "f\r\no\r\nu\r\n", "\x00\x01\x02"}
)

// world is one random repository and what watches it.
type world struct {
	t       *rapid.T
	base    string // all of it
	dir     string // the worktree
	w       *Worktree
	env     []string
	log     []string // what was done, for the report of a failure
	tracked bool     // git has an index
}

// newWorld makes a repository without running git.
func newWorld(t *rapid.T, parent string) *world {
	base, err := os.MkdirTemp(parent, "w")
	if err != nil {
		t.Fatal(err)
	}
	wo := &world{t: t, base: base, dir: filepath.Join(base, "repo")}
	t.Cleanup(func() {
		if wo.w != nil {
			wo.w.Close()
		}
		os.RemoveAll(base)
	})
	fileMode := rapid.IntRange(0, 5).Draw(t, "filemode off") != 0
	gitDir := filepath.Join(wo.dir, ".git")
	for _, d := range []string{"objects", "refs/heads", "info"} {
		wo.must(os.MkdirAll(filepath.Join(gitDir, d), 0o755))
	}
	wo.must(os.WriteFile(filepath.Join(gitDir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	wo.must(os.WriteFile(filepath.Join(gitDir, "config"),
		fmt.Appendf(nil, "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfilemode = %v\n", fileMode), 0o644))
	if rapid.IntRange(0, 3).Draw(t, "exclude") == 0 {
		wo.must(os.WriteFile(filepath.Join(gitDir, "info", "exclude"), []byte(wo.rules()), 0o644))
	}
	wo.env = gitEnv()
	wo.open()
	return wo
}

func (wo *world) must(err error) {
	if err != nil {
		wo.t.Fatalf("%v\n%s", err, strings.Join(wo.log, "\n"))
	}
}

func (wo *world) open() {
	if wo.w != nil {
		wo.must(wo.w.Close())
	}
	w, err := Open(wo.dir, Options{})
	wo.must(err)
	wo.w = w
}

func (wo *world) rules() string {
	var b strings.Builder
	for range rapid.IntRange(0, 4).Draw(wo.t, "rules") {
		b.WriteString(rapid.SampledFrom(someRules).Draw(wo.t, "rule"))
		b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\n", "\r\n"}).Draw(wo.t, "end"))
	}
	return b.String()
}

func (wo *world) name() string { return rapid.SampledFrom(someNames).Draw(wo.t, "name") }

// path is one that exists, or a new one.
func (wo *world) path() string {
	if have := wo.paths(); len(have) > 0 && rapid.Bool().Draw(wo.t, "old") {
		return rapid.SampledFrom(have).Draw(wo.t, "path")
	}
	parts := make([]string, rapid.IntRange(1, 3).Draw(wo.t, "depth"))
	for i := range parts {
		parts[i] = wo.name()
	}
	return strings.Join(parts, "/")
}

// paths are all that exist, in the order of their names.
func (wo *world) paths() []string {
	var all []string
	wo.must(filepath.WalkDir(wo.dir, func(p string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == wo.dir:
			return nil
		case d.Name() == ".git":
			return filepath.SkipDir
		}
		all = append(all, p[len(wo.dir)+1:])
		return nil
	}))
	return all
}

// room makes path free and its parents directories.
func (wo *world) room(path string) string {
	full := filepath.Join(wo.dir, path)
	for i := range path {
		if path[i] == '/' {
			up := filepath.Join(wo.dir, path[:i])
			if fi, err := os.Lstat(up); err == nil && !fi.IsDir() {
				wo.must(os.Remove(up))
			}
		}
	}
	wo.must(os.MkdirAll(filepath.Dir(full), 0o755))
	wo.must(os.RemoveAll(full))
	return full
}

// edit does one thing to the worktree or the index.
func (wo *world) edit() {
	what := rapid.SampledFrom([]string{"write", "write", "write", "append", "ignore", "ignore", "remove", "exec", "link", "mkdir", "rename", "touch", "index"}).Draw(wo.t, "edit")
	path := wo.path()
	full := filepath.Join(wo.dir, path)
	switch what {
	case "write":
		content := rapid.SampledFrom(someContents).Draw(wo.t, "content")
		wo.must(os.WriteFile(wo.room(path), []byte(content), 0o644))
	case "append":
		if fi, err := os.Lstat(full); err != nil || !fi.Mode().IsRegular() {
			return
		}
		b, err := os.ReadFile(full)
		wo.must(err)
		wo.must(os.WriteFile(full, append(b, '+'), 0o644))
	case "ignore":
		if fi, err := os.Lstat(full); err == nil && fi.IsDir() {
			path = join(path, ".gitignore")
		} else {
			path = strings.TrimPrefix(filepath.Join(filepath.Dir(path), ".gitignore"), "./")
		}
		rules := wo.rules()
		wo.must(os.WriteFile(wo.room(path), []byte(rules), 0o644))
		path += fmt.Sprintf(": %q", rules)
	case "remove":
		if _, err := os.Lstat(full); err == nil {
			wo.must(os.RemoveAll(full))
		}
	case "exec":
		if fi, err := os.Lstat(full); err == nil && fi.Mode().IsRegular() {
			wo.must(os.Chmod(full, fi.Mode()^0o111))
		}
	case "link":
		wo.must(os.Symlink(rapid.SampledFrom([]string{"a", "../b", "/nonexistent", "."}).Draw(wo.t, "target"), wo.room(path)))
	case "mkdir":
		wo.must(os.Mkdir(wo.room(path), 0o755))
	case "rename":
		to := wo.path()
		if _, err := os.Lstat(full); err != nil || strings.HasPrefix(to+"/", path+"/") || strings.HasPrefix(path+"/", to+"/") {
			return
		}
		dst := wo.room(to)
		if _, err := os.Lstat(full); err == nil {
			wo.must(os.Rename(full, dst))
		}
		path += " -> " + to
	case "touch":
		if fi, err := os.Lstat(full); err == nil && fi.Mode().IsRegular() {
			wo.must(os.Chtimes(full, fi.ModTime(), fi.ModTime()))
		}
	case "index":
		path = wo.index(path)
	}
	wo.log = append(wo.log, fmt.Sprintf("%s %s", what, strconv.Quote(path)))
}

// index changes what git tracks.
func (wo *world) index(path string) string {
	args := rapid.SampledFrom([][]string{{"add", "-A"}, {"add", "-f"}, {"add", "-f"}, {"rm", "-q", "-r", "-f", "--cached", "--ignore-unmatch"},
		{"commit", "-q", "--allow-empty", "-am", "c"}}).Draw(wo.t, "git")
	if args[0] == "commit" && !wo.tracked {
		return "nothing"
	}
	if args[len(args)-1] == "-f" {
		if !slices.Contains(wo.paths(), path) { // or is beyond a link
			return "nothing"
		}
	}
	if a := args[len(args)-1]; a == "-f" || a == "--ignore-unmatch" {
		args = append(args[:len(args):len(args)], "--", ":(literal)"+path)
	}
	wo.git(nil, args...)
	wo.tracked = true
	return strings.Join(args, " ")
}

func (wo *world) git(env []string, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = wo.dir, append(wo.env[:len(wo.env):len(wo.env)], env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		wo.t.Fatalf("git %q: %v\n%s\n%s", args, err, errs.String(), strings.Join(wo.log, "\n"))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// oracle is the tree git makes of the worktree, in an index of its own.
func (wo *world) oracle() string {
	tmp := filepath.Join(wo.base, "index")
	_ = os.Remove(tmp) // the first time there is none
	wo.must(copyIndex(filepath.Join(wo.dir, ".git", "index"), tmp))
	env := []string{"GIT_INDEX_FILE=" + tmp, "GIT_OBJECT_DIRECTORY=" + filepath.Join(wo.base, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(wo.dir, ".git", "objects")}
	wo.must(os.MkdirAll(filepath.Join(wo.base, "objects"), 0o755))
	wo.git(env, "add", "-A")
	for _, path := range wo.loops(tmp) {
		wo.git(env, "update-index", "--force-remove", "--", path)
	}
	if rapid.IntRange(0, 7).Draw(wo.t, "write-tree") == 0 {
		return wo.git(env, "write-tree")
	}
	return wo.treeOf(tmp)
}

// loops are the paths in an index file that lie behind a link which points at
// itself. Git fails to look at such a file, says so and keeps it; we say that it
// is gone.
func (wo *world) loops(index string) (out []string) {
	raw, err := os.ReadFile(index)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	wo.must(err)
	x, err := repo.ParseIndex(raw, repo.IndexOptions{})
	wo.must(err)
	for i := range x.Entries {
		if _, err := os.Lstat(filepath.Join(wo.dir, x.Name(i))); errors.Is(err, unix.ELOOP) {
			out = append(out, x.Name(i))
		}
	}
	return out
}

// treeOf is the tree of an index file: a git process less than asking git, who
// decided all that is in it.
func (wo *world) treeOf(path string) string {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) { // git writes none when it would be empty
		return object.Sum(object.Tree, nil).String()
	}
	wo.must(err)
	x, err := repo.ParseIndex(raw, repo.IndexOptions{})
	wo.must(err)
	var tree func(prefix string, from, to int) object.ID
	tree = func(prefix string, from, to int) object.ID {
		var in []object.TreeEntry
		for i := from; i < to; {
			name, _, deeper := strings.Cut(x.Name(i)[len(prefix):], "/")
			e := object.TreeEntry{Mode: x.Entries[i].Mode, Name: name, ID: object.ID(x.Entries[i].OID)}
			end := i + 1
			if deeper {
				sub := prefix + name + "/"
				for end < to && strings.HasPrefix(x.Name(end), sub) {
					end++
				}
				e.Mode, e.ID = object.ModeDir, tree(sub, i, end)
			}
			in, i = append(in, e), end
		}
		object.SortEntries(in)
		return object.Sum(object.Tree, object.AppendTree(nil, in))
	}
	return tree("", 0, len(x.Entries)).String()
}

func (wo *world) capture(opt CaptureOptions) *Capture {
	c, err := wo.w.Capture(context.Background(), opt)
	wo.must(err)
	return c
}

// check compares what we capture with what git would, and with what we capture
// when we believe nothing.
func (wo *world) check(step int) {
	got := wo.capture(CaptureOptions{})
	if want := wo.oracle(); got.Tree != want {
		wo.t.Fatalf("step %d: tree %s, git has %s\n%s\n%s", step, got.Tree, want, strings.Join(wo.log, "\n"), wo.difference(got.Tree, want))
	}
	again := wo.capture(CaptureOptions{})
	if again.Commit != got.Commit || again.Stats.Objects != 0 {
		wo.t.Fatalf("step %d: captured again: %s then %s, %d objects\n%s", step, got.Commit, again.Commit, again.Stats.Objects, strings.Join(wo.log, "\n"))
	}
	if rapid.Bool().Draw(wo.t, "believe") {
		return
	}
	full := wo.capture(CaptureOptions{Rescan: true})
	if full.Commit != got.Commit {
		changes, err := wo.w.Diff(context.Background(), got.Commit, full.Commit)
		wo.t.Fatalf("step %d: incremental %s, rescan %s: %+v %v\n%s", step, got.Commit, full.Commit, changes, err, strings.Join(wo.log, "\n"))
	}
}

// anew captures without a stat cache. The commit may be another one only
// because the modes that are most frequent, and not recorded, are others now.
func (wo *world) anew() {
	got := wo.capture(CaptureOptions{})
	wo.must(os.Remove(wo.w.cachePath()))
	wo.open()
	fresh := wo.capture(CaptureOptions{})
	changes, err := wo.w.Diff(context.Background(), got.Commit, fresh.Commit)
	wo.must(err)
	if len(changes) > 0 || fresh.Tree != got.Tree {
		wo.t.Fatalf("incremental %s, without a cache %s: %+v\n%s", got.Commit, fresh.Commit, changes, strings.Join(wo.log, "\n"))
	}
}

func (wo *world) difference(ours, gits string) string {
	env := []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(wo.base, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(wo.w.Folder(), "store.git", "objects") + ":" + filepath.Join(wo.dir, ".git", "objects")}
	return "git has -> we have\n" + wo.git(env, "diff-tree", "-r", gits, ours)
}

// TestRandomRepositories compares the tree of every capture with git's, over
// 2,000 random repositories of several steps each: nested ignore files with
// negations, tracked files that are ignored, links, executables, deletions,
// files that become directories and back, empty directories, names of any bytes.
//
// P14 Ignored files do not leak, P24 no entry of an earlier capture, P58
// Non-ASCII names, P59 Executable bit.
func TestRandomRepositories(t *testing.T) {
	const parts = 20
	for i := range parts {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if testing.Short() && i > 0 {
				t.Skip("short")
			}
			t.Parallel()
			parent := t.TempDir()
			rapid.Check(t, func(t *rapid.T) { // 100 times, unless -rapid.checks says otherwise
				wo := newWorld(t, parent)
				for step := range rapid.SampledFrom([]int{2, 2, 3}).Draw(t, "steps") {
					for range rapid.IntRange(1, 7).Draw(t, "edits") {
						wo.edit()
					}
					if rapid.IntRange(0, 2).Draw(t, "reopen") == 0 {
						wo.open()
					}
					wo.check(step)
				}
				if rapid.IntRange(0, 3).Draw(t, "anew") == 0 {
					wo.anew()
				}
			})
		})
	}
}

// states are the paths of a commit.
func states(t testing.TB, w *Worktree, c Commit) map[string]State {
	t.Helper()
	files, err := w.Files(context.Background(), c)
	require.NoError(t, err)
	m := make(map[string]State, len(files))
	for _, f := range files {
		m[f.Path] = f.New
	}
	return m
}

// content is what a commit says is in the file at path.
func content(t testing.TB, w *Worktree, c Commit, path string) string {
	t.Helper()
	s, ok := states(t, w, c)[path]
	require.True(t, ok, "%s is not in the commit", path)
	b, err := w.Content(s)
	require.NoError(t, err, path)
	return string(b)
}

// TestMoreThanGit names what a commit holds and git's tree does not: the tree
// stays git's, and the rest stands beside it.
func TestMoreThanGit(t *testing.T) {
	t.Run("empty directories", func(t *testing.T) {
		dir := newRepo(t)
		write(t, dir, "f", "1")
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "e/mpty"), 0o750))
		w := open(t, dir, Options{})
		c := capture(t, w)
		assert.Equal(t, gitTree(t, dir), c.Tree)
		assert.Equal(t, KindDir, states(t, w, c.Commit)["e"].Kind)
		assert.Equal(t, State{Kind: KindDir, Mode: 0o750}, states(t, w, c.Commit)["e/mpty"])
	})
	t.Run("ignored files that are small", func(t *testing.T) {
		dir := newRepo(t)
		write(t, dir, ".gitignore", ".env\n")
		write(t, dir, ".env", "TOKEN=1\n")
		w := open(t, dir, Options{})
		c := capture(t, w)
		assert.Equal(t, gitTree(t, dir), c.Tree)
		s := states(t, w, c.Commit)[".env"]
		assert.True(t, s.Ignored)
		assert.Equal(t, "TOKEN=1\n", content(t, w, c.Commit, ".env"))
	})
	t.Run("files of nested repositories", func(t *testing.T) {
		dir := newRepo(t)
		write(t, dir, "f", "1")
		inner := filepath.Join(dir, "inner")
		git(t, dir, "init", "-q", inner)
		write(t, inner, "g", "2")
		git(t, inner, "add", "-A")
		git(t, inner, "commit", "-qm", "in")
		w := open(t, dir, Options{})
		c := capture(t, w)
		assert.Equal(t, gitTree(t, dir), c.Tree, "a gitlink in the tree, as git has it")
		assert.Equal(t, "2", content(t, w, c.Commit, "inner/g"))
		assert.Equal(t, []string{"inner"}, c.Nested)
	})
	t.Run("permission bits", func(t *testing.T) {
		dir := newRepo(t)
		write(t, dir, "f", "1")
		write(t, dir, "g", "1")
		require.NoError(t, os.Chmod(filepath.Join(dir, "g"), 0o600))
		w := open(t, dir, Options{})
		c := capture(t, w)
		assert.Equal(t, gitTree(t, dir), c.Tree)
		assert.Equal(t, uint32(0o600), states(t, w, c.Commit)["g"].Mode)
		assert.Equal(t, uint32(0o644), states(t, w, c.Commit)["f"].Mode)
	})
}
