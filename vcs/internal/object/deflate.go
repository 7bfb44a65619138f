package object

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress"
	"github.com/klauspost/compress/zlib"
)

// Levels of compression. A capture is fast, a repack is rare.
const (
	levelStore   = 0
	levelCapture = 1
	levelRepack  = 9
)

// plainBelow is the size up to which a capture stores trees as they are, and
// with Plain blobs. Most of a tree are ids, which do not compress: a third is
// saved, at ten times the price, and again when the tree is read, until a repack
// makes a delta of it.
const plainBelow = 16 << 10

// deflaters are pools of zlib writers, by level.
var deflaters [levelRepack + 1]sync.Pool

func getDeflater(w io.Writer, level int) *zlib.Writer {
	if z, ok := deflaters[level].Get().(*zlib.Writer); ok {
		z.Reset(w)
		return z
	}
	z, err := zlib.NewWriterLevel(w, level)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return z
}

func putDeflater(z *zlib.Writer, level int) { deflaters[level].Put(z) }

const probe = 8 << 10

// levelFor returns level, or levelStore for data that begins like what does
// not compress.
func levelFor(data []byte, level int) int {
	if len(data) < probe {
		return level
	}
	if compress.Estimate(data[:probe]) < 0.05 {
		return levelStore
	}
	return level
}

// deflate appends data, compressed, to buf. It never fails: memory does not.
func deflate(buf *bytes.Buffer, data []byte, level int) {
	level = levelFor(data, level)
	z := getDeflater(buf, level)
	z.Write(data)
	z.Close()
	putDeflater(z, level)
}
