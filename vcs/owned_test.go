package vcs

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

func checkedOut(t testing.TB, w *Worktree, c Commit, name string) *Worktree {
	t.Helper()
	o, err := w.Checkout(context.Background(), c, filepath.Join(w.OwnedFolder(), name), CheckoutOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { o.Close() })
	return o
}

// differences is what differs between two commits and was captured: paths that
// a checkout must bring.
func differences(t testing.TB, w *Worktree, from, to Commit) (out []FileChange) {
	t.Helper()
	changes, err := w.Diff(context.Background(), from, to)
	require.NoError(t, err)
	for _, c := range changes {
		if !known(c.Old) && c.New.Kind == KindAbsent {
			continue
		}
		out = append(out, c)
	}
	return out
}

// gitBytes is gitDigest without the times of object files: git renews the time
// of one that it would have written, wherever it has found it.
func gitBytes(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := gitDigest(t, filepath.Join(dir, ".git"))
	for p, line := range all {
		if strings.HasPrefix(p, "objects/") && strings.HasPrefix(line, "-") {
			all[p] = objectTime.ReplaceAllString(line, "")
		}
	}
	return all
}

var objectTime = regexp.MustCompile(`\d{4}-\d\d-\d\d .* UTC`)

func untouched(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := gitBytes(t, dir)
	for p, line := range after {
		assert.Equal(t, before[p], line, p)
		delete(before, p)
	}
	assert.Empty(t, before, "gone")
}

func TestCheckout(t *testing.T) {
	dir := furnished(t)
	write(t, dir, ".gitignore", "ignored\n")
	write(t, dir, "ignored", "not there")
	write(t, dir, "run.sh", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o750))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty/er"), 0o700))
	write(t, dir, "locked/in", "x")
	require.NoError(t, os.Chmod(filepath.Join(dir, "locked"), 0o500))
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "locked"), 0o700) })
	w := open(t, dir, Options{})
	c := capture(t, w)
	before := gitBytes(t, dir)

	o := checkedOut(t, w, c.Commit, "one")
	assert.Equal(t, Owned, o.Kind())
	assert.Equal(t, w.Folder(), o.Folder())
	assert.NotEqual(t, w.name, o.name)
	assert.NoFileExists(t, filepath.Join(o.Root(), "ignored"))
	got := capture(t, o)
	assert.Zero(t, got.Stats.Hashed, "the first capture reads nothing")
	assert.Equal(t, c.Tree, got.Tree)
	assert.Equal(t, Head{ID: c.Head.ID}, got.Head)
	assert.NotContains(t, states(t, w, got.Commit), "ignored")
	assert.Empty(t, differences(t, w, c.Commit, got.Commit))
	again := capture(t, o)
	assert.Equal(t, got.Commit, again.Commit)
	assert.Zero(t, again.Stats.Listed, "nor lists the second one")

	t.Run("git sees what it saw", func(t *testing.T) {
		x, err := o.repo.ReadIndex(repo.IndexOptions{})
		require.NoError(t, err)
		i := x.Find("a")
		require.GreaterOrEqual(t, i, 0)
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(filepath.Join(o.Root(), "a"), &st))
		e := x.Entries[i]
		assert.Equal(t, []uint32{uint32(st.Ino), st.Uid, st.Gid, uint32(st.Size)}, []uint32{e.Ino, e.UID, e.GID, e.Size}, "the index vouches for the file")
		for _, args := range [][]string{{"status", "--porcelain=v2"}, {"diff"}, {"diff", "--cached"}, {"log", "--branches", "--tags"},
			{"show", "other:a"}, {"describe", "--tags", "--always"}} {
			args = append([]string{"--no-optional-locks"}, args...)
			assert.Equal(t, git(t, dir, args...), git(t, o.Root(), args...), "git %v", args)
		}
		git(t, o.Root(), "fsck", "--strict", "--no-dangling")
	})
	t.Run("git there writes there", func(t *testing.T) {
		write(t, o.Root(), "a", "agent's\n")
		git(t, o.Root(), "add", "-A")
		git(t, o.Root(), "commit", "-qm", "agent")
		git(t, o.Root(), "checkout", "-qb", "main2")
		git(t, o.Root(), "branch", "-f", "main", "HEAD")
		git(t, o.Root(), "tag", "t")
		git(t, o.Root(), "stash", "list")
		git(t, o.Root(), "gc", "-q")
		after := capture(t, o)
		assert.Equal(t, git(t, o.Root(), "rev-parse", "HEAD"), after.Head.ID)
		assert.Equal(t, git(t, o.Root(), "rev-parse", "HEAD^{tree}"), after.Tree)
		whole(t, w, []Commit{after.Commit})
		git(t, filepath.Join(w.Folder(), "store.git"), "cat-file", "-e", after.Head.ID)
	})
	t.Run("found again", func(t *testing.T) {
		require.NoError(t, os.MkdirAll(filepath.Join(o.Root(), "sub/dir"), 0o755))
		again := open(t, filepath.Join(o.Root(), "sub/dir"), Options{})
		assert.Equal(t, o.Root(), again.Root())
		assert.Equal(t, w.Folder(), again.Folder())
		assert.Equal(t, o.cachePath(), again.cachePath())
	})
	t.Run("removed", func(t *testing.T) {
		outside := filepath.Join(t.TempDir(), "outside")
		write(t, outside, "f", "stays")
		require.NoError(t, os.Symlink(outside, filepath.Join(o.Root(), "way out")))
		require.NoError(t, os.Chmod(filepath.Join(o.Root(), "d"), 0))
		require.NoError(t, w.RemoveOwned(context.Background(), o.Root()))
		assert.NoFileExists(t, o.Root())
		assert.FileExists(t, filepath.Join(outside, "f"))
		assert.NoFileExists(t, o.cachePath())
		for _, sub := range []string{"owned", "worktrees"} {
			left, err := os.ReadDir(filepath.Join(w.Folder(), sub))
			require.NoError(t, err)
			assert.Empty(t, left, sub)
		}
		locks, err := filepath.Glob(filepath.Join(w.Folder(), "locks", "*own-*"))
		require.NoError(t, err)
		assert.Empty(t, locks)
		readable(t, w, got.Commit)
	})
	untouched(t, dir, before)
}

