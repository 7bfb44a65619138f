package ignore

import "strings"

// A Pattern is one compiled pattern of an ignore or attributes file. The
// zero Pattern matches nothing.
type Pattern struct {
	segs     []segment // one per name of the path; nil: matches nothing
	anchored bool      // segs describe the path from the file's directory; else segs[0] the last name
	dirOnly  bool
	foldCase bool
}

// A segment matches one name of a path or, when deep, any number of names.
// A deep segment is never the last, and never next to another.
type segment struct {
	deep bool
	glob glob
}

// Compile returns the pattern as gitattributes reads it. A negated pattern
// matches nothing, as git refuses the line; so does one that is malformed.
func Compile(pattern string, foldCase bool) Pattern {
	if strings.HasPrefix(pattern, "!") {
		return Pattern{}
	}
	return compile(cutNUL(pattern), foldCase)
}

// MatchPath reports whether the pattern matches relpath, a clean path from
// the directory of the file that the pattern stands in.
func (p Pattern) MatchPath(relpath string, isDir bool) bool {
	if p.segs == nil {
		return false
	}
	if p.foldCase {
		relpath = fold(relpath)
	}
	if !p.anchored {
		return p.matchHere(relpath[strings.LastIndexByte(relpath, '/')+1:], isDir)
	}
	live := p.push(nil, thread{})
	for len(live) > 0 {
		name, rest, more := strings.Cut(relpath, "/")
		if !more {
			return p.final(live[len(live)-1].pos) && p.matchHere(name, isDir)
		}
		var next []thread
		for _, t := range live {
			next = p.step(next, t, name)
		}
		live, relpath = next, rest
	}
	return false
}

// compile takes the pattern without its "!".
func compile(text string, foldCase bool) Pattern {
	body, dirOnly := strings.CutSuffix(text, "/")
	anchored := strings.Contains(body, "/")
	segs, ok := parse(strings.TrimPrefix(body, "/"), foldCase)
	if !ok {
		return Pattern{}
	}
	if len(segs) == 2 && segs[0].deep {
		anchored = false // "**/name" is "name", and "**" is "*"
	}
	if !anchored {
		segs = segs[len(segs)-1:]
	}
	return Pattern{segs: segs, anchored: anchored, dirOnly: dirOnly, foldCase: foldCase}
}

// A thread is an anchored rule that has matched its way down to a directory:
// pos is the segment that names in the directory are tried against. Threads
// are kept in the order of rule, then pos; a rule has at most one per segment.
type thread struct{ rule, pos int32 }

// push appends a thread, and the one past the deep segment it stands at.
func (p *Pattern) push(live []thread, t thread) []thread {
	if n := len(live); n > 0 && live[n-1].rule == t.rule && live[n-1].pos >= t.pos {
		return live
	}
	live = append(live, t)
	if p.segs[t.pos].deep {
		live = append(live, thread{t.rule, t.pos + 1})
	}
	return live
}

// step appends what becomes of a thread on entering the directory name.
func (p *Pattern) step(live []thread, t thread, name string) []thread {
	switch {
	case p.segs[t.pos].deep:
		return p.push(live, t)
	case p.final(t.pos) || !p.segs[t.pos].glob.match(name):
		return live
	}
	return p.push(live, thread{t.rule, t.pos + 1})
}

// final reports whether a name that matches at pos ends a matching path.
func (p *Pattern) final(pos int32) bool { return int(pos) == len(p.segs)-1 }

// matchHere tries a folded name against the last segment.
func (p *Pattern) matchHere(name string, isDir bool) bool {
	return (isDir || !p.dirOnly) && p.segs[len(p.segs)-1].glob.match(name)
}

// cutNUL ends text where git, which keeps C strings, sees its end.
func cutNUL(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// fold returns s with its ASCII capitals made small, the only ones git folds.
func fold(s string) string {
	for i := 0; i < len(s); i++ {
		if isUpper(s[i]) {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = lower(b[i])
			}
			return string(b)
		}
	}
	return s
}

func isUpper(b byte) bool { return 'A' <= b && b <= 'Z' }
func isLower(b byte) bool { return 'a' <= b && b <= 'z' }

func lower(b byte) byte {
	if isUpper(b) {
		return b + 'a' - 'A'
	}
	return b
}
