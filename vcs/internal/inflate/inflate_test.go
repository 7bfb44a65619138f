package inflate

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// compressed is a stream with what has to follow it.
func compressed(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, level)
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return append(b.Bytes(), bytes.Repeat([]byte{0xa5}, After)...)
}

// library is what the library makes of a stream.
func library(stream []byte) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(stream))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// content is of a kind that a stream's parts are made for: what does not repeat,
// what repeats near and far, and letters of which some are a thousand times rarer.
func content(r *rand.Rand, size int) []byte {
	data := make([]byte, 0, size+300)
	skew := r.IntN(24) + 1
	for len(data) < size {
		n := r.IntN(40) + 1
		switch kind := r.IntN(4); {
		case kind == 0 && len(data) > 0: // again, and perhaps over itself
			from := len(data) - 1 - r.IntN(min(len(data), 1<<r.IntN(16)))
			for i := range n * (1 + r.IntN(7)) {
				data = append(data, data[from+i])
			}
		case kind == 1 && skew > 20:
			for range n {
				data = append(data, byte(r.Uint32()))
			}
		default:
			for range n {
				c := byte(0)
				for int(c) < 3*skew && r.IntN(3) > 0 {
					c++
				}
				data = append(data, 'a'+c)
			}
		}
	}
	return data[:size]
}

func TestZlibIsWhatTheLibraryMakes(t *testing.T) {
	var d Decoder
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		data := content(r, rapid.IntRange(0, 1<<rapid.IntRange(0, 17).Draw(rt, "log")).Draw(rt, "size"))
		stream := compressed(t, data, rapid.SampledFrom([]int{-2, 0, 1, 2, 5, 6, 9}).Draw(rt, "level"))
		dst := bytes.Repeat([]byte{0x5a}, len(data)+Slack+8)
		if !d.Zlib(dst[:len(data)+Slack], len(data), stream) {
			rt.Fatal("gave up")
		}
		if !bytes.Equal(dst[:len(data)], data) {
			rt.Fatal("another content")
		}
		if string(dst[len(data)+Slack:]) != "ZZZZZZZZ" {
			rt.Fatal("wrote behind the slack")
		}
		if d.Zlib(dst, len(data)+1, stream) || len(data) > 0 && d.Zlib(dst, len(data)-1, stream) {
			rt.Fatal("took another size")
		}
		// Damage is seen, or makes no difference to the library either.
		for range 8 {
			bad := bytes.Clone(stream)
			switch r.IntN(3) {
			case 0:
				bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			case 1:
				bad = bad[:r.IntN(len(bad))]
			default:
				bad[2+r.IntN(min(len(bad)-2, 60))] = byte(r.Uint32()) // where the codes are
			}
			if d.Zlib(dst, len(data), bad) {
				if got, err := library(bad); err != nil || !bytes.Equal(got, dst[:len(data)]) {
					rt.Fatalf("took what the library does not: %v", err)
				}
			}
		}
	})
}

// Streams that no library writes any more, or none should.
func TestZlibUnusual(t *testing.T) {
	sum := func(data string) string {
		a, b := uint32(1), uint32(0)
		for _, c := range []byte(data) {
			a = (a + uint32(c)) % 65521
			b = (b + a) % 65521
		}
		return string(binary.BigEndian.AppendUint32(nil, b<<16|a))
	}
	for name, x := range map[string]struct {
		stream, content string
		ok              bool
	}{
		"nothing":                     {"\x78\x01\x03\x00" + sum(""), "", true},
		"stored, nothing":             {"\x78\x01\x01\x00\x00\xff\xff" + sum(""), "", true},
		"two blocks":                  {"\x78\x01\x00\x01\x00\xfe\xffa\x01\x01\x00\xfe\xffb" + sum("ab"), "ab", true},
		"stored, lengths differ":      {"\x78\x01\x01\x01\x00\xff\xffa" + sum("a"), "a", false},
		"a dictionary":                {"\x78\x20\x03\x00" + sum(""), "", false},
		"no such method":              {"\x79\x02\x03\x00" + sum(""), "", false},
		"header does not divide":      {"\x78\x02\x03\x00" + sum(""), "", false},
		"no such block":               {"\x78\x01\x07\x00" + sum(""), "", false},
		"checksum":                    {"\x78\x01\x03\x00\x00\x00\x00\x02", "", false},
		"length 286":                  {"\x78\x01\x1b\x03\x00" + sum(""), "", false},
		"distance before the content": {"\x78\x01\x4b\x04\x82\x01" + sum("aaaa"), "aaaa", false},
	} {
		t.Run(name, func(t *testing.T) {
			stream := []byte(x.stream + strings.Repeat("z", After))
			dst := make([]byte, len(x.content)+Slack)
			var d Decoder
			ok := d.Zlib(dst, len(x.content), stream)
			assert.Equal(t, x.ok, ok)
			if ok {
				assert.Equal(t, x.content, string(dst[:len(x.content)]))
			}
			got, err := library(stream)
			assert.Equal(t, ok, err == nil && string(got) == x.content, "the library: %q, %v", got, err)
		})
	}
	var d Decoder
	stream := compressed(t, []byte("content"), 6)
	assert.False(t, d.Zlib(make([]byte, 7+Slack-1), 7, stream), "no slack")
	assert.True(t, d.Zlib(make([]byte, 7+Slack), 7, stream))
	assert.False(t, d.Zlib(make([]byte, 7+Slack), 7, stream[:len(stream)-After]), "nothing follows")
}

// Content that is longer than it should be is noticed where it goes on, by three
// letters and the longest repetition.
func TestZlibTooLong(t *testing.T) {
	var d Decoder
	for period := 8; period < 16; period++ {
		data := []byte(strings.Repeat("abcdefghijklmnop"[:period], 40))
		stream := compressed(t, data, 9)
		for size := range data {
			require.False(t, d.Zlib(make([]byte, size+Slack), size, stream), "%d of period %d", size, period)
		}
		require.True(t, d.Zlib(make([]byte, len(data)+Slack), len(data), stream))
	}
}

func FuzzZlib(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, level := range []int{0, 1, 6, -2} {
		f.Add(compressed(f, content(r, 300), level), 300)
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		if size < 0 || size > 1<<20 {
			return
		}
		dst := make([]byte, size+Slack)
		if !d.Zlib(dst, size, stream) {
			return
		}
		got, err := library(stream)
		require.NoError(t, err)
		require.Equal(t, got, dst[:size])
	})
}

// BenchmarkZlib decompresses many small files of text, as a restore does.
func BenchmarkZlib(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var streams [][]byte
	for range 400 {
		streams = append(streams, compressed(b, content(r, 4096), 6))
	}
	dst := make([]byte, 4096+Slack)
	b.Run("ours", func(b *testing.B) {
		var d Decoder
		for i := 0; b.Loop(); i++ {
			if !d.Zlib(dst, 4096, streams[i%len(streams)]) {
				b.Fatal("gave up")
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		from := bytes.NewReader(streams[0])
		z, err := zlib.NewReader(from)
		require.NoError(b, err)
		for i := 0; b.Loop(); i++ {
			from.Reset(streams[i%len(streams)])
			require.NoError(b, z.(zlib.Resetter).Reset(from, nil))
			_, err := io.ReadFull(z, dst[:4096])
			require.NoError(b, err)
		}
	})
}
