package vcs

import (
	"errors"
	"hash/crc32"
	"os"
	"unsafe"
)

// What captures add to a stat cache file, each one group:
//
//	header | facts | positions | records | per directory: entries, names
//
// A group stands for the directories it names, as a whole or not at all: one
// that was not wholly written, and whatever follows it, does not count. The file
// is then what an earlier capture knew, which costs a look at what has changed
// since.

var cacheGroupMagic = [8]byte{'r', 'e', 't', 'c', 'o', 'n', 'a', statCacheVersion}

type cacheGroupHeader struct {
	magic [8]byte
	size  uint64 // of what follows
	facts uint32 // bytes
	dirs  uint32
	crc   uint32 // IEEE, of what follows
	_     uint32
}

// takeAdded takes over what was added to the file, and returns the newest facts.
func (c *statCache) takeAdded(facts, added []byte) ([]byte, bool) {
	const head = uint64(unsafe.Sizeof(cacheGroupHeader{}))
	for uint64(len(added)) >= head {
		h := *(*cacheGroupHeader)(unsafe.Pointer(unsafe.SliceData(added)))
		if h.magic != cacheGroupMagic || h.size > uint64(len(added))-head || h.size%8 != 0 ||
			h.crc != crc32.ChecksumIEEE(added[head:head+h.size]) {
			break
		}
		in := &cacheReader{rest: added[head : head+h.size]}
		facts = in.take(int(h.facts))
		at, ok := takeSlice[uint32](in, int(h.dirs))
		if !ok || facts == nil {
			return nil, false
		}
		disk, ok := takeSlice[diskDir](in, int(h.dirs))
		if !ok {
			return nil, false
		}
		for i, pos := range at {
			if int64(pos) >= int64(len(c.dirs)) || c.dirs[pos].parent != disk[i].parent || !in.dir(c.dirs[pos], &disk[i]) {
				return nil, false
			}
		}
		added = added[head+h.size:]
		c.added += head + h.size
	}
	return facts, true
}

// update brings the file at path, from which c was read, up to date: it adds
// what a capture has touched, or writes all of it anew when that is much or the
// directories are others. Nobody else may write the file meanwhile.
func (c *statCache) update(path string) error {
	if group, ok := c.group(); ok && c.add(path, group) == nil {
		c.added += uint64(len(group))
	} else if err := c.save(path); err != nil {
		return err
	}
	if testOnlyUpdated != nil {
		testOnlyUpdated(path, c)
	}
	return nil
}

// testOnlyUpdated is called after update.
var testOnlyUpdated func(path string, c *statCache)

// add writes a group behind what the file has.
func (c *statCache) add(path string, group []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	end := int64(c.base + c.added)
	if fi.Size() != end { // there is a torn group, or it is another file
		return errors.New("not the file that was read")
	}
	_, err = f.WriteAt(group, end)
	return err
}

// group is what update adds; false when all must be written.
func (c *statCache) group() ([]byte, bool) {
	if c.filed != len(c.dirs) {
		return nil, false
	}
	room := int(c.base/2) - int(c.added)
	var at []uint32
	var disk []diskDir
	for i, d := range c.dirs {
		if d.gone {
			return nil, false
		}
		if d.touched.Load() {
			at, disk = append(at, uint32(i)), append(disk, d.disk(d.parent))
			if room -= len(d.names) + len(d.entries)*int(unsafe.Sizeof(entry{})) + int(unsafe.Sizeof(diskDir{})); room < 0 {
				return nil, false
			}
		}
	}
	known := pack(&c.facts)
	if len(known) > room {
		return nil, false
	}
	b := make([]byte, unsafe.Sizeof(cacheGroupHeader{}))
	put := func(p []byte) { b = append(append(b, p...), make([]byte, pad8(len(p))-len(p))...) }
	put(known)
	if len(at) > 0 {
		put(bytesOf(&at[0], len(at)))
		put(bytesOf(&disk[0], len(disk)))
	}
	for _, i := range at {
		d := c.dirs[i]
		if len(d.entries) > 0 {
			put(bytesOf(&d.entries[0], len(d.entries)))
		}
		put(d.names)
	}
	h := (*cacheGroupHeader)(unsafe.Pointer(unsafe.SliceData(b)))
	body := b[unsafe.Sizeof(*h):]
	*h = cacheGroupHeader{magic: cacheGroupMagic, size: uint64(len(body)), facts: uint32(len(known)), dirs: uint32(len(at)),
		crc: crc32.ChecksumIEEE(body)}
	return b, true
}
