package sideeffect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Compensation is how an effect is undone, as data. At most one way is set; the
// zero value says that none is known, which is in the way of a move.
//
// The ways hold templates: {{.name}} stands for a field of the effect,
// {{.args.name}} and {{.output.name}} for a part of what its tool was given and
// answered, {{.key}} for its key. A value is never interpreted: it is one
// argument, one JSON string, or one escaped part of a URL.
//
// Whatever is called must accept a second call with the same key: after a crash
// nobody knows whether the first one arrived.
type Compensation struct {
	Command []string `json:"command,omitempty" toml:"command"` // argv, run without a shell
	Shell   *Script  `json:"shell,omitempty" toml:"shell"`
	HTTP    *Request `json:"http,omitempty" toml:"http"`
	MCP     *ToolUse `json:"mcp,omitempty" toml:"mcp"`
	Handler string   `json:"handler,omitempty" toml:"handler"` // a registered Go function

	// NotNeeded and Impossible say why there is nothing to do, and why nothing
	// can be done.
	NotNeeded  string `json:"not_needed,omitempty" toml:"not_needed"`
	Impossible string `json:"impossible,omitempty" toml:"impossible"`

	// Env are the names of variables that Command or Shell needs, beside those
	// that every command gets: "GH_TOKEN". Only the names are stored.
	Env []string `json:"env,omitempty" toml:"env"`

	// Gone are texts by which a failing Command or Shell says that there is
	// nothing left to undo, which is as good as done.
	Gone []string `json:"gone,omitempty" toml:"gone"`
}

// Script is text for sh. It is taken as it stands; values reach it as $1, $2, ….
type Script struct {
	Text string   `json:"text" toml:"text"`
	Args []string `json:"args,omitempty" toml:"args"`
}

// Request is an HTTP request. The scheme and the host of its URL are fixed.
type Request struct {
	Method string `json:"method" toml:"method"`
	URL    string `json:"url" toml:"url"`

	// Headers may also use {{.env.NAME}}, a value from the environment given to
	// handlers, which is neither stored nor shown.
	Headers map[string]string `json:"headers,omitempty" toml:"headers"`

	// Body is sent as JSON.
	Body any `json:"body,omitempty" toml:"body"`

	// Expect are the statuses that mean done. Empty: any 2xx, and for a DELETE
	// 404 and 410 as well.
	Expect []int `json:"expect,omitempty" toml:"expect"`

	// KeyHeader carries the effect's key. Empty: Idempotency-Key.
	KeyHeader string `json:"key_header,omitempty" toml:"key_header"`
}

// ToolUse is a call of an MCP tool.
type ToolUse struct {
	Server string         `json:"server" toml:"server"`
	Tool   string         `json:"tool" toml:"tool"`
	Args   map[string]any `json:"args,omitempty" toml:"args"`
}

// IsZero reports whether no way is known.
func (c Compensation) IsZero() bool { return len(c.ways()) == 0 }

// String is all that would be run or called, in one line unless a script has
// more, with the places for values as they are written; "" when nothing would be.
func (c Compensation) String() string {
	switch {
	case len(c.Command) > 0:
		return shown(c.Command)
	case c.Shell != nil:
		return shown(append([]string{"sh", "-c", c.Shell.Text, "sh"}, c.Shell.Args...))
	case c.HTTP != nil:
		return c.HTTP.String()
	case c.MCP != nil:
		args, _ := json.Marshal(c.MCP.Args) // a value that was checked
		return fmt.Sprintf("%s.%s %s", c.MCP.Server, c.MCP.Tool, args)
	case c.Handler != "":
		return "handler " + c.Handler
	}
	return ""
}

func (r *Request) String() string {
	words := []string{r.Method, r.URL}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		words = append(words, typed(name+": "+r.Headers[name]))
	}
	if r.Body != nil {
		body, _ := json.Marshal(r.Body) // a value that was checked
		words = append(words, string(body))
	}
	return strings.Join(words, " ")
}

// MarshalJSON refuses what UnmarshalJSON would not read.
func (c Compensation) MarshalJSON() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	type plain Compensation
	return json.Marshal(plain(c))
}

