package agent

import (
	"strings"

	"github.com/BurntSushi/toml"
)

// mark names a part of a TOML file that is ours, between two comments at the
// end of the file. Putting it in and taking it out gives the text from before.
type mark string

func (m mark) begin() string {
	return "# retcon: " + string(m) + ", until the end mark. Remove with: retcon agents remove codex"
}
func (m mark) end() string { return "# retcon: end of " + string(m) }

// paste puts lines at the end of a text. The newline in front of the mark is
// ours: it ends the last line, or makes an empty one. In a file that we make
// there is none.
func (m mark) paste(text, lines string, fresh bool) string {
	nl := "\n"
	if i := strings.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		nl = "\r\n"
	}
	block := m.begin() + "\n" + lines + m.end() + "\n"
	if text != "" || !fresh {
		block = "\n" + block
	}
	return text + strings.ReplaceAll(block, "\n", nl)
}

// cut takes the part out again. A part that lost one of its marks is the
// user's by now.
func (m mark) cut(text string) string {
	from := strings.Index(text, m.begin())
	if from < 0 {
		return text
	}
	to := strings.Index(text[from:], m.end())
	if to < 0 {
		return text
	}
	to += from + len(m.end())
	rest := text[to:]
	if trimmed, ok := strings.CutPrefix(rest, "\r\n"); ok {
		rest = trimmed
	} else {
		rest = strings.TrimPrefix(rest, "\n")
	}
	head := strings.TrimSuffix(text[:from], "\n")
	if head != text[:from] {
		head = strings.TrimSuffix(head, "\r")
	}
	return head + rest
}

// parseTOML reads a text as encoding/json would read the same values.
func parseTOML(text string) (map[string]any, error) {
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		return nil, err
	}
	return plain(tree)
}