func TestCheckoutIgnored(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, ".gitignore", "*.log\n")
	write(t, dir, "x.log", "1")
	write(t, dir, "cache/.gitignore", "*\n")
	write(t, dir, "cache/data", "1")
	w := open(t, dir, Options{Create: true})
	c := capture(t, w)
	for _, ignored := range []bool{false, true} {
		root := filepath.Join(t.TempDir(), "root")
		o, err := w.Checkout(context.Background(), c.Commit, root, CheckoutOptions{Ignored: ignored})
		require.NoError(t, err)
		defer o.Close()
		assert.FileExists(t, filepath.Join(root, "cache/.gitignore"), "what is made there stays ignored")
		for _, path := range []string{"x.log", "cache/data"} {
			_, err := os.Lstat(filepath.Join(root, path))
			assert.Equal(t, ignored, err == nil, path)
		}
		got := capture(t, o)
		assert.Equal(t, ignored, got.Commit == c.Commit)
		assert.Zero(t, got.Stats.Hashed)
	}
}

func TestCheckoutPlain(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "1")
	write(t, dir, "d/b", "2")
	w := open(t, dir, Options{Create: true})
	c := capture(t, w)
	for _, at := range []string{filepath.Join(w.OwnedFolder(), "one"), filepath.Join(t.TempDir(), "not/there/yet")} {
		o, err := w.Checkout(context.Background(), c.Commit, at, CheckoutOptions{})
		require.NoError(t, err)
		assert.NoFileExists(t, filepath.Join(at, ".git"))
		assert.Equal(t, Owned, o.Kind())
		got := capture(t, o)
		assert.Equal(t, c.Commit, got.Commit, "the pointer is not captured")
		assert.Zero(t, got.Stats.Hashed)
		require.NoError(t, o.Close())
		o = open(t, filepath.Join(at, "d"), Options{})
		assert.Equal(t, w.Folder(), o.Folder())
		assert.Equal(t, got.Commit, capture(t, o).Commit)
		require.NoError(t, w.RemoveOwned(context.Background(), at))
		assert.NoFileExists(t, at)
	}
	_, err := Open(filepath.Join(w.Folder(), "worktrees"), Options{})
	require.NoError(t, err, "the workspace itself, as before")
}

// A pointer that came with the files of a stranger leads nowhere.
func TestForeignPointer(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "home/owned/own-1/record", `{"root":"L25vd2hlcmU=","whole":true}`)
	write(t, dir, "project/.retcon", "owned: ../home/owned/own-1\n")
	_, err := Open(filepath.Join(dir, "project"), Options{})
	assert.ErrorIs(t, err, ErrNotWorkspace)
}

