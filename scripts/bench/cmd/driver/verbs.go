package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/retcon-dev/retcon/vcs"
)

// Methods that a build of the library may lack. They are found by name, so that
// the bench can be run against any state of it: what is not there is skipped
// and said. Options they take are left at their zero value.
var methods = map[string]string{"restore": "Restore", "collect": "Collect", "watch": "Watch"}

type missingError struct{ method string }

func (e *missingError) Error() string { return "vcs.Worktree has no " + e.method + " yet" }

func can(what string) error {
	_, err := method(reflect.ValueOf(&vcs.Worktree{}), methods[what])
	return err
}

func restore(ctx context.Context, w *vcs.Worktree, to vcs.Commit) error {
	_, err := call(ctx, reflect.ValueOf(w), "Restore", to)
	return err
}

func collect(ctx context.Context, w *vcs.Worktree, keep []vcs.Commit) error {
	_, err := call(ctx, reflect.ValueOf(w), "Collect", keep)
	return err
}

// watch returns what captures a worktree that is watched.
func watch(ctx context.Context, w *vcs.Worktree) (take func(context.Context) error, stop func(), err error) {
	out, err := call(ctx, reflect.ValueOf(w), "Watch")
	if err != nil {
		return nil, nil, err
	}
	stop = func() {}
	if len(out) == 0 {
		return func(ctx context.Context) error { _, err := w.Capture(ctx, vcs.CaptureOptions{}); return err }, stop, nil
	}
	if c := out[0].MethodByName("Close"); c.IsValid() && c.Type().NumIn() == 0 {
		stop = func() { c.Call(nil) }
	}
	on := reflect.ValueOf(w)
	if out[0].MethodByName("Capture").IsValid() {
		on = out[0]
	}
	return func(ctx context.Context) error { _, err := call(ctx, on, "Capture"); return err }, stop, nil
}

func method(on reflect.Value, name string) (reflect.Value, error) {
	m := on.MethodByName(name)
	if !m.IsValid() {
		return m, &missingError{name}
	}
	return m, nil
}

// call calls a method with ctx, the arguments given, and zero values for what
// else it takes. It returns the results but the error.
func call(ctx context.Context, on reflect.Value, name string, args ...any) ([]reflect.Value, error) {
	m, err := method(on, name)
	if err != nil {
		return nil, err
	}
	in := []reflect.Value{}
	given := append([]any{ctx}, args...)
	for i := range m.Type().NumIn() {
		want := m.Type().In(i)
		if m.Type().IsVariadic() && i == m.Type().NumIn()-1 {
			break
		}
		if len(given) > 0 && reflect.TypeOf(given[0]).AssignableTo(want) {
			in, given = append(in, reflect.ValueOf(given[0])), given[1:]
			continue
		}
		in = append(in, reflect.Zero(want))
	}
	if len(given) > 0 && strings.HasPrefix(fmt.Sprintf("%T", given[0]), "context.") {
		given = given[1:]
	}
	if len(given) > 0 {
		return nil, fmt.Errorf("%s does not take a %T: adapt the driver", name, given[0])
	}
	out := m.Call(in)
	if n := len(out); n > 0 {
		if err, ok := out[n-1].Interface().(error); ok {
			return nil, err
		} else if out[n-1].Type().Implements(reflect.TypeFor[error]()) {
			out = out[:n-1]
		}
	}
	return out, nil
}
