package vcs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// hostile writes a commit whose tree has one entry of that name: a file, or a
// folder with a file in it.
func hostile(t *testing.T, w *Worktree, name string, folder, aux bool) Commit {
	t.Helper()
	wr := w.store.NewWriter()
	defer wr.Abort()
	add := func(kind object.Kind, data []byte) object.ID {
		id, err := wr.Add(kind, data)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	tree := func(in ...object.TreeEntry) object.ID { return add(object.Tree, object.AppendTree(nil, in)) }
	blob := add(object.Blob, []byte("owned"))
	entry := object.TreeEntry{Mode: object.ModeFile, Name: name, ID: blob}
	if folder {
		entry = object.TreeEntry{Mode: object.ModeDir, Name: name, ID: tree(object.TreeEntry{Mode: object.ModeFile, Name: "f", ID: blob})}
	}
	m := meta{Version: 1, Modes: modes{File: 0o644, Exec: 0o755, Dir: 0o755}, Root: 0o755}
	js, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	root := []object.TreeEntry{{Mode: object.ModeFile, Name: "meta", ID: add(object.Blob, js)}}
	if aux {
		lines := add(object.Blob, appendLine(nil, "ignored", 0o644, 5, "x"))
		root = append([]object.TreeEntry{{Mode: object.ModeDir, Name: "aux", ID: tree(
			object.TreeEntry{Mode: object.ModeFile, Name: "a", ID: lines},
			object.TreeEntry{Mode: object.ModeDir, Name: "i", ID: tree(entry)})}}, root...)
		entry = object.TreeEntry{Mode: object.ModeFile, Name: "x", ID: blob}
	}
	root = append(root, object.TreeEntry{Mode: object.ModeDir, Name: "tree", ID: tree(entry)})
	id := tree(root...)
	if err := wr.Commit(false); err != nil {
		t.Fatal(err)
	}
	return Commit(id.String())
}

// Wherever a commit comes from, it names nothing outside the root and nothing
// in a git directory.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"..", ".", "../x", "a/b", "/etc", ".git", ".GIT", ".git ", "git~1", ".g\u200cit", stageName} {
		for _, kind := range []string{"file", "folder", "aux"} {
			dir := newRepo(t)
			write(t, dir, "keep", "1")
			w := open(t, dir, Options{})
			before := capture(t, w).Commit
			c := hostile(t, w, name, kind == "folder", kind == "aux")
			if _, _, err := w.Restore(context.Background(), c); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s %q: %v", kind, name, err)
			}
			if _, err := w.Diff(context.Background(), before, c); !errors.Is(err, ErrDamaged) {
				t.Errorf("diff with %s %q: %v", kind, name, err)
			}
			if got := capture(t, w).Commit; got != before {
				t.Errorf("%s %q changed the worktree", kind, name)
			}
			if _, err := os.Lstat(filepath.Join(filepath.Dir(dir), "f")); err == nil {
				t.Errorf("%s %q wrote outside the root", kind, name)
			}
		}
	}
}

// A plan is checked as well: it may have been stored and read back.
func TestHostilePaths(t *testing.T) {
	dir := newRepo(t)
	w := open(t, dir, Options{})
	write(t, dir, "a", "1")
	c := capture(t, w)
	files, err := w.Files(context.Background(), c.Commit)
	if err != nil {
		t.Fatal(err)
	}
	release, err := w.Hold(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, path := range []string{"../out", "a/../../out", "/out", ".git/config", "sub/.git/hooks/x", "", "a//b", "./a"} {
		change := FileChange{Path: path, Old: State{Kind: KindAbsent}, New: files[0].New}
		if _, err := w.Stage(context.Background(), "x", []FileChange{change}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// A folder that became a link after the capture is not followed out of the root.
func TestLinkInTheWay(t *testing.T) {
	for _, path := range []string{"d/a", "d/e/a", "d/e/f/a"} {
		t.Run(path, func(t *testing.T) { linkInTheWay(t, path) })
	}
}

func linkInTheWay(t *testing.T, path string) {
	outside := t.TempDir()
	dir := newRepo(t)
	write(t, dir, path, "1")
	w := open(t, dir, Options{})
	one := capture(t, w).Commit
	write(t, dir, path, "2")
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
	s, err := w.Stage(context.Background(), "x", changes)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	write(t, outside, path[2:], "secret")
	if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if err := s.Swap(context.Background()); err == nil {
		t.Error("went through a link")
	}
	if b, _ := os.ReadFile(filepath.Join(outside, path[2:])); string(b) != "secret" {
		t.Errorf("wrote %q outside the root", b)
	}
}

// An object that does not hold what its name says stops a restore before the
// worktree is touched.
func TestFalseObject(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, "a", "1")
	w := open(t, dir, Options{})
	before := capture(t, w).Commit
	wr := w.store.NewWriter()
	id := object.Sum(object.Blob, []byte("what it should be"))
	if err := wr.AddHashed(id, object.Blob, []byte("something else")); err != nil {
		t.Fatal(err)
	}
	c, err := w.writeCommit(wr, []string{"a"}, map[string]object.TreeEntry{"a": {Mode: object.ModeFile, ID: id}})
	if err != nil {
		t.Fatal(err)
	}
	if err := wr.Commit(false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Restore(context.Background(), c); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if got := capture(t, w).Commit; got != before {
		t.Error("the worktree was touched")
	}
}
