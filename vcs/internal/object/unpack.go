package object

import (
	"errors"
	"math"
	"sync"

	"github.com/retcon-dev/retcon/vcs/internal/inflate"
)

// maxChain bounds a chain of deltas. Git makes none longer than 4,095; a
// longer one goes in a circle.
const maxChain = 4096

// baseOf returns where in the same pack the base of a delta lies.
func (p *pack) baseOf(f *packFile, off int64, e *entry) (int64, error) {
	if e.kind == ofsDelta {
		return e.base, nil
	}
	x, err := p.index()
	if err != nil {
		return 0, err
	}
	i := x.find(&e.baseID)
	if i < 0 {
		return 0, f.corrupt(off, errors.New("base "+e.baseID.String()+" is not in the pack"))
	}
	return x.offset(i), nil
}

// header returns kind and size of the object at off. Of a delta only its
// first bytes are inflated.
func (p *pack) header(off int64) (Kind, int64, error) {
	f, err := p.open()
	if err != nil {
		return 0, 0, err
	}
	if kind, size, ok := f.plain(off); ok {
		return kind, size, nil
	}
	x := getInflater(f, off)
	defer x.release()
	size := int64(-1)
	for range maxChain {
		e, err := f.entry(x, off)
		if err != nil {
			return 0, 0, err
		}
		if e.kind.valid() {
			if size < 0 {
				size = e.size
			}
			return e.kind, size, nil
		}
		if size < 0 {
			var head [20]byte
			n, err := x.some(head[:min(e.size, int64(len(head)))])
			if err != nil {
				return 0, 0, f.corrupt(off, err)
			}
			if _, size, _, err = deltaSizes(head[:n]); err != nil {
				return 0, 0, f.corrupt(off, err)
			}
		}
		if off, err = p.baseOf(f, off, &e); err != nil {
			return 0, 0, err
		}
	}
	return 0, 0, f.corrupt(off, errors.New("delta chain without end"))
}

// plain reads the header of an object that is no delta, which is all that need
// be read of it.
func (f *packFile) plain(off int64) (kind Kind, size int64, ok bool) {
	var b [10]byte // a size of 60 bits
	if off < packHeader || off+int64(len(b)) > f.size {
		return 0, 0, false
	}
	if _, err := f.ReadAt(b[:], off); err != nil {
		return 0, 0, false // the long way says what is wrong
	}
	kind, size = Kind(b[0]>>4&7), int64(b[0]&15)
	for i, shift := 0, 4; b[i]&0x80 != 0; shift += 7 {
		if i++; i == len(b) {
			return 0, 0, false
		}
		size |= int64(b[i]&0x7f) << shift
	}
	return kind, size, kind.valid() && size >= 0
}

// A chain holds what is needed to put one object together, pooled.
type chain struct {
	deltas [][]byte
	arena  []byte
	spare  [2][]byte
}

var chains = sync.Pool{New: func() any { return &chain{} }}

const keepArena = 4 << 20

func (c *chain) release() {
	c.deltas = c.deltas[:0]
	c.arena = c.arena[:0]
	if cap(c.arena) > keepArena {
		c.arena = nil
	}
	for i := range c.spare {
		if cap(c.spare[i]) > keepArena {
			c.spare[i] = nil
		}
	}
	chains.Put(c)
}

// take returns n bytes of the arena, with capacity to spare for full. Earlier takes
// stay valid when it grows.
func (c *chain) take(n int64) []byte {
	all := n + inflate.Slack
	if int64(cap(c.arena)-len(c.arena)) < all {
		c.arena = make([]byte, 0, max(all, int64(2*cap(c.arena)), 16<<10))
	}
	l := int64(len(c.arena))
	c.arena = c.arena[:l+all]
	return c.arena[l : l+n : l+all]
}