func TestCheckoutRefusals(t *testing.T) {
	ctx := context.Background()
	dir := committed(t)
	w := open(t, dir, Options{})
	c := capture(t, w).Commit
	var occupied *OccupiedError
	var foreign *NotOwnedError

	full := t.TempDir()
	write(t, full, "mine", "1")
	_, err := w.Checkout(ctx, c, full, CheckoutOptions{})
	assert.ErrorAs(t, err, &occupied)
	assert.FileExists(t, filepath.Join(full, "mine"))
	assert.ErrorAs(t, w.RemoveOwned(ctx, full), &foreign)

	write(t, full, ".git", "")
	_, err = w.Checkout(ctx, c, full, CheckoutOptions{})
	assert.ErrorAs(t, err, &occupied, "no pointer of ours, and nobody was at it")

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	_, err = w.Checkout(ctx, c, link, CheckoutOptions{})
	assert.ErrorAs(t, err, &occupied, "a link is followed by nobody")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = w.Checkout(ctx, c, file, CheckoutOptions{})
	assert.ErrorAs(t, err, &occupied)

	o := checkedOut(t, w, c, "one")
	_, err = w.Checkout(ctx, c, o.Root(), CheckoutOptions{})
	assert.ErrorAs(t, err, &occupied, "whole")
	require.NoError(t, os.Truncate(filepath.Join(o.Root(), ".git"), 5))
	_, err = w.Checkout(ctx, c, o.Root(), CheckoutOptions{})
	assert.ErrorAs(t, err, &occupied, "whole, and somebody was at the pointer")
	assert.ErrorAs(t, w.RemoveOwned(ctx, o.Root()), &foreign)
	assert.FileExists(t, filepath.Join(o.Root(), "a"))
	other := open(t, committed(t), Options{})
	assert.ErrorAs(t, other.RemoveOwned(ctx, o.Root()), &foreign, "another workspace's")
	assert.ErrorAs(t, w.RemoveOwned(ctx, dir), &foreign)
	assert.ErrorAs(t, w.RemoveOwned(ctx, filepath.Join(w.OwnedFolder(), "nowhere")), &foreign)

	missing := filepath.Join(t.TempDir(), "missing")
	_, err = w.Checkout(ctx, Commit(strings.Repeat("0", 40)), missing, CheckoutOptions{})
	require.Error(t, err)
	assert.NoFileExists(t, missing)

	t.Run("a checkout that cannot be finished leaves nothing", func(t *testing.T) {
		for _, there := range []bool{false, true} {
			at := filepath.Join(t.TempDir(), "half")
			if there {
				require.NoError(t, os.Mkdir(at, 0o700))
			}
			ctx, cancel := context.WithCancel(ctx)
			crash.Hook = func(name string) {
				if name == "checkout.begun" {
					cancel()
				}
			}
			_, err = w.Checkout(ctx, c, at, CheckoutOptions{})
			crash.Hook = nil
			require.ErrorIs(t, err, context.Canceled)
			if there {
				left, err := os.ReadDir(at)
				require.NoError(t, err)
				assert.Empty(t, left)
			} else {
				assert.NoFileExists(t, at)
			}
			_, err := os.ReadDir(filepath.Join(w.Folder(), ownedFolder, o.name))
			require.NoError(t, err, "what belongs to another is left alone")
			homes, err := os.ReadDir(filepath.Join(w.Folder(), ownedFolder))
			require.NoError(t, err)
			assert.Len(t, homes, 1)
		}
	})
}

