package ignore

import "strings"

// A byteSet is the set of bytes that a bracket expression matches.
type byteSet [4]uint64

func (s *byteSet) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }
func (s *byteSet) add(b byte)      { s[b>>6] |= 1 << (b & 63) }

func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// addIf adds the bytes that satisfy in. Where case folds, names hold small
// letters only, and those whose capital satisfies in are added too.
func (s *byteSet) addIf(foldCase bool, in func(byte) bool) {
	for n := range 256 {
		b := byte(n)
		if in(b) || foldCase && isLower(b) && in(b-'a'+'A') {
			s.add(b)
		}
	}
}

// parseSet reads a bracket expression from after its "[", and returns how
// many bytes it takes, "]" included. ok is false when it does not end, or
// names a class that does not exist.
func parseSet(p string, foldCase bool) (set *byteSet, n int, ok bool) {
	at := func(i int) byte { // 0, which no pattern contains, past the end
		if i < len(p) {
			return p[i]
		}
		return 0
	}
	set = new(byteSet)
	i := 0
	negated := at(0) == '!' || at(0) == '^'
	if negated {
		i++
	}
	var prev byte // what a range may begin with, 0 for nothing
	for first := true; first || at(i) != ']'; first = false {
		c := at(i)
		switch {
		case c == 0:
			return nil, 0, false
		case c == '\\':
			i++
			if c = at(i); c == 0 {
				return nil, 0, false
			}
			set.add(c)
		case c == '-' && prev != 0 && at(i+1) != 0 && at(i+1) != ']':
			i++
			if at(i) == '\\' {
				i++
			}
			lo, hi := prev, at(i)
			if hi == 0 {
				return nil, 0, false
			}
			set.addIf(foldCase, func(b byte) bool { return lo <= b && b <= hi })
			c = 0
		case c == '[' && at(i+1) == ':':
			body, _, closed := strings.Cut(p[i+2:], "]")
			if !closed {
				return nil, 0, false
			}
			name, isClass := strings.CutSuffix(body, ":")
			if !isClass { // a "[" like any other byte
				set.add(c)
				break
			}
			in := classes[name]
			if in == nil {
				return nil, 0, false
			}
			set.addIf(foldCase, in)
			i += 2 + len(body)
			c = 0
		default:
			set.add(c)
		}
		prev = c
		i++
	}
	if negated {
		set.invert()
	}
	return set, i + 1, true
}

// classes are the POSIX classes as git has them: of ASCII, and without
// vertical tab and form feed among the spaces.
var classes = map[string]func(byte) bool{
	"alnum":  func(b byte) bool { return isLower(b) || isUpper(b) || isDigit(b) },
	"alpha":  func(b byte) bool { return isLower(b) || isUpper(b) },
	"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl":  func(b byte) bool { return b < ' ' || b == 0x7f },
	"digit":  isDigit,
	"graph":  isGraph,
	"lower":  isLower,
	"print":  func(b byte) bool { return isGraph(b) || b == ' ' },
	"punct":  func(b byte) bool { return isGraph(b) && !isLower(b) && !isUpper(b) && !isDigit(b) },
	"space":  func(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' },
	"upper":  isUpper,
	"xdigit": func(b byte) bool { return isDigit(b) || 'a' <= lower(b) && lower(b) <= 'f' },
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
func isGraph(b byte) bool { return '!' <= b && b <= '~' }
