package object

import (
	"bytes"
)

// Limits of the search for deltas.
const (
	windowSize  = 10       // objects compared with
	windowBytes = 32 << 20 // that they may take
	maxDepth    = 50       // deltas below an object
	headDepth   = 8        // below the newest of many versions
	maxDelta    = 8 << 20  // bytes of an object worth the search
	anchorEvery = 16       // depth between those kept for longer
)

// A window holds the objects that the next one may be a delta of.
type window struct {
	near    []*candidate // the last ones, oldest first
	anchors [maxDepth / anchorEvery]*candidate
	bytes   int
	buf     [2][]byte
}

type candidate struct {
	base *deltaBase
	off  int64
	deep int
}

// add makes an object one to compare with.
func (w *window) add(data []byte, off int64, deep int) {
	c := &candidate{newDeltaBase(bytes.Clone(data)), off, deep}
	w.near = append(w.near, c)
	w.bytes += len(data)
	for len(w.near) > windowSize || (w.bytes > windowBytes && len(w.near) > 1) {
		w.bytes -= len(w.near[0].base.data)
		w.near = w.near[1:]
	}
	if len(data) > windowBytes/16 {
		return
	}
	if i := deep / anchorEvery; i < len(w.anchors) {
		w.anchors[i] = c
	}
}

// best returns the smallest delta that data can be, of an object less than
// depth deep, or none. The delta is valid until the next call.
func (w *window) best(data []byte, depth int) (delta []byte, of *candidate) {
	limit := len(data) * 3 / 4
	try := func(c *candidate) {
		if c == nil || c.deep >= depth || c == of || lopsided(len(c.base.data), len(data)) {
			return
		}
		max := limit
		if of != nil { // a deeper one must be clearly better
			max = (limit - 1) * 3 * maxDepth / (3*maxDepth + c.deep - of.deep)
		}
		d, ok := c.base.delta(w.buf[0][:0], data, max)
		w.buf[0] = d
		if ok {
			w.buf[0], w.buf[1] = w.buf[1], w.buf[0]
			delta, of, limit = d, c, len(d)
		}
	}
	for i := len(w.near) - 1; i >= 0; i-- {
		try(w.near[i])
	}
	if of == nil || of.deep > maxDepth-anchorEvery/2 || len(delta) > len(data)/8 {
		for _, c := range w.anchors {
			try(c)
		}
	}
	return delta, of
}

// lopsided tells sizes that cannot make a good delta.
func lopsided(base, target int) bool { return base < target/16 }
