package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// Stream returns an object as a reader, in bounded memory unless it is stored
// as a delta. Reading to the end reports a wrong length and a wrong checksum
// of the compression as a *CorruptError. Close the reader.
func (s *Store) Stream(id ID) (kind Kind, size int64, r io.ReadCloser, err error) {
	err = s.locate(id, func(p *pack, off int64) (err error) {
		kind, size, r, err = p.stream(id, off, &s.cache)
		return err
	}, func(path string) error {
		l, err := openLoose(path)
		if err != nil {
			return err
		}
		kind, size = l.kind, l.size
		r = &stream{id: id, where: path, r: l, left: l.size, close: l.Close}
		return nil
	})
	return kind, size, r, err
}

func (p *pack) stream(id ID, off int64, cache *baseCache) (Kind, int64, io.ReadCloser, error) {
	f, err := p.open()
	if err != nil {
		return 0, 0, nil, err
	}
	x := getInflater(f, off)
	e, err := f.entry(x, off)
	if err != nil {
		x.release()
		return 0, 0, nil, err
	}
	if !e.kind.valid() {
		x.release()
		kind, data, err := p.read(off, nil, math.MaxInt64, cache)
		return kind, int64(len(data)), io.NopCloser(bytes.NewReader(data)), err
	}
	if err := x.begin(); err != nil {
		x.release()
		return 0, 0, nil, f.corrupt(off, err)
	}
	done := func() error { x.release(); return nil }
	r := &stream{id: id, where: fmt.Sprintf("%s at %d", f.path, off), r: x.zr, left: e.size, close: done}
	return e.kind, e.size, r, nil
}

// A stream counts what it gives and checks the end.
type stream struct {
	id    ID
	where string
	r     io.Reader
	left  int64
	ended bool
	close func() error
}

func (s *stream) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, s.end()
	}
	n, err := s.r.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	if errors.Is(err, io.EOF) {
		s.ended = true
		if s.left == 0 {
			return n, nil
		}
	}
	return n, s.wrap(noEOF(err))
}

func (s *stream) end() error {
	for !s.ended {
		var more [1]byte
		n, err := s.r.Read(more[:])
		if n > 0 {
			return s.wrap(errors.New("longer than its header says"))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return s.wrap(err)
		}
		s.ended = err != nil
	}
	return io.EOF
}

func (s *stream) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case isIO(err):
		return fmt.Errorf("read %s: %w", s.where, err)
	default:
		return &CorruptError{ID: s.id, Where: s.where, Err: err}
	}
}

func (s *stream) Close() error {
	if s.close == nil {
		return os.ErrClosed
	}
	done := s.close
	s.close, s.left, s.ended = nil, 0, true
	return done()
}