// Who comes between the look at an empty directory and the first file in it keeps
// what he brought.
func TestCheckoutInterrupted(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	c := capture(t, w).Commit
	for _, there := range []bool{false, true} {
		root := filepath.Join(t.TempDir(), "root")
		if there {
			require.NoError(t, os.Mkdir(root, 0o700))
		}
		crash.Hook = func(name string) {
			if name == "checkout.begin" {
				write(t, root, ".git", "gitdir: elsewhere\n")
				write(t, root, "theirs", "1")
			}
		}
		_, err := w.Checkout(context.Background(), c, root, CheckoutOptions{})
		crash.Hook = nil
		require.ErrorIs(t, err, os.ErrExist)
		assert.FileExists(t, filepath.Join(root, "theirs"))
		left, err := os.ReadDir(filepath.Join(w.Folder(), ownedFolder))
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}

// TestOwnedDies kills a checkout and a removal at each of their points. Either
// can be called again, and nobody takes half of a worktree for a whole one.
func TestOwnedDies(t *testing.T) {
	ctx := context.Background()
	dir := committed(t)
	w := open(t, dir, Options{})
	c := capture(t, w)
	die := errors.New("died")
	run := func(at string, f func()) (died bool) {
		crash.Hook = func(name string) {
			if name == at {
				panic(die)
			}
		}
		defer func() {
			crash.Hook = nil
			if r := recover(); r != nil {
				require.Equal(t, die, r)
				died = true
			}
		}()
		f()
		return false
	}
	root := filepath.Join(w.OwnedFolder(), "one")
	makes := func() {
		o, err := w.Checkout(ctx, c.Commit, root, CheckoutOptions{})
		require.NoError(t, err)
		require.NoError(t, o.Close())
	}
	removes := func() { require.NoError(t, w.RemoveOwned(ctx, root)) }
	gone := func(t *testing.T) {
		assert.NoFileExists(t, root)
		assert.NoFileExists(t, filepath.Join(w.Folder(), "statcache", "own-*"))
		left, err := os.ReadDir(filepath.Join(w.Folder(), ownedFolder))
		require.NoError(t, err)
		assert.Empty(t, left)
	}
	check := func(t *testing.T) {
		o := open(t, root, Options{})
		assert.Equal(t, c.Tree, capture(t, o).Tree)
		removes()
		gone(t)
	}
	for _, point := range []string{"checkout.begin", "checkout.begun", "checkout.filled", "checkout.whole"} {
		t.Run(point, func(t *testing.T) {
			require.True(t, run(point, makes))
			if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
				_, err := Open(root, Options{})
				require.ErrorIs(t, err, ErrIncomplete)
			}
			makes()
			check(t)
			require.True(t, run(point, makes))
			removes()
			gone(t)
		})
	}
	for _, point := range []string{"owned.remove", "owned.cleared", "owned.removed"} {
		t.Run(point, func(t *testing.T) {
			makes()
			require.True(t, run(point, removes))
			if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
				_, err := Open(root, Options{})
				require.ErrorIs(t, err, ErrIncomplete)
			}
			removes()
			gone(t)
			makes()
			require.True(t, run(point, removes))
			makes()
			check(t)
		})
	}
	t.Run("while the pointer was written", func(t *testing.T) {
		require.True(t, run("checkout.begun", makes))
		require.NoError(t, os.Truncate(filepath.Join(root, ".git"), 5))
		makes()
		check(t)
	})
	t.Run("somebody removed it by hand", func(t *testing.T) {
		makes()
		require.NoError(t, os.RemoveAll(root))
		removes()
		gone(t)
	})
}

