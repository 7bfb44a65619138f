package vcs

import (
	"context"
	"fmt"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// PutBlob keeps bytes in the object store and returns their id, 40 hexadecimal
// digits: the same bytes have the same id. They are on disk when it returns.
//
// Hold Shared from before the call until the id is recorded where
// CollectOptions.Blobs finds it.
func (w *Worktree) PutBlob(ctx context.Context, b []byte) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	oid := object.Sum(object.Blob, b)
	if w.store.Has(oid) {
		return oid.String(), nil
	}
	wr := w.store.NewWriter()
	defer wr.Abort()
	if err := wr.AddHashed(oid, object.Blob, b); err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	if err := wr.Commit(true); err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return oid.String(), nil
}

// Blob returns the bytes that PutBlob kept, verified. It fails with ErrMissing
// or ErrDamaged.
func (w *Worktree) Blob(id string) ([]byte, error) {
	oid, err := object.ParseID(id)
	if err != nil {
		return nil, err
	}
	kind, data, err := w.store.ReadVerified(oid, nil)
	if err != nil {
		return nil, err
	}
	if kind != object.Blob {
		return nil, fmt.Errorf("%w: %s is a %v", ErrDamaged, id, kind)
	}
	return data, nil
}
