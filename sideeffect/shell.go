package sideeffect

import (
	"errors"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An invocation is one program called by a command line, with what is known
// about it without running anything.
type invocation struct {
	argv  []word // argv[0] is the program's name, without folders
	text  string // as written
	stdin input

	// certain: if the line exits 0, this one did. final: if this one exits 0,
	// so does the line. Without them its outcome can't be told from the line's.
	certain, final bool

	// shown: what it prints is in the output of the line.
	shown bool

	// often: it may run any number of times.
	often bool

	// inside: it runs in a container, where names mean other things.
	inside bool

	// hops is how many machines away it runs.
	hops int
}

// input is what is known of a standard input.
type input struct {
	given bool // something is there to read
	known bool
	text  string
}

// place is where in a line a statement stands. The fields mean the same as those
// of an invocation.
type place struct {
	certain, final, shown, often, inside bool
	stdin                                input
}

// aside is a place whose outcome is nobody's.
func (p place) aside() place {
	p.certain, p.final = false, false
	return p
}

// Limits of what is read. Longer, deeper lines are looked at word by word.
const (
	maxLine    = 256 << 10
	maxNesting = 500
	maxClauses = 10_000
	maxScripts = 8       // bash -c 'bash -c "…"'
	maxFilled  = 1 << 20 // bytes of variables filled in, all together
)

// errUnread: the line is not shell, or too much of it.
var errUnread = errors.New("can't be read as shell")

// reader collects the invocations of a line.
type reader struct {
	found    []invocation
	vars     map[string]string // of variables with one literal value
	src      string
	depth    int
	errexit  bool
	pipefail bool
	filled   int
	unread   []string // scripts inside the line that can't be read
}

// read finds every program that a line may call, in the order they are written.
// What it returns beside the invocations are scripts inside the line that it
// could not read.
func read(line string) (found []invocation, unread []string, err error) {
	r := reader{vars: map[string]string{}}
	if err := r.script(line, place{certain: true, final: true, shown: true}); err != nil {
		return nil, nil, err
	}
	return r.found, r.unread, nil
}

func (r *reader) script(text string, at place) error {
	file, err := parse(text)
	if err != nil {
		return err
	}
	src := r.src
	r.src = text
	r.stmts(file.Stmts, at)
	r.src = src
	return nil
}

// within reads a script that a program of the line runs.
func (r *reader) within(text string, at place) {
	if r.depth >= maxScripts {
		r.unread = append(r.unread, text)
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	r.apart(func() {
		r.errexit, r.pipefail = false, false
		if r.script(text, at) != nil {
			r.unread = append(r.unread, text)
		}
	})
}

// apart reads something that leaves variables and options as they were.
func (r *reader) apart(f func()) {
	vars, errexit, pipefail := maps.Clone(r.vars), r.errexit, r.pipefail
	f()
	r.vars, r.errexit, r.pipefail = vars, errexit, pipefail
}

// parse tries the dialects that agents write. The parser recurses, so what nests
// too deep is refused before it is seen.
func parse(text string) (*syntax.File, error) {
	if len(text) > maxLine || tooDeep(text) {
		return nil, errUnread
	}
	for _, dialect := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX, syntax.LangZsh} {
		if file, err := syntax.NewParser(syntax.Variant(dialect)).Parse(strings.NewReader(text), ""); err == nil {
			return file, nil
		}
	}
	return nil, errUnread
}

// tooDeep guesses how deep a script nests. Quotes are not considered, so it may be
// wrong either way; what it lets through is bounded by maxLine.
func tooDeep(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
		if depth > maxNesting {
			return true
		}
	}
	words := 0
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" \t\n;&|(){}", c) }) {
		if hasWord("if while until for case select", word) {
			words++
		}
	}
	return words > maxClauses
}

func (r *reader) stmts(list []*syntax.Stmt, at place) {
	for i, s := range list {
		here := at
		if i < len(list)-1 {
			here.certain = at.certain && r.errexit && ends(s)
			here.final = false
		}
		r.stmt(s, here)
	}
}

// ends: under set -e, no failure of any part of the statement is passed over.
func ends(s *syntax.Stmt) bool {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr, *syntax.Subshell:
		return true
	case *syntax.BinaryCmd:
		return c.Op != syntax.AndStmt && c.Op != syntax.OrStmt
	}
	return false
}

func (r *reader) stmt(s *syntax.Stmt, at place) {
	if s.Negated || s.Background || s.Coprocess || s.Disown {
		at = at.aside()
	}
	for _, redirect := range s.Redirs {
		at = r.redirect(redirect, at)
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		r.call(s, c, at)
	case *syntax.BinaryCmd:
		r.binary(c, at)
	case *syntax.Subshell:
		r.apart(func() { r.stmts(c.Stmts, at) })
	case *syntax.Block:
		r.stmts(c.Stmts, at)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			r.stmt(c.Stmt, at)
		}
	case *syntax.DeclClause:
		for _, a := range c.Args {
			r.assign(a, at)
		}
	case nil:
	default:
		r.below(c, at.aside())
	}
}

// below looks for statements below a node of any other kind.
func (r *reader) below(n syntax.Node, at place) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			r.stmt(n, at)
			return false
		case *syntax.CmdSubst, *syntax.ProcSubst:
			at := at.aside()
			at.stdin = input{}
			r.substitution(n, at)
			return false
		case *syntax.WordIter:
			r.forget(n.Name.Value)
		}
		return true
	})
}

func (r *reader) substitution(n syntax.Node, at place) {
	switch n := n.(type) {
	case *syntax.CmdSubst:
		r.stmts(n.Stmts, at)
	case *syntax.ProcSubst:
		r.stmts(n.Stmts, at)
	}
}

