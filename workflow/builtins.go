package workflow

import (
	"fmt"
	"path"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// builtins are the names every body knows beside Starlark's own.
func builtins() starlark.StringDict {
	d := starlark.StringDict{"json": jsonModule, "struct": starlark.NewBuiltin("struct", starlarkstruct.Make)}
	for name, fn := range map[string]builtin{
		"sh": starShell, "effect": starEffect, "agent": starAgent, "pure": starPure, "http": starHTTP,
		"parallel": starParallel, "each": starEach, "race": starRace, "loop": starLoop,
		"signal": starSignal, "timer": starTimer, "sleep": starSleep, "until": starUntil,
		"now": starNow, "uuid4": starUUID, "randint": starRandint, "choice": starChoice,
		"once": starOnce, "checkpoint": starCheckpoint, "saga": starSaga, "file": starFile, "fail": starFail,
	} {
		d[name] = starlark.NewBuiltin(name, fn)
	}
	return d
}

type builtin = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

// options are the keywords that every task takes.
type options struct {
	name, key, fx, once                   string
	retry, timeout, cache, fallback, undo starlark.Value
}

func (o *options) pairs() []any {
	return []any{"name?", &o.name, "key?", &o.key, "fx?", &o.fx, "retry?", &o.retry, "timeout?", &o.timeout,
		"cache?", &o.cache, "fallback?", &o.fallback, "undo?", &o.undo, "once?", &o.once}
}

// declaring is the part of a declaration that all tasks have in common.
type declaring struct {
	thread *starlark.Thread
	b      *branch
	opt    options
	decl   Decl
}

// declaring reads the common keywords.
func (o options) declaring(thread *starlark.Thread, b *branch, kind string, fx Fx) (*declaring, error) {
	d := &declaring{thread: thread, b: b, opt: o, decl: Decl{Kind: kind, Name: o.name, Key: o.key, Fx: fx, Once: o.once, At: thread.CallFrame(1).Pos.String()}}
	switch Fx(o.fx) {
	case "":
	case FxPure, FxRead, FxWrite, FxExternal:
		d.decl.Fx = Fx(o.fx)
	default:
		return nil, &BodyError{Message: fmt.Sprintf("fx: %q is none of pure, read, write, external", o.fx)}
	}
	if strings.ContainsAny(o.name, "/[]~#") || strings.ContainsAny(o.key, "/[]") {
		return nil, &BodyError{Message: fmt.Sprintf("name and key must not contain / [ ] ~ #: %q", o.name+o.key)}
	}
	var err error
	if d.decl.Timeout, err = duration("timeout", o.timeout); err != nil {
		return nil, err
	}
	if d.decl.Cache, err = duration("cache", o.cache); err != nil {
		return nil, err
	}
	if d.decl.Retry, err = retryOf(o.retry); err != nil {
		return nil, err
	}
	return d, nil
}

// task declares the task and returns its handle.
func (d *declaring) task(args map[string]value.V) (*handle, error) {
	d.decl.Args = value.NewDict(args)
	h := &handle{b: d.b}
	switch f := d.opt.fallback.(type) {
	case nil, starlark.NoneType:
	case *starlark.Function:
		h.fallback = f
	default:
		v, err := d.data("fallback", f)
		if err != nil {
			return nil, err
		}
		d.decl.Fallback = &v
	}
	switch u := d.opt.undo.(type) {
	case nil, starlark.NoneType:
	case *starlark.Function:
		h.undo = u
	default:
		undo, err := d.compensation(u)
		if err != nil {
			return nil, err
		}
		d.decl.Undo = &undo
	}
	t, err := d.b.declare(d.decl)
	if err != nil {
		return nil, err
	}
	h.t = t
	if h.undo != nil {
		d.b.undoes = append(d.b.undoes, h)
	}
	return h, nil
}

// data turns an argument into a value. A handle whose fallback is a function is
// waited for: what it stands for is not known before.
func (d *declaring) data(name string, v starlark.Value) (value.V, error) {
	if v == nil {
		return nil, nil
	}
	if h, ok := v.(*handle); ok && h.fallback != nil {
		out, err := h.value(d.thread)
		if err != nil {
			return nil, err
		}
		v = out
	}
	got, err := value.FromStarlark(v, d.b.handleRef, d.b.e.intern)
	if err != nil {
		return nil, &BodyError{Message: value.In(name, err).Error()}
	}
	return got, nil
}

// duration reads 90, 1.5 or "1m30s".
func duration(what string, v starlark.Value) (time.Duration, error) {
	var d time.Duration
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return 0, nil
	case starlark.String:
		var err error
		if d, err = time.ParseDuration(string(v)); err != nil {
			return 0, &BodyError{Message: fmt.Sprintf("%s: %q is no duration", what, string(v)), Hint: `as "90s", "5m", or a number of seconds`}
		}
	default:
		f, ok := starlark.AsFloat(v)
		if !ok {
			return 0, &BodyError{Message: fmt.Sprintf("%s: a %s is no duration", what, v.Type()), Hint: `as "90s", "5m", or a number of seconds`}
		}
		d = time.Duration(f * float64(time.Second))
	}
	if d <= 0 {
		return 0, &BodyError{Message: fmt.Sprintf("%s: %s is not in the future", what, d)}
	}
	return d, nil
}

