package handover

import "unicode/utf8"

// dirKeys are the members of a payload that say where the agent works, by
// agent. Of others it is not known here.
var dirKeys = map[string]string{
	"claude":   "cwd",
	"codex":    "cwd",
	"gemini":   "cwd",
	"copilot":  "cwd",
	"generic":  "cwd",
	"opencode": "directory",
}

// Dir is the directory that a payload says the agent works in: a member of the
// outermost object, as the agent called name writes it. "" when there is none,
// or it is written with escapes, or the payload is anything but JSON up to there.
func Dir(name string, payload []byte) string {
	key, ok := dirKeys[name]
	if !ok {
		return ""
	}
	s := scanner{text: payload}
	if s.next() != '{' {
		return ""
	}
	s.at++
	found := ""
	for {
		if s.next() != '"' {
			return found // the end, which a later member of the same name would come before
		}
		name, plain := s.str()
		if s.next() != ':' || !plain {
			return ""
		}
		s.at++
		if s.next() == '"' && name == key {
			if found, plain = s.str(); !plain {
				return ""
			}
		} else if !s.skip() || name == key {
			return ""
		}
		if s.next() != ',' {
			return found
		}
		s.at++
	}
}

// scanner goes through JSON without understanding more of it than where a value
// ends.
type scanner struct {
	text []byte
	at   int
}

// next is the next byte that is no space; 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// str reads the string that begins here. It is plain when it has no escapes and
// is valid text.
func (s *scanner) str() (text string, plain bool) {
	plain = true
	s.at++
	for from := s.at; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			plain = false
			s.at++
		case '"':
			b := s.text[from:s.at]
			s.at++
			return string(b), plain && utf8.Valid(b)
		}
	}
	return "", false
}

// skip goes past the value that begins here, whatever it is; false when it does
// not end.
func (s *scanner) skip() bool {
	depth := 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.str()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth == 0 {
				return true
			}
			depth--
			s.at++
		case ',':
			if depth == 0 {
				return true
			}
			s.at++
		default:
			s.at++
		}
	}
	return false
}
