package vcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// Problem is something Verify found wrong.
type Problem struct {
	Path string `json:"path"`         // of the file
	ID   string `json:"id,omitempty"` // of the object, where it is one
	Err  error  `json:"-"`
}

func (p Problem) String() string {
	if p.ID == "" {
		return fmt.Sprintf("%s: %v", p.Path, p.Err)
	}
	return fmt.Sprintf("%s: object %s: %v", p.Path, p.ID, p.Err)
}

// Verify reads all of the store and checks that it is what was written. It
// returns what is wrong; the error is only for what kept it from looking.
// progress may be nil.
func (w *Worktree) Verify(ctx context.Context, progress func(done, total int)) ([]Problem, error) {
	found, err := w.store.Verify(ctx, progress)
	var out []Problem
	for _, p := range found {
		q := Problem{Path: p.Path, Err: p.Err}
		if !p.ID.IsZero() {
			q.ID = p.ID.String()
		}
		out = append(out, q)
	}
	return out, err
}

// Complete returns nil when every object that putting c back needs is in the
// store. Otherwise the error says which path lacks one: it is an ErrMissing or
// an ErrDamaged. Trees are read and verified, the content of files is only
// looked up. What a sparse checkout keeps off the disk is not needed, and the
// index is not looked at.
func (w *Worktree) Complete(ctx context.Context, c Commit) error {
	r, err := w.readCommit(c)
	if err != nil {
		return err
	}
	return w.completeLevel(ctx, "", r.top, r.meta.Modes, make(map[level]bool))
}

func (w *Worktree) completeLevel(ctx context.Context, path string, l level, m modes, seen map[level]bool) error {
	if seen[l] {
		return nil
	}
	seen[l] = true
	if err := ctx.Err(); err != nil {
		return err
	}
	nodes, err := w.list(l, m)
	if err != nil {
		if path == "" {
			path = "."
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	for i := range nodes {
		n := &nodes[i]
		switch {
		case n.Sparse: // kept off the disk, and perhaps at a remote
		case n.isDir():
			if err := w.completeLevel(ctx, join(path, n.name), n.sub, m, seen); err != nil {
				return err
			}
		case n.Kind == KindFile || n.Kind == KindLink:
			id, err := object.ParseID(n.ID)
			if err == nil && !w.store.Has(id) {
				err = &object.MissingError{ID: id}
			}
			if err != nil {
				return fmt.Errorf("%s: %w", join(path, n.name), err)
			}
		}
	}
	return nil
}

// StoreSize returns how many bytes the objects of the store take: own, which
// removing the store gives back, and shared, which the user's repository has
// too and which cost nothing. packs counts both.
func (w *Worktree) StoreSize() (own, shared int64, packs int, err error) {
	err = filepath.WalkDir(filepath.Join(w.folder, "store.git", "objects"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a Collect removed it
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		var st fileStat
		if err := statPath(path, &st); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if st.nlink > 1 {
			shared += st.size
		} else {
			own += st.size
		}
		if strings.HasSuffix(path, ".pack") {
			packs++
		}
		return nil
	})
	return own, shared, packs, err
}
