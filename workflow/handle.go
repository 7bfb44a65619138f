package workflow

import (
	"fmt"
	"sync"

	"go.starlark.net/starlark"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// handle stands for a task's outcome in a Starlark body.
type handle struct {
	t        *task
	b        *branch            // that declared it
	fallback *starlark.Function // called with the failure when it is needed
	fall     sync.Mutex         // two branches may need it
	fell     starlark.Value     // what it gave
	undo     *starlark.Function
}

func (h *handle) String() string        { return "<task " + h.t.id + ">" }
func (h *handle) Type() string          { return "task" }
func (h *handle) Freeze()               {}
func (h *handle) Truth() starlark.Bool  { return starlark.True }
func (h *handle) Hash() (uint32, error) { return starlark.String(h.t.id).Hash() }

func (h *handle) AttrNames() []string { return []string{"id", "out", "result"} }

func (h *handle) Attr(name string) (starlark.Value, error) {
	switch name {
	case "id":
		return starlark.String(h.t.id), nil
	case "out":
		return starlark.NewBuiltin("out", h.out), nil
	case "result":
		return starlark.NewBuiltin("result", h.result), nil
	}
	return nil, nil
}

// out waits for the outcome, and halts the scope when it is a failure.
func (h *handle) out(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	return h.value(thread)
}

func (h *handle) value(thread *starlark.Thread) (starlark.Value, error) {
	at := lineOf(thread)
	out, err := at.force(h.t)
	renew(thread)
	if err != nil {
		return nil, err
	}
	if out.ok() {
		return value.ToStarlark(out.value), nil
	}
	if h.fallback == nil {
		return nil, &HaltError{Task: h.t.id, At: h.t.decl.At, Failure: *out.failure, State: out.state}
	}
	return h.fallBack(thread, out)
}

// fallBack calls the fallback, once: what it declares is part of the graph.
func (h *handle) fallBack(thread *starlark.Thread, out *outcome) (starlark.Value, error) {
	lineOf(thread).handled(h.t)
	h.fall.Lock()
	defer h.fall.Unlock()
	if h.fell != nil {
		return h.fell, nil
	}
	v, err := starlark.Call(thread, h.fallback, starlark.Tuple{value.ToStarlark(out.failure.V())}, nil)
	if err != nil {
		return nil, err
	}
	if other, ok := v.(*handle); ok {
		if v, err = other.value(thread); err != nil {
			return nil, err
		}
	}
	h.fell = v
	return v, nil
}

// result waits for the outcome and returns it as data, whatever it is.
func (h *handle) result(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	at := lineOf(thread)
	out, err := at.force(h.t)
	renew(thread)
	if err != nil {
		return nil, err
	}
	at.handled(h.t)
	d := map[string]value.V{"ok": out.ok(), "value": nil, "error": nil, "attempts": int64(h.t.attempt)}
	if out.ok() {
		d["value"] = out.value
	} else {
		d["error"] = out.failure.V()
	}
	return value.ToStarlark(value.NewDict(d)), nil
}

// handleRef tells the value package what a handle stands for.
func (b *branch) handleRef(v starlark.Value) (value.Ref, bool) {
	h, ok := v.(*handle)
	if !ok || h.t.branch.e != b.e {
		return value.Ref{}, false
	}
	return value.Ref{Task: h.t.id}, true
}

// lineOf is the branch that a thread runs. It is nil while a module is
// initialised.
func lineOf(thread *starlark.Thread) *branch {
	b, _ := thread.Local(localBranch).(*branch)
	return b
}

// renew gives a thread that has waited its steps again.
func renew(thread *starlark.Thread) {
	thread.SetMaxExecutionSteps(thread.ExecutionSteps() + maxSteps)
}

// inBody refuses a builtin that makes sense only in a running body.
func inBody(thread *starlark.Thread, name string) (*branch, error) {
	if b := lineOf(thread); b != nil {
		return b, nil
	}
	return nil, &BodyError{Message: fmt.Sprintf("%s: tasks are declared in main, not while a file is loaded", name)}
}
