package workflow

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

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
