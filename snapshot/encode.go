package snapshot

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// A row's canonical form is its key, then its fields in the order of their
// tags, each as tag, length, value; a field that says nothing is left out. A
// field added later gets the next tag, and rows without it keep their hash.
const (
	tagKind byte = iota + 1
	tagState
	tagAttempt
	tagIter
	tagDecl
	tagInput
	tagOut
	tagTree
	tagDeps
	tagAfter
	tagControl
	tagCarried

	tags // how many, and one
)

// zeroHash is the value of no hash.
var zeroHash = string(make([]byte, len(Hash{})))

var errNotCanonical = errors.New("not in canonical form")

// value appends the value of one field; nothing when it says nothing.
func (r *Row) value(b []byte, tag byte) []byte {
	switch tag {
	case tagKind:
		return append(b, r.Kind...)
	case tagState:
		return appendNumber(b, uint32(r.State))
	case tagAttempt:
		return appendNumber(b, r.Attempt)
	case tagIter:
		return appendNumber(b, r.Iter)
	case tagDecl:
		return appendHash(b, &r.Decl)
	case tagInput:
		return appendHash(b, &r.Input)
	case tagOut:
		return appendHash(b, &r.Out)
	case tagTree:
		b, err := hex.AppendDecode(b, []byte(r.Tree))
		if err != nil {
			panic("BUG: a row was not checked: tree " + r.Tree)
		}
		return b
	case tagDeps:
		for _, d := range r.Deps {
			b = appendText(b, d)
		}
		return b
	case tagAfter:
		return append(b, r.After...)
	case tagControl:
		return appendNumber(b, r.Control)
	case tagCarried:
		if r.Carried {
			return append(b, 1)
		}
		return b
	}
	panic("BUG: no field has this tag")
}

// setValue is the way back. An empty value is the field that says nothing.
func (r *Row) setValue(tag byte, v string) {
	switch tag {
	case tagKind:
		r.Kind = v
	case tagState:
		r.State = State(number(v))
	case tagAttempt:
		r.Attempt = number(v)
	case tagIter:
		r.Iter = number(v)
	case tagDecl:
		r.Decl = hashOf(v)
	case tagInput:
		r.Input = hashOf(v)
	case tagOut:
		r.Out = hashOf(v)
	case tagTree:
		r.Tree = hex.EncodeToString([]byte(v))
	case tagDeps:
		r.Deps = nil
		for v != "" {
			var d string
			d, v, _ = cutText(v)
			r.Deps = append(r.Deps, d)
		}
	case tagAfter:
		r.After = v
	case tagControl:
		r.Control = number(v)
	case tagCarried:
		r.Carried = v != ""
	}
}

// checkValue refuses every value but the one that value would write.
func checkValue(tag byte, v string) error {
	ok := v != ""
	switch tag {
	case tagState:
		ok = ok && canonicalNumber(v) && number(v) < uint32(len(states))
	case tagAttempt, tagIter, tagControl:
		ok = ok && canonicalNumber(v)
	case tagDecl, tagInput, tagOut:
		ok = len(v) == len(Hash{}) && v != zeroHash
	case tagDeps:
		ok = ok && sortedTexts(v)
	case tagCarried:
		ok = v == "\x01"
	}
	if !ok {
		return fmt.Errorf("field %d: %w", tag, errNotCanonical)
	}
	return nil
}

// sortedTexts tells that v is a list of texts, none empty, each after the one
// before.
func sortedTexts(v string) bool {
	last := ""
	for v != "" {
		d, rest, err := cutText(v)
		if err != nil || d <= last {
			return false
		}
		last, v = d, rest
	}
	return true
}

// encodeRow is the canonical form, with its length in front.
func encodeRow(r *Row) string {
	var scratch [512]byte
	return withLength(appendRow(scratch[:0], r))
}

// appendRow appends the canonical form.
func appendRow(b []byte, r *Row) []byte {
	b = appendText(b, r.Key)
	for tag := tagKind; tag < tags; tag++ {
		b = appendField(b, r, tag)
	}
	return b
}

func withLength(b []byte) string {
	var scratch [512]byte
	return string(append(binary.AppendUvarint(scratch[:0], uint64(len(b))), b...))
}

// appendField appends a field unless it says nothing.
func appendField(b []byte, r *Row, tag byte) []byte {
	before := len(b)
	b = append(b, tag, 0)
	b = r.value(b, tag)
	n := len(b) - before - 2
	switch {
	case n == 0:
		return b[:before]
	case n < 0x80:
		b[before+1] = byte(n)
		return b
	}
	v := slices.Clone(b[before+2:])
	return append(binary.AppendUvarint(b[:before+1], uint64(n)), v...)
}

