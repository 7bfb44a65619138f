package vcs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestCaptureEqualsGit(t *testing.T) {
	dir := newRepo(t)
	for i := range 50 {
		write(t, dir, fmt.Sprintf("d%d/f%d.txt", i%7, i), fmt.Sprint("content ", i))
	}
	write(t, dir, ".gitignore", "*.log\nbuild/\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	w := open(t, dir, Options{})
	if got, want := capture(t, w).Tree, gitTree(t, dir); got != want {
		t.Fatalf("clean: got %s want %s", got, want)
	}
	write(t, dir, "d1/new.txt", "new")
	write(t, dir, "d2/f2.txt", "changed")
	write(t, dir, "x.log", "ignored")
	write(t, dir, "build/out", "ignored")
	os.Remove(filepath.Join(dir, "d3/f3.txt"))
	os.Symlink("nowhere", filepath.Join(dir, "link"))
	os.Mkdir(filepath.Join(dir, "empty"), 0o755)
	if got, want := capture(t, w).Tree, gitTree(t, dir); got != want {
		t.Fatalf("changed: got %s want %s", got, want)
	}
	c1 := capture(t, w)
	c2 := capture(t, w)
	if c1.Commit != c2.Commit || c2.Stats.Objects != 0 {
		t.Fatalf("unchanged: %s then %s with %d objects", c1.Commit, c2.Commit, c2.Stats.Objects)
	}
	git(t, w.Folder()+"/store.git", "fsck", "--strict", "--no-dangling")
}
