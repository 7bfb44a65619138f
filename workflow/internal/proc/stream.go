package proc

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"io"
	"os"
	"sync"
	"unicode/utf8"
)

// stream reads one of a command's streams to its end.
type stream struct {
	name string
	max  int64
	line func(stream string, line []byte) // nil: nobody wants them
	turn *sync.Mutex                      // both streams share it

	head []byte
	size int64
	hash hash.Hash // of everything, once there is more than the head
	part []byte    // of a line that has not ended
	done chan struct{}
}

// read takes from r until its end, or until somebody closes it.
func (s *stream) read(r *os.File) {
	defer close(s.done)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		s.take(buf[:n])
		if err != nil {
			break
		}
	}
	if len(s.part) > 0 {
		s.tell(s.part)
	}
}

func (s *stream) take(b []byte) {
	s.size += int64(len(b))
	if s.hash == nil && s.size > s.max {
		s.hash = sha256.New()
		s.hash.Write(s.head)
	}
	if s.hash != nil {
		s.hash.Write(b)
	}
	room := s.max - int64(len(s.head))
	s.head = append(s.head, b[:min(room, int64(len(b)))]...)
	if s.line != nil {
		s.split(b)
	}
}

// longest is the size from which on a line is told in pieces.
const longest = 64 << 10

// split tells the lines that end in b.
func (s *stream) split(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		switch {
		case end >= 0 && len(s.part) == 0:
			s.tell(b[:end])
		case end >= 0:
			s.tell(append(s.part, b[:end]...))
			s.part = s.part[:0]
		default:
			s.part = append(s.part, b...)
			if len(s.part) >= longest {
				s.tell(s.part)
				s.part = s.part[:0]
			}
			return
		}
		b = b[end+1:]
	}
}

func (s *stream) tell(line []byte) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.line(s.name, line)
}

// kept is the head, and the hash of everything if there was more.
func (s *stream) kept() (head []byte, sum [32]byte, cut bool) {
	if s.hash == nil {
		return s.head, sum, false
	}
	s.hash.Sum(sum[:0])
	return whole(s.head), sum, true
}

// whole is b without the beginning of a character at its end.
func whole(b []byte) []byte {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// feed writes the standard input. That the command does not read it is its own
// affair.
func feed(w *os.File, b []byte) {
	_, _ = io.Copy(w, bytes.NewReader(b))
	_ = w.Close()
}
