package sideeffect

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ToolCall is what an agent did, in one call of a tool.
type ToolCall struct {
	Tool        string          // "Bash", "mcp__jira__create_issue"
	Command     string          // the command line, if the tool is a shell
	Args        json.RawMessage // the tool's arguments
	Annotations Annotations

	// Output and Exit are what came of it: Exit 0 for success, for tools without
	// an exit status something else for failure. Nil: it is not over, or nobody
	// knows.
	Output string
	Exit   *int
}

// Annotations are what an MCP server says about its tool. Nil: nothing.
type Annotations struct {
	ReadOnly, Destructive *bool
}

// Recognise returns the effects of a call, in the order they are written, without
// key and number. The same call gives the same effects before it is made and
// after; what is known of its outcome only changes their status and fields.
//
// The status is what can be told from the exit status of the whole: an effect in
// the middle of a line may be unknown though the line succeeded. Fields are taken
// from the output only where it is certain whose they are.
func (r Rules) Recognise(call ToolCall) []Effect {
	if call.Command != "" {
		return r.shell(call)
	}
	if f, ok := r.tool(call); ok {
		e := f.effect(call)
		e.Args = call.Args
		e.Status = call.status(f)
		if f.find != nil && e.Status == Succeeded {
			assign([]*Effect{&e}, f.find, call.Output)
		}
		return []Effect{e}
	}
	return nil
}

func (r Rules) tool(call ToolCall) (finding, bool) {
	for _, rule := range r.user {
		if rule.other(call) {
			return rule.finding(), rule.class != Read
		}
	}
	if f, ok := builtinTool(call); ok {
		return f, true
	}
	for _, rule := range r.last {
		if rule.other(call) {
			return rule.finding(), true
		}
	}
	return finding{}, false
}

// builtinTool is what is known of a tool by its name and what its server says.
func builtinTool(call ToolCall) (finding, bool) {
	if !strings.HasPrefix(call.Tool, "mcp__") {
		return finding{}, false // the agent's own tools work in the worktree
	}
	f := finding{class: Write, rule: call.Tool}
	switch a := call.Annotations; {
	case a.ReadOnly != nil && *a.ReadOnly:
		return finding{}, false
	case a.Destructive != nil && *a.Destructive:
		f.undo = never("its server calls it destructive")
	case a.ReadOnly == nil && a.Destructive == nil:
		if readsByName(call.Tool) {
			return finding{}, false
		}
		f.class = Maybe
	}
	return f, true
}

// readsByName tells that the name of a tool of MCP is that of one that reads: it
// begins with a verb of those, and no word of it is one of a change. Hooks are
// told nothing else of a tool, and going back is not to be refused for a search.
func readsByName(tool string) bool {
	_, name, _ := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	words := strings.Fields(strings.ToLower(apart().ReplaceAllString(name, "$1 $2")))
	if len(words) == 0 || !hasWord(readVerbs, words[0]) && !hasWord("fetch resolve", words[0]) {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool { return hasWord(writeVerbs, w) })
}

// apart are the places between the words of a name: get_issue, get-issue, getIssue.
var apart = pattern(`([a-z0-9])([A-Z])|[^A-Za-z0-9]+`)

// status of a tool that is not a shell. An error may have come after the deed.
func (call ToolCall) status(f finding) Status {
	switch {
	case call.Exit == nil:
		return Intended
	case *call.Exit == 0:
		return Succeeded
	case f.atomic:
		return Failed
	}
	return Unknown
}

// elsewhere are variables by which a line chooses where a tool works. They are not
// there when the effect is undone.
var elsewhere = pattern(`\b(?:GH_HOST|GH_REPO|GH_CONFIG_DIR|GITLAB_HOST|GITLAB_URI|GL_HOST|KUBECONFIG|AWS_\w+|CARGO_\w+|HELM_\w+)=`)

// sighting is a finding and the invocation it was made from.
type sighting struct {
	finding
	invocation
}

