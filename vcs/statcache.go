package vcs

import (
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// The stat cache: what a worktree was like when it was last captured, one file
// per worktree. It is a cache in the strict sense, in the machine's own byte
// order: lost, stale or damaged, it costs a scan and never a wrong capture.
//
//	header | facts | one record per directory | per directory: entries, names
//
// Entries are mapped, not parsed. A capture that changed nothing writes nothing,
// one that changed little adds to the file, see cachelog.go.

const statCacheVersion = 3

var statCacheMagic = [8]byte{'r', 'e', 't', 'c', 'o', 'n', 's', statCacheVersion}

type statCacheHeader struct {
	magic     [8]byte
	order     uint32 // 0x01020304 in the writer's byte order
	entrySize uint32
	dirs      uint32
	facts     uint32 // bytes
	size      uint64 // of the file without what was added to it
	crc       uint32 // IEEE, of all after the header
	_         uint32
}

// diskDir is a dirRec as it lies in the file.
type diskDir struct {
	mode, flags  uint32
	mtime, ctime int64
	ino, dev     uint64
	tree, aux    object.ID
	parent       int32
	entries      uint32
	names        uint32
	_            uint32
}

// statCache is a cache file in memory.
type statCache struct {
	facts    facts
	dirs     []*dirRec // the root first, parents before children
	raw      []byte
	unmap    func() error
	doubtful bool   // objects it relied on may be gone
	base     uint64 // bytes of the file it was read from, without what was added to it
	added    uint64 // bytes that were
	filed    int    // directories in the file; 0 when nothing may be added to it

	// Of a cache that a Watcher keeps in memory.
	resident bool           // a capture leaves saving to the owner
	unsaved  bool           // the file does not have all of it
	only     map[int32]bool // the directories the next scan visits (true) or passes through; nil: all
}

func (c *statCache) close() {
	if c.unmap != nil {
		_ = c.unmap() // the mapping is private: nothing can be lost
		c.unmap = nil
	}
}

// loadStatCache returns nil without an error when there is no usable cache.
func loadStatCache(path string) (*statCache, error) {
	raw, unmap, err := mapFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, ok := parseStatCache(raw)
	if !ok {
		_ = unmap()
		return nil, nil
	}
	c.raw, c.unmap = raw, unmap
	return c, nil
}

// parseStatCache checks raw before it believes a length in it.
func parseStatCache(raw []byte) (*statCache, bool) {
	const head = uint64(unsafe.Sizeof(statCacheHeader{}))
	if uint64(len(raw)) < head {
		return nil, false
	}
	h := *(*statCacheHeader)(unsafe.Pointer(unsafe.SliceData(raw)))
	if h.magic != statCacheMagic || h.order != 0x01020304 || h.size < head || h.size > uint64(len(raw)) || h.size%8 != 0 ||
		h.entrySize != uint32(unsafe.Sizeof(entry{})) {
		return nil, false
	}
	sum := make(chan uint32, 1) // while the rest is looked at
	go func() { sum <- crc32.ChecksumIEEE(raw[head:h.size]) }()
	c, ok := parseCacheBody(&h, raw[head:h.size], raw[h.size:])
	return c, <-sum == h.crc && ok
}

// parseCacheBody reads the file without its header, and what was added to it.
// What it is given may be damaged.
func parseCacheBody(h *statCacheHeader, body, added []byte) (*statCache, bool) {
	in := &cacheReader{rest: body}
	known := in.take(int(h.facts))
	disk, ok := takeSlice[diskDir](in, int(h.dirs))
	if !ok || len(disk) == 0 {
		return nil, false
	}
	c := &statCache{dirs: make([]*dirRec, len(disk)), base: h.size, filed: len(disk)}
	recs := make([]dirRec, len(disk))
	for i := range disk {
		c.dirs[i] = &recs[i]
		if !in.dir(&recs[i], &disk[i]) {
			return nil, false
		}
	}
	if known, ok = c.takeAdded(known, added); !ok {
		return nil, false
	}
	if !unpack(known, &c.facts) {
		return nil, false
	}
	for i, d := range c.dirs {
		for j := range d.entries {
			e := &d.entries[j]
			if uint64(e.nameOff)+uint64(e.nameLen) >= uint64(len(d.names)) {
				return nil, false
			}
			if e.child >= 0 {
				if int(e.child) <= i || int(e.child) >= len(c.dirs) {
					return nil, false
				}
				c.dirs[e.child].path = join(d.path, string(d.name(e)))
			}
			if e.nameLen == 10 && string(d.name(e)) == ".gitignore" {
				d.ignoreAt = j
			}
		}
	}
	return c, true
}

// cacheReader takes what cacheWriter has put.
type cacheReader struct{ rest []byte }

// take returns the next n bytes, nil when there are not so many: a bug of the
// writer, since the sum matched.
func (r *cacheReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[min(pad8(n), len(r.rest)):]
	return b
}

// takeSlice takes n values, which must hold no pointers.
func takeSlice[T any](r *cacheReader, n int) ([]T, bool) {
	var one T
	if n < 0 || n > len(r.rest)/int(unsafe.Sizeof(one)) {
		return nil, false
	}
	b := r.take(n * int(unsafe.Sizeof(one)))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), true
}

