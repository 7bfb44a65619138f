package workflow

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// Body is a workflow written in Go. It must do the same whenever it is called
// with the same outcomes: no clock, no randomness, no environment, no
// goroutines, no order of a map. What it needs of those are tasks.
//
// A body that has to wait while it is rendered ends there: its goroutine exits,
// deferred functions run, recover sees nothing.
type Body func(w *Context) (any, error)

// GoProgram is a Go body with what identifies it.
type GoProgram struct {
	Name    string
	Version string // changes when the body does what it did not do before
	Body    Body
}

// goBody is a Go program as the engine runs it.
type goBody struct {
	p   GoProgram
	def *Definition
}

func newGoBody(p GoProgram) *goBody {
	d := &Definition{Name: p.Name, Main: p.Name, Files: map[string][]byte{}, Version: p.Version}
	d.seal()
	return &goBody{p: p, def: d}
}

func (g *goBody) definition() *Definition { return g.def }

func (g *goBody) main(b *branch, input value.V) error {
	return inGoroutine(b, func(w *Context) error {
		w.input = input
		v, err := g.p.Body(w)
		if err != nil {
			return err
		}
		got, err := value.FromGo(v)
		if err != nil {
			return &BodyError{At: g.p.Name, Message: "the body returned what can't be kept: " + err.Error()}
		}
		return b.finish(got)
	})
}

// inGoroutine calls a part of a body where it can end by leaving its goroutine.
func inGoroutine(b *branch, fn func(w *Context) error) error {
	w := &Context{b: b}
	err := errors.New("BUG: a Go body has left its goroutine")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if w.left != nil {
				err = w.left
			}
		}()
		err = fn(w)
	}()
	<-done
	return err
}

// StartGo runs a Go program as a new run.
func StartGo(ctx context.Context, o Options, p GoProgram, name string, input any) (*Result, error) {
	v, err := value.FromGo(input)
	if err != nil {
		return nil, &InputError{What: "input", Value: fmt.Sprintf("%T", input), Origin: "the program", Reason: err.Error()}
	}
	o.Input = v
	return start(ctx, o, newGoBody(p), name)
}

// ResumeGo goes on with a run of a Go program, see [Resume].
func ResumeGo(ctx context.Context, o Options, run int64, p GoProgram) (*Result, error) {
	return resume(ctx, o, run, newGoBody(p), false)
}

// Context is what a Go body declares its tasks with. It belongs to the
// goroutine it was given to.
type Context struct {
	b     *branch
	input value.V
	left  error // why the goroutine was left
}

// leave ends the goroutine of the body with an error.
func (w *Context) leave(err error) {
	w.left = err
	runtime.Goexit()
}

// Input stores the run's input where dst points.
func (w *Context) Input(dst any) error { return value.ToGo(w.input, dst) }

// TaskOptions are what a task may be declared with. The zero value is fine.
type TaskOptions struct {
	Key     string
	Fx      Fx     // FxPure for a function, FxWrite for a command, when empty
	Version string // of a function: changes when it would give another result
	Uses    []AnyTask
	Retry   Retry
	Decl    func(*Decl) // for what else there is
}

// AnyTask is a task of any type.
type AnyTask interface{ handleOf() *task }

// Task stands for the outcome of a task.
type Task[T any] struct {
	w *Context
	t *task
}

func (t *Task[T]) handleOf() *task { return t.t }

// ID is the task's id in the run.
func (t *Task[T]) ID() string { return t.t.id }

// Out waits for the outcome and returns the value. A failure halts the body.
func (t *Task[T]) Out() T {
	v, err := t.w.b.value(t.t)
	if err != nil {
		t.w.leave(err)
	}
	return t.decode(v)
}

// Result waits for the outcome and returns the value, or the failure as a
// *Failure.
func (t *Task[T]) Result() (T, error) {
	out, err := t.w.b.force(t.t)
	if err != nil {
		t.w.leave(err)
	}
	t.w.b.handled(t.t)
	if !out.ok() {
		var none T
		f := Failure(*out.failure)
		return none, &f
	}
	return t.decode(out.value), nil
}

// Failure is why a task failed.
type Failure value.Failure

func (f *Failure) Error() string { return (*value.Failure)(f).Error() }

