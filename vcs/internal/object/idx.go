package object

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sort"

	"golang.org/x/sys/unix"
)

// An index tells where in a pack each object begins: git's version 2, with
// 64-bit offsets. Large ones are mapped, small ones read.
type index struct {
	path   string
	data   []byte
	count  int
	mapped bool
}

const (
	idxMagic   = "\xfftOc"
	idxHeader  = 8 + 256*4
	idxTrailer = 40
	mapAbove   = 64 << 10
)

func openIndex(path string) (*index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := st.Size()
	if size < idxHeader+idxTrailer || int64(int(size)) != size {
		return nil, corrupt(path, "%d bytes are no index", size)
	}
	if size <= mapAbove {
		data := make([]byte, size)
		if _, err := f.ReadAt(data, 0); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		return parseIndex(path, data)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	x, err := parseIndex(path, data)
	if err != nil {
		unix.Munmap(data) // nothing refers to it
		return nil, err
	}
	x.mapped = true
	runtime.SetFinalizer(x, func(x *index) { unix.Munmap(x.data) })
	return x, nil
}

// parseIndex checks the shape: the fan-out grows and the tables fit exactly
// between header and trailer. The checksum is for Verify.
func parseIndex(path string, data []byte) (*index, error) {
	if len(data) < idxHeader+idxTrailer || string(data[:4]) != idxMagic {
		return nil, corrupt(path, "not a version 2 index")
	}
	if v := binary.BigEndian.Uint32(data[4:]); v != 2 {
		return nil, corrupt(path, "index version %d", v)
	}
	x := &index{path: path, data: data}
	last := 0
	for i := range 256 {
		n := x.fan(i)
		if n < last {
			return nil, corrupt(path, "fan-out table shrinks at %02x", i)
		}
		last = n
	}
	x.count = last
	small := int64(idxHeader+idxTrailer) + int64(last)*(20+4+4)
	large := int64(len(data)) - small
	if large < 0 || large%8 != 0 || large/8 > int64(last) {
		return nil, corrupt(path, "%d bytes cannot hold %d objects", len(data), last)
	}
	return x, nil
}

func (x *index) fan(i int) int {
	return int(binary.BigEndian.Uint32(x.data[8+4*i:]))
}

func (x *index) name(i int) []byte {
	o := idxHeader + 20*i
	return x.data[o : o+20]
}

func (x *index) id(i int) ID {
	defer runtime.KeepAlive(x)
	return ID(x.name(i))
}

func (x *index) crc(i int) uint32 {
	defer runtime.KeepAlive(x)
	return binary.BigEndian.Uint32(x.data[idxHeader+20*x.count+4*i:])
}

// offset returns where object i begins, or -1 when the entry points outside
// the table of large offsets.
func (x *index) offset(i int) int64 {
	defer runtime.KeepAlive(x)
	base := idxHeader + 24*x.count
	v := binary.BigEndian.Uint32(x.data[base+4*i:])
	if v>>31 == 0 {
		return int64(v)
	}
	o := base + 4*x.count + 8*int(v&^(1<<31))
	if o+8 > len(x.data)-idxTrailer {
		return -1
	}
	return int64(binary.BigEndian.Uint64(x.data[o:]) &^ (1 << 63))
}

// find returns the number of id in the index, or -1.
func (x *index) find(id *ID) int {
	defer runtime.KeepAlive(x)
	lo, hi := 0, x.fan(int(id[0]))
	if id[0] > 0 {
		lo = x.fan(int(id[0]) - 1)
	}
	first := binary.BigEndian.Uint64(id[:])
	// Ids are evenly spread: what follows the first byte says about where it is.
	m := lo + int(first<<8>>32*uint64(hi-lo)>>32)
	step, less, more := 2, false, false
	for lo < hi {
		name := x.name(m)
		c := cmp.Compare(binary.BigEndian.Uint64(name), first) // which says it, but for equals
		if c == 0 {
			c = bytes.Compare(name, id[:])
		}
		switch {
		case c == 0:
			return m
		case c < 0:
			lo, less = m+1, true
		default:
			hi, more = m, true
		}
		switch {
		case less && more:
			m = int(uint(lo+hi) >> 1)
		case less:
			m, step = min(m+step, hi-1), 2*step
		default:
			m, step = max(m-step, lo), 2*step
		}
	}
	return -1
}

func (x *index) packSum() ID {
	defer runtime.KeepAlive(x)
	return ID(x.data[len(x.data)-40 : len(x.data)-20])
}

// byOffset returns the numbers of all objects in the order they lie in the
// pack.
func (x *index) byOffset() []int32 {
	order := make([]int32, x.count)
	offs := make([]int64, x.count)
	for i := range order {
		order[i] = int32(i)
		offs[i] = x.offset(i)
	}
	sort.Slice(order, func(a, b int) bool { return offs[order[a]] < offs[order[b]] })
	return order
}

// An indexEntry is what an index says of one object.
type indexEntry struct {
	id     ID
	crc    uint32
	offset int64
}

// appendIndex appends the index of a pack; entries are sorted by id, and
// none is named twice.
func appendIndex(buf []byte, entries []indexEntry, packSum ID) []byte {
	buf = append(buf, idxMagic...)
	buf = binary.BigEndian.AppendUint32(buf, 2)
	n := 0
	for b := range 256 {
		for n < len(entries) && int(entries[n].id[0]) == b {
			n++
		}
		buf = binary.BigEndian.AppendUint32(buf, uint32(n))
	}
	for i := range entries {
		buf = append(buf, entries[i].id[:]...)
	}
	for i := range entries {
		buf = binary.BigEndian.AppendUint32(buf, entries[i].crc)
	}
	var large []int64
	for i := range entries {
		o := entries[i].offset
		if o > 1<<31-1 {
			large = append(large, o)
			o = 1<<31 | int64(len(large)-1)
		}
		buf = binary.BigEndian.AppendUint32(buf, uint32(o))
	}
	for _, o := range large {
		buf = binary.BigEndian.AppendUint64(buf, uint64(o))
	}
	return append(buf, packSum[:]...)
}
