package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Mode says what a run may do without asking. Without a person there is nobody
// to ask: what it may not do is refused.
type Mode string

// The modes. The zero Mode is the client's default.
const (
	Plan  Mode = "plan"  // look, change nothing
	Edits Mode = "edits" // change files
	All   Mode = "all"   // anything: only where the surroundings keep it in
)

// RunOptions say what a client is to do without a person.
type RunOptions struct {
	Prompt     string
	Model      string
	Session    string // continue this conversation
	Fork       bool   // in a copy of it
	Schema     []byte // JSON Schema that the answer must fit
	SchemaFile string // where the schema may be written, for a client that wants a file
	Mode       Mode
	TrustHooks bool     // run hooks that nobody has approved; only those of ours should be there
	Extra      []string // more arguments, in the client's words
}

// Invocation is a command to run in the directory that the agent is to work in.
type Invocation struct {
	Argv  []string
	Stdin string
	Files []File // to be written first
}

// File is a file to write. It must not exist yet, unless with this content.
type File struct {
	Path    string
	Content []byte
}

// Result is what a run without a person came to.
type Result struct {
	Text       string
	Structured json.RawMessage // nil when there is no JSON in the answer
	Session    string          // to continue with
	Usage      Usage
	Failure    *Failure // nil when it went well
}

// Usage is what a run cost. Codex counts the whole conversation, not the run.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
	CostUSD      float64 // 0 when the client does not say
}

// Failure is why a run went wrong, as the client told it.
type Failure struct {
	Kind    FailureKind
	Message string
}

// FailureKind sorts failures by what can be done about them.
type FailureKind string

// The kinds of failure.
const (
	FailedAPI    FailureKind = "api"    // the model could not be reached, or refused: trying again may help
	FailedLimit  FailureKind = "limit"  // it ran out of turns, tokens or money
	FailedAnswer FailureKind = "answer" // it did not come to an answer, or to one that fits
	FailedExit   FailureKind = "exit"   // the client ended without saying why: see its standard error
)

// ErrOutput: a client ended well and said nothing that can be understood. Its
// version is newer or older than those we know.
var ErrOutput = errors.New("output not understood")

// headless is how a client is run without a person.
type headless struct {
	command func(RunOptions) (Invocation, error)
	result  func(values []object) Result
}

// Command is the command line that does what the options say, with an output
// that ParseResult reads. It fails with ErrUnsupported where the client cannot
// do it.
func Command(agent string, o RunOptions) (Invocation, error) {
	c, err := named(agent)
	if err != nil {
		return Invocation{}, err
	}
	if c.headless == nil {
		return Invocation{}, unsupported(c, "runs without a person")
	}
	in, err := c.headless.command(o)
	if err != nil {
		return Invocation{}, err
	}
	in.Argv = append([]string{c.Binary}, in.Argv...)
	return in, nil
}

// ParseResult reads what a command of Command printed. A run that failed is a
// Result with a Failure; it fails itself with ErrOutput only.
func ParseResult(agent string, stdout []byte, exit int) (Result, error) {
	c, err := named(agent)
	if err != nil {
		return Result{}, err
	}
	if c.headless == nil {
		return Result{}, unsupported(c, "runs without a person")
	}
	values := jsonValues(stdout)
	r := c.headless.result(values)
	switch {
	case r.Failure == nil && exit != 0:
		r.Failure = &Failure{Kind: FailedExit, Message: fmt.Sprintf("exit status %d", exit)}
	case r.Failure == nil && r.Session == "" && r.Text == "":
		return r, fmt.Errorf("%s: %w", agent, ErrOutput)
	}
	if r.Structured == nil && r.Failure == nil {
		r.Structured = jsonIn(r.Text)
	}
	return r, nil
}

// jsonValues finds the objects in an output: one document, one a line, or
// lists of them, with other lines in between.
func jsonValues(out []byte) (all []object) {
	for len(out) > 0 {
		start := bytes.IndexAny(out, "{[")
		if start < 0 {
			return all
		}
		out = out[start:]
		d := json.NewDecoder(bytes.NewReader(out))
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return all
			}
			if i := bytes.IndexByte(out, '\n'); i >= 0 {
				out = out[i+1:]
				continue
			}
			return all
		}
		out = out[d.InputOffset():]
		if o, err := parseObject(raw); err == nil {
			all = append(all, o)
			continue
		}
		all = append(all, object{"": raw}.objects("")...)
	}
	return all
}

// jsonIn is the JSON that an answer consists of, if need be between the fences
// that models like to put around it.
func jsonIn(text string) json.RawMessage {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "```"); ok {
		_, body, _ := strings.Cut(rest, "\n")
		text = strings.TrimSpace(strings.TrimSuffix(body, "```"))
	}
	if text == "" || strings.IndexByte(`{["`, text[0]) < 0 || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// asked is the prompt, with the schema in words for a client that has no
// option for it.
func asked(o RunOptions) string {
	if len(o.Schema) == 0 {
		return o.Prompt
	}
	return o.Prompt + "\n\nAnswer with one JSON document and nothing else. It must fit this JSON Schema:\n" + string(o.Schema)
}

// orElse is the first of several texts that says something.
func orElse(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
