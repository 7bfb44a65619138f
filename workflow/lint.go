package workflow

import (
	"cmp"
	"fmt"
	"slices"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"
)

// Finding is something in a body that is probably not what was meant.
type Finding struct {
	File    string
	Line    int
	Col     int
	Message string
	Hint    string
}

// Lint looks a loaded program over, all of its modules, and returns what it
// finds in the order of files and lines. It reports only what it is sure of: a
// program without findings may still be wrong.
func (p *Program) Lint() []Finding {
	var l linter
	for _, m := range p.p.modules {
		l.module(m)
	}
	slices.SortFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(l.found)
}

type linter struct{ found []Finding }

func (l *linter) report(pos syntax.Position, message, hint string) {
	l.found = append(l.found, Finding{File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col), Message: message, Hint: hint})
}

// declares are the builtins that return a handle.
var declares = map[string]bool{"sh": true, "agent": true, "pure": true, "http": true, "signal": true, "timer": true, "race": true, "effect": true}

// module looks at a file.
func (l *linter) module(m *module) {
	syntax.Walk(m.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ForStmt:
			l.forLoop(n)
		case *syntax.ExprStmt:
			l.statement(n)
		case *syntax.CallExpr:
			l.call(n)
		}
		return true
	})
	l.unread(m)
}

// builtinName is the builtin that a call calls, "" when it is something else: a
// name that the file gives another meaning is not looked at.
func builtinName(call *syntax.CallExpr) string {
	id, ok := call.Fn.(*syntax.Ident)
	if !ok {
		return ""
	}
	b, ok := id.Binding.(*resolve.Binding)
	if !ok || b.Scope != resolve.Predeclared && b.Scope != resolve.Universal {
		return ""
	}
	return id.Name
}

// unread finds tasks whose handle is given a name that nobody uses. They run all
// the same; but who named them probably wanted something of them.
func (l *linter) unread(m *module) {
	read := map[*syntax.Ident]int{}
	var named []*syntax.AssignStmt
	count := func(n syntax.Node, by int) {
		syntax.Walk(n, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Ident); ok {
				if b, ok := id.Binding.(*resolve.Binding); ok {
					read[b.First] += by
				}
			}
			return true
		})
	}
	count(m.file, 1)
	syntax.Walk(m.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.AssignStmt:
			if id, ok := n.LHS.(*syntax.Ident); ok && n.Op == syntax.EQ {
				count(id, -1)
				named = append(named, n)
			}
		case *syntax.ForStmt:
			count(n.Vars, -1)
		}
		return true
	})
	for _, n := range named {
		id := n.LHS.(*syntax.Ident)
		b, ok := id.Binding.(*resolve.Binding)
		call, isCall := n.RHS.(*syntax.CallExpr)
		if !ok || !isCall || b.Scope != resolve.Local || read[b.First] > 0 || id.Name[0] == '_' {
			continue
		}
		if kind := builtinName(call); declares[kind] {
			l.report(id.NamePos, fmt.Sprintf("%s is never used", id.Name), unusedHint(kind, id.Name))
		}
	}
}

func unusedHint(kind, name string) string {
	if waits[kind] {
		return name + ".out() waits for it"
	}
	return fmt.Sprintf("%s.out() waits for it and takes its value; without need for either, leave the name out", name)
}

// waits are the builtins that are there to be waited for.
var waits = map[string]bool{"signal": true, "timer": true}

// statement finds a wait that nobody waits for: what stands below it does not.
func (l *linter) statement(s *syntax.ExprStmt) {
	call, ok := s.X.(*syntax.CallExpr)
	if !ok {
		return
	}
	if kind := builtinName(call); waits[kind] {
		l.report(callPos(call), "what follows does not wait for this "+kind, kind+"(…).out()")
	}
}

// call looks at one call.
func (l *linter) call(call *syntax.CallExpr) {
	if builtinName(call) == "each" {
		l.each(call)
	}
}

// each finds branches that go by their place in the list: range() gives the
// same keys to other items when the list changes.
func (l *linter) each(call *syntax.CallExpr) {
	var items syntax.Expr
	for i, a := range call.Args {
		name, value := argument(a)
		switch {
		case name == "key":
			return
		case name == "items" || name == "" && i == 0:
			items = value
		}
	}
	inner, ok := items.(*syntax.CallExpr)
	if !ok {
		return
	}
	switch builtinName(inner) {
	case "range":
		if args := inner.Args; len(args) == 1 && isCall(args[0], "len") {
			l.report(callPos(call), "the branches are keyed by their place in the list, so an item that is put in front runs all of them again",
				"each(items, fn): the items themselves, or key=lambda i: …")
		}
	case "enumerate":
		l.report(callPos(call), "the branches are keyed by their place in the list, so an item that is put in front runs all of them again",
			"each(items, fn), or key=lambda pair: pair[1]")
	}
}

func isCall(e syntax.Expr, name string) bool {
	call, ok := e.(*syntax.CallExpr)
	return ok && builtinName(call) == name
}

func argument(a syntax.Expr) (name string, value syntax.Expr) {
	if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
		if id, ok := b.X.(*syntax.Ident); ok {
			return id.Name, b.Y
		}
	}
	return "", a
}

func callPos(call *syntax.CallExpr) syntax.Position { start, _ := call.Span(); return start }

// forLoop reports list.append(sh(…).out()): the tasks run one after the other,
// though the value is only collected, so waiting can be done behind the loop. It does so for
// tasks that do not write, which alone can run side by side in one worktree.
func (l *linter) forLoop(loop *syntax.ForStmt) {
	for _, s := range loop.Body {
		expr, ok := s.(*syntax.ExprStmt)
		if !ok {
			continue
		}
		call, ok := expr.X.(*syntax.CallExpr)
		if !ok || len(call.Args) != 1 {
			continue
		}
		to, ok := call.Fn.(*syntax.DotExpr)
		if !ok || to.Name.Name != "append" {
			continue
		}
		list, ok := to.X.(*syntax.Ident)
		if !ok || used(loop.Body, list.Name) > 1 {
			continue // a turn looks at what the others gave
		}
		task := outOf(call.Args[0])
		if task == nil || !harmless(task) {
			continue
		}
		l.report(callPos(call), "the tasks of this loop run one after the other: each is waited for before the next is declared",
			fmt.Sprintf("%s.append(task), and call out() behind the loop; or each(items, fn)", list.Name))
	}
}

// outOf is the declaration in sh(…).out().
func outOf(e syntax.Expr) *syntax.CallExpr {
	call, ok := e.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	dot, ok := call.Fn.(*syntax.DotExpr)
	if !ok || dot.Name.Name != "out" {
		return nil
	}
	task, ok := dot.X.(*syntax.CallExpr)
	if !ok || !declares[builtinName(task)] {
		return nil
	}
	return task
}

// harmless tells that a task surely does not write to the worktree.
func harmless(task *syntax.CallExpr) bool {
	switch builtinName(task) {
	case "pure", "http":
		return true
	}
	for _, a := range task.Args {
		if name, v := argument(a); name == "fx" {
			lit, ok := v.(*syntax.Literal)
			return ok && (lit.Value == "read" || lit.Value == "pure")
		}
	}
	return false
}

// used counts how often a name stands in statements.
func used(body []syntax.Stmt, name string) (n int) {
	for _, s := range body {
		syntax.Walk(s, func(node syntax.Node) bool {
			if id, ok := node.(*syntax.Ident); ok && id.Name == name {
				n++
			}
			return true
		})
	}
	return n
}