// eachField walks over fields in ascending order of tags. Whether an empty value
// is allowed, is for the function to say.
func eachField(fields string, do func(tag byte, v string) error) error {
	for last := byte(0); fields != ""; {
		tag, v, rest, err := cutField(fields)
		if err == nil && tag <= last {
			err = errNotCanonical
		}
		if err == nil {
			err = do(tag, v)
		}
		if err != nil {
			return err
		}
		last, fields = tag, rest
	}
	return nil
}

// cutField takes a field off the front of s, which is not empty.
func cutField(s string) (tag byte, v, rest string, err error) {
	if tag = s[0]; tag == 0 || tag >= tags {
		return 0, "", "", errNotCanonical
	}
	v, rest, err = cutText(s[1:])
	return tag, v, rest, err
}

// checkRow finds the key of an encoded row, its length left off, and refuses
// all that encodeRow would not write.
func checkRow(body string) (key string, err error) {
	key, fields, err := cutText(body)
	if err == nil && key == "" {
		err = errors.New("row without a key")
	}
	if err != nil {
		return "", err
	}
	for last := byte(0); fields != ""; {
		tag, v, rest, err := cutField(fields)
		if err == nil && tag <= last {
			err = errNotCanonical
		}
		if err == nil {
			err = checkValue(tag, v)
		}
		if err != nil {
			return "", fmt.Errorf("row %.80q: %w", key, err)
		}
		last, fields = tag, rest
	}
	return key, nil
}

// stateOf reads the state of an encoded row that was checked.
func stateOf(encoded string) (state State) {
	for rest := fieldsOf(encoded); rest != "" && rest[0] <= tagState; {
		tag, v, after, err := cutField(rest)
		if err != nil {
			panic("BUG: a row was not checked: " + err.Error())
		}
		if tag == tagState {
			state = State(number(v))
		}
		rest = after
	}
	return state
}

// decodeRow reads an encoded row that was checked.
func decodeRow(encoded string) (r Row) {
	body, _, err := cutText(encoded)
	if err == nil {
		r.Key, body, err = cutText(body)
	}
	for err == nil && body != "" {
		var tag byte
		var v string
		if tag, v, body, err = cutField(body); err == nil {
			r.setValue(tag, v)
		}
	}
	if err != nil {
		panic("BUG: a row was not checked: " + err.Error())
	}
	return r
}

// MarshalBinary is the canonical form of the row, the same for equal rows only.
func (r Row) MarshalBinary() ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	return []byte(encodeRow(&r)), nil
}

// UnmarshalBinary reads what MarshalBinary writes, and nothing else.
func (r *Row) UnmarshalBinary(b []byte) error {
	encoded := string(b)
	body, rest, err := cutText(encoded)
	if err == nil && rest != "" {
		err = errNotCanonical
	}
	if err == nil {
		_, err = checkRow(body)
	}
	if err != nil {
		return fmt.Errorf("row: %w", err)
	}
	*r = decodeRow(encoded)
	return nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// cutText takes a text with its length off the front of s.
func cutText(s string) (text, rest string, err error) {
	if s != "" && s[0] < 0x80 { // nearly always
		if n := int(s[0]) + 1; n <= len(s) {
			return s[1:n], s[n:], nil
		}
		return "", "", errNotCanonical
	}
	n, s, err := cutNumber(s)
	if err != nil || n > uint64(len(s)) {
		return "", "", errNotCanonical
	}
	return s[:n], s[n:], nil
}

// cutNumber takes a number off the front of s, written as shortly as it can be.
func cutNumber(s string) (n uint64, rest string, err error) {
	for i := range min(len(s), binary.MaxVarintLen64) {
		c := s[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if c == 0 && i > 0 || i == binary.MaxVarintLen64-1 && c > 1 {
				break
			}
			return n, s[i+1:], nil
		}
	}
	return 0, "", errNotCanonical
}

// appendNumber writes nothing for zero.
func appendNumber(b []byte, n uint32) []byte {
	if n == 0 {
		return b
	}
	return binary.AppendUvarint(b, uint64(n))
}

func number(v string) uint32 {
	n, _, _ := cutNumber(v)
	return uint32(n)
}

func canonicalNumber(v string) bool {
	n, rest, err := cutNumber(v)
	return err == nil && rest == "" && n > 0 && n < 1<<32
}

func appendHash(b []byte, h *Hash) []byte {
	if h.IsZero() {
		return b
	}
	return append(b, h[:]...)
}

func hashOf(v string) (h Hash) {
	copy(h[:], v)
	return h
}
