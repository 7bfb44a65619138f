package sideeffect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Handlers are what a caller has to carry compensations out with. What is not
// given can't be used, and blocks what needs it.
type Handlers struct {
	// Timeout is for each call. Zero: one minute.
	Timeout time.Duration

	// Dir and Env are for commands: Env is what all of them get, and its PATH is
	// where they are looked for. See [Environment].
	Dir string
	Env []string

	// Named is where the variables come from that a compensation names. About
	// are added to every command, to say what it is called for.
	Named []string
	About []string

	// Client sends HTTP requests. Redirects are not followed, whatever it says.
	Client *http.Client

	// MCP calls a tool and hands the key on as far as the protocol can carry it.
	MCP func(ctx context.Context, use ToolUse, key string) (ToolAnswer, error)

	// Go are the registered functions. An error means that nothing was undone;
	// wrap ErrUnsure when that is not known.
	Go map[string]func(context.Context, Effect) error

	// Trusted reports whether compensations from a configuration with this
	// digest may run. Nil: none but our own.
	Trusted func(source string) bool

	// Offered is the digest of the configuration that somebody could trust now,
	// "" when that is not known.
	Offered string
}

// ToolAnswer is what an MCP tool answered.
type ToolAnswer struct {
	Refused bool // isError
	Text    string
}

// Reason says why an effect can't be compensated.
type Reason string

// The reasons, and what would help.
const (
	NoCompensation Reason = "no-compensation" // none is known: record one, or add a rule
	CannotUndo     Reason = "impossible"      // undo it by hand and settle it, or cross it
	MissingValue   Reason = "missing-value"   // record the values
	BadValue       Reason = "bad-value"       // record another value
	NoHandler      Reason = "no-handler"      // register or install it
	Untrusted      Reason = "untrusted"       // trust the configuration
	Outdated       Reason = "outdated"        // nobody trusted that configuration, and now it is another: record a compensation
	NotAsked       Reason = "not-asked"       // allow compensation
)

// UnresolvedError: the compensation of an effect can't be called. Nothing was
// done.
type UnresolvedError struct {
	Effect  Effect
	Reason  Reason
	Detail  string   // why, in words
	Unblock string   // what would help, in words
	Missing []string // the placeholders without a value
}

func (e *UnresolvedError) Error() string {
	return fmt.Sprintf("%s: %s; %s", e.Effect, e.Detail, e.Unblock)
}

// Resolve fills in the compensation of an effect and finds what will carry it
// out, and calls nothing. Do it for all effects before the first is called. What
// can't be called is an *UnresolvedError.
func Resolve(e Effect, h Handlers) (Call, error) {
	r := resolution{effect: e, Handlers: h, filling: filling{value: e.value}}
	if err := e.Compensation.Validate(); err != nil {
		return Call{}, r.unresolved(BadValue, err.Error(), "record another compensation")
	}
	if e.Source != "" && (h.Trusted == nil || !h.Trusted(e.Source)) && !e.Compensation.idle() {
		return Call{}, r.untrusted()
	}
	call, err := r.call(e.Compensation)
	if err != nil {
		return Call{}, err
	}
	if len(r.missing) > 0 {
		return Call{}, r.lacking()
	}
	if r.wrong != nil {
		return Call{}, r.unresolved(BadValue, r.wrong.Error(), "record another value")
	}
	call.Effect = e
	call.timeout = h.Timeout
	if call.timeout <= 0 {
		call.timeout = time.Minute
	}
	return call, nil
}

func (r *resolution) untrusted() error {
	if r.Offered == "" || r.Offered == r.effect.Source {
		return r.unresolved(Untrusted, "its compensation comes from a configuration that is not trusted", "trust that configuration, or cross it")
	}
	return r.unresolved(Outdated, "its compensation comes from a configuration that is not trusted, and that is another by now",
		"record a compensation, undo it by hand and say so, or cross it")
}

// idle: nothing would be carried out.
func (c Compensation) idle() bool {
	return c.IsZero() || c.NotNeeded != "" || c.Impossible != ""
}

type resolution struct {
	effect Effect
	Handlers
	filling
}

func (r *resolution) call(c Compensation) (Call, error) {
	switch {
	case len(c.Command) > 0:
		return r.command(c)
	case c.Shell != nil:
		return r.script(c)
	case c.HTTP != nil:
		return r.request(*c.HTTP)
	case c.MCP != nil:
		return r.tool(*c.MCP)
	case c.Handler != "":
		return r.function(c.Handler)
	case c.NotNeeded != "":
		return Call{Shown: "nothing: " + c.NotNeeded, run: func(context.Context) Outcome { return Outcome{Result: Done} }}, nil
	case c.Impossible != "":
		return Call{}, r.unresolved(CannotUndo, c.Impossible, "undo it by hand and say so, or cross it")
	}
	return Call{}, r.unresolved(NoCompensation, "no compensation is known", "record one, add a rule, undo it by hand and say so, or cross it")
}

func (r *resolution) command(c Compensation) (Call, error) {
	filled := make([]string, 0, len(c.Command))
	options := true
	for _, s := range c.Command {
		arg := r.text(s, mendArg)
		if options && strings.HasPrefix(arg, "-") && !strings.HasPrefix(s, "-") {
			r.fail(fmt.Errorf("%q would be read as an option", arg))
		}
		options = options && s != "--"
		filled = append(filled, arg)
	}
	return r.process(c.Command[0], filled, c)
}

