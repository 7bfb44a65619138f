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

func starSignal(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var o options
	var schema, of starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &o.name, "schema?", &schema, "of?", &of, "key?", &o.key); err != nil {
		return nil, err
	}
	d, err := o.declaring(thread, line, KindSignal, FxPure)
	if err != nil {
		return nil, err
	}
	given := map[string]value.V{}
	if err := d.more(given, map[string]starlark.Value{"schema": schema, "of": of}); err != nil {
		return nil, err
	}
	if s, ok := given["schema"]; ok {
		if _, err := value.CompileSchema(s); err != nil {
			return nil, &BodyError{Message: "schema: " + err.Error()}
		}
	}
	return d.task(given)
}

// wait declares a task of the engine's own and waits for its value.
func wait(thread *starlark.Thread, line *branch, kind, name string, args map[string]value.V) (starlark.Value, error) {
	o := options{name: name}
	d, err := o.declaring(thread, line, kind, FxPure)
	if err != nil {
		return nil, err
	}
	h, err := d.task(args)
	if err != nil {
		return nil, err
	}
	return h.value(thread)
}

func starTimer(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return timerTask(thread, b, args, kwargs)
}

func starSleep(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	h, err := timerTask(thread, b, args, kwargs)
	if err != nil {
		return nil, err
	}
	return h.value(thread)
}

func timerTask(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (*handle, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var length starlark.Value
	var o options
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "duration", &length, "key?", &o.key); err != nil {
		return nil, err
	}
	long, err := duration(b.Name(), length)
	if err != nil {
		return nil, err
	}
	o.name = b.Name()
	d, err := o.declaring(thread, line, KindTimer, FxPure)
	if err != nil {
		return nil, err
	}
	return d.task(map[string]value.V{"seconds": long.Seconds()})
}

func starUntil(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var at starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "time", &at); err != nil {
		return nil, err
	}
	v, err := value.FromStarlark(at, line.handleRef, nil)
	if err != nil {
		return nil, &BodyError{Message: "until: " + err.Error()}
	}
	if s, ok := v.(string); ok {
		if v, err = instant(s); err != nil {
			return nil, err
		}
	}
	return wait(thread, line, KindTimer, "until", map[string]value.V{"until": v})
}

func starNow(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return recorded(thread, b, args, kwargs, KindNow)
}

func starUUID(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return recorded(thread, b, args, kwargs, KindUUID)
}

func recorded(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, kind string) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	return wait(thread, line, kind, b.Name(), nil)
}

func starRandint(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var low, high int64
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "low", &low, "high", &high); err != nil {
		return nil, err
	}
	if low > high {
		return nil, &BodyError{Message: fmt.Sprintf("randint: nothing lies between %d and %d", low, high)}
	}
	return wait(thread, line, KindRandom, b.Name(), map[string]value.V{"low": low, "high": high})
}

func starChoice(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var items starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "items", &items); err != nil {
		return nil, err
	}
	if l, ok := items.(starlark.Sequence); ok && l.Len() == 0 {
		return nil, &BodyError{Message: "choice: the list is empty"}
	}
	v, err := value.FromStarlark(items, line.handleRef, line.e.intern)
	if err != nil {
		return nil, &BodyError{Message: "choice: " + err.Error()}
	}
	return wait(thread, line, KindChoice, b.Name(), map[string]value.V{"items": v})
}

func starCheckpoint(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var label string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "label", &label); err != nil {
		return nil, err
	}
	if err := checkLabel(label); err != nil {
		return nil, &BodyError{Message: "checkpoint: " + err.Error()}
	}
	o := options{name: "checkpoint", key: label}
	d, err := o.declaring(thread, line, KindMark, FxRead)
	if err != nil {
		return nil, err
	}
	d.decl.run = nil
	h, err := d.task(map[string]value.V{"label": label})
	if err != nil {
		return nil, err
	}
	return h.value(thread)
}

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
		if err != nil && suspends(bodyError(err)) {
			return err
		}
		if other, ok := v.(*handle); ok && err == nil {
			out, err = scope.force(other.t)
			if err != nil {
				return err
			}
			scope.handled(other.t)
			renew(thread)
		}
		if err == nil && out.ok() {
			b.e.revoke(h.t, scope.tasks)
		}
	}
	b.rejoin(scope)
	return cause
}
