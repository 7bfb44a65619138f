package object

import (
	"encoding/binary"
	"math/bits"
)

// A deltaBase finds what of other data also stands in it. It keeps the data.
type deltaBase struct {
	data  []byte
	block int     // bytes that a match begins with
	step  int     // distance between the places that are known
	shift int     // from hash to bucket
	heads []int32 // by bucket: a place, plus one
	next  []int32 // by place divided by step: the next one, plus one
}

// Small data is known at every byte, so that short matches are found; large
// data in steps, to bound memory.
const (
	fineBelow   = 64 << 10
	fineBlock   = 8
	coarseBlock = 16
	maxTries    = 24 // places looked at for one match
)

func newDeltaBase(data []byte) *deltaBase {
	b := &deltaBase{data: data, block: fineBlock, step: 1}
	if len(data) >= fineBelow {
		b.block = coarseBlock
		b.step = 4
		if len(data) >= 1<<20 {
			b.step = 16
		}
	}
	places := (len(data)-b.block)/b.step + 1
	if len(data) < b.block {
		return b
	}
	width := bits.Len(uint(places))
	b.shift = 64 - width
	b.heads = make([]int32, 1<<width)
	b.next = make([]int32, places)
	for i := places - 1; i >= 0; i-- { // early places end up first
		h := b.hash(data[i*b.step:])
		b.next[i] = b.heads[h]
		b.heads[h] = int32(i + 1)
	}
	return b
}

// hash is of the first block bytes.
func (b *deltaBase) hash(p []byte) uint64 {
	v := binary.LittleEndian.Uint64(p) * 0x9E3779B97F4A7C15
	if b.block == coarseBlock {
		v = (v ^ v>>29 ^ binary.LittleEndian.Uint64(p[8:])) * 0xD6E8FEB86659FD93
	}
	return v >> b.shift
}

// match returns the longest place that target continues with at i.
func (b *deltaBase) match(target []byte, i int) (at, n int) {
	if b.heads == nil || i+b.block > len(target) {
		return 0, 0
	}
	tries := maxTries
	for k := b.heads[b.hash(target[i:])]; k != 0 && tries > 0; k = b.next[k-1] {
		tries--
		p := int(k-1) * b.step
		if m := commonPrefix(b.data[p:], target[i:]); m > n {
			at, n = p, m
			if i+n == len(target) {
				break
			}
		}
	}
	if n < b.block {
		return 0, 0
	}
	return at, n
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}

// delta appends to buf, which must be empty, how target is made of the base.
// It gives up, and says so, when that takes more than limit bytes.
func (b *deltaBase) delta(buf, target []byte, limit int) ([]byte, bool) {
	buf = binary.AppendUvarint(buf, uint64(len(b.data)))
	buf = binary.AppendUvarint(buf, uint64(len(target)))

	// What begins and ends alike needs no search.
	i := commonPrefix(b.data, target)
	if i < fineBlock {
		i = 0
	}
	buf = appendCopy(buf, 0, i)
	tail := commonSuffix(b.data[i:], target[i:])
	if tail < fineBlock {
		tail = 0
	}
	end := len(target) - tail

	literal := i // begin of what is not yet written
	for i < end {
		at, n := b.match(target[:end], i)
		if n == 0 {
			i++
			if i-literal > limit {
				return buf, false
			}
			continue
		}
		for i > literal && at > 0 && b.data[at-1] == target[i-1] {
			at--
			i--
			n++
		}
		buf = appendLiteral(buf, target[literal:i])
		buf = appendCopy(buf, at, n)
		if len(buf) > limit {
			return buf, false
		}
		i += n
		literal = i
	}
	buf = appendLiteral(buf, target[literal:end])
	buf = appendCopy(buf, len(b.data)-tail, tail)
	return buf, len(buf) <= limit
}

func appendLiteral(buf, p []byte) []byte {
	for len(p) > 0 {
		n := min(len(p), 127)
		buf = append(buf, byte(n))
		buf = append(buf, p[:n]...)
		p = p[n:]
	}
	return buf
}

// appendCopy appends copies of at most 64 KiB, all that old readers know.
func appendCopy(buf []byte, off, n int) []byte {
	for n > 0 {
		m := min(n, 0x10000)
		op := len(buf)
		buf = append(buf, 0x80)
		for i := range 4 {
			if c := byte(off >> (8 * i)); c != 0 {
				buf[op] |= 1 << i
				buf = append(buf, c)
			}
		}
		for i := range 2 {
			if c := byte(m >> (8 * i)); c != 0 { // 64 KiB is written as nothing
				buf[op] |= 1 << (4 + i)
				buf = append(buf, c)
			}
		}
		off += m
		n -= m
	}
	return buf
}
