package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A Redactor redacts. It may be used by many goroutines at once.
type Redactor struct {
	needles []string
	numbers map[number]bool
}

// New returns a Redactor that also hides the given secrets, as they are and as
// JSON, URLs and base64 write them, in text, in keys and in numbers. Spaces
// around a secret do not belong to it. One shorter than four bytes, or that is
// part of the marker, is not hidden: it would be found everywhere.
func New(secrets ...string) *Redactor {
	r := &Redactor{numbers: map[number]bool{}}
	for _, s := range secrets {
		r.add(strings.TrimSpace(s))
	}
	return r
}

// Value redacts a JSON-like value and reports whether anything changed. A
// value that did not change is returned as it came. In one that did, numbers
// are [json.Number], and whatever was redacted is a string. A value that JSON
// can't hold becomes a marker.
func (r *Redactor) Value(v any) (any, bool) {
	switch v := v.(type) {
	case nil:
		return nil, false
	case string:
		return r.within(v)
	case json.RawMessage:
		out, changed, err := r.JSON(v)
		if err != nil {
			return marker, true
		}
		return json.RawMessage(out), changed
	case []byte:
		return r.Bytes(v)
	}
	raw, err := encode(v)
	if err != nil {
		return marker, true
	}
	out, changed := r.Text(string(raw))
	if !changed {
		return v, false
	}
	var redacted any
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&redacted); err != nil {
		panic(fmt.Sprintf("BUG: redacted JSON does not parse: %v", err))
	}
	return redacted, true
}

// JSON redacts a JSON document, leaving its layout alone. An error means that
// it is no JSON.
func (r *Redactor) JSON(doc []byte) (out []byte, changed bool, err error) {
	if !json.Valid(doc) {
		var v any
		return nil, false, fmt.Errorf("redact: %w", json.Unmarshal(doc, &v))
	}
	out, changed = r.Bytes(doc)
	return out, changed, nil
}

// Bytes is [Redactor.Text] for bytes.
func (r *Redactor) Bytes(b []byte) ([]byte, bool) {
	s, changed := r.Text(string(b))
	if !changed {
		return b, false
	}
	return []byte(s), true
}

// rounds is how often a text is gone over until nothing more is found. The
// second round nearly always finds nothing.
const rounds = 6

// Text redacts text and reports whether anything changed. Text that is JSON,
// or has JSON on lines of its own, stays so.
func (r *Redactor) Text(s string) (string, bool) { return r.text(s, isJSON) }

// within redacts what a JSON string stands for. That may be JSON again, but a
// number there is text.
func (r *Redactor) within(s string) (string, bool) {
	return r.text(s, func(s string) bool {
		return (startsJSON(s) || strings.HasPrefix(s, `"`)) && isJSON(s)
	})
}

func (r *Redactor) text(s string, document func(string) bool) (string, bool) {
	out := s
	for range rounds {
		next := r.once(out, document)
		if next == out {
			return out, out != s
		}
		out = next
	}
	// A marker has made a new secret out of its surroundings, and again: such
	// secrets are built against us, and nothing of the text is worth keeping.
	if document(s) {
		return quote(marker), true
	}
	return marker, true
}

func (r *Redactor) once(s string, document func(string) bool) string {
	switch {
	case document(s):
		return r.document(s)
	case startsJSON(s) || strings.Contains(s, "\n{") || strings.Contains(s, "\n["):
		return r.lines(s)
	}
	return r.plain(s)
}

// lines redacts text of which some lines are JSON documents.
func (r *Redactor) lines(s string) string {
	var out, plain strings.Builder
	flush := func() {
		if plain.Len() == 0 {
			return
		}
		out.WriteString(r.plain(plain.String()))
		plain.Reset()
	}
	for line := range strings.Lines(s) {
		if !startsJSON(line) || !isJSON(line) {
			plain.WriteString(line)
			continue
		}
		flush()
		out.WriteString(r.document(line))
	}
	flush()
	return r.replace(out.String(), r.exact(out.String()))
}

func (r *Redactor) plain(s string) string {
	spans := append(r.exact(s), tokens(s)...)
	for _, f := range finders {
		if strings.ContainsAny(s, f.needs) {
			spans = append(spans, f.find(s)...)
		}
	}
	return r.replace(s, spans)
}

// finders find secrets in text that has at least one of the bytes they need.
// Most strings in JSON are a word that has none.
var finders = []struct {
	needs string
	find  func(string) []span
}{
	{".", webTokens},
	{"-", privateKeys},
	{":", userinfo},
	{" ", bearers},
	{"=:", assignments},
	{" \t", commands},
	{"-", flags},
}

// startsJSON reports whether an object or array may begin here.
func startsJSON(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '{' || s[0] == '[')
}

func isJSON(s string) bool {
	start := strings.TrimLeft(s, " \t\r\n")
	if start == "" {
		return false
	}
	switch start[0] {
	case 't', 'f', 'n': // most words
		word := strings.TrimRight(start, " \t\r\n")
		return word == "true" || word == "false" || word == "null"
	case '{', '[', '"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return json.Valid([]byte(s))
	}
	return false
}

// encode writes a value as JSON, with no more escapes than it takes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func quote(s string) string {
	b, err := encode(s)
	if err != nil {
		panic(fmt.Sprintf("BUG: a string is no JSON: %v", err))
	}
	return string(b)
}
