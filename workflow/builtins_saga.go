package workflow

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// starOnce calls a function whose tasks run once in the lineage.
func starOnce(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var label string
	var fn starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "label", &label, "fn", &fn); err != nil {
		return nil, err
	}
	before := line.once
	line.once = label
	defer func() { line.once = before }()
	v, err := starlark.Call(thread, fn, nil, nil)
	if err != nil {
		return nil, err
	}
	if h, ok := v.(*handle); ok {
		return h.value(thread)
	}
	return v, nil
}

// starSaga calls a function; when it halts, what was done in it is undone, the
// last first, and it halts.
func starSaga(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var fn starlark.Value
	name := "saga"
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "fn", &fn, "name?", &name); err != nil {
		return nil, err
	}
	scope := line.sub(fmt.Sprintf("s%d.%s", line.count("/s"), name))
	thread.SetLocal(localBranch, scope)
	defer thread.SetLocal(localBranch, line)
	v, err := starlark.Call(thread, fn, nil, nil)
	if err == nil {
		err = scope.settle()
	}
	line.rejoin(scope)
	if err == nil {
		line.undoes = append(line.undoes, scope.undoes...)
		return v, nil
	}
	if suspends(bodyError(err)) {
		return nil, err
	}
	return nil, scope.undo(thread, err)
}

// rejoin goes on in the place where a sub scope has ended.
func (b *branch) rejoin(sub *branch) {
	b.place, b.lazy, b.forced = sub.place, sub.lazy, sub.forced
}

// undo undoes what has succeeded in a scope, the last first. Each undo is a task
// of its own; one that fails does not keep the others from being done.
func (b *branch) undo(thread *starlark.Thread, cause error) error {
	scope := b.sub("undo")
	thread.SetLocal(localBranch, scope)
	defer thread.SetLocal(localBranch, b)
	for i := len(b.undoes) - 1; i >= 0; i-- {
		h := b.undoes[i]
		out, err := scope.force(h.t)
		if err != nil {
			return err
		}
		if !out.ok() {
			continue
		}
		v, err := starlark.Call(thread, h.undo, starlark.Tuple{value.ToStarlark(out.value)}, nil)
		if err != nil {
			if err = bodyError(err); suspends(err) {
				return err
			}
			cause = &UndoError{Cause: bodyError(cause), Task: h.t.id, Err: err}
			continue
		}
		if other, ok := v.(*handle); ok {
			out, err = scope.force(other.t)
			if err != nil {
				return err
			}
			scope.handled(other.t)
			renew(thread)
		}
		if out.ok() {
			b.e.revoke(h.t, scope.tasks)
		}
	}
	b.rejoin(scope)
	return cause
}
