package object

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"

	"github.com/retcon-dev/retcon/vcs/internal/inflate"
)

// An inflater reads headers and compressed content at any place of a file.
// It comes from a pool and keeps its buffers.
type inflater struct {
	src section
	br  *bufio.Reader
	zr  io.ReadCloser
	dec inflate.Decoder
}

// A section reads on from an offset. Its first read is short, since most
// objects are.
type section struct {
	r     io.ReaderAt
	off   int64
	first bool
}

const (
	firstRead = 4 << 10
	readAhead = 32 << 10
)

func (s *section) Read(p []byte) (int, error) {
	if s.first && len(p) > firstRead {
		p = p[:firstRead]
	}
	s.first = false
	n, err := s.r.ReadAt(p, s.off)
	s.off += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

var inflaters = sync.Pool{New: func() any {
	x := &inflater{}
	x.br = bufio.NewReaderSize(&x.src, readAhead)
	return x
}}

func getInflater(r io.ReaderAt, off int64) *inflater {
	x := inflaters.Get().(*inflater)
	x.seek(r, off)
	return x
}

func (x *inflater) release() {
	x.src.r = nil
	inflaters.Put(x)
}

func (x *inflater) seek(r io.ReaderAt, off int64) {
	x.src = section{r: r, off: off, first: true}
	x.br.Reset(&x.src)
}

// begin starts decompressing where the reader stands.
func (x *inflater) begin() error {
	if x.zr == nil {
		zr, err := zlib.NewReader(x.br)
		if err != nil {
			return noEOF(err)
		}
		x.zr = zr
		return nil
	}
	return noEOF(x.zr.(zlib.Resetter).Reset(x.br, nil))
}

// full fills buf and checks that the stream ends there, checksum included. It is
// faster where buf has inflate.Slack of capacity to spare, which it may overwrite.
func (x *inflater) full(buf []byte) error {
	if x.near(buf) {
		return nil
	}
	if err := x.begin(); err != nil {
		return err
	}
	if _, err := io.ReadFull(x.zr, buf); err != nil {
		return noEOF(err)
	}
	return x.end()
}

// near fills buf of a stream that fits the reader's buffer. It says false of all
// others, and leaves what is wrong with them to the library.
func (x *inflater) near(buf []byte) bool {
	const most = 4 * readAhead // more would hardly fit
	if cap(buf)-len(buf) < inflate.Slack || len(buf) > most {
		return false
	}
	n := x.br.Buffered()
	if n < len(buf)/2 {
		n = min(len(buf)+len(buf)>>8+64, readAhead)
	}
	src, _ := x.br.Peek(n) // an error comes again
	return x.dec.Zlib(buf[:len(buf)+inflate.Slack], len(buf), src)
}

func (x *inflater) end() error {
	var more [1]byte
	for range 2 {
		n, err := x.zr.Read(more[:])
		if n > 0 {
			return errors.New("longer than its header says")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("compressed stream does not end")
}

// some fills as much of buf as the stream has.
func (x *inflater) some(buf []byte) (int, error) {
	if err := x.begin(); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(x.zr, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) || (errors.Is(err, io.EOF) && n > 0) {
		err = nil
	}
	return n, noEOF(err)
}

// noEOF keeps an early end of file from reading as a proper one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// plausible reports whether n compressed bytes could inflate to size: deflate
// gains a factor of 1032 at most. It keeps a damaged header from asking for
// all memory.
func plausible(size, n int64) error {
	if size < 0 || n < 0 || size/1040 > n {
		return fmt.Errorf("%d bytes cannot come out of %d", size, n)
	}
	return nil
}

// sized returns buf with length n, grown when it must be, and with capacity to
// spare for full.
func sized(buf []byte, n int64) []byte {
	if int64(cap(buf)) >= n+inflate.Slack {
		return buf[:n]
	}
	return make([]byte, n, n+inflate.Slack)
}
