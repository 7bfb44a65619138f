package agent

import (
	"fmt"
	"path/filepath"
	"strings"
)

// codexHooks are the hooks of Codex: in hooks.json, or in config.toml where
// the user has hooks there already, for the client warns about both. A hook
// runs only when its hash is marked as trusted, in the user's config.toml.
type codexHooks struct{}

const (
	hooksMark mark = "hooks"
	trustMark mark = "trusted hooks"
)

var codexJSON = jsonHooks{
	agent: Codex, events: codexEvents, entry: groupEntry,
	file: func(s Setup) (string, error) { return codexPath(s, "hooks.json"), nil },
}

// approve is what a person does about hooks that are not trusted.
const approve = "start codex and approve the hooks with /hooks: it skips hooks that are not trusted, without a word in `codex exec`"

// codexPath is a file in Codex's folder, as Codex itself calls it.
func codexPath(s Setup, name string) string {
	dir := s.folder(".codex", "CODEX_HOME", ".codex")
	if s.Scope != Project && s.env("CODEX_HOME") != "" {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
	}
	return filepath.Join(dir, name)
}

// tomlFile is a config.toml, and what it is without what is ours in it.
type tomlFile struct {
	path    string
	before  []byte
	foreign string
	tree    map[string]any
}

func openTOML(path string) (*tomlFile, error) {
	before, err := current(path)
	if err != nil {
		return nil, err
	}
	f := &tomlFile{path: path, before: before, foreign: hooksMark.cut(trustMark.cut(string(before)))}
	if f.tree, err = parseTOML(f.foreign); err != nil {
		return nil, &SettingsError{Path: path, Err: err}
	}
	return f, nil
}

// fresh: the file is not there, or was made by us.
func (f *tomlFile) fresh() bool {
	return f.before == nil || strings.HasPrefix(string(f.before), "# retcon: ")
}

// edit is what the file becomes. One that we had made goes with what is ours.
func (f *tomlFile) edit(text string) (edit, error) {
	e := edit{path: f.path, before: f.before, after: []byte(text)}
	if text == "" && f.fresh() {
		e.after = nil
	}
	if _, err := parseTOML(text); err != nil {
		return e, &SettingsError{Path: f.path, Err: err}
	}
	return e, nil
}

// codexPlan is what both files are and become.
type codexPlan struct {
	s      Setup
	config *tomlFile // beside hooks.json
	user   *tomlFile // where trust is kept; the same file at user level
	inline bool      // hooks belong into config
}

func openCodex(s Setup) (p codexPlan, err error) {
	p.s = s
	if p.config, err = openTOML(codexPath(s, "config.toml")); err != nil {
		return p, err
	}
	p.user = p.config
	if s.Scope == Project {
		atHome := s
		atHome.Scope = User
		if p.user, err = openTOML(codexPath(atHome, "config.toml")); err != nil {
			return p, err
		}
	}
	hooks, _ := p.config.tree["hooks"].(map[string]any)
	for _, e := range codexEvents {
		p.inline = p.inline || hooks[e.name] != nil
	}
	json, err := current(codexPath(s, "hooks.json"))
	p.inline = p.inline && json == nil
	return p, err
}

func (codexHooks) edits(s Setup, in bool) ([]edit, []string, error) {
	p, err := openCodex(s)
	if err != nil {
		return nil, nil, err
	}
	edits, _, err := codexJSON.edits(s, in && !p.inline)
	if err != nil {
		return nil, nil, err
	}
	config, user := p.config.foreign, p.user.foreign
	if in && p.inline {
		config = hooksMark.paste(config, codexTable(s), p.config.fresh())
	}
	if p.user == p.config {
		user = config
	}
	var notes []string
	if in {
		found, err := p.found(edits[0].after, config)
		if err != nil {
			return nil, nil, err
		}
		unmarked, stale := p.untrusted(found)
		if s.Trust && len(unmarked) > 0 {
			user = trustMark.paste(user, trustTable(unmarked), p.user.fresh())
			unmarked = nil
		}
		if len(unmarked)+len(stale) > 0 {
			notes = append(notes, approve)
		}
	}
	return p.finish(edits, config, user, notes)
}

