package vcs

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mounted is a plain folder with another filesystem at "tmp" and a bind mount,
// which has the root's device number, at "bound".
func mounted(t *testing.T) string {
	t.Helper()
	dir, other := t.TempDir(), t.TempDir()
	mount := func(source, at, kind string, flags uintptr) {
		t.Helper()
		target := filepath.Join(dir, at)
		if err := os.MkdirAll(target, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(source, target, kind, flags, ""); err != nil {
			t.Skipf("needs the right to mount: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) })
	}
	mount("tmpfs", "tmp", "tmpfs", 0)
	mount(other, "bound", "", unix.MS_BIND)
	return dir
}

// Files below a mount point go back like any others.
func TestRestoreBelowMounts(t *testing.T) {
	dir := mounted(t)
	w := open(t, dir, Options{Create: true})
	rng := rand.New(rand.NewSource(1))
	var seen []Commit
	for range 5 {
		for _, at := range []string{"", "tmp", "bound", "bound/deeper"} {
			if err := os.MkdirAll(filepath.Join(dir, at), 0o755); err != nil {
				t.Fatal(err)
			}
			scramble(t, rng, filepath.Join(dir, at))
		}
		seen = append(seen, capture(t, w).Commit)
	}
	for range 8 {
		to := seen[rng.Intn(len(seen))]
		if _, _, err := w.Restore(context.Background(), to); err != nil {
			t.Fatal(err)
		}
		if got := capture(t, w).Commit; got != to {
			d, _ := w.Diff(context.Background(), to, got)
			t.Fatalf("restored %s, got %s: %+v", to, got, d)
		}
		noStages(t, w, "tmp", "bound")
	}
}

func noStages(t *testing.T, w *Worktree, mounts ...string) {
	t.Helper()
	if ids, err := w.stages(); err != nil || len(ids) > 0 {
		t.Errorf("stages %q, %v", ids, err)
	}
	for _, m := range mounts {
		if _, err := os.Lstat(filepath.Join(w.Root(), m, stageName)); err == nil {
			t.Errorf("%s is left in %s", stageName, m)
		}
	}
}

// What a dead process left in another mount is found: what somebody wrote is
// kept, and the folder goes.
func TestStageLeftInMount(t *testing.T) {
	dir := mounted(t)
	w := open(t, dir, Options{Create: true})
	write(t, dir, "tmp/a", "1")
	write(t, dir, "bound/a", "1")
	one := capture(t, w).Commit
	write(t, dir, "tmp/a", "2")
	write(t, dir, "bound/a", "2")
	release, err := w.Hold(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	now := capture(t, w)
	changes, err := w.Diff(context.Background(), now.Commit, one)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Stage(context.Background(), "dead", changes)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "tmp/a", "meanwhile")
	if err := s.Swap(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.closeDirs() // and here it dies

	left, err := w.OpenStage("dead")
	if err != nil || left == nil {
		t.Fatalf("%v %v", left, err)
	}
	c, paths, err := left.Rescue(context.Background(), true)
	if err != nil || len(paths) != 1 || paths[0] != "tmp/a" {
		t.Fatalf("rescued %q, %v", paths, err)
	}
	files, err := w.Files(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := w.Content(files[len(files)-1].New); err != nil || string(b) != "meanwhile" {
		t.Errorf("kept %q, %v", b, err)
	}
	if files, err = w.Files(context.Background(), capture(t, w).Commit); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(f.Path, stageName) {
			t.Errorf("captured %s", f.Path)
		}
	}
	if err := w.DiscardStages(t.Context(), func(Commit, []string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	noStages(t, w, "tmp", "bound")
}

// A mount point that the target does not have stays: it is not ours to remove.
func TestRestoreKeepsMountPoint(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	write(t, dir, "a", "1")
	one := capture(t, w).Commit
	point := filepath.Join(dir, "later")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", point, "tmpfs", 0, ""); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(point, unix.MNT_DETACH) })
	write(t, dir, "later/f", "2")
	write(t, dir, "a", "2")
	if _, _, err := w.Restore(context.Background(), one); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a")); string(b) != "1" {
		t.Errorf("a holds %q", b)
	}
	if left, err := os.ReadDir(point); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	noStages(t, w, "later")
}
