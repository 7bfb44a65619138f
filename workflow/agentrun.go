package workflow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/workflow/internal/proc"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// FailureAgent is the type of what an agent's run fails with; its code says how:
// api, limit, answer or exit.
const FailureAgent = "agent"

// knownAgent refuses an agent that can't be run without a person.
func knownAgent(name string) error {
	info, err := agent.Known(name)
	if err == nil && info.Headless {
		return nil
	}
	var names []string
	for _, c := range agent.Clients() {
		if c.Headless {
			names = append(names, c.Name)
		}
	}
	return &BodyError{Message: fmt.Sprintf("using: %q is no agent that can be run", name), Hint: "one of " + strings.Join(names, ", ")}
}

func checkLabel(s string) error { return checkpoint.CheckLabel(s) }

// runAgent runs a coding agent's client without a person.
func runAgent(ctx context.Context, x *execution) (value.V, *value.Failure, error) {
	using := text(x.Args, "using")
	prompt, err := promptOf(x.Args)
	if err != nil {
		return nil, &value.Failure{Type: FailureStart, Message: err.Error()}, nil
	}
	o := agent.RunOptions{Prompt: prompt, Model: text(x.Args, "model"), Session: x.session, Mode: agent.Mode(text(x.Args, "permission"))}
	if o.Mode == "" {
		o.Mode = agent.Edits
	}
	o.Fork = o.Session != "" // two tasks may go on from the same conversation
	if v, ok := x.Args.Get("args"); ok {
		words, _ := v.([]value.V)
		for _, w := range words {
			o.Extra = append(o.Extra, shown(w))
		}
	}
	if schema, ok := x.Args.Get("schema"); ok {
		o.Schema, o.SchemaFile = value.JSON(schema), x.scratch("schema.json")
	}
	inv, err := agent.Command(using, o)
	if err != nil {
		return nil, &value.Failure{Type: FailureStart, Message: err.Error()}, nil
	}
	for _, f := range inv.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(f.Path, f.Content, 0o600); err != nil {
			return nil, nil, err
		}
		defer os.Remove(f.Path)
	}
	r, err := proc.Run(ctx, proc.Command{Argv: inv.Argv, Dir: x.Dir, Env: x.environment(), Stdin: []byte(inv.Stdin), Max: maxOutput, OnLine: x.line})
	var start *proc.StartError
	switch {
	case errors.As(err, &start) && start.NotFound:
		info, _ := agent.Known(using)
		return nil, &value.Failure{Type: FailureStart, Code: "missing", Message: fmt.Sprintf("%s is not installed: %s", inv.Argv[0], info.Hint)}, nil
	case start != nil:
		return nil, &value.Failure{Type: FailureStart, Message: err.Error()}, nil
	case err != nil:
		return nil, nil, err
	}
	x.tape.command(r)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	got, err := agent.ParseResult(using, r.Stdout, r.Exit)
	if err != nil {
		return nil, &value.Failure{Type: FailureOutput, Message: err.Error()}, nil
	}
	x.tape.session = got.Session
	if got.Failure != nil {
		f := &value.Failure{Type: FailureAgent, Code: string(got.Failure.Kind), Message: got.Failure.Message}
		if said := lastLines(r.Stderr); said != "" && got.Failure.Kind == agent.FailedExit {
			f.Message += ": " + said
		}
		return nil, f, nil
	}
	return agentValue(got, x.Args)
}

// agentValue is what an agent's task has for a value: its answer, or the data
// in it when a schema says what that is.
func agentValue(got agent.Result, args value.Dict) (value.V, *value.Failure, error) {
	if _, ok := args.Get("schema"); !ok {
		return got.Text, nil, nil
	}
	if got.Structured == nil {
		return nil, &value.Failure{Type: FailureOutput, Message: "there is no JSON in the answer: " + lastLines([]byte(got.Text))}, nil
	}
	v, err := value.FromJSON(got.Structured)
	if err != nil {
		return nil, &value.Failure{Type: FailureOutput, Message: "the answer is not JSON: " + err.Error()}, nil
	}
	if f := checkSchema(args, v); f != nil {
		return nil, f, nil
	}
	return v, nil, nil
}

// promptOf is the prompt with the variables of the task in place of {name}. A
// list is its items, each a paragraph.
func promptOf(args value.Dict) (string, error) {
	v, _ := args.Get("prompt")
	var prompt string
	if list, ok := v.([]value.V); ok {
		var parts []string
		for _, p := range list {
			parts = append(parts, shown(p))
		}
		prompt = strings.Join(parts, "\n\n")
	} else {
		prompt = shown(v)
	}
	if strings.TrimSpace(prompt) == "" {
		return "", errors.New("the prompt is empty")
	}
	vars, _ := args.Get("vars")
	d, _ := vars.(value.Dict)
	var pairs []string
	for k, v := range d.All() {
		if !strings.Contains(prompt, "{"+k+"}") {
			return "", fmt.Errorf("vars: {%s} does not stand in the prompt", k)
		}
		pairs = append(pairs, "{"+k+"}", shown(v))
	}
	return strings.NewReplacer(pairs...).Replace(prompt), nil
}

// scratch is a path for a file of the attempt that is not part of its worktree.
func (x *execution) scratch(name string) string {
	return filepath.Join(x.e.main.recorder.Worktree.Folder(), "tmp",
		fmt.Sprintf("r%d-%s-%d-%s", x.e.run.ID, hashOf([]byte(x.Task)).Short(), x.Attempt, name))
}
