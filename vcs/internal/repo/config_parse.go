package repo

import "bytes"

// parseConfig calls set for every setting in data, and bad for every line
// that git would die of. Settings below a section header that cannot be read
// are skipped with it: they would land in the wrong section.
func parseConfig(data []byte, set func(line int, key, value string, bare bool), bad func(line int, reason string)) {
	p := configParser{data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), line: 1}
	section, sectionOK := "", false
	for !p.done() {
		line := p.line
		switch c := p.next(); {
		case isSpace(c):
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			if section, sectionOK = p.section(); !sectionOK {
				bad(line, "unreadable section header")
				p.skipLine()
			}
		case isAlpha(c):
			name, value, bare, reason := p.setting(c)
			switch {
			case reason != "":
				bad(line, reason)
				p.skipLine()
			case !sectionOK:
				bad(line, "setting outside of a readable section")
			default:
				set(line, section+"."+name, value, bare)
			}
		default:
			bad(line, "not a setting")
			p.skipLine()
		}
	}
}

// configParser reads bytes with CRLF line ends folded to LF and an LF assumed
// at the end.
type configParser struct {
	data []byte
	pos  int
	line int
	last byte
}

func (p *configParser) done() bool { return p.pos >= len(p.data) }

func (p *configParser) next() byte {
	c := byte('\n')
	if p.pos < len(p.data) {
		c = p.data[p.pos]
		if c == '\r' && p.pos+1 < len(p.data) && p.data[p.pos+1] == '\n' {
			p.pos++
			c = '\n'
		}
	}
	p.pos++
	if c == '\n' {
		p.line++
	}
	p.last = c
	return c
}

// skipLine drops what is left of the line that was being read.
func (p *configParser) skipLine() {
	for p.last != '\n' {
		p.next()
	}
}

// section reads a header up to its closing bracket.
func (p *configParser) section() (name string, ok bool) {
	var b []byte
	for {
		switch c := p.next(); {
		case c == ']':
			return string(b), len(b) > 0
		case isSpace(c) && c != '\n':
			return p.subsection(b)
		case isKeyChar(c) || c == '.':
			b = append(b, toLower(c))
		default:
			return "", false
		}
	}
}

// subsection reads the quoted part of a header, which keeps its case.
func (p *configParser) subsection(b []byte) (name string, ok bool) {
	c := p.next()
	for isSpace(c) && c != '\n' {
		c = p.next()
	}
	if c != '"' {
		return "", false
	}
	b = append(b, '.')
	for {
		switch c = p.next(); c {
		case '\n':
			return "", false
		case '"':
			return string(b), p.next() == ']'
		case '\\':
			if c = p.next(); c == '\n' {
				return "", false
			}
		}
		b = append(b, c)
	}
}

// setting reads name and value; first is the name's first byte.
func (p *configParser) setting(first byte) (name, value string, bare bool, reason string) {
	b := []byte{toLower(first)}
	c := p.next()
	for ; isKeyChar(c); c = p.next() {
		b = append(b, toLower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	switch c {
	case '\n':
		return string(b), "", true, ""
	case '=':
		value, reason = p.value()
		return string(b), value, false, reason
	}
	return "", "", false, "no = after the name"
}

// value reads to the end of the line, through quotes, escapes, comments and
// continuation lines. Space around the value is dropped, space inside kept.
func (p *configParser) value() (value, reason string) {
	var b []byte
	kept := 0 // b up to its last byte that is not unquoted space
	quoted := false
	for {
		c := p.next()
		switch {
		case c == '\n':
			if quoted {
				return "", "quote not closed"
			}
			return string(b[:kept]), ""
		case !quoted && isSpace(c):
			if kept > 0 {
				b = append(b, c)
			}
			continue
		case !quoted && (c == '#' || c == ';'):
			p.skipLine()
			return string(b[:kept]), ""
		case c == '"':
			quoted = !quoted
		case c == '\\':
			kept = len(b)
			c = p.next()
			switch c {
			case '\n':
				continue
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case '\\', '"':
			default:
				return "", "unknown escape"
			}
			b = append(b, c)
		default:
			b = append(b, c)
		}
		kept = len(b)
	}
}

func isSpace(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' && c != '\f'
}

func isAlpha(c byte) bool { return 'a' <= toLower(c) && toLower(c) <= 'z' }

func isKeyChar(c byte) bool { return isAlpha(c) || '0' <= c && c <= '9' || c == '-' }

func toLower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
