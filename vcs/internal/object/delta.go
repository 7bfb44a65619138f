package object

import "errors"

var errDelta = errors.New("malformed delta")

// deltaSizes reads the two numbers a delta begins with and returns the rest.
func deltaSizes(delta []byte) (src, dst int64, ops []byte, err error) {
	src, delta, ok := deltaVarint(delta)
	if !ok {
		return 0, 0, nil, errDelta
	}
	dst, delta, ok = deltaVarint(delta)
	if !ok {
		return 0, 0, nil, errDelta
	}
	return src, dst, delta, nil
}

func deltaVarint(b []byte) (v int64, rest []byte, ok bool) {
	for i := 0; i < len(b) && i < 9; i++ {
		v |= int64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return v, b[i+1:], true
		}
	}
	return 0, nil, false
}

// applyDelta appends to dst, which must be empty, what delta makes of base.
// All of the delta is checked before anything is allocated.
func applyDelta(dst, base, delta []byte) ([]byte, error) {
	src, size, ops, err := deltaSizes(delta)
	if err != nil {
		return nil, err
	}
	if src != int64(len(base)) {
		return nil, errDelta
	}
	if !deltaFits(ops, src, size) {
		return nil, errDelta
	}
	if int64(cap(dst)) < size {
		dst = make([]byte, 0, size)
	}
	for len(ops) > 0 {
		c := ops[0]
		if c&0x80 == 0 {
			dst = append(dst, ops[1:1+int(c)]...)
			ops = ops[1+int(c):]
			continue
		}
		off, n, rest, _ := deltaCopy(ops)
		dst = append(dst, base[off:off+n]...)
		ops = rest
	}
	return dst, nil
}

// deltaFits reports whether the operations stay within a base of src bytes
// and give exactly size bytes.
func deltaFits(ops []byte, src, size int64) bool {
	var total int64
	for len(ops) > 0 && total <= size {
		c := ops[0]
		if c == 0 { // reserved
			return false
		}
		if c&0x80 == 0 {
			if len(ops) < 1+int(c) {
				return false
			}
			total += int64(c)
			ops = ops[1+int(c):]
			continue
		}
		off, n, rest, ok := deltaCopy(ops)
		if !ok || off+n > src {
			return false
		}
		total += n
		ops = rest
	}
	return len(ops) == 0 && total == size
}

// deltaCopy reads a copy operation.
func deltaCopy(ops []byte) (off, n int64, rest []byte, ok bool) {
	c := ops[0]
	ops = ops[1:]
	for i := range 7 {
		if c&(1<<i) == 0 {
			continue
		}
		if len(ops) == 0 {
			return 0, 0, nil, false
		}
		if i < 4 {
			off |= int64(ops[0]) << (8 * i)
		} else {
			n |= int64(ops[0]) << (8 * (i - 4))
		}
		ops = ops[1:]
	}
	if n == 0 {
		n = 0x10000
	}
	return off, n, ops, true
}
