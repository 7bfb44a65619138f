package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FromJSON is the value of a JSON document. A number without a point or an
// exponent is an integer, however large, and others are floats. A key that is
// there twice is an *Error, as is a float out of range; other errors are about
// the text, and name line and column.
func FromJSON(b []byte) (V, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("not JSON: the text is not UTF-8")
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(b, new(json.RawMessage)); errors.As(err, &syntax) {
		line, column := position(b, syntax.Offset)
		return nil, fmt.Errorf("not JSON: line %d, column %d: %w", line, column, err)
	} else if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	p := parser{json.NewDecoder(bytes.NewReader(b))}
	p.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// position is the line and column, in bytes, of the byte that ends at offset.
func position(b []byte, offset int64) (line, column int) {
	before := b[:max(0, offset-1)]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// parser reads a text that is known to be JSON.
type parser struct{ *json.Decoder }

func (p parser) value(depth int) (V, error) {
	if err := tooDeep(depth); err != nil {
		return nil, err
	}
	token, err := p.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return p.array(depth)
		}
		return p.object(depth)
	case json.Number:
		return parseNumber(token.String())
	}
	return token, nil // nil, a bool or a string
}

func (p parser) array(depth int) (V, error) {
	list := []V{}
	for p.More() {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, inItem(len(list), err)
		}
		list = append(list, v)
	}
	_, err := p.Token()
	return list, err
}

func (p parser) object(depth int) (V, error) {
	var entries []Entry
	for p.More() {
		key, err := p.Token()
		if err != nil {
			return nil, err
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, inKey(key.(string), err)
		}
		entries = append(entries, Entry{key.(string), v})
	}
	if _, err := p.Token(); err != nil {
		return nil, err
	}
	d, twice := sorted(entries)
	if twice != "" {
		return nil, problem("the key %s is there twice", twice)
	}
	return d, nil
}

func parseNumber(s string) (V, error) {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, nil
		}
		n, ok := new(big.Int).SetString(s, 10)
		if !ok {
			return nil, problem("%s is not a number", s)
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, problem("%s is out of range", s)
	}
	return f, nil
}
