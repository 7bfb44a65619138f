package redact

import (
	"slices"
	"strings"
)

// assignments finds what is given to secret names: NAME=value, name: value,
// name := "value", "name": "value", a header to the end of its line.
func assignments(s string) (found []span) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '=' && c != ':' {
			continue
		}
		a, past := operator(s, i)
		if !a.assigns {
			i = past - 1
			continue
		}
		a.name, a.nameQuote, a.tight = nameBefore(s, i-a.before)
		i = past - 1
		if a.name == "" || !secretName(a.name) && !secretWhenText(a.name) {
			continue
		}
		v, ok := a.value(s, past)
		if ok {
			found = append(found, v)
		}
		i = max(i, v.to-1)
	}
	return found
}

// assignment is a name and the sign after it.
type assignment struct {
	name      string
	nameQuote string // what closes the name: "", `"`, `\"`, …
	tight     bool   // no space before the sign
	colon     bool
	assigns   bool
	before    int // signs that belong to it before the one found
}

// operator reads the sign at s[i], which is a '=' or a ':', and tells where it
// ends.
func operator(s string, i int) (a assignment, past int) {
	next := byte(0)
	if i+1 < len(s) {
		next = s[i+1]
	}
	switch {
	case s[i] == ':' && next == '=':
		return assignment{assigns: true}, i + 2
	case s[i] == ':' && next == ':':
		return assignment{}, i + 2
	case s[i] == ':':
		return assignment{assigns: true, colon: true}, i + 1
	case next == '=':
		return assignment{}, i + 2
	case i > 0 && strings.IndexByte("!<>", s[i-1]) >= 0:
		return assignment{}, i + 1
	}
	a = assignment{assigns: true}
	if i > 0 && strings.IndexByte("?+", s[i-1]) >= 0 {
		a.before = 1
	}
	if next == '>' {
		return a, i + 2
	}
	return a, i + 1
}

// Names are read no further back than this, which keeps the time linear.
const (
	longestName = 80
	longestGap  = 8
)

