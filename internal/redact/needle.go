package redact

import (
	b64 "encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// shortest is the length below which a secret, or a form of it, is not looked
// for.
const shortest = 4

// add learns a secret in all the forms it may be met in.
func (r *Redactor) add(secret string) {
	if len(secret) < shortest || strings.Contains(quote(marker), secret) {
		return
	}
	if n, ok := numberOf(secret); ok {
		r.numbers[n] = true
	}
	forms := []string{secret, valid(secret)}
	for range 2 { // JSON, and JSON within JSON
		for _, f := range forms {
			forms = append(forms, escaped(f)...)
		}
		slices.Sort(forms)
		forms = slices.Compact(forms)
	}
	forms = append(forms, url.QueryEscape(secret), url.PathEscape(secret))
	for _, e := range []*b64.Encoding{b64.RawStdEncoding, b64.RawURLEncoding} {
		forms = append(forms, e.EncodeToString([]byte(secret)))
	}
	for _, f := range forms {
		if len(f) >= shortest && !strings.Contains(quote(marker), f) && !slices.Contains(r.needles, f) {
			r.needles = append(r.needles, f)
		}
	}
	slices.Sort(r.needles)
}

// valid is how a string comes out of a JSON document.
func valid(s string) (out string) {
	if err := json.Unmarshal([]byte(quote(s)), &out); err != nil {
		panic(fmt.Sprintf("BUG: a quoted string does not parse: %v", err))
	}
	return out
}

// escaped are the ways in which JSON writers put a string between quotes.
func escaped(s string) []string {
	inner := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	plain := inner(quote(s))
	html, _ := json.Marshal(s) // a string can't fail
	ascii := new(strings.Builder)
	for _, c := range plain {
		switch {
		case c < 0x80:
			ascii.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(ascii, `\u%04x`, c)
		default:
			c -= 0x10000
			fmt.Fprintf(ascii, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		}
	}
	return []string{plain, inner(string(html)), ascii.String(), strings.ReplaceAll(plain, "/", `\/`)}
}

// exact finds the secrets the caller has named.
func (r *Redactor) exact(s string) (found []span) {
	for _, n := range r.needles {
		for i := range every(s, n) {
			found = append(found, span{from: i, to: i + len(n)})
		}
	}
	return found
}

// secretNumber reports whether a JSON number is, or shows, a secret.
func (r *Redactor) secretNumber(literal string) bool {
	for _, needle := range r.needles {
		if strings.Contains(literal, needle) {
			return true
		}
	}
	if len(r.numbers) == 0 {
		return false
	}
	n, ok := numberOf(literal)
	return ok && r.numbers[n]
}

// number is a decimal number without its sign: digits × 10^exp, with no zero
// at either end of digits.
type number struct {
	digits string
	exp    int
}

// numberOf reads a number as JSON writes it.
func numberOf(s string) (number, bool) {
	if !isJSON(s) || !is(s[len(s)-1], digit) {
		return number{}, false
	}
	s = strings.TrimPrefix(s, "-")
	if !is(s[0], digit) {
		return number{}, false
	}
	mantissa, exp, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	n := number{digits: whole + fraction, exp: -len(fraction)}
	if exp != "" {
		var e int
		if _, err := fmt.Sscanf(exp, "%d", &e); err != nil {
			return number{}, false // beyond what any secret has
		}
		n.exp += e
	}
	trimmed := strings.TrimRight(n.digits, "0")
	n.exp += len(n.digits) - len(trimmed)
	n.digits = strings.TrimLeft(trimmed, "0")
	return n, n.digits != ""
}