// dir takes the entries and names of a directory.
func (r *cacheReader) dir(d *dirRec, dd *diskDir) bool {
	d.mode, d.flags, d.mtime, d.ctime, d.ino, d.dev = dd.mode, dd.flags, dd.mtime, dd.ctime, dd.ino, dd.dev
	d.tree, d.aux, d.parent, d.ignoreAt = dd.tree, dd.aux, dd.parent, -1
	d.entries, d.names = nil, nil
	if dd.entries == 0 {
		return r.take(int(dd.names)) != nil || dd.names == 0
	}
	var ok bool
	if d.entries, ok = takeSlice[entry](r, int(dd.entries)); !ok {
		return false
	}
	d.names = r.take(int(dd.names))
	return d.names != nil
}

// disk is d as it lies in the file.
func (d *dirRec) disk(parent int32) diskDir {
	return diskDir{mode: d.mode, flags: d.flags, mtime: d.mtime, ctime: d.ctime, ino: d.ino, dev: d.dev,
		tree: d.tree, aux: d.aux, parent: parent, entries: uint32(len(d.entries)), names: uint32(len(d.names))}
}

// save writes the cache beside path and renames it into place. Directories that
// are gone are dropped and the others renumbered.
func (c *statCache) save(path string) error {
	c.filed = 0 // what c knows of the file is over
	number := make([]int32, len(c.dirs))
	live := 0
	for i, d := range c.dirs {
		number[i] = -1
		if !d.gone {
			number[i] = int32(live)
			live++
		}
	}
	known := pack(&c.facts)
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp*")
	if err != nil {
		return err
	}
	out := &cacheWriter{f: f, buf: make([]byte, 0, 256<<10), at: int64(unsafe.Sizeof(statCacheHeader{}))}
	out.put(known)
	for _, d := range c.dirs {
		if d.gone {
			continue
		}
		parent := int32(-1)
		if d.parent >= 0 {
			parent = number[d.parent]
		}
		dd := d.disk(parent)
		out.put(bytesOf(&dd, 1))
	}
	for _, d := range c.dirs {
		if d.gone {
			continue
		}
		out.entries(d.entries, number)
		out.put(d.names)
	}
	h := statCacheHeader{magic: statCacheMagic, order: 0x01020304, entrySize: uint32(unsafe.Sizeof(entry{})),
		dirs: uint32(live), facts: uint32(len(known))}
	err = out.finish(&h)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error that matters is err
	}
	return err
}

// cacheWriter writes the body of a cache file, and then the header that says
// how long it is and what it sums up to. It does not sync: the file can be made
// again.
type cacheWriter struct {
	f   *os.File
	buf []byte
	at  int64 // of the buffer's start in the file
	crc uint32
	err error
}

// put appends b and pads it to eight bytes.
func (w *cacheWriter) put(b []byte) {
	for pad := pad8(len(b)) - len(b); len(b) > 0 || pad > 0; {
		if len(w.buf) == cap(w.buf) {
			w.flush()
		}
		n := min(len(b), cap(w.buf)-len(w.buf))
		w.buf, b = append(w.buf, b[:n]...), b[n:]
		if len(b) == 0 {
			for ; pad > 0 && len(w.buf) < cap(w.buf); pad-- {
				w.buf = append(w.buf, 0)
			}
		}
	}
}

// entries puts entries, whose directories have new numbers.
func (w *cacheWriter) entries(all []entry, number []int32) {
	for len(all) > 0 { // those that are files as they are, at once
		n := 0
		for n < len(all) && all[n].child < 0 {
			n++
		}
		if n > 0 {
			w.put(bytesOf(&all[0], n)) // a multiple of eight bytes
			all = all[n:]
			continue
		}
		e := all[0]
		e.child = number[e.child]
		w.put(bytesOf(&e, 1))
		all = all[1:]
	}
}

func (w *cacheWriter) flush() {
	if w.err == nil {
		_, w.err = w.f.WriteAt(w.buf, w.at)
	}
	w.crc = crc32.Update(w.crc, crc32.IEEETable, w.buf)
	w.at += int64(len(w.buf))
	w.buf = w.buf[:0]
}

func (w *cacheWriter) finish(h *statCacheHeader) error {
	w.flush()
	h.size, h.crc = uint64(w.at), w.crc
	if w.err == nil {
		_, w.err = w.f.WriteAt(bytesOf(h, 1), 0)
	}
	return w.err
}

func pad8(n int) int { return (n + 7) &^ 7 }

// bytesOf is the memory of n values starting at p.
func bytesOf[T any](p *T, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), n*int(unsafe.Sizeof(*p)))
}
