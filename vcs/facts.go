package vcs

import "encoding/binary"

// facts are what a capture must find unchanged to trust the stat cache, and what
// it passes on to the next.
type facts struct {
	Root       [2]uint64 // device and inode of the worktree's root
	Store      string    // identity of the object store
	Rules      string    // digest of the options and the ignore rules outside the worktree
	Generation uint64    // of the store, which Collect moves
	Packs      string    // names of its packs, shortened; one of them gone: objects must be looked for
	PackTime   int64     // of their folder
	Modes      modes     // what is not worth recording
	Scan       int64     // start of the scan, clock of files
	Boot       string    // of the machine, when it was written
	Commit     Commit    // what the capture returned; gc keeps it
	Capture    *Capture  // the whole answer, but for its Stats
	Git        gitFacts
}

// each passes every field to p, to be written or read.
func (f *facts) each(p *packed) {
	packNum(p, &f.Root[0])
	packNum(p, &f.Root[1])
	packText(p, &f.Store)
	packText(p, &f.Rules)
	packNum(p, &f.Generation)
	packText(p, &f.Packs)
	packNum(p, &f.PackTime)
	packNum(p, &f.Modes.File)
	packNum(p, &f.Modes.Exec)
	packNum(p, &f.Modes.Dir)
	packNum(p, &f.Scan)
	packText(p, &f.Boot)
	packText(p, &f.Commit)
	has := f.Capture != nil
	if packFlag(p, &has); has {
		if f.Capture == nil {
			f.Capture = new(Capture)
		}
		f.Capture.each(p)
	}
	f.Git.each(p)
}

func (c *Capture) each(p *packed) {
	packText(p, &c.Commit)
	packText(p, &c.Tree)
	packText(p, &c.Head.Ref)
	packText(p, &c.Head.ID)
	packText(p, &c.Operation)
	packList(p, &c.NotCaptured, func(p *packed, m *Missing) {
		packText(p, &m.Path)
		packText(p, &m.Reason)
		packNum(p, &m.Size)
	})
	packList(p, &c.Special, packText)
	packList(p, &c.Nested, packText)
}

func (g *gitFacts) each(p *packed) {
	packText(p, &g.Head.Ref)
	packText(p, &g.Head.ID)
	packText(p, &g.Operation)
	packNum(p, &g.Signature.Size)
	packNum(p, &g.Signature.Seconds)
	packNum(p, &g.Signature.Nanos)
	packNum(p, &g.Signature.Inode)
	trailer := string(g.Signature.Trailer[:])
	packText(p, &trailer)
	if p.read {
		copy(g.Signature.Trailer[:], trailer)
	}
	packText(p, &g.Tree)
	packList(p, &g.Extra, func(p *packed, x *indexExtra) {
		path := string(x.Path)
		packText(p, &path)
		if p.read {
			x.Path = []byte(path)
		}
		packNum(p, &x.Stage)
		packNum(p, &x.Mode)
		packText(p, &x.ID)
		packNum(p, &x.Flags)
	})
	packFlag(p, &g.Sparse)
	packFlag(p, &g.Links)
	packText(p, &g.Degraded)
	packText(p, &g.Imported)
}

// packed is facts as they lie in the file: varints, and texts behind their lengths.
// Names are any bytes, which JSON could not hold; and the reflection that JSON
// takes is a hundredth of a capture that finds nothing changed.
type packed struct {
	b    []byte // written, or yet to read
	read bool
	bad  bool // something is missing
}

func pack(f *facts) []byte {
	p := &packed{b: make([]byte, 0, 1<<10)}
	f.each(p)
	return p.b
}

// unpack fails when b is not all there.
func unpack(b []byte, f *facts) bool {
	p := &packed{b: b, read: true}
	f.each(p)
	return !p.bad && len(p.b) == 0
}

func packNum[T ~int64 | ~uint64 | ~uint32 | ~uint8](p *packed, v *T) {
	if !p.read {
		p.b = binary.AppendUvarint(p.b, uint64(*v))
		return
	}
	n, size := binary.Uvarint(p.b)
	if size <= 0 {
		p.b, p.bad = nil, true
		return
	}
	*v, p.b = T(n), p.b[size:]
}

func packFlag(p *packed, v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	packNum(p, &n)
	*v = n != 0
}

func packText[T ~string](p *packed, v *T) {
	n := uint64(len(*v))
	if packNum(p, &n); !p.read {
		p.b = append(p.b, *v...)
		return
	}
	if n > uint64(len(p.b)) {
		p.b, p.bad = nil, true
		return
	}
	*v, p.b = T(p.b[:n]), p.b[n:]
}

func packList[T any](p *packed, v *[]T, one func(*packed, *T)) {
	n := uint64(len(*v))
	if packNum(p, &n); p.read {
		if n > uint64(len(p.b)) { // each takes a byte at least
			p.b, p.bad = nil, true
			return
		}
		*v = nil
		if n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		one(p, &(*v)[i])
	}
}
