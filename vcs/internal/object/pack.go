package object

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A pack is one pack-<sum>.pack with its index, opened when first asked.
type pack struct {
	base string // path without suffix

	mu   sync.Mutex
	idx  atomic.Pointer[index]
	file atomic.Pointer[packFile]
	bad  atomic.Pointer[error] // why the index cannot be used
}

func (p *pack) packPath() string { return p.base + ".pack" }
func (p *pack) idxPath() string  { return p.base + ".idx" }

// index returns the index, opening it the first time.
func (p *pack) index() (*index, error) {
	if x := p.idx.Load(); x != nil {
		return x, nil
	}
	if err := p.bad.Load(); err != nil {
		return nil, *err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.idx.Load(); x != nil {
		return x, nil
	}
	x, err := openIndex(p.idxPath())
	if err != nil {
		if errors.Is(err, ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
			p.bad.Store(&err)
		}
		return nil, err
	}
	p.idx.Store(x)
	return x, nil
}

// open returns the pack's file, opening it the first time.
func (p *pack) open() (*packFile, error) {
	if f := p.file.Load(); f != nil {
		return f, nil
	}
	x, err := p.index()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.file.Load(); f != nil {
		return f, nil
	}
	f, err := openPackFile(p.packPath(), x)
	if err != nil {
		return nil, err
	}
	p.file.Store(f)
	return f, nil
}

func (p *pack) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.file.Swap(nil); f != nil && f.f != nil {
		f.f.Close()
	}
}

// A packFile is the content of a pack. The packs of single captures are many
// and small: they are kept in memory, so that they hold no descriptor.
type packFile struct {
	path string
	size int64
	f    *os.File
	data []byte
	// mapped is the file, for reads so small that a system call is most of
	// their cost: those of headers. A repack may drop the pack while somebody
	// reads it, so it is unmapped by the collector.
	mapped []byte
}

// tiny is how many bytes are read through the mapping at most. More are read
// from the file, where an I/O error is an error and not a signal.
const tiny = 64

const (
	packHeader = 12
	holdBelow  = 32 << 10
)

func openPackFile(path string, x *index) (*packFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	pf, err := newPackFile(path, f, x)
	if err != nil || pf.f == nil {
		f.Close()
	}
	return pf, err
}

func newPackFile(path string, f *os.File, x *index) (*packFile, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	pf := &packFile{path: path, size: st.Size(), f: f}
	if pf.size < packHeader+20 {
		return nil, corrupt(path, "%d bytes are no pack", pf.size)
	}
	if pf.size < holdBelow {
		pf.data = make([]byte, pf.size)
		if _, err := f.ReadAt(pf.data, 0); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		pf.f = nil
	} else if m, err := unix.Mmap(int(f.Fd()), 0, int(pf.size), unix.PROT_READ, unix.MAP_SHARED); err == nil {
		pf.mapped = m
		runtime.SetFinalizer(pf, func(f *packFile) { unix.Munmap(f.mapped) })
	}
	var head [packHeader]byte
	var sum ID
	if _, err := pf.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if _, err := pf.ReadAt(sum[:], pf.size-20); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	switch v := binary.BigEndian.Uint32(head[4:]); {
	case string(head[:4]) != "PACK":
		return nil, corrupt(path, "not a pack")
	case v != 2 && v != 3:
		return nil, corrupt(path, "pack version %d", v)
	case int64(binary.BigEndian.Uint32(head[8:])) != int64(x.count):
		return nil, corrupt(path, "pack and index disagree about the number of objects")
	case sum != x.packSum():
		return nil, corrupt(path, "pack and index do not belong together")
	}
	return pf, nil
}

// ReadAt reads up to the trailer and beyond, as io.ReaderAt says.
func (f *packFile) ReadAt(p []byte, off int64) (int, error) {
	if f.data == nil {
		if len(p) <= tiny && off >= 0 && off+int64(len(p)) <= int64(len(f.mapped)) {
			copy(p, f.mapped[off:])
			runtime.KeepAlive(f)
			return len(p), nil
		}
		return f.f.ReadAt(p, off)
	}
	if off < 0 || off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// peek reads the byte at off, if that takes no system call.
func (p *pack) peek(off int64) (b byte) {
	if f := p.file.Load(); f != nil && off >= 0 && off < int64(len(f.mapped)) {
		b = f.mapped[off]
		runtime.KeepAlive(f)
	}
	return b
}

// An entry is the header of an object in a pack. The content begins where
// the inflater that read it stands.
type entry struct {
	kind   Kind  // may be ofsDelta or refDelta
	size   int64 // of the content, or of the delta
	base   int64 // ofsDelta: offset of the base
	baseID ID    // refDelta
}

var errEntry = errors.New("malformed object header")

// entry reads the header at off and leaves x before the content.
func (f *packFile) entry(x *inflater, off int64) (e entry, err error) {
	if off < packHeader || off >= f.size-20 {
		return e, f.corrupt(off, errors.New("offset outside the pack"))
	}
	x.seek(f, off)
	if e, err = parseHeader(x.br, off); err != nil {
		return e, f.corrupt(off, noEOF(err))
	}
	if err := plausible(e.size, f.size-off); err != nil {
		return e, f.corrupt(off, err)
	}
	return e, nil
}

func (f *packFile) corrupt(off int64, err error) error {
	if isIO(err) {
		return fmt.Errorf("read %s at %d: %w", f.path, off, err)
	}
	return &CorruptError{Where: fmt.Sprintf("%s at %d", f.path, off), Err: err}
}

// isIO tells a disk that fails from data that is wrong.
func isIO(err error) bool {
	var pe *os.PathError
	return errors.As(err, &pe)
}

// parseHeader reads an object's header in a pack; off is where it stands.
func parseHeader(r io.ByteReader, off int64) (e entry, err error) {
	c, err := r.ReadByte()
	if err != nil {
		return e, err
	}
	e.kind = Kind(c >> 4 & 7)
	e.size = int64(c & 15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = r.ReadByte(); err != nil {
			return e, err
		}
		if shift > 53 {
			return e, errEntry
		}
		e.size |= int64(c&0x7f) << shift
	}
	switch {
	case e.kind.valid():
		return e, nil
	case e.kind == ofsDelta:
		e.base, err = parseOffset(r, off)
		return e, err
	case e.kind == refDelta:
		for i := range e.baseID {
			if e.baseID[i], err = r.ReadByte(); err != nil {
				return e, err
			}
		}
		return e, nil
	default:
		return e, errEntry
	}
}

func parseOffset(r io.ByteReader, off int64) (int64, error) {
	c, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	back := int64(c & 0x7f)
	for c&0x80 != 0 {
		if c, err = r.ReadByte(); err != nil {
			return 0, err
		}
		if back >= 1<<55 {
			return 0, errEntry
		}
		back = (back+1)<<7 | int64(c&0x7f)
	}
	if back <= 0 || back > off-packHeader {
		return 0, errEntry
	}
	return off - back, nil
}

// appendHeader appends what parseHeader reads; back is the distance to the
// base of an ofsDelta.
func appendHeader(buf []byte, kind Kind, size, back int64) []byte {
	c := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size != 0; size >>= 7 {
		buf = append(buf, c|0x80)
		c = byte(size & 0x7f)
	}
	buf = append(buf, c)
	if kind != ofsDelta {
		return buf
	}
	var tmp [10]byte
	i := len(tmp) - 1
	tmp[i] = byte(back & 0x7f)
	for back >>= 7; back != 0; back >>= 7 {
		back--
		i--
		tmp[i] = 0x80 | byte(back&0x7f)
	}
	return append(buf, tmp[i:]...)
}
