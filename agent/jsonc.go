package agent

import (
	"bytes"
	"encoding/json"
	"strings"
)

// doc is a JSON text that is edited as text, so that what is not ours keeps
// every byte. Comments and trailing commas are understood.
//
// Putting something in and taking it out again gives the text from before:
// every insertion can be told from what stood there. A container that we made
// is closed on a line of its own; in one that was empty before, whatever
// stood between its brackets stays behind our insertion, with one more newline
// where that could be taken for ours.
type doc struct {
	text  string
	fresh bool // made from nothing
	root  *node
}

// node is a value in the text, at text[start:end].
type node struct {
	start, end int
	open       byte // '{', '[' or 0
	members    []member
}

// member is an element, or a key with its value. comma is where the comma
// after it stands, -1 when there is none.
type member struct {
	start int
	key   string
	value *node
	comma int
}

func (m member) end() int { return m.value.end }

const bom = "\ufeff"

// parseDoc reads a settings file; nil stands for one that does not exist. A
// file with nothing in it is given a content that can be told from both.
func parseDoc(data []byte) (*doc, error) {
	d := &doc{text: string(data)}
	if strings.TrimSpace(d.text) == "" {
		end := d.text
		if data == nil || strings.HasPrefix(end, "\n") {
			end = "\n" + end
		}
		d.text, d.fresh = "{\n}"+end, true
	}
	return d, d.parse()
}

// bytes is the file again; nil when there should be none.
func (d *doc) bytes() []byte {
	if d.root.open == '{' && len(d.root.members) == 0 && d.fresh {
		rest, hadNewline := strings.CutPrefix(d.text[d.root.end:], "\n")
		if hadNewline && rest == "" {
			return nil
		}
		return []byte(rest)
	}
	return []byte(d.text)
}

func (d *doc) parse() error {
	p := parser{text: d.text}
	if strings.HasPrefix(d.text, bom) {
		p.at = len(bom)
	}
	root, err := p.value(0)
	if err != nil {
		return err
	}
	if p.space(); p.at != len(p.text) {
		return p.fail("something after the value")
	}
	d.root = root
	return nil
}

// splice replaces a piece of the text.
func (d *doc) splice(from, to int, with string) error {
	d.text = d.text[:from] + with + d.text[to:]
	return d.parse()
}

func (d *doc) newline() string {
	if i := strings.IndexByte(d.text, '\n'); i > 0 && d.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// indent is the space before the line on which at stands.
func (d *doc) indent(at int) string {
	line := d.text[strings.LastIndexByte(d.text[:at], '\n')+1 : at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// unit is what one level is indented by.
func (d *doc) unit() string {
	for _, m := range d.root.members {
		if in := d.indent(m.start); in != "" && d.ownLine(m) {
			return in
		}
	}
	return "  "
}

func (d *doc) ownLine(m member) bool {
	return strings.TrimLeft(d.text[strings.LastIndexByte(d.text[:m.start], '\n')+1:m.start], " \t") == ""
}

// closing is how a container that we made ends, up to its bracket.
func (d *doc) closing(c *node) string { return d.newline() + d.indent(c.start) }

// add puts a value at the end of a container.
func (d *doc) add(c *node, key string, value any) error {
	in := d.indent(c.start) + d.unit()
	if n := len(c.members); n > 0 && d.ownLine(c.members[n-1]) {
		in = d.indent(c.members[n-1].start)
	}
	text := d.newline() + in
	if c.open == '{' {
		text += quoted(key) + ": "
	}
	text += d.render(value, in)
	if len(c.members) == 0 {
		inner := d.text[c.start+1 : c.end-1]
		if !(d.fresh && c == d.root) && d.padded(inner, d.closing(c)) {
			text += d.newline()
		}
		return d.splice(c.start+1, c.start+1, text)
	}
	last := c.members[len(c.members)-1]
	if last.comma >= 0 {
		return d.splice(last.comma+1, last.comma+1, text+",")
	}
	return d.splice(last.end(), last.end(), ","+text)
}

// padded tells whether inner is the closing after any number of newlines.
func (d *doc) padded(inner, closing string) bool {
	rest, ok := strings.CutSuffix(inner, closing)
	return ok && rest == strings.Repeat(d.newline(), len(rest)/len(d.newline()))
}

// remove takes the value at path out: the last name is its key or the number
// of the element. What we had made around it goes with it.
func (d *doc) remove(path ...any) error {
	c := d.find(path[:len(path)-1]...)
	i := c.index(path[len(path)-1])
	m := c.members[i]
	from, to := m.start, m.end()
	for from > c.start+1 && strings.IndexByte(" \t\r\n", d.text[from-1]) >= 0 {
		from--
	}
	switch {
	case m.comma >= 0:
		to = m.comma + 1
	case i > 0:
		comma := c.members[i-1].comma
		d.text = d.text[:comma] + d.text[comma+1:]
		from, to = from-1, to-1
	}
	if err := d.splice(from, to, ""); err != nil {
		return err
	}
	if len(c.members) > 1 {
		return nil
	}
	return d.emptied(path[:len(path)-1]...)
}

// emptied follows the removal of the last member of a container.
func (d *doc) emptied(path ...any) error {
	c := d.find(path...)
	inner, closing := d.text[c.start+1:c.end-1], d.closing(c)
	switch {
	case inner == closing && len(path) > 0:
		return d.remove(path...)
	case inner == closing:
		d.fresh = true
	case d.padded(inner, closing):
		return d.splice(c.start+1, c.start+1+len(d.newline()), "")
	}
	return nil
}

// replace puts another value in the place of the one at path.
func (d *doc) replace(value any, path ...any) error {
	n := d.find(path...)
	return d.splice(n.start, n.end, d.render(value, d.indent(n.start)))
}

// find follows keys and element numbers from the root; nil when there is
// nothing there.
func (d *doc) find(path ...any) *node {
	n := d.root
	for _, name := range path {
		i := n.index(name)
		if i < 0 {
			return nil
		}
		n = n.members[i].value
	}
	return n
}

// index is where a name stands in a container. Of several equal keys the last
// one counts, as for every reader of JSON.
func (n *node) index(name any) int {
	if n == nil {
		return -1
	}
	switch name := name.(type) {
	case string:
		for i := len(n.members) - 1; i >= 0 && n.open == '{'; i-- {
			if n.members[i].key == name {
				return i
			}
		}
	case int:
		if n.open == '[' && name < len(n.members) {
			return name
		}
	}
	return -1
}

// render writes a value on as many lines as it needs, the first without its
// indentation.
func (d *doc) render(value any, indent string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(indent, d.unit())
	if err := e.Encode(value); err != nil {
		panic("BUG: a hook that is not JSON: " + err.Error())
	}
	return strings.ReplaceAll(strings.TrimRight(b.String(), "\n"), "\n", d.newline())
}

// read is the value of a node, as encoding/json would give it.
func (d *doc) read(n *node) any {
	switch {
	case n == nil:
		return nil
	case n.open == '{':
		o := map[string]any{}
		for _, m := range n.members {
			o[m.key] = d.read(m.value)
		}
		return o
	case n.open == '[':
		l := []any{}
		for _, m := range n.members {
			l = append(l, d.read(m.value))
		}
		return l
	}
	var v any
	if err := json.Unmarshal([]byte(d.text[n.start:n.end]), &v); err != nil {
		panic("BUG: a scalar that was not checked: " + err.Error())
	}
	return v
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(b)
}
