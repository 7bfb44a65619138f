package workflow

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

func starParallel(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var branches starlark.Value
	merge := true
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "branches", &branches, "merge?", &merge); err != nil {
		return nil, err
	}
	var names []starlark.Value
	var limbs []limb
	add := func(name string, fn starlark.Value) error {
		if _, ok := fn.(starlark.Callable); !ok {
			return &BodyError{Message: fmt.Sprintf("parallel: %s is a %s, not a function", name, fn.Type()), Hint: `parallel({"a": lambda: …})`}
		}
		if name == "" || strings.ContainsAny(name, "/[]~#") {
			return &BodyError{Message: fmt.Sprintf("parallel: %q can't name a branch", name)}
		}
		limbs = append(limbs, starLimb(thread, name, fn, nil))
		return nil
	}
	switch v := branches.(type) {
	case *starlark.Dict:
		for _, item := range v.Items() {
			name, ok := starlark.AsString(item[0])
			if !ok {
				return nil, &BodyError{Message: "parallel: branches are named by strings"}
			}
			if err := add(name, item[1]); err != nil {
				return nil, err
			}
			names = append(names, item[0])
		}
	case starlark.Indexable:
		for i := range v.Len() {
			if err := add(fmt.Sprint(i), v.Index(i)); err != nil {
				return nil, err
			}
		}
	default:
		return nil, &BodyError{Message: "parallel: a dict or list of functions", Hint: `parallel({"a": lambda: …})`}
	}
	branches.Freeze()
	values, err := line.parallel("p", limbs, merge)
	renew(thread)
	if err != nil {
		return nil, err
	}
	list := frozen(values)
	if names == nil {
		return starlark.NewList(list), nil
	}
	d := starlark.NewDict(len(list))
	for i, v := range list {
		if err := d.SetKey(names[i], v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func starEach(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var items, fn, key starlark.Value
	merge := true
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "items", &items, "fn", &fn, "key?", &key, "merge?", &merge); err != nil {
		return nil, err
	}
	if h, ok := items.(*handle); ok {
		if items, err = h.value(thread); err != nil {
			return nil, err
		}
	}
	list, ok := items.(starlark.Iterable)
	if !ok {
		return nil, &BodyError{Message: "each: a " + items.Type() + " is not a list"}
	}
	var limbs []limb
	seen := map[string]bool{}
	it := list.Iterate()
	defer it.Done()
	var item starlark.Value
	for it.Next(&item) {
		item.Freeze()
		name, err := itemKey(thread, item, key)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, &BodyError{Message: fmt.Sprintf("each: two items have the key %q", name), Hint: "each(items, fn, key=lambda item: …)"}
		}
		seen[name] = true
		limbs = append(limbs, starLimb(thread, name, fn, item))
	}
	values, err := line.parallel("e", limbs, merge)
	renew(thread)
	if err != nil {
		return nil, err
	}
	return starlark.NewList(frozen(values)), nil
}

// itemKey names an item: by the function given, by itself when it is short
// text or a number, else by its content.
func itemKey(thread *starlark.Thread, item, key starlark.Value) (string, error) {
	if key != nil && key != starlark.None {
		var err error
		if item, err = starlark.Call(thread, key, starlark.Tuple{item}, nil); err != nil {
			return "", err
		}
	}
	name, ok := starlark.AsString(item)
	if n, isInt := item.(starlark.Int); isInt {
		name, ok = n.String(), true
	}
	if ok && name != "" && len(name) <= 60 && !strings.ContainsAny(name, "[]~#\n") {
		return strings.ReplaceAll(name, "/", "."), nil
	}
	v, err := value.FromStarlark(item, nil, nil)
	if err != nil {
		return "", &BodyError{Message: "each: " + err.Error(), Hint: "each(items, fn, key=lambda item: …)"}
	}
	h := value.Hash(value.Encode(v))
	return snapshot.Hash(h).Short(), nil
}

// starLimb is a branch that calls a Starlark function.
func starLimb(thread *starlark.Thread, name string, fn, item starlark.Value) limb {
	fn.Freeze() // and what it refers to: no branch sees what another does
	p := thread.Local(localProgram).(*program)
	var args starlark.Tuple
	if item != nil {
		args = starlark.Tuple{item}
	}
	return limb{name: name, body: func(b *branch) (any, error) {
		v, err := p.call(b, fn, args)
		if err != nil {
			return nil, err
		}
		v.Freeze()
		return v, nil
	}}
}

func frozen(values []any) []starlark.Value {
	list := make([]starlark.Value, len(values))
	for i, v := range values {
		list[i] = v.(starlark.Value)
	}
	return list
}

func starRace(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var runners *starlark.List
	var o options
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"runners", &runners}, o.pairs()...)...); err != nil {
		return nil, err
	}
	d, err := o.declaring(thread, line, KindRace, FxPure)
	if err != nil {
		return nil, err
	}
	d.named("race")
	var list []value.V
	for i := range runners.Len() {
		h, ok := runners.Index(i).(*handle)
		if !ok {
			return nil, &BodyError{Message: "race: a list of tasks that were not waited for"}
		}
		ref, ok := line.handleRef(h)
		if !ok {
			return nil, &BodyError{Message: "race: a task of another run"}
		}
		list = append(list, ref)
	}
	if len(list) == 0 {
		return nil, &BodyError{Message: "race: nobody takes part"}
	}
	return d.task(map[string]value.V{"runners": list})
}

func starLoop(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var fn starlark.Value
	limit, name := 10, "loop"
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "fn", &fn, "max?", &limit, "name?", &name); err != nil {
		return nil, err
	}
	key := fmt.Sprintf("~loop/%s%s", line.scope, name)
	if n := line.count("~" + name); n > 0 {
		key = fmt.Sprintf("%s#%d", key, n+1)
	}
	for i := range limit {
		line.iterate(key, i, snapshot.Pending)
		v, err := starlark.Call(thread, fn, starlark.Tuple{starlark.MakeInt(i)}, nil)
		if err != nil {
			return nil, err
		}
		if v != starlark.None {
			line.iterate(key, i+1, snapshot.Done)
			return v, nil
		}
	}
	line.iterate(key, limit, snapshot.Failed)
	return nil, &FailError{Message: fmt.Sprintf("%s: not done after %d iterations", name, limit), At: thread.CallFrame(1).Pos.String()}
}

// iterate writes down how far a loop is.
func (b *branch) iterate(key string, done int, state snapshot.State) {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	b.e.extra[key] = snapshot.Row{Key: key, Kind: "loop", State: state, Iter: uint32(done)}
}
