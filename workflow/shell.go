package workflow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/retcon-dev/retcon/workflow/internal/proc"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// Types of failures the engine gives.
const (
	FailureExit     = "exit"     // a command ended with another status than 0
	FailureTimeout  = "timeout"  // it took longer than allowed
	FailureStart    = "start"    // it could not be started
	FailureOutput   = "output"   // it printed something else than was asked for
	FailureSchema   = "schema"   // its output is not what the schema says
	FailureConflict = "conflict" // branches changed the same lines
	FailureRefused  = "refused"  // it said no, and would again
	FailureHTTP     = "http"
	FailureError    = "error" // a Go function returned an error
	FailureFail     = "fail"  // the body gave up
)

// runShell runs a command of the body.
func runShell(ctx context.Context, x *execution) (value.V, *value.Failure, error) {
	c := proc.Command{Dir: x.Dir, Env: x.environment(), Stdin: []byte(text(x.Args, "stdin")), Max: maxOutput, OnLine: x.line}
	if list, ok := x.Args.Get("argv"); ok {
		words, _ := list.([]value.V)
		for _, w := range words {
			c.Argv = append(c.Argv, shown(w))
		}
	} else {
		c.Shell = text(x.Args, "command")
	}
	if x.Dir == "" { // it has nothing to do with files, and finds none
		x.Dir = x.scratch("empty")
		if err := os.MkdirAll(x.Dir, 0o700); err != nil {
			return nil, nil, err
		}
		defer os.RemoveAll(x.Dir)
		c.Dir = x.Dir
	}
	if sub := text(x.Args, "dir"); sub != "" {
		dir, err := below(x.Dir, sub)
		if err != nil {
			return nil, &value.Failure{Type: FailureStart, Message: err.Error()}, nil
		}
		c.Dir = dir
	}
	r, err := proc.Run(ctx, c)
	var start *proc.StartError
	if errors.As(err, &start) {
		return nil, &value.Failure{Type: FailureStart, Message: err.Error()}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	x.tape.command(r)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if f := exitFailure(r, x.Args); f != nil {
		return nil, f, nil
	}
	return shellValue(r, x.Args)
}

// maxOutput is how much of a command's output is kept.
const maxOutput = 8 << 20

// exitFailure tells why a command has failed, or nil.
func exitFailure(r proc.Result, args value.Dict) *value.Failure {
	if r.OK() || flag(args, "any_exit") && r.Signal == "" {
		return nil
	}
	f := &value.Failure{Type: FailureExit, Code: strconv.Itoa(r.Exit), Message: "exit " + strconv.Itoa(r.Exit)}
	if r.Signal != "" {
		f.Code, f.Message = r.Signal, "killed by "+r.Signal
	}
	if said := lastLines(r.Stderr, r.Stdout); said != "" {
		f.Message += ": " + said
	}
	return f
}

// lastLines is the end of what a command said, for a message.
func lastLines(streams ...[]byte) string {
	for _, b := range streams {
		s := strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
		if s == "" {
			continue
		}
		lines := strings.Split(s, "\n")
		s = strings.Join(lines[max(0, len(lines)-3):], " / ")
		for len(s) > 300 {
			_, n := utf8.DecodeRuneInString(s)
			s = s[n:]
		}
		return s
	}
	return ""
}

// shellValue is what a command's task has for a value: what it printed, or all
// there is to know when any exit will do.
func shellValue(r proc.Result, args value.Dict) (value.V, *value.Failure, error) {
	if r.Truncated {
		return nil, &value.Failure{Type: FailureOutput, Code: "truncated",
			Message: fmt.Sprintf("it printed %d bytes, more than the %d that are kept; write to a file", r.StdoutSize+r.StderrSize, maxOutput)}, nil
	}
	var out value.V = strings.TrimSuffix(string(r.Stdout), "\n")
	if flag(args, "json") {
		v, err := value.FromJSON(r.Stdout)
		if err != nil {
			return nil, &value.Failure{Type: FailureOutput, Message: "what it printed is not JSON: " + err.Error()}, nil
		}
		out = v
	}
	if f := checkSchema(args, out); f != nil {
		return nil, f, nil
	}
	if flag(args, "any_exit") {
		return value.NewDict(map[string]value.V{"exit": int64(r.Exit), "stdout": out,
			"stderr": strings.TrimSuffix(string(r.Stderr), "\n")}), nil, nil
	}
	return out, nil, nil
}

// checkSchema holds an output to the schema in a task's arguments.
func checkSchema(args value.Dict, out value.V) *value.Failure {
	schema, ok := args.Get("schema")
	if !ok || schema == nil {
		return nil
	}
	s, err := value.CompileSchema(schema)
	if err != nil {
		return &value.Failure{Type: FailureSchema, Message: "the schema itself: " + err.Error()}
	}
	bad := s.Check(out)
	if len(bad) == 0 {
		return nil
	}
	return &value.Failure{Type: FailureSchema, Message: "the output is not what the schema asks for: " + bad[0].String()}
}

// environment is what a command of the task sees.
func (x *execution) environment() []string {
	env := append([]string{}, x.Env...)
	env = append(env, "RETCON_TASK="+x.Task, "RETCON_RUN=r"+strconv.FormatInt(x.e.run.ID, 10),
		"RETCON_ATTEMPT="+strconv.Itoa(x.Attempt))
	if key := x.key(); key != "" {
		env = append(env, "RETCON_EFFECT_KEY="+key)
	}
	more, _ := x.Args.Get("env")
	if d, ok := more.(value.Dict); ok {
		for k, v := range d.All() {
			env = append(env, k+"="+shown(v))
		}
	}
	return env
}

// line passes on a line of output, for people who look on.
func (x *execution) line(stream string, line []byte) {
	if x.e.opt.On == nil {
		return
	}
	x.e.tell(Progress{Kind: Printed, Task: x.Task, Stream: stream, Line: strings.ToValidUTF8(string(line), "?")})
}
