package sideeffect

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A tool is a program that may do something outside.
type tool struct {
	// valued are the options before its verbs that take a value.
	valued string

	// reads are the verbs that change nothing, separated by commas.
	reads string

	// writes are those that do; the plain ones have no compensation.
	writes []verb
	plain  string

	// rest is what the other verbs are. Zero: nothing.
	rest Class

	// atomic: when it exits with an error, nothing was done.
	atomic bool

	// foreign: its options may be those of a program elsewhere.
	foreign bool

	// judge decides for what is not told by verbs. It is asked first, and may
	// leave the decision to them.
	judge func(a args) (finding, decision)

	verbs     map[string]*verb
	indexOnce *sync.Once
}

// A verb does something outside.
type verb struct {
	path string                // its words: "issue create"
	find func() *regexp.Regexp // compiled when it is needed
	undo Compensation
	make func(a args) (Compensation, map[string]string) // instead of undo, where it depends on the arguments
	none string                                         // options with which undo does not apply
}

// A finding is what is known of an effect before its output is.
type finding struct {
	class  Class
	rule   string
	undo   Compensation
	fields map[string]string
	find   *regexp.Regexp // named groups become fields
	atomic bool
	failed []int // exit statuses that mean that nothing was done

	builtin bool   // by a rule of ours
	source  string // of a rule of a user's

	remote string
	refs   []string
}

type decision int

const (
	undecided decision = iota
	isEffect
	isNone
)

// args are the words after a program's name.
type args struct {
	tool  string
	words []word
	inv   invocation
}

var (
	tables   map[string]*tool
	makeOnce sync.Once
)

// toolNamed is what is known of a program, or nil. The tables are made when they
// are first asked for, and the verbs of each program likewise: most commands have
// nothing to do with either.
func toolNamed(name string) *tool {
	makeOnce.Do(makeTables)
	t := tables[name]
	if t != nil {
		t.indexOnce.Do(t.index)
	}
	return t
}

func makeTables() {
	tables = map[string]*tool{}
	for _, table := range []map[string]tool{forges(), registries(), clusters(), clouds(), databases(), webClients(), remotes(), mailers(), services()} {
		for names, t := range table {
			t.indexOnce = &sync.Once{}
			for name := range strings.FieldsSeq(names) {
				if tables[name] != nil {
					panic("BUG: two tools named " + name)
				}
				tables[name] = &t
			}
		}
	}
}

// none marks the verbs that change nothing in the index.
var none = &verb{}

func (t *tool) index() {
	t.verbs = map[string]*verb{}
	add := func(path string, v *verb) {
		if t.verbs[path] != nil {
			panic("BUG: two verbs " + path)
		}
		t.verbs[path] = v
	}
	for path := range list(t.reads) {
		add(path, none)
	}
	for path := range list(t.plain) {
		add(path, &verb{path: path})
	}
	for i := range t.writes {
		add(t.writes[i].path, &t.writes[i])
	}
}

// list are the parts of s between commas.
func list(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.Join(strings.Fields(part), " "); part != "" && !yield(part) {
				return
			}
		}
	}
}

// judge says whether an invocation is an effect.
func judge(inv invocation) (finding, bool) {
	t := toolNamed(inv.argv[0].text)
	if t == nil {
		return finding{}, false
	}
	a := args{tool: inv.argv[0].text, words: inv.argv[1:], inv: inv}
	if !t.foreign && a.rehearsed() {
		return finding{}, false
	}
	f, d := finding{}, undecided
	if t.judge != nil {
		f, d = t.judge(a)
	}
	if d == undecided {
		f, d = t.byVerb(a)
	}
	if d != isEffect {
		return finding{}, false
	}
	if f.rule == "" {
		f.rule = a.tool
	}
	f.atomic = f.atomic || t.atomic
	f.builtin = true
	return f, true
}

