package value

import (
	"crypto/sha256"
	"math"
	"math/big"
	"reflect"
)

// V is a canonical value, one of
//
//	nil, bool
//	int64       every integer it can hold
//	*big.Int    the other integers
//	float64     a finite number; 1.0 is not 1
//	string      text, or any bytes a program printed
//	[]byte
//	[]V
//	Dict
//	Ref, Output a task's output
//	Blob        a string or bytes kept elsewhere
//
// A value is never changed once made: parts of one may be parts of others. A V
// that holds anything else is a mistake of the program, and what is handed it
// panics.
type V any

// Ref stands for the output of a task that may not have run yet.
type Ref struct{ Task string }

// Output stands for the output of a task that has run: the hash of its
// encoding.
type Output struct{ Hash [32]byte }

// Blob stands for a string or bytes of Size bytes with that SHA-256.
type Blob struct {
	Hash [32]byte
	Size int64
	Text bool // a string
}

// Hash is the SHA-256 of b. The hash of a value is the hash of its encoding.
func Hash(b []byte) [32]byte { return sha256.Sum256(b) }

// HashOf is the hash of v.
func HashOf(v V) [32]byte {
	var room [512]byte
	return sha256.Sum256(Append(room[:0], v))
}

// Equal reports whether a and b are the same value.
func Equal(a, b V) bool {
	switch a := a.(type) {
	case []byte:
		b, ok := b.([]byte)
		return ok && string(a) == string(b)
	case *big.Int:
		b, ok := b.(*big.Int)
		return ok && a.Cmp(b) == 0
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case []V:
		b, ok := b.([]V)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case Dict:
		b, ok := b.(Dict)
		if !ok || len(a.entries) != len(b.entries) {
			return false
		}
		for i, e := range a.entries {
			if o := b.entries[i]; e.Key != o.Key || !Equal(e.Value, o.Value) {
				return false
			}
		}
		return true
	case nil, bool, int64, string, Ref, Output, Blob:
		return a == b
	}
	panic(alien(a))
}

// integer is the canonical form of n.
func integer(n *big.Int) V {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// number refuses the floats that are no numbers. JSON has no word for them, and
// a NaN is not even equal to itself.
func number(f float64) (V, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, problem("%v is not a number", f)
	}
	return f, nil
}

// kind is the word for what v is, with its article.
func kind(v V) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, *big.Int:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []byte:
		return "bytes"
	case []V:
		return "a list"
	case Dict:
		return "an object"
	case Ref, Output:
		return "the output of a task"
	case Blob:
		if v.Text {
			return "a string"
		}
		return "bytes"
	}
	panic(alien(v))
}

// alien is what to panic with when v is no value.
func alien(v any) string {
	return "BUG: a " + reflect.TypeOf(v).String() + " is not a canonical value"
}
