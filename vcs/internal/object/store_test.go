package object

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRoundTrip(t *testing.T) {
	s := newStore(t)
	contents := map[string][]byte{
		"empty":        {},
		"one byte":     {0},
		"text":         text(1, 4000),
		"noise":        noise(1, 4000),
		"large text":   text(2, 3<<20),
		"large noise":  noise(2, 3<<20),
		"header 15":    text(3, 15),
		"header 16":    text(3, 16),
		"header 2047":  text(3, 2047),
		"one block":    noise(7, 1<<16-1),
		"two blocks":   noise(8, 1<<16),
		"header 2048":  text(3, 2048),
		"buffer edge":  noise(4, 128<<10),
		"small stream": noise(5, smallStream),
		"large stream": noise(6, smallStream+1),
	}
	w := s.NewWriter()
	ids := map[string]ID{}
	for name, c := range contents {
		var id ID
		var err error
		if strings.Contains(name, "stream") {
			id, err = w.AddStream(int64(len(c)), strings.NewReader(string(c)))
		} else {
			id, err = w.Add(Blob, c)
		}
		require.NoError(t, err)
		require.Equal(t, Sum(Blob, c), id)
		ids[name] = id
	}
	again, err := w.Add(Blob, contents["text"])
	require.NoError(t, err)
	require.Equal(t, ids["text"], again)
	assert.Equal(t, len(contents), w.Len())
	assert.False(t, s.Has(ids["text"]), "nothing is there before Commit")
	require.NoError(t, w.Commit(true))

	for _, s := range []*Store{s, reopened(t, s)} {
		for name, c := range contents {
			kind, data, err := s.ReadVerified(ids[name], nil)
			require.NoError(t, err, name)
			assert.Equal(t, Blob, kind)
			assert.True(t, string(c) == string(data), name)
			assert.True(t, string(c) == string(streamed(t, s, ids[name])), name)
		}
	}
	fsck(t, s.Dir())
	all := everything(t, s.Dir())
	assert.Len(t, all, len(contents))
	requireReads(t, s, all)
}

func TestEmptyWriterLeavesNothing(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.NewWriter().Commit(true))
	w := s.NewWriter()
	_, err := w.Add(Blob, noise(1, 3<<20))
	require.NoError(t, err)
	w.Abort()
	_, err = w.Add(Blob, nil)
	require.ErrorIs(t, err, errWriterDone)
	names, err := readNames(s.packDir())
	require.NoError(t, err)
	assert.Empty(t, names)
}

func TestMissing(t *testing.T) {
	s := newStore(t)
	id := Sum(Blob, []byte("not here"))
	_, _, err := s.Read(id, nil)
	require.ErrorIs(t, err, ErrMissing)
	m, ok := errors.AsType[*MissingError](err)
	require.True(t, ok)
	assert.Equal(t, id, m.ID)
	assert.False(t, s.Has(id))
}

// What another process adds is found without opening the store again.
func TestPackOfAnotherProcess(t *testing.T) {
	s := newStore(t)
	put(t, s, []byte("first"))
	other := reopened(t, s)
	for i := range 20 {
		id := put(t, other, fmt.Appendf(nil, "later %d", i))[0]
		_, data, err := s.Read(id, nil)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("later %d", i), string(data))
	}
}

// A repack by another process takes away the packs one has listed.
func TestPacksReplacedUnderReader(t *testing.T) {
	s := newStore(t)
	var ids []ID
	for i := range 5 {
		ids = append(ids, put(t, s, fmt.Appendf(nil, "object %d", i))...)
	}
	reader := reopened(t, s)
	require.True(t, reader.Has(ids[0]), "packs are listed, not opened")

	w := s.NewWriter()
	for i := range ids {
		_, err := w.Add(Blob, fmt.Appendf(nil, "object %d", i))
		require.NoError(t, err)
	}
	old, _ := listPacks(s.packDir())
	require.NoError(t, w.Commit(false))
	for _, base := range old {
		require.NoError(t, os.Remove(base+".idx"))
		require.NoError(t, os.Remove(base+".pack"))
	}
	for i, id := range ids {
		_, data, err := reader.Read(id, nil)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("object %d", i), string(data))
	}
}

func TestCreateByMany(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store.git")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = Create(dir) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	assert.Equal(t, "true", git(t, "", "--git-dir="+dir, "rev-parse", "--is-bare-repository"))
	st, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	fsck(t, dir)
	names, err := readNames(dir)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"HEAD", "config", lockName, "objects", "refs"}, names)
}

// All forms in which git stores objects: loose, packed with offsets to the
// base or with its name, and in alternates.
func TestReadsWhatGitWrites(t *testing.T) {
	dir := history(t, 12)
	gitDir := filepath.Join(dir, ".git")
	git(t, dir, "tag", "-a", "-m", "annotated", "v1")
	all := everything(t, gitDir)
	objects := filepath.Join(gitDir, "objects")

	t.Run("loose", func(t *testing.T) { requireReads(t, Foreign([]string{objects}), all) })
	t.Run("offset deltas", func(t *testing.T) {
		git(t, dir, "repack", "-qadf", "--window=10", "--depth=50")
		requireReads(t, Foreign([]string{objects}), all)
	})
	t.Run("named deltas", func(t *testing.T) {
		git(t, dir, "-c", "repack.useDeltaBaseOffset=false", "repack", "-qadf")
		requireReads(t, Foreign([]string{objects}), all)
	})
	t.Run("alternates", func(t *testing.T) {
		clone := filepath.Join(t.TempDir(), "c")
		git(t, "", "clone", "-q", "--shared", dir, clone)
		requireReads(t, Foreign([]string{filepath.Join(clone, ".git/objects")}), all)
	})
	t.Run("relative alternates", func(t *testing.T) {
		a := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(a, "info"), 0o755))
		rel, err := filepath.Rel(a, objects)
		require.NoError(t, err)
		write(t, a, "info/alternates", []byte("# ours\n"+rel+"\n"))
		requireReads(t, Foreign([]string{a}), all)
	})
}

func TestConcurrentReaders(t *testing.T) {
	dir := history(t, 10)
	git(t, dir, "repack", "-qadf")
	gitDir := filepath.Join(dir, ".git")
	all := everything(t, gitDir)
	s := Foreign([]string{filepath.Join(gitDir, "objects")})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var buf []byte
			for id := range all {
				_, data, err := s.ReadVerified(id, buf)
				if !assert.NoError(t, err) {
					return
				}
				buf = data
				ask := []HeaderOf{{ID: id}}
				s.Headers(ask)
				assert.NoError(t, ask[0].Err)
				s.Unread() // under the others
			}
		})
	}
	wg.Wait()
}

func TestForeignIsReadOnly(t *testing.T) {
	s := Foreign([]string{t.TempDir()})
	_, err := s.NewWriter().Add(Blob, nil)
	assert.ErrorIs(t, err, ErrReadOnly)
	assert.ErrorIs(t, s.NewWriter().Commit(false), ErrReadOnly)
	_, err = s.Link(nil)
	assert.ErrorIs(t, err, ErrReadOnly)
	_, err = s.Repack(ctx, RepackOptions{Roots: rootsOf(nil)})
	assert.ErrorIs(t, err, ErrReadOnly)
	assert.ErrorIs(t, s.CleanTemp(), ErrReadOnly)
}
