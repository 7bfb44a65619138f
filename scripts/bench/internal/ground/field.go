package ground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/peer"
	"github.com/retcon-dev/retcon/scripts/bench/internal/tree"
)

// Field is a tree to work on. Nobody works on it itself: every contestant gets
// a copy.
type Field struct {
	Name      string   // "20000 files"
	Base      string   // a git worktree, packed, its index valid
	Paths     []string // files that may be changed, in an order that spreads them
	Generated bool
	Files     int

	dir string
	git peer.Git
}

// generate makes a tree of n files, committed.
func (f *Field) generate(ctx context.Context, n int) error {
	f.Name, f.Files, f.Generated = fmt.Sprintf("%d files", n), n, true
	if err := tree.Generate(f.Base, n); err != nil {
		return err
	}
	f.Paths = tree.Shuffled(tree.Paths(n))
	return f.git.In(f.Base).Do(ctx, "init -q", "add -A", "commit -q -m base", "repack -adfq", "update-index -q --refresh")
}

// adopt copies a repository, with what is untracked and ignored unless it is
// to be clean.
func (f *Field) adopt(ctx context.Context, from string, clean bool) error {
	if fi, err := os.Stat(filepath.Join(from, ".git")); err != nil || !fi.IsDir() {
		return fmt.Errorf("%s is not the main worktree of a repository", from)
	}
	if err := tree.Copy(from, f.Base, filepath.Join(".git", "retcon"), filepath.Join(".git", "index.lock")); err != nil {
		return err
	}
	git := f.git.In(f.Base)
	if clean {
		if err := git.Do(ctx, "reset -q --hard", "clean -ffdxq"); err != nil {
			return err
		}
	}
	if err := git.Do(ctx, "repack -adfq"); err != nil {
		return err
	}
	_ = git.Do(ctx, "update-index -q --refresh") // says no where files are changed
	list, _, err := git.Run(ctx, "ls-files", "-z")
	if err != nil {
		return err
	}
	var paths []string
	for path := range strings.SplitSeq(list, "\x00") {
		fi, err := os.Lstat(filepath.Join(f.Base, path))
		if err == nil && fi.Mode().IsRegular() && fi.Size() > 0 && fi.Size() < 1<<20 {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return errors.New("nothing in it can be changed")
	}
	f.Name, f.Files, f.Paths = filepath.Base(from), len(paths), tree.Shuffled(paths)
	return nil
}

// Goal is a goal that holds on trees of at least so many files; nil on others.
// What holds on 20,000 holds on every repository of the caller's, whatever its
// size.
func (f *Field) Goal(ratio float64, files int) *float64 {
	if !f.Generated && files <= 20000 {
		return bench.Goal(ratio)
	}
	if f.Files < files {
		return nil
	}
	return bench.Goal(ratio)
}

// Case names what is measured on this field.
func (f *Field) Case(what string) string { return what + ", " + f.Name }

// Copy makes a copy of the tree and its repository, whose index is valid.
func (f *Field) Copy(ctx context.Context, name string) (string, error) {
	dir := filepath.Join(f.dir, name)
	if err := tree.Copy(f.Base, dir); err != nil {
		return "", err
	}
	_ = f.git.In(dir).Do(ctx, "update-index -q --refresh") // says no where files are changed
	return dir, nil
}

// Plain makes a copy of the tree without its repository.
func (f *Field) Plain(name string) (string, error) {
	dir := filepath.Join(f.dir, name)
	return dir, tree.Copy(f.Base, dir, ".git")
}

// Remove removes a copy.
func (f *Field) Remove(dirs ...string) error {
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// Empty empties a copy but for its repository.
func (f *Field) Empty(dir string) error { return tree.Empty(dir, ".git") }

// Same tells whether files of a copy are as they were.
func (f *Field) Same(dir string, paths []string) error {
	for _, path := range paths {
		want, err := os.ReadFile(filepath.Join(f.Base, path))
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil {
			return err
		} else if string(got) != string(want) {
			return fmt.Errorf("%s is not what it was", path)
		}
	}
	return nil
}
