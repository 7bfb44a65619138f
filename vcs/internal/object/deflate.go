package object

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"
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

// plainBelow is the size up to which a capture stores trees and commits as they
// are, and with Plain blobs. Most of a tree are ids, which do not compress: a third
// is saved, at ten times the price, and again when the tree is read, until a repack
// makes a delta of it. Of a commit there is one in a capture, which would take
// longer to get ready for than to write.
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
	if level = levelFor(data, level); level == levelStore {
		store(buf, data)
		return
	}
	z := getDeflater(buf, level)
	z.Write(data)
	z.Close()
	putDeflater(z, level)
}

// store appends data as a stream that is not compressed, see RFC 1950 and 1951. A
// library would make room for compressing first.
func store(buf *bytes.Buffer, data []byte) {
	const most, last = 0xffff, 1
	sum := adler32.Checksum(data)
	buf.Grow(2 + len(data) + (len(data)/most+1)*5 + 4)
	b := append(buf.AvailableBuffer(), 0x78, 0x01)
	for len(data) > most {
		b = append(b, 0, 0xff, 0xff, 0, 0)
		b = append(b, data[:most]...)
		data = data[most:]
	}
	n := uint16(len(data))
	b = append(b, last, byte(n), byte(n>>8), byte(^n), byte(^n>>8))
	b = append(b, data...)
	buf.Write(binary.BigEndian.AppendUint32(b, sum))
}
