package ignore

import "strings"

// A glob matches one name. Names come folded where case folds.
type glob struct {
	kind kind
	lit  string // of globLiteral, globPrefix, globSuffix
	ops  []op   // of globOps
}

type kind uint8

const (
	globOps     kind = iota
	globLiteral      // lit
	globPrefix       // lit*
	globSuffix       // *lit
)

// An op matches one byte: one of set, or b when set is nil. A star matches
// any number of any bytes.
type op struct {
	star bool
	b    byte
	set  *byteSet
}

// match takes time in proportion to the name times the glob, never more: of
// several stars only the last is ever tried again, since a longer match of an
// earlier one leaves the later ones less to choose from.
func (g *glob) match(name string) bool {
	switch g.kind {
	case globLiteral:
		return name == g.lit
	case globPrefix:
		return strings.HasPrefix(name, g.lit)
	case globSuffix:
		return strings.HasSuffix(name, g.lit)
	}
	i, j := 0, 0         // next op, next byte
	retry, from := -1, 0 // the op after the last star, where it was last tried
	for j < len(name) {
		switch {
		case i < len(g.ops) && g.ops[i].star:
			i++
			retry, from = i, j
		case i < len(g.ops) && g.ops[i].matches(name[j]):
			i++
			j++
		case retry < 0:
			return false
		default:
			from++
			i, j = retry, from
		}
	}
	for i < len(g.ops) && g.ops[i].star {
		i++
	}
	return i == len(g.ops)
}

func (o *op) matches(b byte) bool {
	if o.set != nil {
		return o.set.has(b)
	}
	return o.b == b
}

// newGlob recognises the shapes that need no search.
func newGlob(ops []op) glob {
	plain := ops
	k := globLiteral
	switch n := len(ops); {
	case n > 0 && ops[0].star:
		plain, k = ops[1:], globSuffix
	case n > 0 && ops[n-1].star:
		plain, k = ops[:n-1], globPrefix
	}
	lit := make([]byte, 0, len(plain))
	for _, o := range plain {
		if o.star || o.set != nil {
			return glob{ops: ops}
		}
		lit = append(lit, o.b)
	}
	return glob{kind: k, lit: string(lit)}
}
