package vcs

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBlobs(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	write(t, dir, "f", "1")
	w := open(t, dir, Options{Create: true})
	c := capture(t, w)
	put := func(s string) string {
		id, err := w.PutBlob(ctx, []byte(s))
		require.NoError(t, err)
		return id
	}
	kept, lost, empty := put(strings.Repeat("kept", 1000)), put("lost"), put("")
	assert.Equal(t, kept, put(strings.Repeat("kept", 1000)), "the same bytes, the same id")
	assert.Equal(t, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", empty, "git's id")
	for id, want := range map[string]string{kept: strings.Repeat("kept", 1000), lost: "lost", empty: ""} {
		b, err := w.Blob(id)
		require.NoError(t, err)
		assert.Equal(t, want, string(b))
	}
	_, err := w.Blob(c.Tree)
	assert.ErrorIs(t, err, ErrDamaged, "a tree is no blob")
	_, err = w.Blob(strings.Repeat("1", 40))
	assert.ErrorIs(t, err, ErrMissing)
	_, err = w.Blob("no id")
	assert.Error(t, err)
	other := open(t, dir, Options{})
	b, err := other.Blob(kept)
	require.NoError(t, err)
	assert.Len(t, b, 4000, "seen by another process")

	t.Run("collected unless named", func(t *testing.T) {
		_, err := w.Collect(ctx, CollectOptions{Roots: keep(c.Commit), Full: true, Blobs: func(yield func(string) error) error {
			return errors.Join(yield(kept), yield(empty))
		}})
		require.NoError(t, err)
		for id, want := range map[string]bool{kept: true, empty: true, lost: false} {
			_, err := w.Blob(id)
			assert.Equal(t, want, err == nil, "%v", err)
		}
		require.NoError(t, w.Complete(ctx, c.Commit))
		again := put("lost")
		assert.Equal(t, lost, again, "put again where it was collected")
		_, err = w.Blob(again)
		assert.NoError(t, err)
	})
	t.Run("nothing goes while one cannot be found", func(t *testing.T) {
		for _, bad := range []string{strings.Repeat("1", 40), "no id"} {
			_, err := w.Collect(ctx, CollectOptions{Roots: keep(c.Commit), Blobs: func(yield func(string) error) error { return yield(bad) }})
			assert.Error(t, err)
			_, err = w.Blob(lost)
			assert.NoError(t, err)
		}
		stop := errors.New("stop")
		_, err := w.Collect(ctx, CollectOptions{Blobs: func(func(string) error) error { return stop }})
		assert.ErrorIs(t, err, stop)
	})
}