// read returns the object at off, in buf when it fits, unless it has more than
// most bytes.
func (p *pack) read(off int64, buf []byte, most int64, cache *baseCache) (Kind, []byte, error) {
	f, err := p.open()
	if err != nil {
		return 0, nil, err
	}
	x := getInflater(f, off)
	defer x.release()

	e, err := f.entry(x, off)
	if err != nil {
		return 0, nil, err
	}
	if e.kind.valid() {
		if e.size > most {
			return 0, nil, ErrLarge
		}
		buf = sized(buf, e.size)
		if err := x.full(buf); err != nil {
			return 0, nil, f.corrupt(off, err)
		}
		return e.kind, buf, nil
	}
	if most < math.MaxInt64 { // the delta says how much becomes of it
		if _, size, err := p.header(off); err != nil {
			return 0, nil, err
		} else if size > most {
			return 0, nil, ErrLarge
		}
	}
	return p.readDelta(f, x, off, e, buf, cache)
}

// readDelta walks down to a base, collecting deltas, and back up.
func (p *pack) readDelta(f *packFile, x *inflater, top int64, e entry, buf []byte, cache *baseCache) (Kind, []byte, error) {
	c := chains.Get().(*chain)
	defer c.release()

	var kind Kind
	var base []byte
	var baseOff int64
	for off := top; ; {
		d := c.take(e.size)
		if err := x.full(d); err != nil {
			return 0, nil, f.corrupt(off, err)
		}
		c.deltas = append(c.deltas, d)
		if len(c.deltas) > maxChain {
			return 0, nil, f.corrupt(top, errors.New("delta chain without end"))
		}
		var err error
		if off, err = p.baseOf(f, off, &e); err != nil {
			return 0, nil, err
		}
		if len(c.deltas) == 1 {
			baseOff = off
		}
		if k, data, ok := cache.get(p, off); ok {
			kind, base = k, data
			break
		}
		if e, err = f.entry(x, off); err != nil {
			return 0, nil, err
		}
		if e.kind.valid() {
			kind = e.kind
			base = sized(nil, e.size)
			if err := x.full(base); err != nil {
				return 0, nil, f.corrupt(off, err)
			}
			if len(c.deltas) == 1 {
				cache.put(p, off, kind, base)
			}
			break
		}
	}

	for i := len(c.deltas) - 1; i >= 0; i-- {
		// The object itself goes into the caller's buffer, its base may go
		// into the cache and so gets memory of its own, those below take turns.
		dst := buf[:0]
		switch {
		case i == 1:
			dst = nil
		case i > 1:
			dst = c.spare[i&1][:0]
		}
		out, err := applyDelta(dst, base, c.deltas[i])
		if err != nil {
			return 0, nil, f.corrupt(top, err)
		}
		switch {
		case i == 1:
			cache.put(p, baseOff, kind, out)
		case i > 1:
			c.spare[i&1] = out
		}
		base = out
	}
	return kind, base, nil
}

// A baseCache keeps the bases of deltas, since their neighbours often share
// them. What it holds is never changed.
type baseCache struct {
	shards [16]baseShard
}

type baseKey struct {
	p   *pack
	off int64
}

type baseValue struct {
	kind Kind
	data []byte
}

type baseShard struct {
	mu   sync.Mutex
	m    map[baseKey]baseValue
	ring []baseKey // in the order they came
	size int
}

const (
	cacheShard = 1 << 20 // bytes each shard keeps
	cacheEntry = cacheShard / 4
)

func (c *baseCache) shard(off int64) *baseShard {
	return &c.shards[(uint64(off)*0x9E3779B97F4A7C15)>>60]
}

func (c *baseCache) get(p *pack, off int64) (Kind, []byte, bool) {
	s := c.shard(off)
	s.mu.Lock()
	v, ok := s.m[baseKey{p, off}]
	s.mu.Unlock()
	return v.kind, v.data, ok
}

func (c *baseCache) put(p *pack, off int64, kind Kind, data []byte) {
	if len(data) > cacheEntry {
		return
	}
	s := c.shard(off)
	k := baseKey{p, off}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[baseKey]baseValue{}
	}
	if _, ok := s.m[k]; ok {
		return
	}
	s.m[k] = baseValue{kind, data}
	s.ring = append(s.ring, k)
	s.size += len(data) + 64
	for s.size > cacheShard {
		old := s.ring[0]
		s.ring = s.ring[1:]
		s.size -= len(s.m[old].data) + 64
		delete(s.m, old)
	}
}