// retryOf reads 3 or {"max": 3, "delay": "1s", "backoff": 2, "keep_files": True}.
func retryOf(v starlark.Value) (r Retry, err error) {
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return r, nil
	case starlark.Int:
		n, _ := v.Int64()
		r.Max = int(n)
	case *starlark.Dict:
		for _, item := range v.Items() {
			switch key, _ := starlark.AsString(item[0]); key {
			case "max":
				r.Max, err = starlark.AsInt32(item[1])
			case "delay":
				r.Delay, err = duration("retry.delay", item[1])
			case "backoff":
				r.Backoff, _ = starlark.AsFloat(item[1])
			case "keep_files":
				r.KeepFiles = bool(item[1].Truth())
			default:
				return r, &BodyError{Message: "retry: " + item[0].String() + " is none of max, delay, backoff, keep_files"}
			}
			if err != nil {
				return r, err
			}
		}
	default:
		return r, &BodyError{Message: "retry: a number of attempts, or a dict with max, delay, backoff, keep_files"}
	}
	if r.Max < 1 || r.Max > 1000 {
		return r, &BodyError{Message: fmt.Sprintf("retry: %d attempts are not between 1 and 1000", r.Max)}
	}
	return r, nil
}

func starShell(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return shellTask(thread, b, args, kwargs, FxWrite)
}

func starEffect(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return shellTask(thread, b, args, kwargs, FxExternal)
}

func shellTask(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, fx Fx) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var command, stdin, env, schema starlark.Value
	var dir string
	var asJSON, anyExit bool
	var o options
	pairs := append([]any{"command", &command}, o.pairs()...)
	pairs = append(pairs, "env?", &env, "stdin?", &stdin, "dir?", &dir, "json?", &asJSON, "any_exit?", &anyExit, "schema?", &schema)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, pairs...); err != nil {
		return nil, err
	}
	d, err := o.declaring(thread, line, KindShell, fx)
	if err != nil {
		return nil, err
	}
	c, err := d.data("command", command)
	if err != nil {
		return nil, err
	}
	given := map[string]value.V{}
	switch c := c.(type) {
	case string:
		given["command"] = c
		d.named(c)
	case value.Blob:
		given["command"] = c
		d.named(b.Name())
	case []value.V:
		if len(c) == 0 {
			return nil, &BodyError{Message: "command: an empty list"}
		}
		given["argv"] = c
		d.named(shownName(c[0]))
	default:
		return nil, &BodyError{Message: "command: a string for the shell, or a list of words", Hint: "pass outcomes in env={…}"}
	}
	if err := d.more(given, map[string]starlark.Value{"stdin": stdin, "env": env, "schema": schema}); err != nil {
		return nil, err
	}
	if dir != "" {
		given["dir"] = dir
	}
	if asJSON {
		given["json"] = true
	}
	if anyExit {
		given["any_exit"] = true
	}
	d.decl.run = runShell
	return d.task(given)
}

// more adds arguments that are there.
func (d *declaring) more(given map[string]value.V, vs map[string]starlark.Value) error {
	for name, v := range vs {
		if v == nil || v == starlark.None {
			continue
		}
		got, err := d.data(name, v)
		if err != nil {
			return err
		}
		given[name] = got
	}
	return nil
}

// named gives a task without a name one that tells what it does.
func (d *declaring) named(command string) {
	if d.decl.Name != "" {
		return
	}
	word, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	word = path.Base(word)
	d.decl.Name = strings.Map(func(r rune) rune {
		if strings.ContainsRune("/[]~#\n\t$(){}\"'`;&|<>", r) {
			return -1
		}
		return r
	}, word)
	if d.decl.Name == "" || d.decl.Name == "." {
		d.decl.Name = d.decl.Kind
	}
}