// rehearsed: help was asked for, or a rehearsal.
func (a args) rehearsed() bool {
	for _, w := range a.words {
		flag, value, _ := strings.Cut(w.text, "=")
		switch flag {
		case "--":
			return false
		case "--help", "-help":
			return true
		case "--dry-run", "--dryrun", "--dry_run":
			return value != "none" && value != "false"
		}
	}
	if len(a.words) == 0 {
		return false
	}
	return hasWord("help --version -version", a.words[0].text) || a.words[len(a.words)-1].text == "-h"
}

// byVerb looks the longest run of operands up among the verbs.
func (t *tool) byVerb(a args) (finding, decision) {
	ops := a.operands(t.valued)
	if len(ops) == 0 {
		return finding{}, isNone
	}
	for n := min(4, len(ops)); n > 0; n-- {
		v := t.verbs[join(ops[:n])]
		switch {
		case v == none && !slices.ContainsFunc(ops[:n], word.unknown):
			return finding{}, isNone
		case v != nil:
			return v.finding(a), isEffect
		}
	}
	if ops[0].unknown() || len(t.verbs) > 0 && len(ops) > 1 && ops[1].unknown() && t.group(ops[0].text) {
		return finding{class: Maybe, rule: a.tool}, isEffect
	}
	if t.rest == "" || len(ops) == 1 && t.group(ops[0].text) {
		return finding{}, isNone // the words of a group alone show its help
	}
	return finding{class: t.rest, rule: a.tool + " " + ops[0].text}, isEffect
}

// group: some verb begins with this word and has another one.
func (t *tool) group(first string) bool {
	for path := range t.verbs {
		if strings.HasPrefix(path, first+" ") {
			return true
		}
	}
	return false
}

func (v *verb) finding(a args) finding {
	f := finding{class: Write, rule: a.tool + " " + v.path, undo: v.undo}
	if v.find != nil {
		f.find = v.find()
	}
	if v.make != nil {
		f.undo, f.fields = v.make(a)
	}
	if v.none != "" && a.has(strings.Fields(v.none)...) {
		f.undo, f.find = Compensation{}, nil
	}
	return f
}

// operands are the words that are neither options nor their values.
func (a args) operands(valued string) (ops []word) {
	for i := 0; i < len(a.words); i++ {
		w := a.words[i]
		switch {
		case w.text == "--":
			return append(ops, a.words[i+1:]...)
		case hasWord(valued, w.text):
			i++
		case !w.option():
			ops = append(ops, w)
		}
	}
	return ops
}

// has: one of the options is given, alone or with a value attached.
func (a args) has(options ...string) bool {
	for _, w := range a.words {
		if w.text == "--" {
			return false
		}
		flag, _, _ := strings.Cut(w.text, "=")
		if slices.Contains(options, flag) {
			return true
		}
	}
	return false
}

// option is the value of the last of the options that is given.
func (a args) option(names ...string) (value string, ok bool) {
	for i, w := range a.words {
		flag, attached, cut := strings.Cut(w.text, "=")
		switch {
		case !slices.Contains(names, flag):
		case cut:
			value, ok = attached, true
		case i+1 < len(a.words):
			value, ok = a.words[i+1].text, true
		}
	}
	return value, ok
}

// spread: arguments that can't be seen may be among the words.
func (a args) spread() bool {
	return slices.ContainsFunc(a.words, func(w word) bool { return w.many })
}

// argv is a compensation by a command, with the variables its program needs.
func argv(words ...string) Compensation {
	return Compensation{Command: words, Env: needed(words[0])}
}

// gone adds what the command says when there is nothing left to undo.
func (c Compensation) gone(texts ...string) Compensation {
	c.Gone = texts
	return c
}

func never(why string) Compensation { return Compensation{Impossible: why} }

func write(rule string) (finding, decision) { return finding{class: Write, rule: rule}, isEffect }
func maybe(rule string) (finding, decision) { return finding{class: Maybe, rule: rule}, isEffect }
func nothing() (finding, decision)          { return finding{}, isNone }
func byVerbs() (finding, decision)          { return finding{}, undecided }
