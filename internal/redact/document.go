package redact

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// node is a value in a JSON document, and where it stands.
type node struct {
	kind     byte // '{', '[', '"', or '0' for anything else
	from, to int
	keys     []node // of an object, one for each of items
	items    []node
}

// document redacts a valid JSON document. What is replaced becomes a string;
// everything else keeps its bytes, its order and its layout.
func (r *Redactor) document(doc string) string {
	root, _ := parse(doc, gap(doc, 0))
	w := writer{r: r, doc: doc, hit: map[int]bool{}}
	for _, h := range r.exact(doc) {
		w.hit[root.around(h)] = true
	}
	w.value(root)
	w.out.WriteString(doc[w.done:])
	return w.out.String()
}

// parse reads the value at doc[i] of a valid document, and where it ends.
func parse(doc string, i int) (n node, end int) {
	n = node{from: i}
	switch doc[i] {
	case '"':
		n.kind, n.to = '"', stringEnd(doc, i)
	case '{', '[':
		n.kind = doc[i]
		for i = gap(doc, i+1); doc[i] != '}' && doc[i] != ']'; {
			var item node
			if n.kind == '{' {
				key := node{kind: '"', from: i, to: stringEnd(doc, i)}
				n.keys = append(n.keys, key)
				i = gap(doc, gap(doc, key.to)+len(":"))
			}
			item, i = parse(doc, i)
			n.items = append(n.items, item)
			if i = gap(doc, i); doc[i] == ',' {
				i = gap(doc, i+1)
			}
		}
		n.to = i + 1
	default:
		n.kind, n.to = '0', i+upTo(doc[i:], " \t\r\n,]}")
	}
	return n, n.to
}

func gap(doc string, i int) int { return i + run(doc[i:], space) }

// stringEnd is the end of the string at doc[i].
func stringEnd(doc string, i int) int {
	for i++; doc[i] != '"'; i++ {
		if doc[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// around is where the smallest node begins that has the span within it. A
// secret that is JSON itself lies over several.
func (n node) around(s span) int {
	for _, parts := range [][]node{n.keys, n.items} {
		i, _ := slices.BinarySearchFunc(parts, s, func(part node, s span) int { return part.to - s.to })
		if i < len(parts) && parts[i].from <= s.from {
			return parts[i].around(s)
		}
	}
	return n.from
}

// text is the string a node stands for.
func (n node) text(doc string) string {
	token := doc[n.from:n.to]
	if strings.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1]
	}
	var s string
	if err := json.Unmarshal([]byte(token), &s); err != nil {
		panic(fmt.Sprintf("BUG: a string of a valid document does not parse: %v", err))
	}
	return s
}

// writer copies a document, and puts other text in the place of some nodes.
type writer struct {
	r    *Redactor
	doc  string
	hit  map[int]bool // where the nodes begin whose bytes, as they are, hold a secret
	out  strings.Builder
	done int // how much of doc has been written
}

func (w *writer) put(n node, text string) {
	w.out.WriteString(w.doc[w.done:n.from])
	w.out.WriteString(text)
	w.done = n.to
}

func (w *writer) value(n node) {
	switch {
	case n.kind == '"':
		if text, changed := w.text(n); changed {
			w.put(n, quote(text))
		}
	case w.hit[n.from], n.kind == '0' && w.r.secretNumber(w.doc[n.from:n.to]):
		w.put(n, quote(marker))
	case n.kind == '{':
		w.object(n)
	case n.kind == '[':
		w.array(n)
	}
}

// text redacts a string. A secret that is one only in the way the document
// writes it goes with all of the string.
func (w *writer) text(n node) (string, bool) {
	text, changed := w.r.within(n.text(w.doc))
	if !changed && w.hit[n.from] {
		return marker, true
	}
	return text, changed
}

func (w *writer) object(n node) {
	keys := w.keys(n)
	names := make([]string, len(n.keys))
	named := false // {"name": "TOKEN", "value": …}
	for i, key := range n.keys {
		names[i] = key.text(w.doc)
		if item := n.items[i]; item.kind == '"' && (names[i] == "name" || names[i] == "key") {
			named = named || secretName(item.text(w.doc))
		}
	}
	for i, item := range n.items {
		if key, changed := keys[i]; changed {
			w.put(n.keys[i], quote(key))
		}
		switch {
		case secretName(names[i]), named && names[i] == "value", item.kind == '"' && secretWhenText(names[i]):
			w.secret(item)
		default:
			w.value(item)
		}
	}
}

// keys are the keys to be written instead, by their place. No two become the
// same.
func (w *writer) keys(n node) map[int]string {
	var instead map[int]string
	for i, key := range n.keys {
		if text, changed := w.text(key); changed {
			if instead == nil {
				instead = map[int]string{}
			}
			instead[i] = text
		}
	}
	if instead == nil {
		return nil
	}
	taken := map[string]bool{}
	for i, key := range n.keys {
		if _, changed := instead[i]; !changed {
			taken[key.text(w.doc)] = true
		}
	}
	for i := range n.keys {
		text, changed := instead[i]
		if !changed {
			continue
		}
		for again := 2; taken[instead[i]]; again++ {
			instead[i] = fmt.Sprintf("%s#%d", text, again)
		}
		taken[instead[i]] = true
	}
	return instead
}

// secret writes the value of a secret name. Nothing is hidden where there is
// nothing.
func (w *writer) secret(n node) {
	raw := w.doc[n.from:n.to]
	if n.kind != '"' {
		if raw != "null" {
			w.put(n, quote(marker))
		}
		return
	}
	text := n.text(w.doc)
	if text == "" || isMarker(text) {
		return
	}
	instead := marker
	if redacted, _ := w.r.within(text); isMarker(redacted) {
		instead = redacted // and says of what kind
	}
	w.put(n, quote(instead))
}

// array redacts the items of an array, which may be the words of a command.
func (w *writer) array(n node) {
	hidden := w.words(n)
	for i, item := range n.items {
		from, ok := hidden[i]
		switch {
		case ok && from == 0:
			w.secret(item)
		case ok:
			w.put(item, quote(item.text(w.doc)[:from]+marker))
		default:
			w.value(item)
		}
	}
}

// words are the items that hold a secret because of the words before them, and
// from where.
func (w *writer) words(n node) map[int]int {
	if len(n.items) < 2 || n.items[0].kind != '"' {
		return nil
	}
	var words []string
	for _, item := range n.items {
		if item.kind != '"' {
			break
		}
		words = append(words, item.text(w.doc))
	}
	hidden := map[int]int{}
	seen := map[string]bool{}
	for i, word := range words { // one command may carry out another
		name := path.Base(word)
		if programsBy[name] == nil || seen[name] {
			continue
		}
		seen[name] = true
		for _, h := range secretWords(words[i:]) {
			hidden[i+h.word] = h.from
		}
	}
	for i, word := range words[:len(words)-1] {
		name, ok := strings.CutPrefix(word, "--")
		if ok && secretFlag(name) && secretWord(words[i+1]) {
			hidden[i+1] = 0
		}
	}
	return hidden
}