func shownName(v value.V) string {
	s, _ := v.(string)
	return s
}

func starAgent(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var prompt, vars, schema, session, extra, env starlark.Value
	using, model, permission := "claude", "", ""
	var o options
	pairs := []any{"name", &o.name, "prompt", &prompt}
	pairs = append(pairs, o.pairs()[2:]...)
	pairs = append(pairs, "using?", &using, "model?", &model, "schema?", &schema, "session?", &session, "vars?", &vars,
		"args?", &extra, "env?", &env, "permission?", &permission)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, pairs...); err != nil {
		return nil, err
	}
	d, err := o.declaring(thread, line, KindAgent, FxWrite)
	if err != nil {
		return nil, err
	}
	if err := knownAgent(using); err != nil {
		return nil, err
	}
	given := map[string]value.V{"using": using}
	if err := d.more(given, map[string]starlark.Value{"prompt": prompt, "vars": vars, "schema": schema, "session": session, "args": extra, "env": env}); err != nil {
		return nil, err
	}
	if model != "" {
		given["model"] = model
	}
	if permission != "" {
		given["permission"] = permission
	}
	d.decl.run = runAgent
	return d.task(given)
}

func starHTTP(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	var method string
	var url, headers, body, schema starlark.Value
	var asJSON bool
	var o options
	pairs := append([]any{"method", &method, "url", &url}, o.pairs()...)
	pairs = append(pairs, "headers?", &headers, "body?", &body, "json?", &asJSON, "schema?", &schema)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, pairs...); err != nil {
		return nil, err
	}
	d, err := o.declaring(thread, line, KindHTTP, FxPure)
	if err != nil {
		return nil, err
	}
	d.named("http")
	given := map[string]value.V{"method": strings.ToUpper(method)}
	if err := d.more(given, map[string]starlark.Value{"url": url, "headers": headers, "body": body, "schema": schema}); err != nil {
		return nil, err
	}
	if asJSON {
		given["json"] = true
	}
	d.decl.run = runHTTP
	return d.task(given)
}

func starPure(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	line, err := inBody(thread, b.Name())
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, &BodyError{Message: "pure: a function, and what it is called with"}
	}
	fn, ok := args[0].(*starlark.Function)
	if !ok {
		return nil, &BodyError{Message: "pure: " + args[0].Type() + " is not a function of the body"}
	}
	var o options
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, o.pairs()...); err != nil {
		return nil, err
	}
	d, err := o.declaring(thread, line, KindPure, FxPure)
	if err != nil {
		return nil, err
	}
	if d.decl.Fx != FxPure {
		return nil, &BodyError{Message: "pure: a Starlark function can't reach files"}
	}
	name := fn.Name()
	if name == "lambda" {
		name = "pure"
	}
	d.named(name)
	code, err := codeOf(thread, fn)
	if err != nil {
		return nil, err
	}
	list := make([]value.V, 0, len(args)-1)
	for i, a := range args[1:] {
		v, err := d.data(fmt.Sprintf("argument %d", i+1), a)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	d.decl.run = pureRunner(fn)
	return d.task(map[string]value.V{"code": code, "args": list})
}

func starFile(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "path", &name); err != nil {
		return nil, err
	}
	m, _ := thread.Local(localModule).(*module)
	if m == nil {
		return nil, &BodyError{Message: "file: what a workflow reads is pinned when it is loaded", Hint: `TEXT = file("` + name + `"), at the top of the file`}
	}
	p := thread.Local(localProgram).(*program)
	at, err := sourcePath(m.path, name)
	if err != nil {
		return nil, &BodyError{Message: err.Error()}
	}
	src, err := p.source(at)
	if err != nil {
		return nil, &BodyError{Message: "can't read " + at + ": " + plainError(err)}
	}
	return starlark.String(src), nil
}

// FailError says that a body has given up.
type FailError struct{ Message, At string }

func (e *FailError) Error() string { return e.Message }

func starFail(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var words []string
	for _, a := range args {
		if s, ok := starlark.AsString(a); ok {
			words = append(words, s)
		} else {
			words = append(words, a.String())
		}
	}
	return nil, &FailError{Message: strings.Join(words, " "), At: thread.CallFrame(1).Pos.String()}
}
