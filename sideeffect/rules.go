package sideeffect

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Read is the class of a rule whose matches are no effects.
const Read Class = "read"

// RuleConfig is a rule of a user. It is asked before the built-in ones; the first
// that matches decides.
type RuleConfig struct {
	Name string `toml:"name" json:"name,omitempty"`

	// Command are a program and its verbs: "acme ticket create". Options between
	// them are passed over. It is matched with every program of a command line.
	Command string `toml:"command" json:"command,omitempty"`

	// Tool is a pattern for the names of other tools: "mcp__jira__*".
	Tool string `toml:"tool" json:"tool,omitempty"`

	// Match is a regular expression for the command as it is written, or for the
	// arguments of a tool as JSON.
	Match string `toml:"match" json:"match,omitempty"`

	// Class is write, maybe, exempt or read. Empty: write.
	Class Class `toml:"class" json:"class,omitempty"`

	// Find is a regular expression for the output. Its named groups are values
	// for the compensation.
	Find string `toml:"find" json:"find,omitempty"`

	// Atomic: if the command exits with an error, nothing was done.
	Atomic bool `toml:"atomic" json:"atomic,omitempty"`

	Undo Compensation `toml:"undo" json:"undo,omitzero"`
}

// Config are the rules of one file.
type Config struct {
	// Source is the digest of the file, noted with each effect whose compensation
	// comes from it. Empty for a file that needs no trust.
	Source string

	// Trusted: its rules may also say that something is no effect, is exempt,
	// needs no undoing, or has not happened. In a file that is not trusted that is
	// passed over, and its rules are asked last: they add effects and take none
	// away. Their compensations are kept and run when Source is trusted.
	Trusted bool

	Rules []RuleConfig
}

// RuleError: a rule can't be used. Nothing of its configuration is.
type RuleError struct {
	Rule   string // its name, or its number
	Reason string
}

func (e *RuleError) Error() string { return fmt.Sprintf("rule %s: %s", e.Rule, e.Reason) }

// Rules recognise effects. The zero value knows the built-in ones.
type Rules struct {
	user []rule // asked before the built-in ones
	last []rule // asked after them
}

type rule struct {
	name   string
	words  []string
	tool   string
	match  *regexp.Regexp
	find   *regexp.Regexp
	class  Class
	atomic bool
	undo   Compensation
	source string
}

// NewRules puts rules of users before the built-in ones, those of files that are
// not trusted behind them. The first configuration goes first. What is wrong with
// a rule is a *RuleError.
func NewRules(configs ...Config) (Rules, error) {
	var rules Rules
	for _, config := range configs {
		for i, c := range config.Rules {
			if c.Name == "" {
				c.Name = fmt.Sprint(i + 1)
			}
			r, err := c.compile()
			if err != nil {
				return Rules{}, &RuleError{Rule: c.Name, Reason: err.Error()}
			}
			r.source = config.Source
			switch {
			case config.Trusted:
				rules.user = append(rules.user, r)
			case r.class != Read && r.class != Exempt:
				r.atomic = false
				if r.undo.NotNeeded != "" {
					r.undo = Compensation{}
				}
				rules.last = append(rules.last, r)
			}
		}
	}
	return rules, nil
}

func (c RuleConfig) compile() (r rule, err error) {
	r = rule{name: c.Name, words: strings.Fields(c.Command), tool: c.Tool, class: c.Class, atomic: c.Atomic, undo: c.Undo}
	if r.class == "" {
		r.class = Write
	}
	switch {
	case !slices.Contains([]Class{Write, Maybe, Exempt, Read}, r.class):
		return rule{}, fmt.Errorf("class %q: it is write, maybe, exempt or read", r.class)
	case c.Command != "" && c.Tool != "":
		return rule{}, fmt.Errorf("command and tool: one is enough")
	case c.Command == "" && c.Tool == "" && c.Match == "":
		return rule{}, fmt.Errorf("it has neither command, tool nor match, and would match everything")
	}
	if _, err := path.Match(c.Tool, ""); err != nil {
		return rule{}, fmt.Errorf("tool %q: %w", c.Tool, err)
	}
	if r.match, err = compile(c.Match); err != nil {
		return rule{}, fmt.Errorf("match: %w", err)
	}
	if r.find, err = compile(c.Find); err != nil {
		return rule{}, fmt.Errorf("find: %w", err)
	}
	if err := c.Undo.Validate(); err != nil {
		return rule{}, err
	}
	return r, r.supplied()
}

func compile(s string) (*regexp.Regexp, error) {
	if s == "" {
		return nil, nil
	}
	return regexp.Compile(s)
}

// supplied finds placeholders for which the rule has no value.
func (r rule) supplied() error {
	for _, name := range r.undo.placeholders() {
		first, _, _ := strings.Cut(name, ".")
		known := slices.Contains([]string{"key", "tool", "command", "args", "output", "env"}, first) ||
			r.find != nil && slices.Contains(r.find.SubexpNames(), name)
		if !known {
			return fmt.Errorf("nothing gives a value for {{.%s}}: name a group so in find", name)
		}
	}
	return nil
}

// command reports whether a rule is about a program of a command line.
func (r rule) command(inv invocation) bool {
	if r.tool != "" {
		return false
	}
	if len(r.words) > 0 {
		if inv.argv[0].text != r.words[0] {
			return false
		}
		ops := args{words: inv.argv[1:]}.operands("")
		if len(ops) < len(r.words)-1 {
			return false
		}
		for i, want := range r.words[1:] {
			if ops[i].text != want {
				return false
			}
		}
	}
	return r.match == nil || r.match.MatchString(inv.text)
}

// other reports whether a rule is about another tool.
func (r rule) other(call ToolCall) bool {
	if r.tool == "" {
		return false
	}
	ok, _ := path.Match(r.tool, call.Tool) // the pattern was checked
	return ok && (r.match == nil || r.match.Match(call.Args))
}

func (r rule) finding() finding {
	return finding{class: r.class, rule: r.name, undo: r.undo, find: r.find, atomic: r.atomic, source: r.source}
}

// mentioned is the first known program whose name stands in a text that can't be
// read.
func (r Rules) mentioned(text string) string {
	own := map[string]bool{}
	for _, rule := range slices.Concat(r.user, r.last) {
		if len(rule.words) > 0 && rule.class != Read {
			own[rule.words[0]] = true
		}
	}
	for token := range strings.FieldsFuncSeq(text, func(c rune) bool {
		return !strings.ContainsRune("-_./", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) {
		name := program(token)
		if hasWord("at http https", name) {
			continue // in every other sentence, and in every URL
		}
		if own[name] || toolNamed(name) != nil && !toolNamed(name).idle() {
			return name
		}
	}
	return ""
}

// idle: the program is known to do nothing outside.
func (t *tool) idle() bool {
	return t.judge == nil && t.rest == "" && !slices.ContainsFunc(slices.Collect(maps.Values(t.verbs)), func(v *verb) bool { return v != none })
}
