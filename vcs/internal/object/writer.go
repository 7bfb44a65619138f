package object

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// A Writer collects the objects of one capture and publishes them as one
// pack: all at Commit, or none. Its methods are safe for concurrent use;
// hashing and compression run in the caller. A Writer holds the shared lock
// from NewWriter until Commit or Abort, one of which must be called.
type Writer struct {
	Plain bool // small blobs are not compressed

	s      *Store
	unlock func()

	mu    sync.Mutex
	err   error // once set, all that follows fails
	added idSet // over the entries of out
	out   *packOut
}

// NewWriter begins a pack. What goes wrong, a lock that does not come free
// included, is said by the first method called.
func (s *Store) NewWriter() *Writer {
	w := &Writer{s: s, out: &packOut{}}
	if w.unlock, w.err = s.sharedWait(); w.err == nil {
		w.out = newPackOut(s.packDir())
		if set := s.cur.Load(); set != nil {
			s.refresh(set, false)
		}
	}
	return w
}

// Len returns how many objects were added.
func (w *Writer) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.out.entries)
}

// Add adds an object and returns its id. What was already added to this
// Writer is not added again; whether the store has it is for the caller to
// ask. data may be reused at once.
func (w *Writer) Add(kind Kind, data []byte) (ID, error) {
	id := Sum(kind, data)
	return id, w.AddHashed(id, kind, data)
}

// AddHashed is Add for an object whose id is known. The id must be right:
// nobody checks.
func (w *Writer) AddHashed(id ID, kind Kind, data []byte) error {
	if done, err := w.has(id); done || err != nil {
		return err
	}
	buf := buffers.Get().(*bytes.Buffer)
	defer putBuffer(buf)
	buf.Reset()
	buf.Write(appendHeader(buf.AvailableBuffer(), kind, int64(len(data)), 0))
	level := levelCapture
	if (kind != Blob || w.Plain) && len(data) <= plainBelow {
		level = levelStore
	}
	deflate(buf, data, level)
	crc := crc32.ChecksumIEEE(buf.Bytes())

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.added.has(w.out.entries, &id) {
		return w.err
	}
	w.err = w.out.add(id, buf.Bytes(), crc)
	w.added.add(w.out.entries)
	return w.err
}

func (w *Writer) has(id ID) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.added.has(w.out.entries, &id), w.err
}

// Had reports whether the store had the object when the Writer was made, so that
// it need not be added. It is Store.Has for somebody who asks a hundred thousand
// times: what comes from others meanwhile it does not see.
func (w *Writer) Had(id ID) bool {
	set := w.s.set()
	if p, _, _ := w.s.find(set, &id); p != nil {
		return true
	}
	for i, dir := range set.dirs {
		if set.loose[i].has(id[0]) && unix.Access(loosePath(dir, id), unix.F_OK) == nil {
			return true
		}
	}
	return false
}

// smallStream is what AddStream rather holds in memory.
const smallStream = 1 << 20

// AddStream adds a blob of size bytes read from r, in bounded memory. When r
// holds another number of bytes the error is ErrChanged and nothing of it is
// kept. While a large stream is read, other additions wait.
func (w *Writer) AddStream(size int64, r io.Reader) (ID, error) {
	if size < 0 {
		return ID{}, fmt.Errorf("a stream of %d bytes", size)
	}
	if size <= smallStream {
		return w.addSmall(size, r)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return ID{}, w.err
	}
	mark := w.out.size
	id, crc, err := w.stream(size, r)
	if err == nil && !w.added.has(w.out.entries, &id) {
		w.out.note(indexEntry{id: id, crc: crc, offset: mark})
		w.added.add(w.out.entries)
		return id, nil
	}
	if terr := w.out.truncate(mark); terr != nil {
		w.err = terr
		return ID{}, errors.Join(err, terr)
	}
	return id, err
}

func (w *Writer) addSmall(size int64, r io.Reader) (ID, error) {
	buf := buffers.Get().(*bytes.Buffer)
	defer putBuffer(buf)
	buf.Reset()
	n, err := io.Copy(buf, io.LimitReader(r, size+1))
	if err != nil {
		return ID{}, err
	}
	if n != size {
		return ID{}, ErrChanged
	}
	return w.Add(Blob, buf.Bytes())
}

// stream writes the entry of a large blob at the end of the pack.
func (w *Writer) stream(size int64, r io.Reader) (ID, uint32, error) {
	chunk := make([]byte, 128<<10)
	n, err := io.ReadFull(r, chunk[:min(size, int64(len(chunk)))])
	if err != nil {
		return ID{}, 0, shortened(err)
	}
	sum := crc32.NewIEEE()
	dst := io.MultiWriter(w.out, sum)
	if _, err := dst.Write(appendHeader(nil, Blob, size, 0)); err != nil {
		return ID{}, 0, err
	}
	level := levelFor(chunk[:n], levelCapture)
	z := getDeflater(dst, level)
	defer putDeflater(z, level)
	h := hashers.Get().(*Hasher)
	defer hashers.Put(h)
	h.Reset(Blob, size)
	for left := size; ; {
		h.Write(chunk[:n])
		if _, err := z.Write(chunk[:n]); err != nil {
			return ID{}, 0, err
		}
		if left -= int64(n); left == 0 {
			break
		}
		if n, err = io.ReadFull(r, chunk[:min(left, int64(len(chunk)))]); err != nil {
			return ID{}, 0, shortened(err)
		}
	}
	if n, err := io.ReadFull(r, chunk[:1]); n > 0 {
		return ID{}, 0, ErrChanged
	} else if !errors.Is(err, io.EOF) {
		return ID{}, 0, err
	}
	if err := z.Close(); err != nil {
		return ID{}, 0, err
	}
	return h.Sum(), sum.Sum32(), nil
}

func shortened(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrChanged
	}
	return err
}

// Commit publishes what was added. With sync it is on disk when Commit
// returns; without, a power cut may take it, and only it. A Writer to which
// nothing was added leaves nothing. On error nothing is published.
func (w *Writer) Commit(sync bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && len(w.out.entries) > 0 {
		w.err = w.publish(sync)
	}
	err := w.err
	w.end()
	return err
}

func (w *Writer) publish(sync bool) error {
	base, err := w.out.publish(sync)
	if err != nil {
		return err
	}
	w.s.adopt(base)
	set := w.s.cur.Load()
	if set != nil && set.temps && !w.s.cleaned.Swap(true) {
		_ = w.s.CleanTemp() // left-overs do no harm; gc says so when they stay
	}
	_ = w.s.mergeSmall() // a wish: what was added is published, and all else where it was
	return nil
}

// Abort drops what was added. After Commit it does nothing.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
}

var errWriterDone = errors.New("writer is committed or aborted")

func (w *Writer) end() {
	w.out.abort()
	if w.unlock != nil {
		w.unlock()
		w.unlock = nil
	}
	if w.err == nil {
		w.err = errWriterDone
	}
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= 4<<20 {
		buffers.Put(b)
	}
}
