package workflow

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"go.starlark.net/lib/json"
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// dialect is the Starlark of bodies: while loops and top-level control flow,
// no recursion.
var dialect = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true}

// program is a Starlark body: its modules, initialised and frozen.
type program struct {
	def     *Definition
	read    func(path string) ([]byte, error) // nil: only what is pinned
	modules map[string]*module
	input   *value.Schema
	schema  value.V // of the input, nil for none
}

type module struct {
	path    string
	file    *syntax.File
	globals starlark.StringDict
	loading bool
}

// maxSteps is how many steps a body may take between two outcomes. A loop that
// waits for nothing ends there.
const maxSteps = 5_000_000

// LoadFile loads a Starlark body. read returns the content of a file by its
// path relative to the directory of the main one, and main is the path in it.
// All files that the body loads or reads become part of its definition.
//
// Faults are *BodyError, with the place and often a hint.
func LoadFile(main string, read func(path string) ([]byte, error)) (*Program, error) {
	d := &Definition{Main: main, Name: strings.TrimSuffix(path.Base(main), path.Ext(main)), Files: map[string][]byte{}}
	return loadProgram(d, read)
}

// Program is a body that was loaded.
type Program struct{ p *program }

// Definition is what the program pins.
func (p *Program) Definition() *Definition { return p.p.def }

// InputSchema is the JSON schema of the input, nil when the body has none.
func (p *Program) InputSchema() []byte {
	if p.p.schema == nil {
		return nil
	}
	return value.JSON(p.p.schema)
}

func loadProgram(d *Definition, read func(string) ([]byte, error)) (*Program, error) {
	p := &program{def: d, read: read, modules: map[string]*module{}}
	m, err := p.load(d.Main, "")
	if err != nil {
		return nil, err
	}
	if _, ok := m.globals["main"].(*starlark.Function); !ok {
		return nil, &BodyError{At: d.Main, Message: "there is no function main", Hint: "def main(ctx): …"}
	}
	if schema, ok := m.globals["INPUT"]; ok {
		v, err := value.FromStarlark(schema, nil, nil)
		if err == nil {
			p.schema = v
			p.input, err = value.CompileSchema(v)
		}
		if err != nil {
			return nil, &BodyError{At: d.Main, Message: "INPUT is not a JSON schema: " + err.Error()}
		}
	}
	d.seal()
	return &Program{p}, nil
}

func (p *program) definition() *Definition { return p.def }

// source returns a file of the definition, and pins it.
func (p *program) source(name string) ([]byte, error) {
	if b, ok := p.def.Files[name]; ok {
		return b, nil
	}
	if p.read == nil {
		return nil, fmt.Errorf("%s is not part of the pinned definition", name)
	}
	b, err := p.read(name)
	if err != nil {
		return nil, err
	}
	p.def.Files[name] = b
	return b, nil
}

// load reads, checks and initialises a module, once.
func (p *program) load(name, from string) (*module, error) {
	if m := p.modules[name]; m != nil {
		if m.loading {
			return nil, &BodyError{At: from, Message: name + " is loaded by itself", Hint: "move what both need into a third file"}
		}
		return m, nil
	}
	src, err := p.source(name)
	if err != nil {
		return nil, &BodyError{At: from, Message: "can't read " + name + ": " + plainError(err)}
	}
	m := &module{path: name, loading: true}
	p.modules[name] = m
	predeclared := builtins()
	file, prog, err := starlark.SourceProgramOptions(dialect, name, src, predeclared.Has)
	if err != nil {
		return nil, bodyError(err)
	}
	m.file = file
	thread := &starlark.Thread{Name: name, Print: func(*starlark.Thread, string) {}, Load: func(t *starlark.Thread, to string) (starlark.StringDict, error) {
		at := t.CallFrame(0).Pos.String()
		to, err := sourcePath(name, to)
		if err != nil {
			return nil, &BodyError{At: at, Message: err.Error()}
		}
		loaded, err := p.load(to, at)
		if err != nil {
			return nil, err
		}
		return loaded.globals, nil
	}}
	thread.SetLocal(localProgram, p)
	thread.SetLocal(localModule, m)
	thread.SetMaxExecutionSteps(maxSteps)
	m.globals, err = prog.Init(thread, predeclared)
	if err != nil {
		return nil, bodyError(err)
	}
	m.globals.Freeze()
	m.loading = false
	return m, nil
}

// Keys of what a thread carries.
const (
	localProgram = "program"
	localModule  = "module" // while it is initialised
	localBranch  = "branch" // while a body runs
)