// UnmarshalJSON refuses unknown members, two ways at once, and templates that
// can't be filled.
func (c *Compensation) UnmarshalJSON(data []byte) error {
	type plain Compensation
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	var p plain
	if err := d.Decode(&p); err != nil {
		return fmt.Errorf("compensation: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("compensation: text after the value")
	}
	if err := Compensation(p).Validate(); err != nil {
		return err
	}
	*c = Compensation(p)
	return nil
}

// Validate finds what is wrong with a compensation before anything depends on it.
func (c Compensation) Validate() error {
	if err := c.check(); err != nil {
		return fmt.Errorf("compensation: %w", err)
	}
	return nil
}

func (c Compensation) ways() (set []string) {
	for _, way := range []struct {
		name string
		set  bool
	}{
		{"command", len(c.Command) > 0}, {"shell", c.Shell != nil}, {"http", c.HTTP != nil}, {"mcp", c.MCP != nil},
		{"handler", c.Handler != ""}, {"not_needed", c.NotNeeded != ""}, {"impossible", c.Impossible != ""},
	} {
		if way.set {
			set = append(set, way.name)
		}
	}
	return set
}

func (c Compensation) check() error {
	if ways := c.ways(); len(ways) > 1 {
		return fmt.Errorf("%s: one way is enough", strings.Join(ways, " and "))
	}
	if len(c.Gone) > 0 && len(c.Command) == 0 && c.Shell == nil {
		return errors.New("gone: only for command and shell")
	}
	if len(c.Env) > 0 && len(c.Command) == 0 && c.Shell == nil {
		return errors.New("env: only for command and shell")
	}
	if err := checkEnv(c.Env); err != nil {
		return err
	}
	if slices.Contains(c.Gone, "") {
		return errors.New("gone: an empty text is in every output")
	}
	switch {
	case len(c.Command) > 0:
		return checkCommand(c.Command)
	case c.Shell != nil:
		return c.Shell.check()
	case c.HTTP != nil:
		return c.HTTP.check()
	case c.MCP != nil:
		return c.MCP.check()
	case c.Handler != "":
		return fixed("handler", c.Handler)
	}
	return nil
}

func checkCommand(argv []string) error {
	if err := fixed("command", argv[0]); err != nil {
		return err
	}
	return checkAll(argv[1:])
}

func (s *Script) check() error {
	if err := fixed("shell", s.Text); err != nil {
		return fmt.Errorf("%w; values are passed in args, as $1, $2", err)
	}
	return checkAll(s.Args)
}

var (
	// A URL is fixed up to the first slash after the host: a value must not
	// choose who is called.
	fixedHost = pattern(`^https?://[^/?#{}@\s]+(/|$)`)
	token     = pattern(`^[A-Za-z0-9-]+$`)
)

func (r *Request) check() error {
	switch {
	case !token().MatchString(r.Method):
		return fmt.Errorf("method %q", r.Method)
	case !fixedHost().MatchString(r.URL):
		return fmt.Errorf("url %q: it begins with http:// or https:// and a host without placeholders", r.URL)
	case strings.Contains(r.URL, "#"):
		return fmt.Errorf("url %q: a fragment is never sent", r.URL)
	case r.KeyHeader != "" && !token().MatchString(r.KeyHeader):
		return fmt.Errorf("key_header %q", r.KeyHeader)
	}
	for _, status := range r.Expect {
		if status < 200 || status > 599 {
			return fmt.Errorf("expect %d: no such status", status)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if !token().MatchString(name) {
			return fmt.Errorf("header %q", name)
		}
		if err := checkTemplate(r.Headers[name]); err != nil {
			return err
		}
	}
	if err := checkTemplate(r.URL); err != nil {
		return err
	}
	return checkTree(r.Body)
}

func (u *ToolUse) check() error {
	if err := fixed("server", u.Server); err != nil {
		return err
	}
	if err := fixed("tool", u.Tool); err != nil {
		return err
	}
	return checkTree(u.Args)
}

// fixed: it must be there and hold no placeholder.
func fixed(what, s string) error {
	if strings.TrimSpace(s) == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if strings.Contains(s, "{{") || strings.ContainsRune(s, 0) {
		return fmt.Errorf("%s %q takes no placeholder", what, s)
	}
	return nil
}

func checkAll(templates []string) error {
	for _, s := range templates {
		if err := checkTemplate(s); err != nil {
			return err
		}
	}
	return nil
}

// checkTree checks the templates inside a JSON value, and that it is one.
func checkTree(v any) error {
	switch v := v.(type) {
	case nil, bool, float64, int64, json.Number:
		return nil
	case string:
		return checkTemplate(v)
	case []any:
		for _, one := range v {
			if err := checkTree(one); err != nil {
				return err
			}
		}
		return nil
	case []map[string]any: // as TOML reads it
		for _, one := range v {
			if err := checkTree(one); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for k, one := range v {
			if strings.Contains(k, "{{") {
				return fmt.Errorf("member %q takes no placeholder", k)
			}
			if err := checkTree(one); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%T is no JSON value", v)
}

// placeholders are all names a compensation asks for.
func (c Compensation) placeholders() (found []string) {
	add := func(templates ...string) {
		for _, s := range templates {
			found = append(found, names(s)...)
		}
	}
	add(c.Command...)
	if c.Shell != nil {
		add(c.Shell.Args...)
	}
	if c.HTTP != nil {
		add(c.HTTP.URL)
		add(slices.Collect(maps.Values(c.HTTP.Headers))...)
		body, _ := json.Marshal(c.HTTP.Body) // a value that was checked
		add(string(body))
	}
	if c.MCP != nil {
		args, _ := json.Marshal(c.MCP.Args) // a value that was checked
		add(string(args))
	}
	return found
}
