package object

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A packOut is a pack being written: in memory while it is small, then in a
// temporary file.
type packOut struct {
	dir     string
	f       *os.File
	buf     []byte // not yet in f
	size    int64  // of all that was written
	entries []indexEntry
	err     error // of writing; what is in f is then unknown
}

const spill = 1 << 20

func newPackOut(dir string) *packOut {
	o := &packOut{dir: dir}
	o.buf = append(o.buf, "PACK\x00\x00\x00\x02\x00\x00\x00\x00"...)
	o.size = packHeader
	return o
}

// Write appends bytes of an entry.
func (o *packOut) Write(p []byte) (int, error) {
	if len(o.buf)+len(p) > spill {
		if err := o.flush(); err != nil {
			return 0, err
		}
	}
	if len(o.buf)+len(p) > cap(o.buf) { // by twice: what was outgrown stays in memory for a while
		o.buf = slices.Grow(o.buf, max(len(p), min(cap(o.buf), spill-len(o.buf))))
	}
	o.buf = append(o.buf, p...)
	o.size += int64(len(p))
	return len(p), nil
}

// add appends a whole entry.
func (o *packOut) add(id ID, raw []byte, crc uint32) error {
	at := o.size
	if _, err := o.Write(raw); err != nil {
		return err
	}
	o.note(indexEntry{id: id, crc: crc, offset: at})
	return nil
}

// note appends to the entries, growing them by twice.
func (o *packOut) note(e indexEntry) {
	if len(o.entries) == cap(o.entries) {
		o.entries = slices.Grow(o.entries, max(64, len(o.entries)))
	}
	o.entries = append(o.entries, e)
}

func (o *packOut) flush() error {
	if o.err == nil {
		o.err = o.spill()
	}
	return o.err
}

func (o *packOut) spill() error {
	if o.f == nil {
		f, err := createTemp(o.dir, "pack")
		if err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
		o.f = f
	}
	if _, err := o.f.Write(o.buf); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	o.buf = o.buf[:0]
	return nil
}

// truncate takes back what was written after the pack had n bytes.
func (o *packOut) truncate(n int64) error {
	if o.err != nil {
		return o.err
	}
	if inFile := o.size - int64(len(o.buf)); n < inFile {
		o.buf = o.buf[:0]
		if err := o.f.Truncate(n); err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
		if _, err := o.f.Seek(n, io.SeekStart); err != nil {
			return fmt.Errorf("write pack: %w", err)
		}
	} else {
		o.buf = o.buf[:n-inFile]
	}
	o.size = n
	return nil
}

// seal sets the number of objects and appends the checksum, which covers
// that number and so can be had only now.
func (o *packOut) seal() (ID, error) {
	var count [4]byte
	binary.BigEndian.PutUint32(count[:], uint32(len(o.entries)))
	h := sha1.New()
	if o.f == nil {
		copy(o.buf[8:], count[:])
		h.Write(o.buf)
	} else {
		if err := o.flush(); err != nil {
			return ID{}, err
		}
		if _, err := o.f.WriteAt(count[:], 8); err != nil {
			return ID{}, fmt.Errorf("write pack: %w", err)
		}
		writeBack(o.f)
		if _, err := io.Copy(h, io.NewSectionReader(o.f, 0, o.size)); err != nil {
			return ID{}, fmt.Errorf("write pack: %w", err)
		}
	}
	sum := ID(h.Sum(nil))
	o.buf = append(o.buf, sum[:]...)
	o.size += int64(len(sum))
	return sum, o.flush()
}

// publish completes the pack and gives it its name, the index last: a pack
// without index is not there for anybody.
func (o *packOut) publish(sync bool) (base string, err error) {
	sum, err := o.seal()
	if err != nil {
		return "", err
	}
	slices.SortFunc(o.entries, func(a, b indexEntry) int { return bytes.Compare(a.id[:], b.id[:]) })
	data := appendIndex(make([]byte, 0, idxHeader+idxTrailer+28*len(o.entries)), o.entries, sum)
	idxSum := sha1.Sum(data)
	idx, err := createTemp(o.dir, "idx")
	if err != nil {
		return "", fmt.Errorf("write index: %w", err)
	}
	defer dropTemp(idx)
	if _, err := idx.Write(append(data, idxSum[:]...)); err != nil {
		return "", fmt.Errorf("write index: %w", err)
	}
	base = filepath.Join(o.dir, "pack-"+sum.String())
	for _, f := range []*os.File{o.f, idx} {
		if err := finish(f, sync); err != nil {
			return "", err
		}
	}
	if err := os.Rename(o.f.Name(), base+".pack"); err != nil {
		return "", fmt.Errorf("publish pack: %w", err)
	}
	if err := os.Rename(idx.Name(), base+".idx"); err != nil {
		return "", fmt.Errorf("publish pack: %w", err)
	}
	if sync {
		return base, syncDir(o.dir)
	}
	return base, nil
}

func finish(f *os.File, sync bool) error {
	if err := f.Chmod(0o400); err != nil {
		return fmt.Errorf("publish pack: %w", err)
	}
	if !sync {
		return nil
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("publish pack: %w", err)
	}
	return nil
}

// abort removes what was not published, and closes files.
func (o *packOut) abort() {
	if o.f != nil {
		dropTemp(o.f)
		o.f = nil
	}
	o.buf = nil
}

// dropTemp closes a temporary file and removes it, if it still has its name.
func dropTemp(f *os.File) {
	os.Remove(f.Name())
	f.Close()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