// main runs the body's main function.
func (p *program) main(b *branch, input value.V) error {
	ctx := starlarkstruct.FromStringDict(starlark.String("ctx"), starlark.StringDict{
		"input":   value.ToStarlark(input),
		"lineage": starlark.String(b.e.lineageID),
	})
	v, err := p.call(b, p.modules[p.def.Main].globals["main"], starlark.Tuple{ctx})
	if err != nil {
		return err
	}
	result, err := value.FromStarlark(v, b.handleRef, nil)
	if err != nil {
		return &BodyError{At: p.def.Main, Message: "main returned what can't be kept: " + err.Error(), Hint: "return data, or nothing"}
	}
	return b.finish(result)
}

// call runs a function of the body in a thread of its own.
func (p *program) call(b *branch, fn starlark.Value, args starlark.Tuple) (starlark.Value, error) {
	thread := &starlark.Thread{Name: "main", Print: func(_ *starlark.Thread, s string) { b.e.print(s) }}
	thread.SetLocal(localProgram, p)
	thread.SetLocal(localBranch, b)
	thread.SetMaxExecutionSteps(maxSteps)
	v, err := starlark.Call(thread, fn, args, nil)
	return v, bodyError(err)
}

// bodyError finds, in what Starlark reports, the place and what to do.
func bodyError(err error) error {
	var known *BodyError
	var undone *UndoError
	var halt *HaltError
	var twice *DuplicateKeyError
	var gaveUp *FailError
	switch {
	case err == nil:
		return nil
	case suspends(err):
		return err
	case errors.As(err, &undone):
		return undone
	case errors.As(err, &halt):
		return halt
	case errors.As(err, &twice):
		return twice
	case errors.As(err, &gaveUp):
		return gaveUp
	case errors.As(err, &known):
		if known.At == "" {
			known.At = place_(err)
		}
		return known
	}
	var syn syntax.Error
	var res resolve.ErrorList
	var eval *starlark.EvalError
	switch {
	case errors.As(err, &syn):
		return &BodyError{At: syn.Pos.String(), Message: syn.Msg, Hint: syntaxHint(syn.Msg)}
	case errors.As(err, &res):
		return &BodyError{At: res[0].Pos.String(), Message: res[0].Msg, Hint: nameHint(res[0].Msg)}
	case errors.As(err, &eval):
		return &BodyError{At: place_(err), Message: eval.Msg, Hint: evalHint(eval.Msg)}
	}
	return &BodyError{Message: err.Error()}
}

// place_ is the innermost place of a body that an error comes from.
func place_(err error) string {
	var eval *starlark.EvalError
	if !errors.As(err, &eval) {
		return ""
	}
	for i := len(eval.CallStack) - 1; i >= 0; i-- {
		if pos := eval.CallStack[i].Pos; pos.IsValid() && pos.Filename() != "<builtin>" {
			return pos.String()
		}
	}
	return ""
}

func syntaxHint(msg string) string {
	switch {
	case strings.Contains(msg, "got try") || strings.Contains(msg, "got except"):
		return "there is no try: ask task.result() whether it is ok"
	case strings.Contains(msg, "got import") || strings.Contains(msg, "got from"):
		return `load("lib.star", "name")`
	}
	return ""
}

func nameHint(msg string) string {
	name, ok := strings.CutPrefix(msg, "undefined: ")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, " ")
	hints := map[string]string{
		"open": `file("name"), at the top of the file`, "os": `sh("…") runs a command`, "time": "now() and sleep() are recorded",
		"random": "randint(a, b) and choice(list) are recorded", "subprocess": `sh("…")`, "input": "ctx.input",
		"uuid": "uuid4()", "requests": `http("GET", url)`, "datetime": "now()",
	}
	return hints[name]
}

func evalHint(msg string) string {
	switch {
	case strings.Contains(msg, "too many steps"):
		return "a loop that waits for no task never ends: call a task's out() in it"
	case strings.Contains(msg, "called recursively"):
		return "use while, or loop()"
	case strings.Contains(msg, "cannot append to frozen") || strings.Contains(msg, "frozen"):
		return "a branch can't change what others see: return its result"
	}
	return ""
}

// plainError is an error without the path it repeats.
func plainError(err error) string {
	var p interface{ Unwrap() error }
	if errors.As(err, &p) {
		if inner := p.Unwrap(); inner != nil {
			return inner.Error()
		}
	}
	return err.Error()
}

var jsonModule = json.Module
