package value

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
)

// ErrEncoding: the bytes are not what Encode writes. They were damaged, or
// written by a newer program.
var ErrEncoding = errors.New("not the encoding of a value")

// Decode is the value that b encodes, and an ErrEncoding when there is none: of
// all bytes that could be read as some value, only what Encode writes is
// accepted. The value keeps no part of b.
func Decode(b []byte) (V, error) { return DecodeString(string(b)) }

// DecodeString is Decode of a string, of which the value may keep parts.
func DecodeString(s string) (V, error) {
	d := decoder{rest: s}
	v, err := d.value(0)
	if err == nil && len(d.rest) > 0 {
		err = d.bad("%d bytes too many", len(d.rest))
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

type decoder struct{ rest string }

func (d *decoder) bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrEncoding, fmt.Sprintf(format, args...))
}

// value reads one value. Values made here may wrap others around what came
// from outside, so they may be deeper.
func (d *decoder) value(depth int) (V, error) {
	if depth > 2*deepest {
		return nil, d.bad("nested too deeply")
	}
	tag, err := d.take(1)
	if err != nil {
		return nil, err
	}
	switch tag[0] {
	case tagNil:
		return nil, nil
	case tagFalse:
		return false, nil
	case tagTrue:
		return true, nil
	case tagInt:
		n, err := d.word()
		return int64(n), err
	case tagPlus, tagMinus:
		return d.big(tag[0] == tagMinus)
	case tagFloat:
		return d.float()
	case tagString:
		return d.text()
	case tagBytes:
		b, err := d.text()
		return []byte(b), err
	case tagList:
		return d.list(depth)
	case tagDict:
		return d.dict(depth)
	case tagRef:
		task, err := d.text()
		return Ref{Task: task}, err
	case tagOutput:
		hash, err := d.hash()
		return Output{Hash: hash}, err
	case tagText, tagBlob:
		return d.blob(tag[0] == tagText)
	}
	return nil, d.bad("unknown tag %#x", tag[0])
}

func (d *decoder) list(depth int) (V, error) {
	n, err := d.count()
	if err != nil {
		return nil, err
	}
	list := make([]V, n)
	for i := range list {
		if list[i], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (d *decoder) dict(depth int) (V, error) {
	n, err := d.count()
	if err != nil || n == 0 {
		return Dict{}, err
	}
	entries := make([]Entry, n)
	for i := range entries {
		e := &entries[i]
		if e.Key, err = d.text(); err != nil {
			return nil, err
		}
		if i > 0 && e.Key <= entries[i-1].Key {
			return nil, d.bad("keys out of order")
		}
		if goodKey(e.Key) != nil {
			return nil, d.bad("a key that is not text")
		}
		if e.Value, err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return Dict{entries}, nil
}

func (d *decoder) big(negative bool) (V, error) {
	b, err := d.text()
	if err != nil {
		return nil, err
	}
	n := new(big.Int).SetBytes([]byte(b))
	if negative {
		n.Neg(n)
	}
	if n.IsInt64() || b[0] == 0 {
		return nil, d.bad("an integer in too many bytes")
	}
	return n, nil
}

func (d *decoder) float() (V, error) {
	bits, err := d.word()
	if err != nil {
		return nil, err
	}
	f, err := number(math.Float64frombits(bits))
	if err != nil {
		return nil, d.bad("%v", err)
	}
	return f, nil
}

func (d *decoder) blob(text bool) (V, error) {
	hash, err := d.hash()
	if err != nil {
		return nil, err
	}
	size, err := d.word()
	if err == nil && size > math.MaxInt64 {
		err = d.bad("a negative size")
	}
	return Blob{Hash: hash, Size: int64(size), Text: text}, err
}

// text reads a length and that many bytes.
func (d *decoder) text() (string, error) {
	n, err := d.count()
	if err != nil {
		return "", err
	}
	return d.take(n)
}

// count reads a length or a count. Whatever it counts takes a byte at least, so
// it is never more than there are bytes.
func (d *decoder) count() (int, error) {
	n, size := uvarint(d.rest)
	if size <= 0 || size > 1 && d.rest[size-1] == 0 {
		return 0, d.bad("a bad length")
	}
	d.rest = d.rest[size:]
	if n > uint64(len(d.rest)) {
		return 0, d.bad("cut short")
	}
	return int(n), nil
}

// uvarint is that of encoding/binary.
func uvarint(s string) (n uint64, size int) {
	var room [binary.MaxVarintLen64]byte
	return binary.Uvarint(room[:copy(room[:], s)])
}

func (d *decoder) word() (uint64, error) {
	var b [8]byte
	s, err := d.take(len(b))
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:]), err
}

func (d *decoder) hash() (h [32]byte, err error) {
	b, err := d.take(len(h))
	copy(h[:], b)
	return h, err
}

func (d *decoder) take(n int) (string, error) {
	if n > len(d.rest) {
		return "", d.bad("cut short")
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s, nil
}
