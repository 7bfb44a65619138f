package sideeffect

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hole stands for the part of a word that only running it would tell. It is of
// the private use area, and a line that holds it by chance is only less clear.
const hole = '\uf8fe'

// A word is one argument as the program will see it.
type word struct {
	text string
	many bool // it may become several words, or none
}

func (w word) unknown() bool { return strings.ContainsRune(w.text, hole) }

// option: the word is an option and not an operand.
func (w word) option() bool { return len(w.text) > 1 && w.text[0] == '-' }

func (r *reader) words(list []*syntax.Word) []word {
	words := make([]word, 0, len(list))
	for _, w := range list {
		filled := r.word(w)
		if _, variable := w.Parts[0].(*syntax.ParamExp); variable && len(w.Parts) == 1 && !filled.unknown() {
			for _, field := range strings.Fields(filled.text) {
				words = append(words, word{text: field})
			}
			continue
		}
		words = append(words, filled)
	}
	return words
}

func (r *reader) word(w *syntax.Word) word {
	var b strings.Builder
	many := false
	for _, part := range w.Parts {
		many = r.part(&b, part, false) || many
	}
	return word{text: b.String(), many: many}
}

// part writes one part of a word, and reports whether it may become several.
func (r *reader) part(b *strings.Builder, part syntax.WordPart, quoted bool) (many bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		b.WriteString(unescape(p.Value, quoted))
	case *syntax.SglQuoted:
		if p.Dollar {
			b.WriteString(unescapeDollar(p.Value))
		} else {
			b.WriteString(p.Value)
		}
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			many = r.part(b, inner, true) || many
		}
	case *syntax.ParamExp:
		return r.param(b, p, quoted)
	case *syntax.CmdSubst:
		if name, ok := lookedUp(p); ok {
			b.WriteString(name)
		} else {
			b.WriteRune(hole)
		}
	default:
		b.WriteRune(hole)
	}
	return many
}

func (r *reader) param(b *strings.Builder, p *syntax.ParamExp, quoted bool) (many bool) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	plain := p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Excl && !p.Length && !p.Width
	if v, ok := r.vars[name]; ok && plain && r.filled+len(v) <= maxFilled {
		r.filled += len(v)
		b.WriteString(v)
		return !quoted && strings.ContainsAny(v, " \t\n")
	}
	b.WriteRune(hole)
	return name == "@" || name == "*" || p.Index != nil
}

// lookedUp is the name in $(which name) and $(command -v name), which is where
// the program is.
func lookedUp(p *syntax.CmdSubst) (string, bool) {
	if len(p.Stmts) != 1 {
		return "", false
	}
	c, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) < 2 {
		return "", false
	}
	last := c.Args[len(c.Args)-1].Lit()
	switch c.Args[0].Lit() {
	case "which", "command":
		return last, last != "" && !strings.HasPrefix(last, "-")
	}
	return "", false
}

// unescape takes the backslashes out of a literal as the shell does.
func unescape(s string, quoted bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch {
		case s[i] == '\n':
		case quoted && !strings.ContainsRune("$`\"\\", rune(s[i])):
			b.WriteByte('\\')
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// unescapeDollar reads the inside of $'…'.
func unescapeDollar(s string) string {
	var b strings.Builder
	for s != "" {
		if s[0] != '\\' || len(s) == 1 {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		if c, _, rest, err := strconv.UnquoteChar(s, '\''); err == nil && c != hole {
			b.WriteRune(c)
			s = rest
			continue
		}
		b.WriteByte(s[1])
		s = s[2:]
	}
	return b.String()
}

// typed is a word as it could be typed into a shell.
func typed(s string) string {
	if q, err := syntax.Quote(s, syntax.LangBash); err == nil {
		return q
	}
	return strconv.Quote(s)
}