// script passes values beside the text, never inside it.
func (r *resolution) script(c Compensation) (Call, error) {
	argv := []string{"sh", "-c", c.Shell.Text, "sh"}
	for _, arg := range c.Shell.Args {
		argv = append(argv, r.text(arg, mendArg))
	}
	return r.process("sh", argv, c)
}

func (r *resolution) process(name string, argv []string, c Compensation) (Call, error) {
	path, ok := executable(name, r.Dir, r.Env)
	if !ok {
		return Call{}, r.unresolved(NoHandler, name+" is not to be found", "install "+name)
	}
	stdin, err := json.Marshal(r.effect)
	if err != nil {
		return Call{}, r.unresolved(BadValue, err.Error(), "record the effect again")
	}
	p := process{path: path, argv: argv, dir: r.Dir, env: r.environment(c.Env), stdin: append(stdin, '\n'), gone: c.Gone}
	return Call{Shown: shown(argv), run: p.run}, nil
}

func (r *resolution) request(q Request) (Call, error) {
	if r.Client == nil {
		return Call{}, r.unresolved(NoHandler, "there is no HTTP client", "allow HTTP requests")
	}
	s := sending{client: r.Client, method: q.Method, expect: q.Expect, headers: http.Header{}}
	s.url = r.text(q.URL, mendURL)
	if _, err := url.Parse(s.url); err != nil {
		r.fail(err)
	}
	if q.Body != nil {
		body, err := json.Marshal(r.tree(q.Body))
		if err != nil {
			r.fail(err)
		}
		s.body = body
		s.headers.Set("Content-Type", "application/json")
	}
	secret := filling{value: func(name string) (string, bool) {
		if v, ok := strings.CutPrefix(name, "env."); ok {
			return r.named(v)
		}
		return r.effect.value(name)
	}}
	for name, value := range q.Headers {
		s.headers.Set(name, secret.text(value, mendHeader))
	}
	for _, name := range secret.missing {
		r.lack(name)
	}
	if secret.wrong != nil {
		r.fail(secret.wrong)
	}
	if r.effect.Key != "" {
		s.headers.Set(orElse(q.KeyHeader, "Idempotency-Key"), r.effect.Key)
	}
	return Call{Shown: q.Method + " " + s.url, run: s.run}, nil
}

func (r *resolution) tool(u ToolUse) (Call, error) {
	if r.MCP == nil {
		return Call{}, r.unresolved(NoHandler, "there is no MCP client for "+u.Server, "connect the MCP server "+u.Server)
	}
	if u.Args != nil {
		u.Args = r.tree(u.Args).(map[string]any)
	}
	use := toolUse{call: r.MCP, use: u, key: r.effect.Key}
	args, err := json.Marshal(u.Args)
	if err != nil {
		r.fail(err)
	}
	return Call{Shown: fmt.Sprintf("%s.%s %s", u.Server, u.Tool, args), run: use.run}, nil
}

func (r *resolution) function(name string) (Call, error) {
	f := r.Go[name]
	if f == nil {
		return Call{}, r.unresolved(NoHandler, "the handler "+name+" is not registered", "register the handler "+name)
	}
	return Call{Shown: "handler " + name, run: function{f, r.effect}.run}, nil
}

func (r *resolution) unresolved(reason Reason, detail, unblock string) error {
	return &UnresolvedError{Effect: r.effect, Reason: reason, Detail: detail, Unblock: unblock}
}

func (r *resolution) lacking() error {
	what := strings.Join(r.missing, ", ")
	detail := "nobody knows its " + what
	if r.effect.Status != Succeeded {
		detail += ", nor whether it happened"
	}
	return &UnresolvedError{Effect: r.effect, Reason: MissingValue, Missing: r.missing, Detail: detail,
		Unblock: "record " + what + ", settle it as failed if it did not happen, or cross it"}
}

// mendURL escapes a value for the part of the URL where it stands. It can't
// climb out of a path.
func mendURL(v, before string) (string, error) {
	if strings.Contains(before, "?") {
		return url.QueryEscape(v), nil
	}
	if v == "" || strings.Trim(v, ".") == "" {
		return "", fmt.Errorf("%q is no part of a path", v)
	}
	return url.PathEscape(v), nil
}

func mendHeader(v, _ string) (string, error) {
	if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return "", errors.New("it holds a control character")
	}
	return v, nil
}

// executable finds a program as the command itself would: in the PATH it is
// given, not in ours. Relative entries of PATH would let a worktree decide what
// runs, and are passed over.
func executable(name, dir string, env []string) (string, bool) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, runnable(name)
	}
	list, _ := variable(env, "PATH")
	for _, folder := range filepath.SplitList(list) {
		if path := filepath.Join(folder, name); filepath.IsAbs(folder) && runnable(path) {
			return path, true
		}
	}
	return "", false
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// named is a variable that a compensation names.
func (r *resolution) named(name string) (value string, ok bool) {
	if value, ok = variable(r.Named, name); !ok {
		value, ok = variable(r.Env, name)
	}
	return value, ok
}

// variable looks into an environment. The last one counts.
func variable(env []string, name string) (value string, ok bool) {
	for _, pair := range env {
		if k, v, found := strings.Cut(pair, "="); found && k == name {
			value, ok = v, true
		}
	}
	return value, ok
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
