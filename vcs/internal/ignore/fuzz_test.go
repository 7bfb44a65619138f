package ignore

import (
	"slices"
	"strings"
	"testing"
)

// reference matches as the manual describes it: over the whole path, with no
// compiling and no cleverness but a memory of what has been tried. Both
// pattern and path come without the "!", the final and the leading slash.
func reference(pattern, text string, foldCase bool) bool {
	if foldCase {
		text = foldSlowly(text)
	}
	tried := map[[2]int]bool{}
	var match func(p, t int) bool
	// some tries the pattern from p at t and at every later place up to the end, or the next slash.
	some := func(p, t int, overSlash bool) bool {
		for ; ; t++ {
			if match(p, t) {
				return true
			}
			if t == len(text) || text[t] == '/' && !overSlash {
				return false
			}
		}
	}
	match = func(p, t int) bool {
		if tried[[2]int{p, t}] {
			return false
		}
		tried[[2]int{p, t}] = true
		if p == len(pattern) {
			return t == len(text)
		}
		c := pattern[p]
		if c == '*' {
			end := p
			for end < len(pattern) && pattern[end] == '*' {
				end++
			}
			rest := pattern[end:]
			if end-p > 1 && (p == 0 || pattern[p-1] == '/') {
				switch {
				case rest == "", strings.HasPrefix(rest, `\/`):
					return some(end, t, true)
				case rest[0] == '/':
					return match(end+1, t) || some(end, t, true)
				}
			}
			return some(end, t, false)
		}
		if t == len(text) {
			return false
		}
		switch c {
		case '?':
			return text[t] != '/' && match(p+1, t+1)
		case '[':
			set, n, ok := parseSet(pattern[p+1:], foldCase) // brackets are compared with git only
			return ok && set.has(text[t]) && text[t] != '/' && match(p+1+n, t+1)
		case '\\':
			return p+1 < len(pattern) && pattern[p+1] == text[t] && match(p+2, t+1)
		}
		if foldCase {
			c = foldSlowly(string([]byte{c}))[0]
		}
		return c == text[t] && match(p+1, t+1)
	}
	return match(0, 0)
}

func foldSlowly(s string) string {
	for c := 'A'; c <= 'Z'; c++ {
		s = strings.ReplaceAll(s, string(c), string(c+'a'-'A'))
	}
	return s
}

func FuzzMatch(f *testing.F) {
	for _, seed := range []struct{ pattern, path string }{
		{"*a*a*a*b", "aaaaaaaaaaaa"}, {"a/**/b", "a/x/y/b"}, {"**/a/**", "x/a/b"}, {"**\\/a", "b/a"},
		{"[a-c][[:alpha:]]", "bz"}, {"a/[!/]*", "a/b"}, {"\\A*", "Ab"}, {"*.tar.gz", "d/x.tar.gz"},
		{"a[", "a["}, {"/a/b/", "a/b"}, {"***/x**y", "xzy"}, {"\xff?", "\xff\xfe"},
	} {
		f.Add(seed.pattern, seed.path, false)
		f.Add(seed.pattern, seed.path, true)
	}
	f.Fuzz(func(t *testing.T, pattern, text string, foldCase bool) {
		parseFile(Source{Data: []byte(pattern)}, foldCase) // whatever it is, it is read
		got := Compile(pattern, foldCase).MatchPath(text, true)
		if len(pattern) > 100 || len(text) > 200 || strings.Contains(pattern, "\x00") || strings.HasPrefix(pattern, "!") ||
			slices.Contains(strings.Split(text, "/"), "") || strings.Contains(text, "\x00") {
			return
		}
		body := strings.TrimSuffix(pattern, "/")
		tail := text
		if !strings.Contains(body, "/") {
			tail = text[strings.LastIndex(text, "/")+1:]
		}
		want := reference(strings.TrimPrefix(body, "/"), tail, foldCase)
		if got != want {
			t.Errorf("pattern %q, path %q, fold %v: got %v, want %v", pattern, text, foldCase, got, want)
		}
	})
}
