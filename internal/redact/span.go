package redact

import (
	"cmp"
	"slices"
	"strings"
)

const (
	marker     = "[redacted]"
	markerOpen = "[redacted:"
)

// span is a part of a text that is to be replaced.
type span struct {
	from, to int
	kind     string // of the secret; "" when it isn't known
	quote    string // to put around the marker, where the secret stood without
}

// replace puts markers in the place of spans. Spans that overlap become one.
func (r *Redactor) replace(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(a.from-b.from, b.to-a.to, strings.Compare(a.kind, b.kind))
	})
	var out strings.Builder
	done := 0
	for i := 0; i < len(spans); {
		whole := spans[i]
		for i++; i < len(spans) && spans[i].from < whole.to; i++ {
			whole.to = max(whole.to, spans[i].to)
			whole.kind = cmp.Or(whole.kind, spans[i].kind)
		}
		out.WriteString(s[done:whole.from])
		out.WriteString(whole.quote)
		if old := s[whole.from:whole.to]; isMarker(old) {
			out.WriteString(old)
		} else {
			out.WriteString(r.marker(whole.kind))
		}
		out.WriteString(whole.quote)
		done = whole.to
	}
	out.WriteString(s[done:])
	return out.String()
}

// marker is what stands for a secret of a kind. It never contains a secret.
func (r *Redactor) marker(kind string) string {
	if kind == "" {
		return marker
	}
	m := markerOpen + kind + "]"
	for _, n := range r.needles {
		if strings.Contains(m, n) {
			return marker
		}
	}
	return m
}

// isMarker reports whether s is a marker and nothing else.
func isMarker(s string) bool {
	if s == marker {
		return true
	}
	kind, ok := strings.CutPrefix(s, markerOpen)
	if !ok {
		return false
	}
	kind, ok = strings.CutSuffix(kind, "]")
	return ok && kind != "" && run(kind, lower|dash) == len(kind)
}

// class is a set of ASCII characters.
type class uint16

const (
	lower class = 1 << iota
	upper
	digit
	dash
	underscore
	dot
	slash
	plus
	equals
	tilde
	percent
	blank
	newline

	alnum  = lower | upper | digit
	word   = alnum | underscore
	base64 = alnum | slash | plus
	url64  = word | dash
	space  = blank | newline
)

var classes = func() (of [256]class) {
	for c := 'a'; c <= 'z'; c++ {
		of[c] = lower
	}
	for c := 'A'; c <= 'Z'; c++ {
		of[c] = upper
	}
	for c := '0'; c <= '9'; c++ {
		of[c] = digit
	}
	of['-'], of['_'], of['.'], of['/'] = dash, underscore, dot, slash
	of['+'], of['='], of['~'], of['%'] = plus, equals, tilde, percent
	of[' '], of['\t'], of['\n'], of['\r'] = blank, blank, newline, newline
	return of
}()

func is(c byte, of class) bool { return classes[c]&of != 0 }

// run is how many bytes at the beginning of s are of a class.
func run(s string, of class) int {
	for i := range len(s) {
		if !is(s[i], of) {
			return i
		}
	}
	return len(s)
}

// boundary reports whether a word can begin at s[i].
func boundary(s string, i int) bool { return i == 0 || !is(s[i-1], word) }
