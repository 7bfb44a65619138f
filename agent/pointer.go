package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
)

// Pointer is a place in a conversation: everything up to and with Entry.
type Pointer struct {
	Agent      string
	Session    string
	Transcript string // path; empty where the client keeps no file
	Entry      string // last one that belongs to it; empty: nothing does
	Before     string // first one that does not, where only that is known
	Offset     int64  // what of the file belongs to it
	Prefix     string // SHA-256 of that, in hex: the file can be known again
}

// At is the pointer to a cutting of a transcript that is read from r.
func (p Pointer) At(c Cutting, r io.ReaderAt) (Pointer, error) {
	p.Entry, p.Before, p.Offset = c.Keep.ID, "", c.Offset
	sum, err := prefix(r, c.Offset)
	p.Prefix = sum
	return p, err
}

// End is the pointer to the end of what has been read, of which next is the
// offset.
func (p Pointer) End(entries []Entry, next int64, r io.ReaderAt) (Pointer, error) {
	live, err := Live(p.Agent, entries)
	if err != nil {
		return p, err
	}
	c := cutting(live, len(live)-1, true)
	c.Offset = next
	return p.At(c, r)
}

// Holds tells whether the transcript still begins with what the pointer was
// made from.
func (p Pointer) Holds(r io.ReaderAt) (bool, error) {
	sum, err := prefix(r, p.Offset)
	return sum == p.Prefix, err
}

// prefix digests the beginning of a file; a file that is shorter has another
// digest.
func prefix(r io.ReaderAt, n int64) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, n)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Drift is what became of a conversation since a pointer was made.
type Drift string

// The ways of a conversation.
const (
	Same     Drift = "same"
	Grown    Drift = "grown"
	Rewound  Drift = "rewound"  // inside the client: it went on from an earlier entry
	Replaced Drift = "replaced" // the file is another one, or was shortened
)

// Drifted compares two pointers to a conversation. Entries are those of the
// transcript that now points into. When it was rewound, to is the last entry
// that both have; empty where it is in another file, or there is none.
func Drifted(then, now Pointer, entries []Entry) (d Drift, to string, err error) {
	live, err := Live(now.Agent, entries)
	if err != nil {
		return "", "", err
	}
	switch base := baseOf(entries); {
	case then.Session != now.Session:
		return Replaced, "", nil
	case base != nil && then.Transcript != now.Transcript && base.Offset < then.Offset:
		return Rewound, "", nil
	case base != nil && then.Transcript != now.Transcript:
		return Grown, "", nil
	case now.Offset < then.Offset:
		return Replaced, "", nil
	case then.Entry == now.Entry && then.Offset == now.Offset && then.Prefix == now.Prefix:
		return Same, then.Entry, nil
	case then.Entry == "" || has(live, then.Entry):
		return Grown, then.Entry, nil
	}
	var before []Entry
	for _, e := range entries {
		if e.Offset < then.Offset {
			before = append(before, e)
		}
	}
	was, err := Live(now.Agent, before)
	if err != nil {
		return "", "", err
	}
	d, to = rewound(was, live, entries, then)
	return d, to, nil
}

// rewound: the last entry of what was there is not in the conversation. A
// client leaves entries aside without any rewind; it was one if something that
// had been said is gone, and the client says so or a person went on.
func rewound(was, live, entries []Entry, then Pointer) (d Drift, to string) {
	if !has(was, then.Entry) {
		return Replaced, ""
	}
	gone := slices.IndexFunc(was, func(e Entry) bool { return e.Kind != Aside && !has(live, e.ID) })
	if gone < 0 {
		return Grown, then.Entry
	}
	for _, e := range was[:gone] {
		if has(live, e.ID) {
			to = e.ID
		}
	}
	later := func(e Entry) bool { return e.Offset >= then.Offset && (e.Kind == Said || e.Kind == Cut) }
	if slices.ContainsFunc(live, later) || slices.ContainsFunc(entries, func(e Entry) bool { return e.Kind == Cut && later(e) }) {
		return Rewound, to
	}
	return Grown, to
}

func has(entries []Entry, id string) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.ID == id })
}

func baseOf(entries []Entry) *Base {
	for _, e := range entries {
		if e.Base != nil {
			return e.Base
		}
	}
	return nil
}