func (p codexPlan) finish(edits []edit, config, user string, notes []string) ([]edit, []string, error) {
	if p.user != p.config {
		e, err := p.config.edit(config)
		if err != nil {
			return nil, nil, err
		}
		edits = append(edits, e)
	}
	e, err := p.user.edit(user)
	if err != nil {
		return nil, nil, err
	}
	e.anywhere = true
	return append(edits, e), notes, nil
}

// found are our hooks as Codex will find them, in hooks.json and config.toml
// with these contents.
func (p codexPlan) found(json []byte, config string) ([]codexHook, error) {
	d, err := parseDoc(json)
	if err != nil {
		return nil, err
	}
	tree, err := plain(d.read(d.root))
	if err != nil {
		return nil, err
	}
	inline, err := parseTOML(config)
	if err != nil {
		return nil, &SettingsError{Path: p.config.path, Err: err}
	}
	return append(codexFound(codexPath(p.s, "hooks.json"), tree), codexFound(p.config.path, inline)...), nil
}

// untrusted are the hooks that nobody has marked, and those whose mark is for
// something else: the client's own entry, which we do not change.
func (p codexPlan) untrusted(hooks []codexHook) (unmarked, stale []codexHook) {
	for _, h := range hooks {
		switch trustOf(p.user.tree, h.key) {
		case h.hash:
		case "":
			unmarked = append(unmarked, h)
		default:
			stale = append(stale, h)
		}
	}
	return unmarked, stale
}

func (codexHooks) status(s Setup) (Status, error) {
	p, err := openCodex(s)
	if err != nil {
		return Status{}, err
	}
	json, err := current(codexPath(s, "hooks.json"))
	if err != nil {
		return Status{}, err
	}
	found, err := p.found(json, string(p.config.before))
	if err != nil {
		return Status{}, err
	}
	st := Status{Paths: []string{codexPath(s, "hooks.json"), p.config.path}, Trust: "trusted"}
	for _, e := range codexEvents {
		st.Events = append(st.Events, EventStatus{Event: e.name, State: p.state(e, found)})
	}
	user, err := parseTOML(string(p.user.before))
	if err != nil {
		return Status{}, &SettingsError{Path: p.user.path, Err: err}
	}
	p.user.tree = user // with our own marks
	switch unmarked, stale := p.untrusted(found); {
	case len(found) == 0:
		st.Trust = ""
	case len(stale) > 0:
		st.Trust = "modified"
	case len(unmarked) > 0:
		st.Trust = "untrusted"
	}
	features, _ := user["features"].(map[string]any)
	if on, ok := features["hooks"].(bool); ok && !on {
		st.Disabled = "features.hooks is false in config.toml"
	}
	return st, nil
}

func (p codexPlan) state(e hookEvent, found []codexHook) State {
	state := Missing
	for _, h := range found {
		switch {
		case h.event != e.name:
		case state == Missing && h.alone && same(h.entry, groupEntry(e, p.s.command(Codex, e.name))):
			state = Installed
		default:
			state = Edited
		}
	}
	return state
}

// codexTable are our hooks as TOML.
func codexTable(s Setup) string {
	var b strings.Builder
	for _, e := range codexEvents {
		fmt.Fprintf(&b, "[[hooks.%s]]\n", e.name)
		if e.matcher != "" {
			fmt.Fprintf(&b, "matcher = %s\n", encodedLine(e.matcher))
		}
		fmt.Fprintf(&b, "[[hooks.%s.hooks]]\ntype = \"command\"\ncommand = %s\ntimeout = %d\n",
			e.name, encodedLine(s.command(Codex, e.name)), e.timeout)
	}
	return b.String()
}