func (r Rules) shell(call ToolCall) []Effect {
	found, unread, err := read(call.Command)
	if err != nil {
		unread = append(unread, call.Command)
	}
	var seen []sighting
	redirected := sync.OnceValue(func() bool { return elsewhere().MatchString(call.Command) })
	for _, inv := range found {
		if f, ok := r.judge(inv); ok {
			if f.builtin && f.undo.Command != nil && (inv.inside || redirected()) {
				f.undo, f.find = Compensation{}, nil // it would not arrive at the same place
			}
			seen = append(seen, sighting{f, inv})
		}
	}
	for _, text := range unread {
		if name := r.mentioned(text); name != "" {
			seen = append(seen, sighting{finding{class: Maybe, rule: name + ", in a line that can't be read"}, invocation{text: shorten(text)}})
		}
	}
	effects := make([]Effect, len(seen))
	for i, s := range seen {
		effects[i] = s.effect(call)
		effects[i].Command = s.text
		effects[i].Status = s.status(call)
	}
	fill(effects, seen, call)
	return effects
}

func (r Rules) judge(inv invocation) (finding, bool) {
	for _, rule := range r.user {
		if rule.command(inv) {
			return rule.finding(), rule.class != Read
		}
	}
	if f, ok := judge(inv); ok {
		return f, true
	}
	for _, rule := range r.last {
		if rule.command(inv) {
			return rule.finding(), true
		}
	}
	return finding{}, false
}

func (f finding) effect(call ToolCall) Effect {
	e := Effect{Tool: call.Tool, Rule: f.rule, Class: f.class, Fields: f.fields, Remote: f.remote, Refs: f.refs,
		Compensation: f.undo, Source: f.source, Status: Intended}
	if len(call.Output) <= outputCap && f.asksOutput() {
		e.Output = call.Output
	}
	return e
}

func (f finding) asksOutput() bool {
	for _, name := range f.undo.placeholders() {
		if name == "output" || strings.HasPrefix(name, "output.") {
			return true
		}
	}
	return false
}

// trouble are words by which a tool says that it lost its connection: what it
// asked for may have been done all the same.
var trouble = pattern(`(?i)time.?out|timed out|deadline|reset by peer|broken pipe|unexpected eof|\bEOF\b|gateway|HTTP 5\d\d|connection (?:lost|closed)|interrupted`)

// status tells the outcome of one program from that of the line.
func (s sighting) status(call ToolCall) Status {
	switch {
	case call.Exit == nil:
		return Intended
	case *call.Exit == 0 && s.certain:
		return Succeeded
	case *call.Exit == 0 || !s.final || s.often:
		return Unknown
	}
	code := *call.Exit
	switch {
	case code == 126 || code == 127:
		return Failed // no such program
	case code > 127 || code < 0 || code == 124 || trouble().MatchString(call.Output):
		return Unknown
	case s.atomic:
		return Failed
	}
	for _, failed := range s.failed {
		if code == failed {
			return Failed
		}
	}
	return Unknown
}

// fill gives values from the output to effects. Effects that look for the same
// thing must find exactly as many as they are; otherwise something else in the
// output looks like it.
func fill(effects []Effect, seen []sighting, call ToolCall) {
	if call.Exit == nil || *call.Exit != 0 {
		return
	}
	alike := map[*regexp.Regexp][]*Effect{}
	spoilt := map[*regexp.Regexp]bool{}
	for i, s := range seen {
		if s.find == nil {
			continue
		}
		alike[s.find] = append(alike[s.find], &effects[i])
		if !s.certain || !s.shown || s.often {
			spoilt[s.find] = true
		}
	}
	for find, group := range alike {
		if !spoilt[find] {
			assign(group, find, call.Output)
		}
	}
}

// assign gives the matches, in order, to the effects.
func assign(group []*Effect, find *regexp.Regexp, output string) {
	var matches [][]string
	known := map[string]bool{}
	for _, m := range find.FindAllStringSubmatch(output, -1) {
		if whole := strings.TrimSpace(m[0]); !known[whole] {
			known[whole] = true
			matches = append(matches, m)
		}
		if len(matches) > len(group) {
			return
		}
	}
	if len(matches) != len(group) {
		return
	}
	for i, e := range group {
		fields := map[string]string{}
		for k, v := range e.Fields {
			fields[k] = v
		}
		for j, name := range find.SubexpNames() {
			if name != "" && matches[i][j] != "" {
				fields[name] = matches[i][j]
			}
		}
		e.Fields = fields
	}
}