// Directories that deny their owner are made, and removed.
func TestOwnedDenied(t *testing.T) {
	if asNobody(t) {
		return
	}
	dir := committed(t)
	write(t, dir, "locked/in/f", "1")
	require.NoError(t, os.Chmod(filepath.Join(dir, "locked/in"), 0o500))
	require.NoError(t, os.Chmod(filepath.Join(dir, "locked"), 0o500))
	t.Cleanup(func() {
		os.Chmod(filepath.Join(dir, "locked"), 0o700)
		os.Chmod(filepath.Join(dir, "locked/in"), 0o700)
	})
	w := open(t, dir, Options{})
	c := capture(t, w)
	o := checkedOut(t, w, c.Commit, "one")
	assert.Equal(t, c.Tree, capture(t, o).Tree)
	require.NoError(t, os.MkdirAll(filepath.Join(o.Root(), "blind/er"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(o.Root(), "blind"), 0))
	require.NoError(t, os.Chmod(o.Root(), 0o500))
	require.NoError(t, w.RemoveOwned(context.Background(), o.Root()))
	assert.NoFileExists(t, o.Root())
}

// A removal stops at what is mounted in the directory.
func TestRemoveOwnedStopsAtMounts(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	o := checkedOut(t, w, capture(t, w).Commit, "one")
	fd, err := openRoot(o.Root())
	require.NoError(t, err)
	defer unix.Close(fd)
	mount, err := mountID(fd)
	require.NoError(t, err)
	assert.ErrorIs(t, emptyDir(fd, "", ".git", mount+1), unix.EBUSY, "the directory below is in another mount")
	assert.FileExists(t, filepath.Join(o.Root(), "d/b"))
}

// TestCheckoutRandom checks out random repositories: the tree is the commit's,
// the capture says the same of every path that was captured, and the user's git
// directory is untouched.
func TestCheckoutRandom(tt *testing.T) {
	tt.Parallel()
	parent, t := tt.TempDir(), tt
	rapid.Check(t, func(t *rapid.T) {
		wo := newWorld(t, parent)
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			wo.edit()
		}
		c := wo.capture(CaptureOptions{})
		before := gitBytes(tt, wo.dir)
		opt := CheckoutOptions{Ignored: rapid.Bool().Draw(t, "ignored")}
		o, err := wo.w.Checkout(context.Background(), c.Commit, filepath.Join(wo.w.OwnedFolder(), "o"), opt)
		wo.must(err)
		defer o.Close()
		got, err := o.Capture(context.Background(), CaptureOptions{})
		wo.must(err)
		changes, err := wo.w.Diff(context.Background(), c.Commit, got.Commit)
		wo.must(err)
		var odd []FileChange
		for _, ch := range changes {
			if known(ch.Old) || ch.New.Kind != KindAbsent || opt.Ignored && ch.Old.Kind == KindFile {
				odd = append(odd, ch)
			}
		}
		if got.Tree != c.Tree || got.Stats.Hashed > 0 || len(odd) > 0 {
			t.Fatalf("tree %s, checked out %s, %d files read, %+v\n%s", c.Tree, got.Tree, got.Stats.Hashed, odd, strings.Join(wo.log, "\n"))
		}
		full, err := o.Capture(context.Background(), CaptureOptions{Rescan: true})
		wo.must(err)
		if full.Commit != got.Commit {
			t.Fatalf("rescan %s, not %s\n%s", full.Commit, got.Commit, strings.Join(wo.log, "\n"))
		}
		if c.Operation == "" && rapid.IntRange(0, 3).Draw(t, "commit") == 0 {
			git(tt, o.Root(), "add", "-A")
			git(tt, o.Root(), "commit", "-q", "--allow-empty", "-m", "there")
		}
		wo.must(wo.w.RemoveOwned(context.Background(), o.Root()))
		untouched(tt, wo.dir, before)
		if tt.Failed() {
			t.Fatalf("%s", strings.Join(wo.log, "\n"))
		}
	})
}

func TestCheckoutNested(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "f", "1")
	inner := filepath.Join(dir, "lib/inner")
	git(t, dir, "init", "-q", inner)
	write(t, inner, "g", "2")
	git(t, inner, "add", "-A")
	git(t, inner, "commit", "-qm", "in")
	write(t, inner, "h", "new")
	sub := committed(t)
	git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "sub")
	git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "away")
	git(t, dir, "submodule", "--quiet", "deinit", "-f", "away")
	git(t, dir, "add", "f")
	w := open(t, dir, Options{})
	c := capture(t, w)
	before := gitBytes(t, dir)
	o := checkedOut(t, w, c.Commit, "one")
	got := capture(t, o)
	assert.Equal(t, c.Tree, got.Tree)
	assert.Equal(t, c.Nested, got.Nested)
	assert.Zero(t, got.Stats.Hashed)
	assert.Empty(t, differences(t, w, c.Commit, got.Commit))
	in := filepath.Join(o.Root(), "lib/inner")
	assert.Equal(t, git(t, inner, "status", "--short"), git(t, in, "status", "--short"))
	assert.Equal(t, git(t, inner, "log", "--format=%H"), git(t, in, "log", "--format=%H"))
	git(t, in, "add", "-A")
	git(t, in, "commit", "-qm", "agent")
	assert.NotEqual(t, got.Tree, capture(t, o).Tree)
	untouched(t, dir, before)
	require.NoError(t, w.RemoveOwned(context.Background(), o.Root()))
	assert.NoFileExists(t, o.Root())
}

