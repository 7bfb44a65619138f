package ignore

import "strings"

// A file is one parsed file of rules. Rules that can match nothing are left
// out, so an index into rules is not a line number.
type file struct {
	name  string
	rules []rule // in the order of their lines

	// The rules that look at the last name of a path only, indexed.
	literal map[string]ranks // "name"
	ext     map[string]ranks // "*.ext", by ".ext" with no other dot in it
	other   []int32          // all the rest, last line first
}

// A rule is one line.
type rule struct {
	pattern Pattern
	negated bool
	line    int
	text    string
}

// ranks are the last of several rules with one pattern: the last that
// matches anything, and the last that matches directories alone. -1: none.
type ranks struct{ any, dir int32 }

func (r *rule) decision() Decision {
	switch {
	case r == nil:
		return None
	case r.negated:
		return Included
	}
	return Ignored
}

// parseFile reads the lines of a rule file. There is no such thing as a
// malformed file: what git does not understand matches nothing.
func parseFile(s Source, foldCase bool) *file {
	f := &file{name: s.Name}
	data := strings.TrimPrefix(string(s.Data), "\ufeff")
	for n := 1; data != ""; n++ {
		var line string
		line, data, _ = strings.Cut(data, "\n")
		text := trimLine(line)
		if text == "" || text[0] == '#' {
			continue
		}
		body, negated := strings.CutPrefix(text, "!")
		if p := compile(body, foldCase); p.segs != nil {
			f.rules = append(f.rules, rule{pattern: p, negated: negated, line: n, text: text})
		}
	}
	f.index()
	return f
}

// trimLine removes what git does not see of a line: one carriage return
// before the line end, everything from a NUL on, and trailing blanks unless
// a backslash keeps them.
func trimLine(line string) string {
	line = cutNUL(strings.TrimSuffix(line, "\r"))
	end := 0 // of what stays
	for i := 0; i < len(line); i++ {
		if line[i] == ' ' {
			continue
		}
		if line[i] == '\\' && i+1 < len(line) {
			i++
		}
		end = i + 1
	}
	return line[:end]
}

func (f *file) index() {
	f.literal = make(map[string]ranks)
	f.ext = make(map[string]ranks)
	for i := len(f.rules) - 1; i >= 0; i-- {
		p := &f.rules[i].pattern
		if p.anchored {
			continue
		}
		g := &p.segs[0].glob
		switch {
		case g.kind == globLiteral:
			note(f.literal, g.lit, p.dirOnly, int32(i))
		case g.kind == globSuffix && strings.LastIndexByte(g.lit, '.') == 0:
			note(f.ext, g.lit, p.dirOnly, int32(i))
		default:
			f.other = append(f.other, int32(i))
		}
	}
}

// note records rule i under key, unless a later line already stands there.
func note(m map[string]ranks, key string, dirOnly bool, i int32) {
	r, ok := m[key]
	if !ok {
		r = ranks{-1, -1}
	}
	if dirOnly {
		r.dir = max(r.dir, i)
	} else {
		r.any = max(r.any, i)
	}
	m[key] = r
}

// lastAnywhere returns the last rule without a place of its own, one that
// looks at the name alone, that matches. -1: none.
func (f *file) lastAnywhere(name string, isDir bool) int32 {
	best := int32(-1)
	look := func(m map[string]ranks, key string) {
		if r, ok := m[key]; ok {
			best = max(best, r.any)
			if isDir {
				best = max(best, r.dir)
			}
		}
	}
	look(f.literal, name)
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 && len(f.ext) > 0 {
		look(f.ext, name[dot:])
	}
	for _, n := range f.other {
		if n <= best {
			break
		}
		if f.rules[n].pattern.matchHere(name, isDir) {
			return n
		}
	}
	return best
}

// start returns the threads of the anchored rules in the file's directory.
func (f *file) start() []thread {
	var live []thread
	for i := range f.rules {
		if p := &f.rules[i].pattern; p.anchored {
			live = p.push(live, thread{rule: int32(i)})
		}
	}
	return live
}