func (r *reader) binary(c *syntax.BinaryCmd, at place) {
	left, right := at, at
	switch c.Op {
	case syntax.AndStmt:
		left.final = false
	case syntax.OrStmt:
		left.certain, right.certain = false, false
	default: // pipes
		left.certain = at.certain && r.pipefail
		left.final = false
		left.shown = at.shown && passes(c.Y)
		right.stdin = r.printed(c.X)
	}
	strict := r.errexit
	if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
		r.errexit = false // the shell passes over every failure here
	}
	r.stmt(c.X, left)
	r.errexit = strict
	r.stmt(c.Y, right)
}

// passes: the right side of a pipe hands on lines as they are.
func passes(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return false
	}
	switch c.Args[0].Lit() {
	case "tail", "head", "tee", "cat":
		return true
	}
	return false
}

// printed is what the left side of a pipe prints, if that can be seen.
func (r *reader) printed(s *syntax.Stmt) input {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return input{given: true}
	}
	argv := r.words(c.Args)
	if len(argv) == 0 {
		return input{given: true}
	}
	switch argv[0].text {
	case "echo", "printf":
		text := ""
		for _, w := range argv[1:] {
			if w.unknown() {
				return input{given: true}
			}
			text += strings.ReplaceAll(w.text, `\n`, "\n") + " "
		}
		return input{given: true, known: true, text: text}
	case "cat":
		if len(argv) == 1 || argv[1].text == "-" {
			in := input{given: true}
			for _, d := range s.Redirs {
				in = r.input(d, in)
			}
			return in
		}
	}
	return input{given: true}
}

// redirect says what a redirection does to a place, and reads what is substituted
// in it.
func (r *reader) redirect(d *syntax.Redirect, at place) place {
	for _, w := range []*syntax.Word{d.Word, d.Hdoc} {
		if w != nil {
			r.below(w, at.aside())
		}
	}
	at.stdin = r.input(d, at.stdin)
	if d.N == nil || d.N.Value == "1" {
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrIn, syntax.DplIn:
		case syntax.DplOut:
			at.shown = at.shown && d.Word.Lit() == "2"
		default:
			at.shown = false
		}
	}
	return at
}

// input is what a redirection makes of the standard input.
func (r *reader) input(d *syntax.Redirect, in input) input {
	from := d.Word
	switch d.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		from = d.Hdoc
	case syntax.WordHdoc:
	case syntax.RdrIn, syntax.RdrInOut:
		return input{given: d.Word.Lit() != "/dev/null"}
	default:
		return in
	}
	w := word{}
	if from != nil { // an empty document has none
		w = r.word(from)
	}
	return input{given: true, known: !w.unknown(), text: w.text}
}

func (r *reader) call(s *syntax.Stmt, c *syntax.CallExpr, at place) {
	for _, a := range c.Assigns {
		if len(c.Args) == 0 {
			r.assign(a, at)
		} else {
			r.below(a, at)
		}
	}
	for _, w := range c.Args {
		r.below(w, at)
	}
	if len(c.Args) == 0 {
		return
	}
	argv := r.words(c.Args)
	if len(argv) == 0 {
		return
	}
	if tool := namedFor(c.Args[0]); tool != "" && argv[0].unknown() {
		argv[0].text = tool
	}
	if argv[0].text == "set" {
		r.set(argv[1:])
	}
	r.invoke(argv, r.source(s), at)
}

// namedFor is the program that a variable is named for, as in "$GH issue create".
func namedFor(w *syntax.Word) string {
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil || len(w.Parts) > 1 {
		return ""
	}
	name := strings.ToLower(p.Param.Value)
	if !isProgram(name) {
		return ""
	}
	return name
}

// set notices the options by which a failure inside a line ends it.
func (r *reader) set(args []word) {
	for i, w := range args {
		switch {
		case w.text == "--":
			return
		case w.text == "-o" && i+1 < len(args) && args[i+1].text == "errexit":
			r.errexit = true
		case w.text == "pipefail" && i > 0 && strings.HasSuffix(args[i-1].text, "o") && strings.HasPrefix(args[i-1].text, "-"):
			r.pipefail = true
		case strings.HasPrefix(w.text, "+"):
			r.errexit, r.pipefail = false, false
		}
		if strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "e") {
			r.errexit = true
		}
	}
}

// assign remembers a variable while it has one literal value; a second value
// makes it unknown, for who knows which branch was taken.
func (r *reader) assign(a *syntax.Assign, at place) {
	r.below(a, at)
	if a.Name == nil || a.Naked {
		return
	}
	name := a.Name.Value
	if a.Value == nil || a.Append || a.Index != nil {
		r.forget(name)
		return
	}
	w := r.word(a.Value)
	if old, known := r.vars[name]; known && old != w.text || w.unknown() {
		r.forget(name)
		return
	}
	r.vars[name] = w.text
}

func (r *reader) forget(name string) { r.vars[name] = string(hole) }

// source is a statement as it was written, without what comes after it.
func (r *reader) source(s *syntax.Stmt) string {
	from, to := int(s.Pos().Offset()), int(s.End().Offset())
	if from > to || to > len(r.src) {
		return ""
	}
	return shorten(strings.TrimRight(r.src[from:to], " \t\n;&"))
}

// shorten keeps as much of a command as people read.
func shorten(text string) string {
	const most = 4096
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// redirects reports whether any output goes into a file.
func redirects(file *syntax.File) (found bool) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if d, ok := n.(*syntax.Redirect); ok {
			switch d.Op {
			case syntax.RdrIn, syntax.DplIn, syntax.DplOut, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			default:
				found = found || d.Word == nil || d.Word.Lit() != "/dev/null"
			}
		}
		return !found
	})
	return found
}
