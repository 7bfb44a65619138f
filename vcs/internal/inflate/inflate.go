// Package inflate decompresses what is small and wholly in memory, which is most
// of what a restore writes. It does that fast, and gives up on the rest: whoever
// calls it has a library to ask then, which knows what is wrong, too.
//
// The format is that of RFC 1950 and RFC 1951.
package inflate

import (
	"encoding/binary"
	"hash/adler32"
)

const (
	// Slack is how many bytes behind the content Zlib wants to have to itself: it
	// sees that there is too much after three literals and a repetition, of which
	// it copies eight bytes at a time.
	Slack = 3 + maxMatch + 7
	// After is how many bytes, whatever they are, have to follow a stream: it is
	// read ahead of. The checksum of a pack is as long.
	After = 20
)

// The words of a code are looked up by their first bits in a table, and those that
// have more by the rest in a second table behind it.
const (
	litBits  = 9
	distBits = 8
	lenBits  = 7
	litMost  = 852 // entries, for 286 words of up to 15 bits: zlib's enough.c says so
	distMost = 402 // for 30
	maxBits  = 15
	maxMatch = 258
)

// An entry of a table is 0 where no word leads. Otherwise it holds, from the lowest
// bit on: how many bits the word takes with the extra bits behind it, or how many
// lead into the second table; from bit 8 on, how many without them; what it is;
// and from bit 16 on, the literal, the least length or distance, or where the
// second table begins.
const (
	isLiteral = 1 << 31
	isEnd     = 1 << 15 // of the block
	isPointer = 1 << 14
	takes     = 63
)

// A Decoder keeps its tables from one use to the next. The zero value is ready.
type Decoder struct {
	lit  [litMost]uint32
	dist [distMost]uint32
	pre  [1 << lenBits]uint32
	lens [286 + 30 + 138]uint8 // a last repetition may lead over the end
	reader
}

// A reader takes bits from src.
type reader struct {
	src []byte
	p   int    // how far it is read
	b   uint64 // what was read and not taken, the next bit lowest
	n   uint   // how many bits that are
}

// Zlib decompresses the stream that src begins with into the first size bytes of
// dst, which is to be Slack longer; what it has there is overwritten. At least
// After bytes are to follow the stream. ok is false when it has not been done:
// the content has another size, something is missing or damaged, or unusual.
func (d *Decoder) Zlib(dst []byte, size int, src []byte) (ok bool) {
	const method, dictionary = 15, 32
	if len(src) < 2 || src[0]&method != 8 || src[1]&dictionary != 0 || binary.BigEndian.Uint16(src)%31 != 0 || len(dst) < size+Slack {
		return false
	}
	d.reader = reader{src: src, p: 2}
	defer func() { d.src = nil }()
	if n, ok := d.blocks(dst); !ok || n != size {
		return false
	}
	end := d.p - int(d.n>>3)
	return end+4 <= len(src) && binary.BigEndian.Uint32(src[end:]) == adler32.Checksum(dst[:size])
}

// blocks decompresses all there is, and returns how much that was.
func (d *Decoder) blocks(dst []byte) (o int, ok bool) {
	for last := false; !last; {
		if !d.more() {
			return 0, false
		}
		last = d.take(1) != 0
		switch d.take(2) {
		case 0:
			o, ok = d.stored(dst, o)
		case 1:
			if ok = d.fixed(); ok {
				o, ok = d.block(dst, o)
			}
		case 2:
			if ok = d.codes(); ok {
				o, ok = d.block(dst, o)
			}
		default:
			ok = false
		}
		if !ok {
			return 0, false
		}
	}
	return o, true
}

// more reads, so that there are 56 bits at least.
func (r *reader) more() bool {
	if r.p+8 > len(r.src) {
		return false
	}
	r.b, r.n, r.p = refill(r.b, r.n, r.src, r.p)
	return true
}

// refill wants 8 bytes at p. Bits above the n-th may be there already, and are the
// same.
func refill(b uint64, n uint, src []byte, p int) (uint64, uint, int) {
	return b | binary.LittleEndian.Uint64(src[p:])<<(n&63), n | 56, p + int(63-n)>>3
}

func (r *reader) take(n uint) uint {
	v := uint(r.b & (1<<(n&63) - 1))
	r.b >>= n & 63
	r.n -= n
	return v
}

// stored copies a block that is not compressed.
func (d *Decoder) stored(dst []byte, o int) (int, bool) {
	p := d.p - int(d.n>>3) // whole bytes go back
	if p+4 > len(d.src) {
		return 0, false
	}
	n := int(binary.LittleEndian.Uint16(d.src[p:]))
	if n^0xffff != int(binary.LittleEndian.Uint16(d.src[p+2:])) {
		return 0, false
	}
	p += 4
	if n > len(d.src)-p || n > len(dst)-Slack-o {
		return 0, false
	}
	copy(dst[o:o+n], d.src[p:])
	d.p, d.b, d.n = p+n, 0, 0
	return o + n, true
}

// block decompresses what follows the codes of a block.
func (d *Decoder) block(dst []byte, o int) (int, bool) {
	const litMask, distMask = 1<<litBits - 1, 1<<distBits - 1
	if !d.more() {
		return 0, false
	}
	src, p, b, n := d.src, d.p, d.b, d.n
	e := d.lit[b&litMask]
	for p+16 <= len(src) && o+Slack <= len(dst) {
		// There are 56 bits at least, e the first of them. Three literals of the
		// first table leave 29.
		for i := 0; i < 3 && e&isLiteral != 0; i++ {
			b, n = b>>(e&takes), n-uint(e&takes)
			dst[o] = byte(e >> 16)
			o++
			e = d.lit[b&litMask]
		}
		if e&isPointer != 0 {
			at := e>>16 + uint32(b>>litBits)&(1<<(e&takes)-1)
			if at >= litMost {
				return 0, false
			}
			e = d.lit[at]
		}
		was := b
		b, n = b>>(e&takes), n-uint(e&takes)
		if e&(isLiteral|isEnd) != 0 || e == 0 {
			if e == 0 {
				return 0, false
			}
			if e&isEnd != 0 {
				d.p, d.b, d.n = p, b, n
				return o, true
			}
			dst[o] = byte(e >> 16)
			o++
			b, n, p = refill(b, n, src, p)
			e = d.lit[b&litMask]
			continue
		}
		length := int(e>>16) + int(was&(1<<(e&takes)-1)>>(e>>8&15))

		b, n, p = refill(b, n, src, p)
		e = d.dist[b&distMask]
		if e&isPointer != 0 {
			at := e>>16 + uint32(b>>distBits)&(1<<(e&takes)-1)
			if at >= distMost {
				return 0, false
			}
			e = d.dist[at]
		}
		back := int(e>>16) + int(b&(1<<(e&takes)-1)>>(e>>8&15))
		if e == 0 || back > o {
			return 0, false
		}
		b, n, p = refill(b>>(e&takes), n-uint(e&takes), src, p)
		e = d.lit[b&litMask]
		if from := o - back; back < 8 {
			for i := range length {
				dst[o+i] = dst[from+i]
			}
		} else { // eight at a time, the last ones for nothing
			binary.LittleEndian.PutUint64(dst[o:], binary.LittleEndian.Uint64(dst[from:]))
			for i := 8; i < length; i += 8 {
				binary.LittleEndian.PutUint64(dst[o+i:], binary.LittleEndian.Uint64(dst[from+i:]))
			}
		}
		o += length
	}
	return 0, false
}
