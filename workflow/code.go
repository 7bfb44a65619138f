package workflow

import (
	"context"
	"errors"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// codeOf is what a function of the body is made of, as data: its own source,
// that of the functions it names, and the values it refers to. A pure task is
// run again when any of that changes, and only then.
func codeOf(thread *starlark.Thread, fn *starlark.Function) (value.V, error) {
	c := coder{program: thread.Local(localProgram).(*program), seen: map[string]value.V{}}
	if err := c.function(fn); err != nil {
		return nil, err
	}
	return value.Output{Hash: value.Hash(value.Encode(value.NewDict(c.seen)))}, nil
}

type coder struct {
	program *program
	seen    map[string]value.V
}

func (c *coder) function(fn *starlark.Function) error {
	pos := fn.Position()
	at := pos.String()
	if _, ok := c.seen[at]; ok {
		return nil
	}
	m := c.program.modules[pos.Filename()]
	if m == nil {
		return &BodyError{Message: fn.Name() + " is not a function of the body"}
	}
	node := functionAt(m.file, pos)
	if node == nil {
		return &BodyError{Message: "the source of " + fn.Name() + " was not found"}
	}
	src, err := c.program.source(m.path)
	if err != nil {
		return err
	}
	c.seen[at] = slice(src, node)
	for i := range fn.NumFreeVars() {
		binding, v := fn.FreeVar(i)
		if err := c.refers(at+" "+binding.Name, v); err != nil {
			return err
		}
	}
	for i := range fn.NumParams() {
		if v := fn.ParamDefault(i); v != nil {
			name, _ := fn.Param(i)
			if err := c.refers(at+" ="+name, v); err != nil {
				return err
			}
		}
	}
	globals := fn.Globals()
	for _, name := range names(node) {
		if v, ok := globals[name]; ok {
			if err := c.refers(m.path+" "+name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// refers adds what a name stands for.
func (c *coder) refers(name string, v starlark.Value) error {
	switch v := v.(type) {
	case *starlark.Function:
		return c.function(v)
	case *starlark.Builtin:
		return nil
	}
	got, err := value.FromStarlark(v, nil, nil)
	if err != nil {
		return &BodyError{Message: "pure: it refers to " + name + ": " + err.Error(), Hint: "give it what it needs as arguments"}
	}
	c.seen[name] = got
	return nil
}

// functionAt finds the def or lambda that begins at a place.
func functionAt(f *syntax.File, at syntax.Position) (found syntax.Node) {
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DefStmt:
			if n.Def == at || n.Name.NamePos == at {
				found = n
			}
		case *syntax.LambdaExpr:
			if n.Lambda == at {
				found = n
			}
		}
		return found == nil
	})
	return found
}

// names are the identifiers used in a function, in order.
func names(node syntax.Node) []string {
	var all []string
	syntax.Walk(node, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok {
			all = append(all, id.Name)
		}
		return true
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// slice is the source of a node, by lines and columns; columns count
// characters.
func slice(src []byte, node syntax.Node) string {
	from, to := node.Span()
	start, end := offset(src, from), offset(src, to)
	return string(src[start:max(start, end)])
}

func offset(src []byte, at syntax.Position) int {
	line, col := int32(1), int32(1)
	for i, r := range string(src) {
		if line == at.Line && col == at.Col {
			return i
		}
		col++
		if r == '\n' {
			line, col = line+1, 1
		}
	}
	return len(src)
}

// pureRunner runs a Starlark function as a task.
func pureRunner(fn *starlark.Function) runner {
	return func(ctx context.Context, x *execution) (value.V, *value.Failure, error) {
		thread := &starlark.Thread{Name: x.Task, Print: func(_ *starlark.Thread, s string) { x.e.print(s) }}
		thread.SetMaxExecutionSteps(100 * maxSteps)
		stop := context.AfterFunc(ctx, func() { thread.Cancel("it was stopped") })
		defer stop()
		list, _ := x.Args.Get("args")
		items, _ := list.([]value.V)
		args := make(starlark.Tuple, len(items))
		for i, v := range items {
			args[i] = value.ToStarlark(v)
		}
		v, err := starlark.Call(thread, fn, args, nil)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err == nil {
			var got value.V
			if got, err = value.FromStarlark(v, nil, nil); err == nil {
				return got, nil, nil
			}
		}
		err = bodyError(err)
		f := &value.Failure{Type: FailureError, Message: err.Error()}
		var gave *FailError
		if errors.As(err, &gave) {
			f = &value.Failure{Type: FailureFail, Message: gave.Message}
		}
		return nil, f, nil
	}
}
