package object

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriterConcurrent(t *testing.T) {
	s := newStore(t)
	w := s.NewWriter()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 { // half of them are everybody's
				data := text(uint64(i*(g%2)), 500+i)
				if i == 50 && g < 3 {
					data = noise(uint64(g), smallStream+100)
					_, err := w.AddStream(int64(len(data)), bytes.NewReader(data))
					assert.NoError(t, err)
					continue
				}
				_, err := w.Add(Blob, data)
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	n := w.Len()
	require.NoError(t, w.Commit(true))
	all := everything(t, s.Dir())
	assert.Len(t, all, n)
	requireReads(t, s, all)
	fsck(t, s.Dir())
}

// A stream of another length than announced leaves nothing in the pack.
func TestStreamChanges(t *testing.T) {
	boom := errors.New("boom")
	for _, size := range []int{10, smallStream + 1, 3 << 20} {
		s := newStore(t)
		w := s.NewWriter()
		before, err := w.Add(Blob, text(1, 2<<20))
		require.NoError(t, err)
		data := noise(1, size+1)
		_, err = w.AddStream(int64(size), bytes.NewReader(data[:size-1]))
		require.ErrorIs(t, err, ErrChanged)
		_, err = w.AddStream(int64(size), bytes.NewReader(nil))
		require.ErrorIs(t, err, ErrChanged)
		_, err = w.AddStream(int64(size), bytes.NewReader(data))
		require.ErrorIs(t, err, ErrChanged)
		_, err = w.AddStream(int64(size), io.MultiReader(bytes.NewReader(data[:size/2]), failing{boom}))
		require.ErrorIs(t, err, boom)
		_, err = w.AddStream(int64(size), io.MultiReader(bytes.NewReader(data[:size]), failing{boom}))
		require.ErrorIs(t, err, boom)
		assert.Equal(t, 1, w.Len())
		good, err := w.AddStream(int64(size), bytes.NewReader(data[:size]))
		require.NoError(t, err)
		again, err := w.AddStream(int64(size), bytes.NewReader(data[:size]))
		require.NoError(t, err)
		assert.Equal(t, good, again)
		after, err := w.Add(Blob, []byte("after"))
		require.NoError(t, err)
		require.NoError(t, w.Commit(false))
		for _, id := range []ID{before, good, after} {
			_, _, err := s.ReadVerified(id, nil)
			require.NoError(t, err)
		}
		fsck(t, s.Dir())
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A large blob goes in and out in little memory.
func TestStreamMemory(t *testing.T) {
	const size = 200 << 20
	s := newStore(t)
	w := s.NewWriter()
	peak := &heapMeter{r: io.LimitReader(&repeating{data: noise(1, 1<<20)}, size)}
	var base runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&base)
	id, err := w.AddStream(size, peak)
	require.NoError(t, err)
	require.NoError(t, w.Commit(false))

	kind, n, r, err := s.Stream(id)
	require.NoError(t, err)
	assert.Equal(t, Blob, kind)
	assert.Equal(t, int64(size), n)
	out := &heapMeter{r: r}
	h := NewHasher()
	h.Reset(Blob, size)
	_, err = io.Copy(h, out)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	assert.Equal(t, id, h.Sum())
	for _, m := range []*heapMeter{peak, out} {
		assert.Less(t, int64(m.peak)-int64(base.HeapAlloc), int64(32<<20))
	}
}

type repeating struct {
	data []byte
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}

// A heapMeter looks at the heap now and then.
type heapMeter struct {
	r     io.Reader
	reads int
	peak  uint64
}

func (m *heapMeter) Read(p []byte) (int, error) {
	if m.reads++; m.reads%200 == 0 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		m.peak = max(m.peak, s.HeapAlloc)
	}
	return m.r.Read(p)
}

func TestWriteFails(t *testing.T) {
	s := newStore(t)
	w := s.NewWriter()
	_, err := w.Add(Blob, noise(1, 100))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(s.packDir()))
	err = w.Commit(true)
	require.Error(t, err)
	assert.Contains(t, err.Error(), s.packDir())
	assert.Equal(t, err, w.Commit(true), "it stays failed")
	_, err = w.Add(Blob, nil)
	assert.Error(t, err)
}

func TestPackFilesAreReadOnly(t *testing.T) {
	s := newStore(t)
	put(t, s, []byte("x"))
	names, err := readNames(s.packDir())
	require.NoError(t, err)
	require.Len(t, names, 2)
	for _, n := range names {
		assert.True(t, strings.HasPrefix(n, "pack-"))
		st, err := os.Stat(filepath.Join(s.packDir(), n))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o400), st.Mode().Perm())
	}
}

// Many captures leave few packs, and readers of before do not notice.
func TestPacksAreMerged(t *testing.T) {
	s := newStore(t)
	dir := repo(t)
	for i := range 4 {
		write(t, dir, "f", append(text(1, 4000), byte('0'+i)))
		write(t, dir, "z", []byte("in every one")) // between base and delta
		commitAll(t, dir, "c")
	}
	git(t, dir, "repack", "-qad") // has deltas, which cannot be copied as they are
	_, err := s.Link([]string{filepath.Join(dir, ".git/objects")})
	require.NoError(t, err)
	all := everything(t, s.Dir())
	require.NoError(t, os.RemoveAll(dir))

	reader := reopened(t, s)
	for i := range 3 * mergeAt {
		for _, id := range put(t, s, text(uint64(i), 300), []byte("in every one")) {
			kind, size, err := s.Header(id)
			require.NoError(t, err)
			all[id] = kind.String() + " " + strconv.FormatInt(size, 10)
			require.True(t, reader.Has(id) || i > 0)
		}
		if i == mergeAt-5 {
			requireReads(t, reader, all)
		}
	}
	packs, _ := listPacks(s.packDir())
	assert.Less(t, len(packs), mergeAt+3)
	requireReads(t, reader, all)
	requireReads(t, s, all)
	assert.Equal(t, all, everything(t, s.Dir()))
	fsck(t, s.Dir())
	problems, err := s.Verify(ctx, nil)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func BenchmarkAdd(b *testing.B) {
	s := newStore(b)
	data := text(1, 4096)
	b.SetBytes(int64(len(data)))
	w := s.NewWriter()
	defer w.Abort()
	b.RunParallel(func(pb *testing.PB) {
		own := bytes.Clone(data)
		for i := 0; pb.Next(); i++ {
			copy(own, noise(uint64(i), 8))
			if _, err := w.Add(Blob, own); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	s := newStore(b)
	var contents [][]byte
	for i := range 5000 {
		contents = append(contents, text(uint64(i), 4096))
	}
	ids := put(b, s, contents...)
	b.SetBytes(4096)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var buf []byte
		for i := 0; pb.Next(); i++ {
			var err error
			if _, buf, err = s.Read(ids[i%len(ids)], buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A process that starts, looks up an object that is new, and finds a thousand
// packs of earlier captures.
func BenchmarkOpenManyPacks(b *testing.B) {
	s := newStore(b)
	s.Has(ID{})
	for i := range 1000 {
		put(b, s, noise(uint64(i), 10<<10))
	}
	for b.Loop() {
		o, err := Open(s.Dir())
		if err != nil {
			b.Fatal(err)
		}
		if o.Has(ID{1}) {
			b.Fatal("found")
		}
	}
}
