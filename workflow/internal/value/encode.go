package value

import (
	"encoding/binary"
	"math"
	"math/big"
)

// Each value is a tag and what the tag says: eight bytes, big endian, of an
// integer or float; a length and that many bytes; a count and that many values
// or keys and values. Lengths and counts are varints. The tags are part of
// every digest ever recorded: never change one, only add.
const (
	tagNil    = 'n'
	tagFalse  = 'f'
	tagTrue   = 't'
	tagInt    = 'i'
	tagPlus   = '+' // integers outside of int64: their magnitude, no leading zero
	tagMinus  = '-'
	tagFloat  = 'd'
	tagString = 's'
	tagBytes  = 'b'
	tagList   = 'l'
	tagDict   = 'm'
	tagRef    = 'r'
	tagOutput = 'o'
	tagText   = 'T' // an interned string: hash, size
	tagBlob   = 'B' // interned bytes
)

// Encode is the canonical encoding of v.
func Encode(v V) []byte { return Append(make([]byte, 0, 128), v) }

// Append appends the encoding of v to dst.
func Append(dst []byte, v V) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, tagNil)
	case bool:
		if v {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case int64:
		return AppendInt(dst, v)
	case string:
		return append(appendLen(dst, tagString, len(v)), v...)
	case []V:
		dst = AppendList(dst, len(v))
		for _, item := range v {
			dst = Append(dst, item)
		}
		return dst
	case Dict: // AppendDict, but calls in a circle would take dst to the heap
		dst = appendLen(dst, tagDict, len(v.entries))
		for _, e := range v.entries {
			dst = append(binary.AppendUvarint(dst, uint64(len(e.Key))), e.Key...)
			dst = Append(dst, e.Value)
		}
		return dst
	case Ref:
		return append(appendLen(dst, tagRef, len(v.Task)), v.Task...)
	case Output:
		return append(append(dst, tagOutput), v.Hash[:]...)
	case Blob:
		return appendBlob(dst, v)
	case float64:
		return appendFloat(dst, v)
	case []byte:
		return append(appendLen(dst, tagBytes, len(v)), v...)
	case *big.Int:
		return appendBig(dst, v)
	}
	panic(alien(v))
}

// AppendList appends the encoding of a list of n values but for the values, which
// are to be appended next.
func AppendList(dst []byte, n int) []byte { return appendLen(dst, tagList, n) }

// AppendText appends the encoding of strings, one after the other.
func AppendText(dst []byte, texts ...string) []byte {
	for _, s := range texts {
		dst = append(appendLen(dst, tagString, len(s)), s...)
	}
	return dst
}

// AppendInt appends the encoding of an integer.
func AppendInt(dst []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, tagInt), uint64(n))
}

// AppendDict appends the encoding of an object.
func AppendDict(dst []byte, d Dict) []byte {
	dst = appendLen(dst, tagDict, len(d.entries))
	for _, e := range d.entries {
		dst = append(binary.AppendUvarint(dst, uint64(len(e.Key))), e.Key...)
		dst = Append(dst, e.Value)
	}
	return dst
}

func appendLen(dst []byte, tag byte, n int) []byte {
	return binary.AppendUvarint(append(dst, tag), uint64(n))
}

func appendBlob(dst []byte, b Blob) []byte {
	tag := byte(tagBlob)
	if b.Text {
		tag = tagText
	}
	dst = append(append(dst, tag), b.Hash[:]...)
	return binary.BigEndian.AppendUint64(dst, uint64(b.Size))
}

func appendFloat(dst []byte, f float64) []byte {
	if _, err := number(f); err != nil {
		panic("BUG: a value may not hold NaN or an infinity")
	}
	return binary.BigEndian.AppendUint64(append(dst, tagFloat), math.Float64bits(f))
}

func appendBig(dst []byte, n *big.Int) []byte {
	if n.IsInt64() {
		return AppendInt(dst, n.Int64())
	}
	tag := byte(tagPlus)
	if n.Sign() < 0 {
		tag = tagMinus
	}
	b := n.Bytes()
	return append(appendLen(dst, tag, len(b)), b...)
}
