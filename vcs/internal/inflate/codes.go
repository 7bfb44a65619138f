package inflate

import "math/bits"

// codes reads the codes of a block.
func (d *Decoder) codes() bool {
	lits, dists, pres := int(d.take(5))+257, int(d.take(5))+1, int(d.take(4))+4
	if lits > 286 || dists > 30 {
		return false
	}
	clear(d.lens[:19])
	for _, at := range lenOrder[:pres] {
		if d.n < 3 && !d.more() {
			return false
		}
		d.lens[at] = uint8(d.take(3))
	}
	if !build(d.pre[:], lenBits, d.lens[:19], lenEntries[:], false) {
		return false
	}
	for i := 0; i < lits+dists; {
		if d.n < lenBits+7 && !d.more() {
			return false
		}
		e := d.pre[d.b&(1<<lenBits-1)]
		d.take(uint(e & takes))
		again, what := 1, uint8(0)
		switch v := e &^ isLiteral >> 16; v {
		case 16:
			if i == 0 {
				return false
			}
			again, what = 3+int(d.take(2)), d.lens[i-1]
		case 17:
			again = 3 + int(d.take(3))
		case 18:
			again = 11 + int(d.take(7))
		default:
			what = uint8(v)
		}
		for range again {
			d.lens[i] = what
			i++
		}
		if i > lits+dists {
			return false
		}
	}
	return d.lens[256] != 0 &&
		build(d.lit[:], litBits, d.lens[:lits], litEntries[:], false) &&
		build(d.dist[:], distBits, d.lens[lits:lits+dists], distEntries[:], true)
}

// fixed sets the codes of blocks that do not tell theirs.
func (d *Decoder) fixed() bool {
	var lits [288]uint8
	for i := range lits {
		switch {
		case i < 144 || i >= 280:
			lits[i] = 8
		case i < 256:
			lits[i] = 9
		default:
			lits[i] = 7
		}
	}
	var dists [32]uint8
	for i := range dists {
		dists[i] = 5
	}
	return build(d.lit[:], litBits, lits[:], litEntries[:], false) && build(d.dist[:], distBits, dists[:], distEntries[:], false)
}

// build makes the table of a code, root bits wide, of how long its words are, and
// of the entries they lead to. The code must be complete; a sparse one may have
// a single word of one bit, or none.
func build(table []uint32, root uint, lens []uint8, entries []uint32, sparse bool) bool {
	var count, first, next [maxBits + 1]uint16 // by length: words, the first one, where it is in sorted
	for _, l := range lens {
		count[l]++
	}
	words := len(lens) - int(count[0])
	count[0] = 0
	left := 1
	for l := 1; l <= maxBits; l++ {
		first[l] = (first[l-1] + count[l-1]) << 1
		next[l] = next[l-1] + count[l-1]
		if left = left<<1 - int(count[l]); left < 0 {
			return false
		}
	}
	if left > 0 {
		if !sparse || words > 1 || words == 1 && count[1] != 1 {
			return false
		}
		clear(table[:1<<root])
	}
	var sorted [288]uint16 // by length, then by value
	for v, l := range lens {
		if l != 0 {
			sorted[next[l]] = uint16(v)
			next[l]++
		}
	}
	// A short word stands at every place that begins with it.
	i := 0
	for l := uint(1); l <= root; l++ {
		for word := first[l]; word < first[l]+count[l]; word++ {
			e := entries[sorted[i]]
			if e != 0 {
				e += uint32(l)<<8 + uint32(l)
			}
			for at := uint(bits.Reverse16(word) >> (16 - l)); at < 1<<root; at += 1 << l {
				table[at] = e
			}
			i++
		}
	}
	// The longest of those that begin alike says how large their table is.
	free, sub, width, begin := uint(1)<<root, uint(0), uint(0), uint(1)<<root
	i = words
	for l := uint(maxBits); l > root; l-- {
		for word := first[l] + count[l]; word > first[l]; {
			word--
			i--
			reversed := uint(bits.Reverse16(word) >> (16 - l))
			if at := reversed & (1<<root - 1); at != begin {
				begin, sub, width = at, free, l-root
				if free += 1 << width; free > uint(len(table)) {
					return false
				}
				table[at] = isPointer | uint32(sub)<<16 | uint32(width)
			}
			e := entries[sorted[i]]
			if e != 0 {
				e += uint32(l)<<8 + uint32(l)
			}
			for at := reversed >> root; at < 1<<width; at += 1 << (l - root) {
				table[sub+at] = e
			}
		}
	}
	return true
}

var lenOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// What words stand for, the bits they take not counted yet; nothing, where they
// must not be used.
var litEntries, distEntries, lenEntries = func() (lit [288]uint32, dist [32]uint32, pre [19]uint32) {
	for i := range uint32(256) {
		lit[i] = isLiteral | i<<16
	}
	lit[256] = isEnd
	base := uint32(3)
	for i := uint32(257); i < 285; i++ {
		extra := uint32(0)
		if i >= 265 {
			extra = (i - 261) / 4
		}
		lit[i] = base<<16 | extra
		base += 1 << extra
	}
	lit[285] = maxMatch << 16
	base = 1
	for i := range uint32(30) {
		extra := uint32(0)
		if i >= 4 {
			extra = i/2 - 1
		}
		dist[i] = base<<16 | extra
		base += 1 << extra
	}
	for i := range uint32(19) {
		pre[i] = isLiteral | i<<16
	}
	return lit, dist, pre
}()
