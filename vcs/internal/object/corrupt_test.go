package object

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typed says that an error of reading damaged data is one of the promised.
func typed(t testing.TB, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrMissing) {
		t.Fatalf("error of no promised type: %v", err)
	}
}

// tryAll reads an object every way there is and returns whether the content
// came out right.
func tryAll(t testing.TB, s *Store, id ID) bool {
	t.Helper()
	_, _, err := s.Header(id)
	typed(t, err)
	_, _, err = s.Read(id, nil)
	typed(t, err)
	_, _, r, err := s.Stream(id)
	typed(t, err)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		typed(t, err)
		r.Close()
	}
	_, _, err = s.ReadVerified(id, nil)
	typed(t, err)
	return err == nil
}

// smallPack returns a pack with deltas of both kinds, made by git.
func smallPack(t testing.TB, named bool) (pack, idx []byte, ids []ID) {
	t.Helper()
	dir := history(t, 3)
	if named {
		git(t, dir, "config", "repack.useDeltaBaseOffset", "false")
	}
	git(t, dir, "repack", "-qadf")
	packs, _ := listPacks(filepath.Join(dir, ".git/objects/pack"))
	require.Len(t, packs, 1)
	pack, err := os.ReadFile(packs[0] + ".pack")
	require.NoError(t, err)
	idx, err = os.ReadFile(packs[0] + ".idx")
	require.NoError(t, err)
	x, err := parseIndex("idx", idx)
	require.NoError(t, err)
	for i := range x.count {
		ids = append(ids, x.id(i))
	}
	return pack, idx, ids
}

// damaged writes a store of one pack.
func damaged(t testing.TB, pack, idx []byte) *Store {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "pack"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pack/pack-1.pack"), pack, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pack/pack-1.idx"), idx, 0o600))
	return Foreign([]string{dir})
}

func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, named := range []bool{false, true} {
		pack, idx, ids := smallPack(t, named)
		require.True(t, tryAll(t, damaged(t, pack, idx), ids[0]))
		bad := 0
		for round := range 150 {
			p, x := bytes.Clone(pack), bytes.Clone(idx)
			switch round % 5 {
			case 0:
				p[r.IntN(len(p))] ^= 1 << r.IntN(8)
			case 1:
				p = p[:r.IntN(len(p))]
			case 2:
				x[r.IntN(len(x))] ^= 1 << r.IntN(8)
			case 3:
				x = x[:r.IntN(len(x))]
			default:
				at := r.IntN(len(p))
				copy(p[at:], noise(uint64(round), 50))
			}
			s := damaged(t, p, x)
			for _, id := range ids {
				if !tryAll(t, s, id) {
					bad++
				}
			}
			problems, err := s.Verify(ctx, nil)
			require.NoError(t, err)
			require.NotEmpty(t, problems, "round %d: damage is found", round)
			s.Close()
		}
		assert.NotZero(t, bad)
	}
}

func TestDamagedLoose(t *testing.T) {
	dir := history(t, 1)
	objects := filepath.Join(dir, ".git/objects")
	r := rand.New(rand.NewPCG(5, 6))
	for id := range everything(t, filepath.Join(dir, ".git")) {
		b, err := os.ReadFile(loosePath(objects, id))
		require.NoError(t, err)
		for round := range 20 {
			d := bytes.Clone(b)
			if round%2 == 0 {
				d = d[:r.IntN(len(d))]
			} else {
				d[r.IntN(len(d))] ^= 1 << r.IntN(8)
			}
			to := t.TempDir()
			h := id.String()
			write(t, to, h[:2]+"/"+h[2:], d)
			s := Foreign([]string{to})
			ok := tryAll(t, s, id)
			problems, err := s.Verify(ctx, nil)
			require.NoError(t, err)
			assert.Equal(t, ok, len(problems) == 0)
		}
	}
}

func TestVerifyNamesTheObject(t *testing.T) {
	s := newStore(t)
	ids := put(t, s, text(1, 100), text(2, 100), noise(3, 100))
	problems, err := s.Verify(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, problems)

	// An object under the id of another: all checksums are right.
	w := s.NewWriter()
	wrong := Sum(Blob, []byte("right"))
	require.NoError(t, w.AddHashed(wrong, Blob, []byte("wrong")))
	require.NoError(t, w.Commit(false))
	var done, total int
	problems, err = s.Verify(ctx, func(d, n int) { done, total = d, n })
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.Equal(t, wrong, problems[0].ID)
	assert.Contains(t, problems[0].String(), wrong.String())
	assert.Equal(t, len(ids)+1, total)
	assert.Equal(t, total, done)

	_, _, err = s.Read(wrong, nil)
	require.NoError(t, err)
	_, _, err = s.ReadVerified(wrong, nil)
	c, ok := errors.AsType[*CorruptError](err)
	require.True(t, ok, err)
	assert.Equal(t, wrong, c.ID)
	assert.Contains(t, c.Where, ".pack at 12")
}

// One damaged copy does not hide a good one.
func TestSecondCopy(t *testing.T) {
	s := newStore(t)
	id := put(t, s, text(1, 1000))[0]
	put(t, s, text(1, 1000), []byte("other"))
	packs, _ := listPacks(s.packDir())
	require.Len(t, packs, 2)
	for _, base := range packs {
		mend := damagePack(t, base)
		require.True(t, tryAll(t, reopened(t, s), id))
		mend()
	}
	damagePack(t, packs[0])
	damagePack(t, packs[1])
	require.False(t, tryAll(t, reopened(t, s), id))
}