func TestCheckoutSparse(t *testing.T) {
	dir := newRepo(t)
	for _, p := range []string{"in/a", "in/b", "out/a", "out/deep/b", "top"} {
		write(t, dir, p, p)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "all")
	git(t, dir, "sparse-checkout", "set", "in")
	w := open(t, dir, Options{})
	c := capture(t, w)
	o := checkedOut(t, w, c.Commit, "one")
	assert.NoFileExists(t, filepath.Join(o.Root(), "out"))
	got := capture(t, o)
	assert.Equal(t, c.Tree, got.Tree)
	assert.Empty(t, differences(t, w, c.Commit, got.Commit))
	assert.Empty(t, git(t, o.Root(), "status", "--porcelain"))
	git(t, o.Root(), "sparse-checkout", "disable")
	assert.FileExists(t, filepath.Join(o.Root(), "out/deep/b"))
}

// What the repository configures about reading files and about the user holds
// in a checkout, and what would reach outside does not.
func TestCheckoutConfig(t *testing.T) {
	dir := committed(t)
	git(t, dir, "config", "user.name", "Some \"One\"")
	git(t, dir, "config", "core.autocrlf", "input")
	git(t, dir, "config", "filter.low er.clean", "tr A-Z a-z")
	git(t, dir, "config", "remote.origin.url", "/elsewhere")
	git(t, dir, "config", "core.hooksPath", "/elsewhere")
	write(t, dir, ".gitattributes", "*.up filter=\"low er\"\n")
	write(t, dir, ".git/info/exclude", "private\n")
	w := open(t, dir, Options{})
	o := checkedOut(t, w, capture(t, w).Commit, "one")
	assert.Equal(t, "Some \"One\"", git(t, o.Root(), "config", "user.name"))
	assert.Equal(t, "input", git(t, o.Root(), "config", "core.autocrlf"))
	assert.Equal(t, "tr A-Z a-z", git(t, o.Root(), "config", "filter.low er.clean"))
	assert.Empty(t, git(t, o.Root(), "remote"))
	assert.Empty(t, git(t, o.Root(), "config", "--default", "", "core.hooksPath"))
	write(t, o.Root(), "private", "1")
	assert.NotContains(t, git(t, o.Root(), "status", "--porcelain"), "private")
}

// Formats whose refs and objects we do not read give a directory without git.
func TestCheckoutFilesOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	git(t, filepath.Dir(dir), "init", "-q", "--object-format=sha256", dir)
	write(t, dir, "a", "1")
	w := open(t, dir, Options{})
	c := capture(t, w)
	o := checkedOut(t, w, c.Commit, "one")
	assert.NoFileExists(t, filepath.Join(o.Root(), ".git"))
	assert.Equal(t, c.Tree, capture(t, o).Tree)
	assert.Equal(t, w.Folder(), open(t, o.Root(), Options{}).Folder())
}

// A worktree of our own can be checked out from, and removed before what was
// made of it.
func TestCheckoutOfOwned(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	one := checkedOut(t, w, capture(t, w).Commit, "one")
	write(t, one.Root(), "a", "agent's\n")
	git(t, one.Root(), "commit", "-qam", "agent")
	git(t, one.Root(), "branch", "kept")
	write(t, one.Root(), "a", "newer")
	git(t, one.Root(), "commit", "-qam", "agent again")
	c := capture(t, one)
	two := checkedOut(t, one, c.Commit, "two")
	lenders, err := os.ReadFile(filepath.Join(two.GitDir(), "objects/info/alternates"))
	require.NoError(t, err)
	assert.NotContains(t, string(lenders), ownedPrefix, "nothing is borrowed from what may go")
	require.NoError(t, w.RemoveOwned(context.Background(), one.Root()))
	assert.Equal(t, c.Commit, mustCommit(t, two, c))
	assert.Equal(t, c.Head.ID, git(t, two.Root(), "rev-parse", "HEAD"))
	assert.Equal(t, "3", git(t, two.Root(), "rev-list", "--count", "HEAD"))
	assert.Empty(t, git(t, two.Root(), "status", "--porcelain"))
	git(t, two.Root(), "fsck", "--strict", "--no-dangling")
}

func mustCommit(t *testing.T, w *Worktree, like *Capture) Commit {
	t.Helper()
	got := capture(t, w)
	assert.Equal(t, like.Tree, got.Tree)
	return got.Commit
}

