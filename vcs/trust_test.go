package vcs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// alter changes what the stat cache says of itself.
func alter(t *testing.T, w *Worktree, change func(*facts)) {
	t.Helper()
	c, err := loadStatCache(w.cachePath())
	if err != nil || c == nil {
		t.Fatalf("%v %v", c, err)
	}
	defer c.close()
	change(&c.facts)
	if err := c.save(w.cachePath()); err != nil {
		t.Fatal(err)
	}
}

// After a power cut a pack may be there and empty. The first capture of the next
// boot does not believe in it.
func TestPackCutShort(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	write(t, dir, "a", "1")
	capture(t, w)
	write(t, dir, "b", "never reached the disk")
	lost := capture(t, w).Commit
	packs, _ := filepath.Glob(filepath.Join(w.packDir(), "*.pack"))
	for _, p := range packs {
		id := filepath.Base(p)
		if _, err := os.Stat(p); err != nil {
			t.Fatal(id, err)
		}
		if err := os.Chmod(p, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	w = open(t, dir, Options{})
	alter(t, w, func(f *facts) { f.Boot = "the one before" })
	again := capture(t, w).Commit
	if again != lost {
		t.Errorf("captured %s, was %s", again, lost)
	}
	if err := w.Complete(context.Background(), again); err != nil {
		t.Error(err)
	}
}

// When something was deleted from the store the cache is asked for nothing that
// is not looked for first.
func TestStoreMovedOn(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "a", "1")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	w := open(t, dir, Options{})
	one := capture(t, w).Commit
	id := git(t, dir, "rev-parse", "HEAD:a")
	if err := os.Remove(filepath.Join(w.Folder(), "store.git/objects", id[:2], id[2:])); err != nil {
		t.Fatal(err)
	}
	w.Close()
	w = open(t, dir, Options{})
	if err := w.Complete(context.Background(), one); err == nil {
		t.Fatal("nothing is missing")
	}
	alter(t, w, func(f *facts) { f.Generation++ })
	if err := w.Complete(context.Background(), capture(t, w).Commit); err != nil {
		t.Error(err)
	}
}

// An identity that a power cut left short is no identity: the store gets one
// anew, once.
func TestIdentityCutShort(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	want := capture(t, w).Commit
	id := filepath.Join(w.Folder(), "store.git", "retcon-id")
	if err := os.Truncate(id, 7); err != nil {
		t.Fatal(err)
	}
	first, second := open(t, dir, Options{}), open(t, dir, Options{})
	if len(first.storeID) != 32 || first.storeID != second.storeID || first.storeID == w.storeID {
		t.Fatalf("%q, then %q, then %q", w.storeID, first.storeID, second.storeID)
	}
	if got := capture(t, second).Commit; got != want {
		t.Fatalf("captured %s, not %s", got, want)
	}
}
