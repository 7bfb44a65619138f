package agent

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
)

// hookEvent is an event that we want to hear of.
type hookEvent struct {
	name    string
	matcher string // of tools; empty: all
	timeout int    // in the client's own unit; 0: the client's default
}

// jsonHooks are hooks in a JSON settings file: {"hooks": {EVENT: [ENTRY]}}.
// An entry is a group {"matcher", "hooks": [HANDLER]}, or a handler itself.
type jsonHooks struct {
	agent  string
	file   func(s Setup) (string, error)
	events []hookEvent
	entry  func(e hookEvent, command string) any
	head   map[string]any // what a file of ours begins with
	off    func(settings object) string
}

// group is an entry as Claude Code, Codex and Gemini CLI read it.
type group struct {
	Matcher string    `json:"matcher,omitempty"`
	Hooks   []handler `json:"hooks"`
}

type handler struct {
	Type    string `json:"type,omitempty"`
	Name    string `json:"name,omitempty"`
	Command string `json:"command"`
	Matcher string `json:"matcher,omitempty"`
	Timeout int    `json:"timeout,omitempty"`
}

func groupEntry(e hookEvent, command string) any {
	return group{Matcher: e.matcher, Hooks: []handler{{Type: "command", Command: command, Timeout: e.timeout}}}
}

func (j jsonHooks) edits(s Setup, in bool) ([]edit, []string, error) {
	path, err := j.file(s)
	if err != nil {
		return nil, nil, err
	}
	before, d, err := openDoc(path)
	if err != nil {
		return nil, nil, err
	}
	if in {
		err = j.put(d, s)
	} else {
		err = j.drop(d)
	}
	if err != nil {
		return nil, nil, &SettingsError{Path: path, Err: err}
	}
	return []edit{{path: path, before: before, after: d.bytes()}}, nil, nil
}

// openDoc reads a settings file, which need not exist.
func openDoc(path string) ([]byte, *doc, error) {
	before, err := current(path)
	if err != nil {
		return nil, nil, err
	}
	d, err := parseDoc(before)
	if err == nil {
		err = usable(d)
	}
	if err != nil {
		return nil, nil, &SettingsError{Path: path, Err: err}
	}
	return before, d, nil
}

// usable refuses a file in which the hooks are not where they belong.
func usable(d *doc) error {
	p := parser{text: d.text}
	if d.root.open != '{' {
		return p.fail("expected an object")
	}
	hooks := d.find("hooks")
	if hooks == nil {
		return nil
	}
	if p.at = hooks.start; hooks.open != '{' {
		return p.fail(`"hooks" is not an object`)
	}
	for _, m := range hooks.members {
		if p.at = m.start; m.value.open != '[' && m.value.open != 0 {
			return p.fail(quoted(m.key) + " is not an array")
		}
	}
	return nil
}

// put makes the hooks of every event what they should be.
func (j jsonHooks) put(d *doc, s Setup) error {
	if d.fresh {
		for key, value := range j.head {
			if err := d.add(d.root, key, value); err != nil {
				return err
			}
		}
	}
	if err := j.dropStale(d); err != nil {
		return err
	}
	for _, e := range j.events {
		if err := j.putEvent(d, e, j.entry(e, s.command(j.agent, e.name))); err != nil {
			return err
		}
	}
	return nil
}

func (j jsonHooks) putEvent(d *doc, e hookEvent, want any) error {
	mine := j.mine(d, e.name)
	for i := len(mine) - 1; i > 0; i-- { // one is enough
		if err := d.remove(mine[i]...); err != nil {
			return err
		}
	}
	switch hooks, list := d.find("hooks"), d.find("hooks", e.name); {
	case len(mine) > 0 && len(mine[0]) > 3: // in a group of somebody else's, where it was put on purpose
		return d.replace(want.(group).Hooks[0], mine[0]...)
	case len(mine) > 0 && same(d.read(d.find(mine[0]...)), want):
		return nil
	case len(mine) > 0:
		return d.replace(want, mine[0]...)
	case hooks == nil:
		return d.add(d.root, "hooks", map[string][]any{e.name: {want}})
	case list == nil:
		return d.add(hooks, e.name, []any{want})
	default:
		return d.add(list, "", want)
	}
}

