package vcs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gitDigest is everything below a git directory but our own folder: names,
// types, modes, times, links and bytes. Take the first one when the folder is
// there.
func gitDigest(t testing.TB, gitDir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(gitDir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(gitDir, p)
		if rel == StoreName {
			return filepath.SkipDir
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		line := fi.Mode().String() + fi.ModTime().String() // of a directory: no lock came and went
		switch {
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(b))
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			line += to
		}
		all[rel] = line
		return nil
	})
	require.NoError(t, err)
	return all
}

// furnished is a repository with a bit of everything in its git directory.
func furnished(t testing.TB) string {
	t.Helper()
	dir := committed(t)
	git(t, dir, "tag", "-am", "tagged", "v1")
	git(t, dir, "branch", "other")
	write(t, dir, "a", "stashed\n")
	git(t, dir, "stash", "push", "-q")
	git(t, dir, "gc", "-q")
	write(t, dir, "a", "2\n")
	git(t, dir, "commit", "-qam", "two")
	write(t, dir, "d/b", "staged\n")
	git(t, dir, "add", "d/b")
	write(t, dir, "d/b", "staged and changed\n")
	write(t, dir, "untracked", "u\n")
	for _, hook := range []string{"pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"} {
		path := filepath.Join(dir, ".git/hooks", hook)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\ntouch \"$(dirname \"$0\")/fired\"\n"), 0o755))
	}
	return dir
}

// TestThousandCaptures compares the user's git directory before and after 1,000
// captures with edits in between: no byte, no mode, no name, no time has moved,
// no lock was made, no hook fired.
//
// P32 .git is never renamed or written, P40 Hooks do not fire, P41 No
// index.lock, P48 Nothing in the user's object store, P03 Capture never writes
// into the worktree, P50 Nothing is written when nothing changed.
func TestThousandCaptures(t *testing.T) {
	dir := furnished(t)
	gitDir := filepath.Join(dir, ".git")
	w := open(t, dir, Options{})
	first := capture(t, w)
	before, head := gitDigest(t, gitDir), first.Commit
	status := git(t, dir, "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--show-stash")

	captures := 1000
	if testing.Short() {
		captures = 100
	}
	kept := make(map[int]Commit)
	for i := range captures {
		switch i % 10 {
		case 0:
			write(t, dir, "untracked", strconv.Itoa(i))
		case 3:
			write(t, dir, fmt.Sprintf("d/new%d", i%50), strconv.Itoa(i))
		case 6:
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "d/new3")))
		case 8:
			require.NoError(t, w.Close())
			w = open(t, dir, Options{})
		}
		c := capture(t, w)
		switch {
		case i%10 == 0:
			assert.NotEqual(t, head, c.Commit)
			kept[i] = c.Commit
		case i%10 != 3 && i%10 != 6:
			require.Equal(t, head, c.Commit)
			require.Zero(t, c.Stats.Objects)
		}
		head = c.Commit
		if i == captures/2 {
			_, err := w.Capture(context.Background(), CaptureOptions{Rescan: true, Sync: true})
			require.NoError(t, err)
		}
	}
	assert.Equal(t, before, gitDigest(t, gitDir))
	for i, c := range kept {
		require.Equal(t, strconv.Itoa(i), content(t, w, c, "untracked"))
	}

	write(t, dir, "untracked", "u\n")
	for i := range 50 {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("d/new%d", i))))
	}
	assert.Equal(t, status, git(t, dir, "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--show-stash"))
	assert.Equal(t, first.Commit, capture(t, w).Commit, "the first state again")
	assert.Equal(t, before, gitDigest(t, gitDir))
	git(t, dir, "fsck", "--strict")
	git(t, filepath.Join(w.Folder(), "store.git"), "fsck", "--strict", "--no-dangling")
}

// worktreeDigest is what of the worktree somebody could have written to.
func worktreeDigest(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := gitDigest(t, dir)
	for p := range all {
		if p == ".git" || strings.HasPrefix(p, ".git/") {
			delete(all, p)
		}
	}
	return all
}

// TestCaptureWritesNothing looks at the worktree itself.
//
// P03 A moved file is not resurrected.
func TestCaptureWritesNothing(t *testing.T) {
	dir := furnished(t)
	w := open(t, dir, Options{})
	capture(t, w)
	require.NoError(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "moved")))
	before := worktreeDigest(t, dir)
	for range 20 {
		capture(t, w)
	}
	assert.Equal(t, before, worktreeDigest(t, dir))
}

// readable reads all of a commit, and checks it against the tree that git would
// see.
func readable(t testing.TB, w *Worktree, c Commit) {
	t.Helper()
	files, err := w.Files(context.Background(), c)
	require.NoError(t, err, c)
	require.NotEmpty(t, files)
	for _, f := range files {
		if f.New.Kind != KindFile && f.New.Kind != KindLink {
			continue
		}
		b, err := w.Content(f.New)
		require.NoError(t, err, "%s in %s", f.Path, c)
		require.EqualValues(t, w.Size(f.New), len(b), f.Path)
	}
}