// nameBefore reads the name that ends before s[i]. The name of env["NAME"] is
// NAME.
func nameBefore(s string, i int) (name, quote string, tight bool) {
	end := i
	for end > 0 && i-end < longestGap && is(s[end-1], blank) {
		end--
	}
	tight = end == i
	if end > 1 && s[end-1] == ']' && isQuote(s[end-2]) {
		end--
	}
	if end > 0 && isQuote(s[end-1]) {
		from := end - 1
		for from > 0 && end-from < longestGap && s[from-1] == '\\' {
			from--
		}
		quote, end = s[from:end], from
	}
	from := end
	for from > 0 && end-from < longestName && is(s[from-1], word|dash|dot) {
		from--
	}
	return s[from:end], quote, tight
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// value finds the secret after the sign, which ends before s[i].
func (a assignment) value(s string, i int) (span, bool) {
	from := i
	from += run(s[from:], blank)
	a.tight = a.tight && from == i
	if open := quoteAt(s, from); open != "" {
		v := span{from: from + len(open)}
		v.to = v.from + quoted(s[v.from:], open)
		return v, worthHiding(s[v.from:v.to])
	}
	if !secretName(a.name) {
		return span{}, false
	}
	switch {
	case a.colon && a.nameQuote == "" && headerName(a.name):
		return a.header(s, from)
	case a.nameQuote != "":
		return a.literal(s, from)
	case a.tight && !a.colon:
		return a.tightWord(s, from)
	case a.tight:
		return span{}, false // user:password is no secret's name, nor is a label
	}
	return a.looseWord(s, from)
}

// header goes to the end of the line, or of the string the header stands in.
func (a assignment) header(s string, from int) (span, bool) {
	v := span{from: from, to: from + upTo(s[from:], "\r\n\"'`")}
	for v.to > v.from && (s[v.to-1] == '\\' || s[v.to-1] == ' ') {
		v.to-- // of an escaped quote or line end
	}
	return v, worthHiding(s[v.from:v.to])
}

// literal is a number or so in a piece of JSON, and becomes a string.
func (a assignment) literal(s string, from int) (span, bool) {
	v := span{from: from, to: from + upTo(s[from:], " \t\r\n,;)}]\"'`\\"), quote: a.nameQuote}
	text := s[v.from:v.to]
	return v, text != "" && (is(text[0], digit) || text[0] == '-') && worthHiding(text)
}

// tightWord is what a shell, an .ini file or a query has after NAME=.
func (a assignment) tightWord(s string, from int) (span, bool) {
	stops := " \t\r\n\"'`;&|<>)}"
	if a.name != strings.ToUpper(a.name) {
		stops += "," // f(token=a, b): of a variable of the environment it is a part
	}
	if strings.HasPrefix(s[from:], "$(") || strings.HasPrefix(s[from:], "${") {
		return span{}, false
	}
	v := span{from: from, to: from + upTo(s[from:], stops+"(")}
	called := v.to < len(s) && s[v.to] == '('
	for v.to > v.from && s[v.to-1] == '\\' {
		v.to--
	}
	return v, !called && worthHiding(s[v.from:v.to])
}

// looseWord is the one word on the rest of a line. More words are prose, and
// punctuation is code.
func (a assignment) looseWord(s string, from int) (span, bool) {
	to := from + upTo(s[from:], " \t\r\n()[]{};,<>|&\"'`")
	if strings.HasPrefix(s[from:], markerOpen[:len(markerOpen)-1]) {
		return span{}, false
	}
	rest := s[to:]
	rest = rest[run(rest, blank):]
	if rest != "" && strings.IndexByte("\r\n#", rest[0]) < 0 {
		return span{}, false
	}
	return span{from: from, to: to}, worthHiding(s[from:to])
}

// quoteAt returns the quotation mark at s[i] with the backslashes before it,
// or "".
func quoteAt(s string, i int) string {
	end := i
	for end < len(s) && end-i < longestGap && s[end] == '\\' {
		end++
	}
	if end < len(s) && isQuote(s[end]) {
		return s[i : end+1]
	}
	return ""
}

// quoted is the length of what stands before the closing mark, which looks
// like the opening one. Where there is none, what was quoted has been cut off.
func quoted(s, open string) int {
	depth, mark := len(open)-1, open[len(open)-1]
	slashes := 0
	for i := range len(s) {
		switch {
		case s[i] == '\\':
			slashes++
			continue
		case s[i] == mark && (slashes == depth || depth == 0 && slashes%2 == 0 || slashes < depth):
			return i - min(slashes, depth)
		}
		slashes = 0
	}
	return len(s)
}

// upTo is how far it is to the first of stops, or to the end.
func upTo(s, stops string) int {
	if i := strings.IndexAny(s, stops); i >= 0 {
		return i
	}
	return len(s)
}

// plainWords stand where a value would, and hide nothing.
var plainWords = []string{
	"", "none", "null", "nil", "true", "false", "undefined", "string", "str", "text", "number", "int", "integer",
	"bool", "boolean", "any", "bytes", "object", "required", "optional", "empty", "yes", "no", "on", "off", "unset", "void",
}

// worthHiding reports whether a text can be a secret: it is no marker, nothing
// that only says where the secret is, and no word of a language.
func worthHiding(value string) bool {
	return !isMarker(value) && !reference(value) && strings.Trim(value, "*.") != "" &&
		!slices.Contains(plainWords, strings.ToLower(value))
}

// reference reports whether a value is a variable to be filled in, after the
// scheme of a header or alone.
func reference(value string) bool {
	if scheme, rest, ok := strings.Cut(value, " "); ok {
		switch strings.ToLower(scheme) {
		case "bearer", "basic", "token":
			value = rest
		}
	}
	for _, ends := range [][2]string{{"${", "}"}, {"$(", ")"}, {"{{", "}}"}, {"<", ">"}} {
		inner, ok := strings.CutPrefix(value, ends[0])
		if ok && strings.Index(inner, ends[1]) == len(inner)-len(ends[1]) {
			return true
		}
	}
	name, ok := strings.CutPrefix(value, "$")
	return ok && name != "" && run(name, upper|digit|underscore) == len(name) && !is(name[0], digit)
}