// damagePack overwrites the middle of a pack and returns how to undo it.
func damagePack(t testing.TB, base string) (mend func()) {
	t.Helper()
	path := base + ".pack"
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o600))
	bad := bytes.Clone(good)
	copy(bad[len(bad)/2:], "damage")
	require.NoError(t, os.WriteFile(path, bad, 0o600))
	return func() { require.NoError(t, os.WriteFile(path, good, 0o600)) }
}

func TestVerifyChecksums(t *testing.T) {
	pack, idx, _ := smallPack(t, false)
	n := len(idx)
	crcs := idxHeader + 20*int(binary.BigEndian.Uint32(idx[idxHeader-4:]))
	idx[crcs] ^= 1 // and the checksum of the index made right again
	sum := sha1.Sum(idx[:n-20])
	copy(idx[n-20:], sum[:])
	problems, err := damaged(t, pack, idx).Verify(ctx, nil)
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.ErrorContains(t, problems[0].Err, "checksum in the index differs")
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(idxMagic))
	f.Add(appendIndex(nil, []indexEntry{{offset: 12}, {id: ID{1}, offset: 1 << 40}}, ID{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := parseIndex("idx", data)
		if err != nil {
			typed(t, err)
			return
		}
		for i := range min(x.count, 100) {
			id := x.id(i)
			x.offset(i)
			x.crc(i)
			x.find(&id)
		}
		x.byOffset()
	})
}

func FuzzPackEntry(f *testing.F) {
	w := newPackOut("")
	w.Write([]byte("\x30\x78\x9c\x03\x00\x00\x00\x00\x01"))
	f.Add(w.buf[packHeader:])
	f.Add(appendHeader(nil, ofsDelta, 1<<40, 1<<30))
	f.Fuzz(func(t *testing.T, entry []byte) {
		data := append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02"), "\x34\x78\x9c\x4b\x4c\x4a\x4e\x01\x00\x03\xd8\x01\x8b"...)
		second := int64(len(data))
		data = append(data, entry...)
		data = append(data, make([]byte, 20)...)
		idx := appendIndex(nil, []indexEntry{{id: ID{1}, offset: 12}, {id: ID{2}, offset: second}}, ID{})
		s := damaged(t, data, append(idx, make([]byte, 20)...))
		tryAll(t, s, ID{2})
	})
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte("base data of some length"), []byte{24, 3, 0x90, 3})
	f.Add([]byte("x"), []byte{1, 5, 5, 'a', 'b', 'c', 'd', 'e'})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		out, err := applyDelta(nil, base, delta)
		if err != nil {
			return
		}
		_, size, _, _ := deltaSizes(delta)
		require.Len(t, out, int(size))
	})
}

// What the search finds is what applying gives back.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("some base with words in it"), []byte("some other base with words in it, and more"))
	f.Add(text(1, 3000), text(1, 2000))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, base, target []byte) { diffRoundTrip(t, base, target) })
}

func diffRoundTrip(t testing.TB, base, target []byte) []byte {
	t.Helper()
	d, ok := newDeltaBase(base).delta(nil, target, len(target)*2+100)
	require.True(t, ok)
	out, err := applyDelta(nil, base, d)
	require.NoError(t, err)
	require.True(t, bytes.Equal(target, out))
	return d
}

func TestDiff(t *testing.T) {
	long := noise(1, 3<<20)
	moved := append(bytes.Clone(long[2<<20:]), long[:2<<20]...)
	edited := bytes.Clone(long)
	for i := 0; i < len(edited); i += 100_000 {
		edited[i] ^= 1
	}
	block := noise(2, 65536)
	tests := map[string]struct {
		base, target []byte
		most         int
	}{
		"same":            {long, long, 400},
		"both empty":      {nil, nil, 2},
		"from nothing":    {nil, long[:1000], 1020},
		"to nothing":      {long, nil, 10},
		"moved":           {long, moved, 800},
		"edited":          {long, edited, 3000},
		"inserted":        {long[:5000], append(append(bytes.Clone(long[:2500]), "insert"...), long[2500:5000]...), 30},
		"removed":         {long[:5000], append(bytes.Clone(long[:1000]), long[1020:5000]...), 20},
		"exactly 64 KiB":  {append([]byte("x"), block...), append(bytes.Clone(block), 'y'), 20},
		"repeated":        {block[:100], bytes.Repeat(block[:100], 50), 400},
		"unlike":          {noise(3, 1000), noise(4, 1000), 1030},
		"runs of zeroes":  {make([]byte, 100_000), make([]byte, 90_000), 30},
		"shorter than 16": {[]byte("abcdefghij"), []byte("abcdefghijk"), 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := diffRoundTrip(t, tt.base, tt.target)
			assert.LessOrEqual(t, len(d), tt.most)
		})
	}
	_, ok := newDeltaBase(noise(3, 1000)).delta(nil, noise(4, 1000), 500)
	assert.False(t, ok, "it gives up at the limit")
}
