package object

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"sync"
)

// An ID names an object by the SHA-1 of its kind, size and content.
type ID [20]byte

// ParseID reads the forty hexadecimal digits that String writes.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return ID{}, fmt.Errorf("object id %q: want 40 hexadecimal digits", s)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("object id %q: want 40 hexadecimal digits", s)
	}
	return id, nil
}

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id is the zero ID, which names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// A Kind says what an object is. The values are git's pack numbers.
type Kind uint8

const (
	Commit Kind = 1
	Tree   Kind = 2
	Blob   Kind = 3
	Tag    Kind = 4
)

// In a pack an object may also stand as the difference to another.
const (
	ofsDelta Kind = 6
	refDelta Kind = 7
)

var kindNames = [...]string{Commit: "commit", Tree: "tree", Blob: "blob", Tag: "tag"}

func (k Kind) String() string {
	if k.valid() {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

func (k Kind) valid() bool { return k >= Commit && k <= Tag }

func parseKind(s string) (Kind, bool) {
	for k := Commit; k <= Tag; k++ {
		if kindNames[k] == s {
			return k, true
		}
	}
	return 0, false
}

// A Hasher computes the id of one object after another from its bytes.
// It is not safe for concurrent use.
type Hasher struct {
	sha hash.Hash
	buf [32]byte
}

// NewHasher returns a Hasher. Call Reset before writing.
func NewHasher() *Hasher { return &Hasher{sha: sha1.New()} }

// Reset begins an object of that kind with size bytes of content.
func (h *Hasher) Reset(kind Kind, size int64) {
	h.sha.Reset()
	b := append(h.buf[:0], kind.String()...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, size, 10)
	h.sha.Write(append(b, 0))
}

// Write adds content. It never fails.
func (h *Hasher) Write(p []byte) (int, error) { return h.sha.Write(p) }

// Sum returns the id of what was written since Reset.
func (h *Hasher) Sum() ID { return ID(h.sha.Sum(h.buf[:0])) }

var hashers = sync.Pool{New: func() any { return NewHasher() }}

// Sum returns the id of an object.
func Sum(kind Kind, data []byte) ID {
	h := hashers.Get().(*Hasher)
	defer hashers.Put(h)
	h.Reset(kind, int64(len(data)))
	h.Write(data)
	return h.Sum()
}
