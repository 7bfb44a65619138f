package value

import (
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON is v as people and programs read it: one line, keys in order, integers
// exact, and a float never looks like an integer. FromJSON reads it back as it
// was, except for what JSON has no word for:
//
//	bytes, and strings that are no UTF-8   {"$bytes": "<base64>"}
//	Blob                                   {"$blob": "<sha256>", "size": <n>}
//	Ref                                    {"$task": "<id>"}
//	Output                                 {"$output": "<sha256>"}
func JSON(v V) []byte { return appendJSON(nil, v) }

func appendJSON(dst []byte, v V) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case *big.Int:
		return v.Append(dst, 10)
	case float64:
		return appendNumber(dst, v)
	case string:
		if !utf8.ValidString(v) {
			return appendBase64(dst, []byte(v))
		}
		return appendString(dst, v)
	case []byte:
		return appendBase64(dst, v)
	case []V:
		return appendArray(dst, v)
	case Dict:
		return appendObject(dst, v)
	case Ref:
		return append(appendString(append(dst, `{"$task":`...), v.Task), '}')
	case Output:
		return append(hex.AppendEncode(append(dst, `{"$output":"`...), v.Hash[:]), `"}`...)
	case Blob:
		dst = hex.AppendEncode(append(dst, `{"$blob":"`...), v.Hash[:])
		dst = strconv.AppendInt(append(dst, `","size":`...), v.Size, 10)
		return append(dst, '}')
	}
	panic(alien(v))
}

func appendArray(dst []byte, list []V) []byte {
	dst = append(dst, '[')
	for i, item := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, item)
	}
	return append(dst, ']')
}

func appendObject(dst []byte, d Dict) []byte {
	dst = append(dst, '{')
	for i, e := range d.entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, e.Key), ':')
		dst = appendJSON(dst, e.Value)
	}
	return append(dst, '}')
}

// appendNumber writes the shortest digits that read back as f, and a point
// where there would be none.
func appendNumber(dst []byte, f float64) []byte {
	digits := strconv.FormatFloat(f, 'g', -1, 64)
	dst = append(dst, digits...)
	if !strings.ContainsAny(digits, ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, `{"$bytes":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, b), `"}`...)
}

const hexDigits = "0123456789abcdef"

// appendString writes s between quotes. Only what JSON can't hold is escaped,
// and the two line ends that JavaScript can't. Bytes that are no UTF-8 become
// U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r < 0x20 || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&0xf])
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
