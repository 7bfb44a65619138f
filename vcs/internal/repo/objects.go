package repo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// maxAlternates is how deep git follows one object directory into the next.
const maxAlternates = 5

// ObjectDirs returns the directories this repository's objects lie in: its
// own first, then the alternates, each once and without symlinks. Alternates
// that do not exist are left out, as git leaves them out.
func (r *Repo) ObjectDirs() ([]string, error) {
	w := alternatesWalk{seen: make(map[string]bool)}
	if err := w.add(filepath.Join(r.CommonDir, "objects"), 0); err != nil {
		return nil, err
	}
	return w.dirs, nil
}

type alternatesWalk struct {
	dirs []string
	seen map[string]bool
}

func (w *alternatesWalk) add(dir string, depth int) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil || !isDir(dir) || w.seen[dir] {
		return nil // not an object directory today, or known
	}
	w.seen[dir] = true
	w.dirs = append(w.dirs, dir)
	if depth > maxAlternates {
		return nil
	}
	data, err := readSmall(filepath.Join(dir, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("alternates of %s: %w", dir, err)
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		path := string(line)
		if line[0] == '"' {
			if unquoted, rest, ok := unquoteC(path); ok && rest == "" {
				path = unquoted
			}
		}
		if err := w.add(within(dir, path), depth+1); err != nil {
			return err
		}
	}
	return nil
}