func (t *Task[T]) decode(v value.V) (out T) {
	if err := value.ToGo(v, &out); err != nil {
		t.w.leave(&BodyError{At: t.t.id, Message: fmt.Sprintf("its outcome is not a %T: %v", out, err)})
	}
	return out
}

// Do declares a task that calls a function. In and Out are data, as
// encoding/json understands it. A function of FxRead or FxWrite gets the
// directory of its worktree from [Dir].
func Do[In, Out any](w *Context, name string, fn func(context.Context, In) (Out, error), in In, o TaskOptions) *Task[Out] {
	v, err := value.FromGo(in)
	if err != nil {
		w.leave(&BodyError{At: name, Message: "its argument: " + err.Error()})
	}
	d := Decl{Kind: KindPure, Name: name, Fx: FxPure, At: caller(),
		run: func(ctx context.Context, x *execution) (value.V, *value.Failure, error) {
			var in In
			given, _ := x.Args.Get("in")
			if err := value.ToGo(given, &in); err != nil {
				return nil, nil, err
			}
			out, err := fn(context.WithValue(ctx, dirKey{}, x.Dir), in)
			if err != nil {
				if ctx.Err() != nil {
					return nil, nil, ctx.Err()
				}
				return nil, goFailure(err), nil
			}
			got, err := value.FromGo(out)
			if err != nil {
				return nil, &value.Failure{Type: FailureOutput, Message: err.Error()}, nil
			}
			return got, nil, nil
		}}
	args := []value.Entry{{Key: "in", Value: v}}
	if o.Version != "" {
		args = append(args, value.Entry{Key: "version", Value: o.Version})
	}
	return declareGo[Out](w, d, args, o)
}

type dirKey struct{}

// Dir is the directory of the worktree that a task runs in, "" for a pure one.
func Dir(ctx context.Context) string {
	dir, _ := ctx.Value(dirKey{}).(string)
	return dir
}

// goFailure is an error as a value: its text, not where it came from.
func goFailure(err error) *value.Failure {
	var f *Failure
	if errors.As(err, &f) {
		return (*value.Failure)(f)
	}
	return &value.Failure{Type: FailureError, Message: err.Error()}
}

// Shell declares a task that runs a command. Its outcome is what it prints.
func Shell(w *Context, name, command string, o TaskOptions) *Task[string] {
	d := Decl{Kind: KindShell, Name: name, Fx: FxWrite, At: caller(), run: runShell}
	return declareGo[string](w, d, []value.Entry{{Key: "command", Value: command}}, o)
}

func declareGo[T any](w *Context, d Decl, args []value.Entry, o TaskOptions) *Task[T] {
	d.Key, d.Retry = o.Key, o.Retry
	if o.Fx != "" {
		d.Fx = o.Fx
	}
	if len(o.Uses) > 0 {
		var uses []value.V
		for _, u := range o.Uses {
			uses = append(uses, value.Ref{Task: u.handleOf().id})
		}
		args = append(args, value.Entry{Key: "uses", Value: uses})
	}
	d.Args = value.DictOf(args...)
	if o.Decl != nil {
		own := d // on the heap, as few others need be
		o.Decl(&own)
		d = own
	}
	t, err := w.b.declare(d)
	if err != nil {
		w.leave(err)
	}
	return &Task[T]{w: w, t: t}
}

// callers are places in the program, by what the runtime calls them: a body
// comes by the same ones again and again.
var callers sync.Map

// caller is the place in the program that declares a task.
func caller() string {
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	if at, ok := callers.Load(pc[0]); ok {
		return at.(string)
	}
	frame, _ := runtime.CallersFrames(pc[:]).Next()
	at := fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
	callers.Store(pc[0], at)
	return at
}

// Branch is one branch of a Parallel.
type Branch struct {
	Name string
	Body func(w *Context) error
}

// Parallel runs branches side by side. Those that write get worktrees of their
// own, and are merged. The error is that of the first in order that has one.
func (w *Context) Parallel(branches ...Branch) {
	limbs := make([]limb, len(branches))
	for i, b := range branches {
		limbs[i] = limb{name: b.Name, body: func(kid *branch) (any, error) {
			return nil, inGoroutine(kid, func(kw *Context) error {
				kw.input = w.input
				return b.Body(kw)
			})
		}}
	}
	if _, err := w.b.parallel("p", limbs, true); err != nil {
		w.leave(err)
	}
}
