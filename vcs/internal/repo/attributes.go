package repo

import (
	"bytes"
	"maps"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
)

// AttributeOptions of one worktree.
type AttributeOptions struct{ FoldCase bool } // core.ignoreCase

// Attributes answers, inside one directory, whether git may store a file's
// content other than as it is on disk. It knows nothing about line ends:
// there the sizes differ.
//
// It errs on one side only. A rule that a later rule takes back still counts,
// so MayConvert may be true for a file that git stores as it is, and is never
// false for one that git converts.
//
// Attributes are immutable and safe for concurrent use. A directory whose
// rules convert nothing costs nothing.
type Attributes struct {
	fold   bool
	top    bool                // the worktree's root, where macros may be defined
	path   string              // of this directory from the root, "" or ending in a slash
	macros map[string][]string // names set by each macro
	lines  []attrLine          // all rules in force
	live   []attrLine          // those that may convert
}

// attrLine is a pattern and the attributes it sets, in the directory dir.
type attrLine struct {
	dir     string // "" or ending in a slash
	pattern ignore.Pattern
	sets    []string
}

// AttrRoot returns what holds at the worktree's root, from the contents of
// attribute files outside the worktree: the system's, core.attributesFile,
// info/attributes. Add the root's own .gitattributes with WithFile.
func AttrRoot(opts AttributeOptions, sources ...[]byte) *Attributes {
	a := &Attributes{fold: opts.FoldCase, top: true}
	for _, data := range sources {
		a = a.WithFile(data)
	}
	return a
}

// WithFile returns a with the rules of this directory's .gitattributes added.
func (a *Attributes) WithFile(data []byte) *Attributes {
	if len(data) == 0 {
		return a
	}
	b := *a
	b.lines = a.lines[:len(a.lines):len(a.lines)]
	b.macros = a.macros
	for line := range bytes.SplitSeq(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), []byte("\n")) {
		b.add(string(line))
	}
	b.live = nil
	for _, line := range b.lines {
		if b.anyConverts(line.sets, make(map[string]bool)) {
			b.live = append(b.live, line)
		}
	}
	return &b
}

// Enter returns what holds in the child directory name, whose .gitattributes
// has the content data; nil when it has none.
func (a *Attributes) Enter(name string, data []byte) *Attributes {
	b := *a
	b.top = false
	b.path = a.path + name + "/"
	return b.WithFile(data)
}

// MayConvert reports whether git may run the file called name, in this
// directory, through a filter, ident expansion or re-encoding.
func (a *Attributes) MayConvert(name string) bool {
	if len(a.live) == 0 {
		return false
	}
	path := a.path + name
	for _, line := range a.live {
		if line.pattern.MatchPath(path[len(line.dir):], false) {
			return true
		}
	}
	return false
}

func (a *Attributes) add(line string) {
	line = strings.TrimLeft(line, attrBlank)
	if line == "" || line[0] == '#' {
		return
	}
	pattern, rest := cutPattern(line)
	sets := attrsSet(rest)
	if macro, ok := strings.CutPrefix(pattern, "[attr]"); ok && macro != "" {
		a.define(macro, sets)
		return
	}
	if len(sets) > 0 {
		a.lines = append(a.lines, attrLine{dir: a.path, pattern: ignore.Compile(pattern, a.fold), sets: sets})
	}
}

// define adds to a macro; of several definitions we believe all.
func (a *Attributes) define(macro string, sets []string) {
	if !a.top {
		return // git ignores macros below the root
	}
	macros := make(map[string][]string, len(a.macros)+1)
	maps.Copy(macros, a.macros)
	macros[macro] = append(macros[macro][:len(macros[macro]):len(macros[macro])], sets...)
	a.macros = macros
}

// anyConverts follows macros into other macros, each one once.
func (a *Attributes) anyConverts(names []string, seen map[string]bool) bool {
	for _, name := range names {
		switch name {
		case "filter", "ident", "working-tree-encoding":
			return true
		}
		sets, ok := a.macros[name]
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		if a.anyConverts(sets, seen) {
			return true
		}
	}
	return false
}

const attrBlank = " \t\r\n"

// cutPattern splits a line after its pattern, which may be quoted.
func cutPattern(line string) (pattern, rest string) {
	if value, rest, ok := unquoteC(line); ok {
		return value, rest
	}
	if i := strings.IndexAny(line, attrBlank); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// attrsSet returns the attributes that are given a value: neither unset (-)
// nor made unspecified (!).
func attrsSet(s string) []string {
	var names []string
	for _, word := range strings.FieldsFunc(s, func(c rune) bool { return strings.ContainsRune(attrBlank, c) }) {
		if word[0] == '-' || word[0] == '!' {
			continue
		}
		name, _, _ := strings.Cut(word, "=")
		names = append(names, name)
	}
	return names
}
