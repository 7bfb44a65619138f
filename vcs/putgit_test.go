package vcs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retcon-dev/retcon/vcs/internal/repo"
)

// P26, P27, T145: HEAD, branch and index are recorded and can be put back; the
// commits made since stay reachable from our store.
func TestPutGit(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "a", "1\n")
	write(t, dir, "b", "1\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	write(t, dir, "a", "staged\n")
	git(t, dir, "add", "a")
	write(t, dir, "a", "not staged\n")
	write(t, dir, "n", "intent\n")
	git(t, dir, "add", "-N", "n")
	git(t, dir, "update-index", "--assume-unchanged", "b")
	state := func() string {
		return git(t, dir, "rev-parse", "HEAD") + git(t, dir, "symbolic-ref", "HEAD") + git(t, dir, "ls-files", "-s") +
			git(t, dir, "ls-files", "-v") + git(t, dir, "for-each-ref")
	}
	w := open(t, dir, Options{})
	was, a := state(), capture(t, w)
	if a.Head.Ref != "refs/heads/main" {
		t.Fatalf("head %+v", a.Head)
	}
	git(t, dir, "update-index", "--no-assume-unchanged", "b")
	git(t, dir, "commit", "-qam", "two")
	two := git(t, dir, "rev-parse", "HEAD")
	w.Close()
	w = open(t, dir, Options{})
	b := capture(t, w)
	later := state()

	opt := PutOptions{Head: true, Index: true, Message: "retcon: restore c1", Who: Ident{Name: "A", Email: "a@example.org"}, Now: time.Unix(1700000000, 0)}
	for range 2 { // a move that died calls it again
		if err := w.PutGit(a.Commit, b.Commit, opt); err != nil {
			t.Fatal(err)
		}
		if got := state(); got != was {
			t.Errorf("put back\n%s\nwant\n%s", got, was)
		}
	}
	if log := git(t, dir, "reflog", "-1", "--format=%gs"); log != opt.Message {
		t.Errorf("reflog says %q", log)
	}
	git(t, dir, "fsck", "--strict")
	if err := w.PutGit(b.Commit, a.Commit, opt); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != later {
		t.Errorf("and forth\n%s\nwant\n%s", got, later)
	}
	if err := w.PutGit(a.Commit, b.Commit, opt); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "reflog", "expire", "--expire=now", "--all")
	git(t, dir, "gc", "-q", "--prune=now")
	if out := git(t, filepath.Join(w.Folder(), "store.git"), "cat-file", "-t", two); out != "commit" {
		t.Error("the later commit is gone from our store")
	}
	var none *NoGitStateError
	if err := w.PutGit(b.Commit, a.Commit, opt); !errors.As(err, &none) || !strings.Contains(err.Error(), two) {
		t.Errorf("got %v", err)
	}
	if got := state(); !strings.HasPrefix(got, a.Head.ID) {
		t.Error("a refusal moved HEAD")
	}
}

// Somebody else's commit in between is not overwritten.
func TestPutGitMoved(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "a", "1\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	w := open(t, dir, Options{})
	a := capture(t, w)
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "two")
	b := capture(t, w)
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "three")
	three := git(t, dir, "rev-parse", "HEAD")
	if err := w.PutGit(a.Commit, b.Commit, PutOptions{Head: true, Now: time.Now()}); !errors.Is(err, repo.ErrRefMoved) {
		t.Errorf("got %v", err)
	}
	if got := git(t, dir, "rev-parse", "HEAD"); got != three {
		t.Errorf("HEAD is at %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git/HEAD.lock")); err == nil {
		t.Error("a lock is left")
	}
}