// whole lets git walk all that commits are made of, the user's index included.
func whole(t testing.TB, w *Worktree, commits []Commit) {
	t.Helper()
	args := []string{"rev-list", "--objects"}
	for _, c := range commits {
		args = append(args, string(c))
	}
	git(t, filepath.Join(w.Folder(), "store.git"), args...)
}

// TestMaintenance lets the user's git drop everything it may drop, at every
// stage: every commit stays readable.
//
// P20 Objects are not pruned by gc.
func TestMaintenance(t *testing.T) {
	stages := []struct {
		name string
		run  func(t *testing.T, dir string)
	}{
		{"gc", func(t *testing.T, dir string) { git(t, dir, "gc", "-q", "--prune=now") }},
		{"repack", func(t *testing.T, dir string) { git(t, dir, "repack", "-adq") }},
		{"rewritten history", func(t *testing.T, dir string) {
			git(t, dir, "stash", "clear")
			git(t, dir, "tag", "-d", "v1")
			git(t, dir, "branch", "-D", "other")
			git(t, dir, "checkout", "-qf", "--orphan", "fresh")
			git(t, dir, "rm", "-rqf", ".")
			write(t, dir, "fresh", "all is new")
			git(t, dir, "add", "fresh")
			git(t, dir, "commit", "-qm", "fresh")
			git(t, dir, "branch", "-D", "main")
			git(t, dir, "branch", "-m", "main")
		}},
		{"rebase", func(t *testing.T, dir string) {
			write(t, dir, "fresh", "newer")
			git(t, dir, "commit", "-qam", "to be squashed")
			git(t, dir, "-c", "sequence.editor=:", "rebase", "-q", "--force-rebase", "HEAD~1")
			git(t, dir, "commit", "-q", "--amend", "-m", "amended")
		}},
		{"reflog expired and pruned", func(t *testing.T, dir string) {
			git(t, dir, "reflog", "expire", "--expire=now", "--all")
			git(t, dir, "gc", "-q", "--aggressive", "--prune=now")
			git(t, dir, "prune", "--expire=now")
		}},
		{"worktree prune", func(t *testing.T, dir string) { git(t, dir, "worktree", "prune", "--expire=now") }},
	}
	dir := furnished(t)
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, dir, "worktree", "add", "-q", "--detach", linked)
	write(t, linked, "only here", "l")
	w := open(t, dir, Options{})
	lw := open(t, linked, Options{})
	commits := []Commit{capture(t, w).Commit, capture(t, lw).Commit}
	require.NoError(t, lw.Close())
	require.NoError(t, os.RemoveAll(linked))
	for _, stage := range stages {
		t.Run(stage.name, func(t *testing.T) {
			stage.run(t, dir)
			for _, c := range commits {
				readable(t, w, c)
			}
			require.NoError(t, w.Close())
			w = open(t, dir, Options{})
			c := capture(t, w)
			assert.Equal(t, gitTree(t, dir), c.Tree)
			write(t, dir, "untracked", stage.name)
			commits = append(commits, c.Commit, capture(t, w).Commit)
			for _, c := range commits {
				readable(t, w, c)
			}
			whole(t, w, commits)
			git(t, dir, "fsck", "--strict", "--no-dangling")
			git(t, filepath.Join(w.Folder(), "store.git"), "fsck", "--strict", "--no-dangling")
		})
	}
}

// TestEmptyDirectoriesOfTheStore removes what a tidy user might.
//
// P43 Cleanup of empty directories.
func TestEmptyDirectoriesOfTheStore(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	one := capture(t, w)
	require.NoError(t, w.Close())
	for range 5 {
		var empty []string
		require.NoError(t, filepath.WalkDir(w.Folder(), func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			entries, err := os.ReadDir(p)
			if len(entries) == 0 {
				empty = append(empty, p)
			}
			return err
		}))
		for _, p := range empty {
			require.NoError(t, os.Remove(p))
		}
	}
	w = open(t, dir, Options{})
	write(t, dir, "a", "2")
	two := capture(t, w)
	assert.Equal(t, gitTree(t, dir), two.Tree)
	readable(t, w, one.Commit)
	readable(t, w, two.Commit)
}

// TestUnwritableStore fails a capture that cannot be kept, instead of naming a
// commit that is not there.
//
// P10 A failed capture is never a valid one.
func TestUnwritableStore(t *testing.T) {
	if asNobody(t) {
		return
	}
	dir := committed(t)
	w := open(t, dir, Options{})
	one := capture(t, w)
	write(t, dir, "a", "cannot be kept")
	objects := filepath.Join(w.Folder(), "store.git", "objects")
	var locked []string
	require.NoError(t, filepath.WalkDir(objects, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			locked = append(locked, p)
		}
		return err
	}))
	for _, p := range locked {
		require.NoError(t, os.Chmod(p, 0o500))
	}
	c, err := w.Capture(context.Background(), CaptureOptions{})
	for _, p := range locked {
		require.NoError(t, os.Chmod(p, 0o700))
	}
	assert.Error(t, err)
	assert.Nil(t, c)
	readable(t, w, one.Commit)
	assert.Equal(t, "cannot be kept", content(t, w, capture(t, w).Commit, "a"), "seen once it can be kept")
}