// drop takes all that is ours out, in the reverse of the order in which it was
// put in.
func (j jsonHooks) drop(d *doc) error {
	for i := len(j.events) - 1; i >= 0; i-- {
		if err := j.dropEvent(d, j.events[i].name); err != nil {
			return err
		}
	}
	return j.dropStale(d)
}

func (j jsonHooks) dropEvent(d *doc, event string) error {
	mine := j.mine(d, event)
	for i := len(mine) - 1; i >= 0; i-- {
		if err := d.remove(mine[i]...); err != nil {
			return err
		}
	}
	return nil
}

// dropStale takes out what an earlier version of ours had asked for.
func (j jsonHooks) dropStale(d *doc) error {
	hooks := d.find("hooks")
	if hooks == nil {
		return nil
	}
	for _, m := range hooks.members {
		if slices.ContainsFunc(j.events, func(e hookEvent) bool { return e.name == m.key }) {
			continue
		}
		if err := j.dropEvent(d, m.key); err != nil {
			return err
		}
	}
	return nil
}

// mine are the places of what is ours among an event's hooks, in order: an
// entry, or one handler of an entry that has others.
func (j jsonHooks) mine(d *doc, event string) (found [][]any) {
	list := d.find("hooks", event)
	if list == nil {
		return nil
	}
	for i := range list.members {
		entry := []any{"hooks", event, i}
		handlers := d.find("hooks", event, i, "hooks")
		if handlers == nil {
			if ours(j.commandAt(d, entry...), j.agent) {
				found = append(found, entry)
			}
			continue
		}
		var here [][]any
		for k := range handlers.members {
			if h := []any{"hooks", event, i, "hooks", k}; ours(j.commandAt(d, h...), j.agent) {
				here = append(here, h)
			}
		}
		if len(here) > 0 && len(here) == len(handlers.members) {
			here = [][]any{entry}
		}
		found = append(found, here...)
	}
	return found
}

func (j jsonHooks) commandAt(d *doc, path ...any) string {
	command, _ := d.read(d.find(append(path[:len(path):len(path)], "command")...)).(string)
	return command
}

// same compares what was read with what we would write.
func same(read, want any) bool {
	data, err := json.Marshal(want)
	if err != nil {
		panic("BUG: a hook that is not JSON: " + err.Error())
	}
	var w any
	if err := json.Unmarshal(data, &w); err != nil {
		panic("BUG: " + err.Error())
	}
	return reflect.DeepEqual(read, w)
}

func (j jsonHooks) status(s Setup) (Status, error) {
	path, err := j.file(s)
	if err != nil {
		return Status{}, err
	}
	_, d, err := openDoc(path)
	if err != nil {
		return Status{}, err
	}
	st := Status{Paths: []string{path}}
	for _, e := range j.events {
		st.Events = append(st.Events, EventStatus{Event: e.name, State: j.state(d, e, j.entry(e, s.command(j.agent, e.name)))})
	}
	if j.off != nil {
		settings, err := json.Marshal(d.read(d.root))
		if err != nil {
			return Status{}, err
		}
		o, err := parseObject(settings)
		if err != nil {
			return Status{}, err
		}
		st.Disabled = j.off(o)
	}
	return st, nil
}

func (j jsonHooks) state(d *doc, e hookEvent, want any) State {
	mine := j.mine(d, e.name)
	switch {
	case len(mine) == 0:
		return Missing
	case len(mine) == 1 && same(d.read(d.find(mine[0]...)), want):
		return Installed
	}
	return Edited
}

// settings is a file with that name in a client's folder.
func settings(name, inProject, variable string, atHome ...string) func(Setup) (string, error) {
	return func(s Setup) (string, error) {
		return filepath.Join(s.folder(inProject, variable, atHome...), name), nil
	}
}
