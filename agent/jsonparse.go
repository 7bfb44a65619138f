package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parser finds where values stand.
type parser struct {
	text string
	at   int
}

// deep is more levels than a settings file has.
const deep = 200

var errDeep = errors.New("too deep")

func (p *parser) fail(what string) error {
	return fmt.Errorf("line %d: %s", 1+strings.Count(p.text[:min(p.at, len(p.text))], "\n"), what)
}

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// space skips white space and comments.
func (p *parser) space() {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.at++
		case strings.HasPrefix(rest, "//"):
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				p.at += i
			} else {
				p.at = len(p.text)
			}
		case strings.HasPrefix(rest, "/*"):
			i := strings.Index(rest[2:], "*/")
			if i < 0 {
				return
			}
			p.at += i + 4
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (*node, error) {
	if depth > deep {
		return nil, errDeep
	}
	p.space()
	switch c := p.peek(); c {
	case '{', '[':
		return p.container(c, depth)
	default:
		return p.scalar()
	}
}

func (p *parser) container(open byte, depth int) (*node, error) {
	n := &node{start: p.at, open: open}
	closing := open + 2 // '{' and '}', '[' and ']'
	p.at++
	for {
		p.space()
		if p.peek() == closing {
			p.at++
			n.end = p.at
			return n, nil
		}
		if k := len(n.members); k > 0 && n.members[k-1].comma < 0 {
			return nil, p.fail("expected a comma")
		}
		m, err := p.member(open, depth)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, m)
	}
}

func (p *parser) member(open byte, depth int) (m member, err error) {
	m.start, m.comma = p.at, -1
	if open == '{' {
		key, err := p.scalar()
		if err != nil {
			return m, err
		}
		if err := json.Unmarshal([]byte(p.text[key.start:key.end]), &m.key); err != nil {
			return m, p.fail("expected a key")
		}
		if p.space(); p.peek() != ':' {
			return m, p.fail("expected a colon")
		}
		p.at++
	}
	if m.value, err = p.value(depth + 1); err != nil {
		return m, err
	}
	if p.space(); p.peek() == ',' {
		m.comma = p.at
		p.at++
	}
	return m, nil
}

func (p *parser) scalar() (*node, error) {
	start := p.at
	if p.peek() == '"' {
		for p.at++; p.at < len(p.text) && p.text[p.at] != '"'; p.at++ {
			if p.text[p.at] == '\\' {
				p.at++
			}
		}
		p.at++
	} else {
		for p.at < len(p.text) && strings.IndexByte(" \t\r\n,:[]{}/\"", p.text[p.at]) < 0 {
			p.at++
		}
	}
	if p.at > len(p.text) || !json.Valid([]byte(p.text[start:p.at])) || !utf8.ValidString(p.text[start:p.at]) {
		p.at = start
		return nil, p.fail("expected a value")
	}
	return &node{start: start, end: p.at}, nil
}