// TestMovesInOwned restores random states in worktrees of our own, as in any
// other.
func TestMovesInOwned(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []Kind{Git, Plain} {
		t.Run(string(kind), func(t *testing.T) {
			rng := rand.New(rand.NewSource(7))
			dir := t.TempDir()
			if kind == Git {
				dir = committed(t)
			}
			w := open(t, dir, Options{Create: true})
			var seen []*Capture
			for range 6 {
				scramble(t, rng, dir)
				seen = append(seen, capture(t, w))
			}
			o := checkedOut(t, w, seen[0].Commit, "one")
			for i := range 12 {
				to := seen[rng.Intn(len(seen))]
				release, err := o.Hold(ctx)
				require.NoError(t, err)
				now := capture(t, o)
				changes, err := o.Diff(ctx, now.Commit, to.Commit)
				require.NoError(t, err)
				do, rest := Restorable(changes)
				require.Empty(t, rest)
				s, err := o.Stage(ctx, fmt.Sprint(i), do)
				require.NoError(t, err)
				require.NoError(t, s.Swap(ctx))
				_, err = s.Verify(ctx)
				require.NoError(t, err)
				require.NoError(t, s.Discard())
				release()
				assert.Equal(t, to.Tree, capture(t, o).Tree)
			}
			assert.Equal(t, seen[5].Commit, capture(t, w).Commit, "the other worktree is where it was")
		})
	}
}

// PutGit moves HEAD and index of a worktree of our own, and of no other.
func TestPutGitInOwned(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	one := capture(t, w)
	before := gitBytes(t, dir)
	o := checkedOut(t, w, one.Commit, "one")
	from := capture(t, o)
	write(t, o.Root(), "a", "agent's\n")
	git(t, o.Root(), "commit", "-qam", "agent")
	to := capture(t, o)
	require.NoError(t, o.PutGit(from.Commit, to.Commit, PutOptions{Head: true, Index: true}))
	assert.Equal(t, from.Head, capture(t, o).Head)
	assert.Equal(t, " M a", git(t, o.Root(), "status", "--porcelain"))
	untouched(t, dir, before)
}

// Blocks are shared only with a file that is known to have the content.
func TestClone(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", cloneFrom/8)
	dir := newRepo(t)
	for _, name := range []string{"same", "changed", "quietly", "link", "gone"} {
		write(t, dir, name, name+big)
	}
	write(t, dir, "small", "s")
	w := open(t, dir, Options{})
	time.Sleep(20 * time.Millisecond) // now nothing is too young to be trusted
	c := capture(t, w)
	write(t, dir, "changed", "other"+big)
	require.NoError(t, os.Remove(filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("same", filepath.Join(dir, "link")))
	require.NoError(t, os.Remove(filepath.Join(dir, "gone")))
	var mu sync.Mutex
	var sizes []int64
	testOnlyClone = func(to, from int) error {
		var st fileStat
		require.NoError(t, statFd(from, &st))
		b := make([]byte, st.size)
		_, err := unix.Pread(from, b, 0)
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, st.size)
		if strings.HasPrefix(string(b), "quietly") { // written while it is cloned
			require.NoError(t, os.WriteFile(filepath.Join(dir, "quietly"), []byte("Quietly"+big), 0o644))
			b[0] = 'Q'
		}
		_, err = unix.Pwrite(to, b, 0)
		return err
	}
	defer func() { testOnlyClone = nil }()
	o := checkedOut(t, w, c.Commit, "one")
	assert.Len(t, sizes, 2, "same and quietly")
	testOnlyClone = nil
	full, err := o.Capture(context.Background(), CaptureOptions{Rescan: true})
	require.NoError(t, err)
	assert.Equal(t, c.Tree, full.Tree)

	t.Run("where it cannot be", func(t *testing.T) {
		tries := 0
		testOnlyClone = func(int, int) error { mu.Lock(); tries++; mu.Unlock(); return unix.EOPNOTSUPP }
		o := checkedOut(t, w, c.Commit, "two")
		assert.LessOrEqual(t, tries, 8, "once a core at most")
		assert.Equal(t, c.Tree, capture(t, o).Tree)
	})
}

// Two that want the same directory: one gets it.
func TestCheckoutTwice(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	c := capture(t, w).Commit
	root := filepath.Join(w.OwnedFolder(), "one")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		mine := open(t, dir, Options{})
		wg.Go(func() {
			o, err := mine.Checkout(context.Background(), c, root, CheckoutOptions{})
			if errs[i] = err; err == nil {
				o.Close()
			}
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		var occupied *OccupiedError
		assert.ErrorAs(t, err, &occupied)
	}
	assert.Equal(t, 1, won)
}
