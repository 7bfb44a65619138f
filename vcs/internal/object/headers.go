package object

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// HeaderOf asks for the kind and size of an object.
type HeaderOf struct {
	ID   ID
	Kind Kind
	Size int64
	Err  error

	at  *pack
	off int64
}

// peeked keeps the compiler from leaving out what is read only to have it near.
var peeked atomic.Uint32

// Headers is Header for many objects. It looks all of them up before it reads
// any, so that the waits for memory fall together.
func (s *Store) Headers(ask []HeaderOf) {
	set := s.set()
	for i := range ask {
		ask[i].at, ask[i].off, _ = s.find(set, &ask[i].ID)
	}
	sum := uint32(0)
	for i := range ask {
		if h := &ask[i]; h.at != nil {
			sum += uint32(h.at.peek(h.off))
		}
	}
	peeked.Store(sum)
	for i := range ask {
		h := &ask[i]
		if h.Err = ErrMissing; h.at != nil {
			h.Kind, h.Size, h.Err = h.at.header(h.off)
		}
		if h.Err != nil { // loose, new, gone or damaged
			h.Kind, h.Size, h.Err = s.Header(h.ID)
		}
		h.at = nil
	}
}

// Unread gives back what Headers has mapped of large packs. It takes a while, as it
// does at the end of the process otherwise. Others may read meanwhile: what they
// need is mapped again.
func (s *Store) Unread() {
	set := s.cur.Load()
	if set == nil {
		return
	}
	for _, p := range set.packs {
		if f := p.file.Load(); f != nil && len(f.mapped) > 0 {
			_ = unix.Madvise(f.mapped, unix.MADV_DONTNEED)
			runtime.KeepAlive(f)
		}
	}
}
