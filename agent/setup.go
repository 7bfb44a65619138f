package agent

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Scope says whose settings are meant.
type Scope string

// The scopes. In a project the untracked settings file is used where the
// client has one.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Setup puts our hooks into a client's settings, and takes them out.
//
// What is not ours keeps every byte; doing it twice does nothing, and taking
// out what was put in gives the file from before. Each file is written whole
// or not at all, through a symbolic link if there is one, and what it held is
// kept in Backups.
type Setup struct {
	Home    string                   // the user's
	Env     func(name string) string // nil: nothing is set
	Scope   Scope                    // User when empty
	Root    string                   // of the project
	Exe     string                   // how the hooks shall call us
	Backups string                   // folder; beside the file when empty
	Trust   bool                     // also mark the hooks as trusted, where the client asks for it
}

// State is how a hook stands in the settings.
type State string

// The states.
const (
	Installed State = "installed"
	Partly    State = "partly"  // some events
	Missing   State = "missing" // none of them
	Edited    State = "edited"  // ours, and not as we write it
)

// Status is how our hooks stand in a client's settings.
type Status struct {
	Agent    string
	State    State
	Paths    []string
	Events   []EventStatus
	Disabled string // why the client runs no hooks at all
	Trust    string // "", "trusted", "untrusted", "modified"
}

// EventStatus is the state of one event's hook.
type EventStatus struct {
	Event string
	State State
}

// Change is what Install or Remove did.
type Change struct {
	Touched []Touch
	Notes   []string // what a person should do or know
}

// Touch is one file that was written or removed.
type Touch struct {
	Path string // after links
	Done string // "created", "changed", "removed", "backup"
}

// SettingsError: a client's settings file cannot be read. It was left alone:
// the person has to correct it first.
type SettingsError struct {
	Path string
	Err  error
}

func (e *SettingsError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }
func (e *SettingsError) Unwrap() error { return e.Err }

// LinkError: a settings file of the project is a link that leads out of it.
// Nothing was written; install at user level, or edit the target by hand.
type LinkError struct{ Path, Target string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s leads out of the project, to %s", e.Path, e.Target)
}

// ErrTaken: a file that would be ours is there, and is not.
var ErrTaken = errors.New("not ours")

// ErrProjectOnly: the client has hooks in projects only.
var ErrProjectOnly = errors.New("hooks are per project only")

// installer knows one client's settings.
type installer interface {
	// edits are what the files should become, with our hooks or without.
	edits(s Setup, in bool) ([]edit, []string, error)
	status(s Setup) (Status, error)
}

// Install puts our hooks into the client's settings.
func (s Setup) Install(agent string) (Change, error) { return s.change(agent, true) }

// Remove takes our hooks out of the client's settings.
func (s Setup) Remove(agent string) (Change, error) { return s.change(agent, false) }

func (s Setup) change(agent string, in bool) (Change, error) {
	c, err := named(agent)
	if err != nil {
		return Change{}, err
	}
	if c.setup == nil {
		return Change{}, unsupported(c, "hooks")
	}
	edits, notes, err := c.setup.edits(s, in)
	if err != nil {
		return Change{}, fmt.Errorf("%s: %w", agent, err)
	}
	change := Change{Notes: notes}
	for _, e := range edits {
		touched, err := s.apply(e)
		change.Touched = append(change.Touched, touched...)
		if err != nil {
			return change, fmt.Errorf("%s: %w", agent, err)
		}
	}
	return change, nil
}

// Status tells how our hooks stand in the client's settings.
func (s Setup) Status(agent string) (Status, error) {
	c, err := named(agent)
	if err != nil {
		return Status{}, err
	}
	if c.setup == nil {
		return Status{}, unsupported(c, "hooks")
	}
	st, err := c.setup.status(s)
	if err != nil {
		return Status{}, fmt.Errorf("%s: %w", agent, err)
	}
	st.Agent = agent
	st.State = overall(st.Events)
	return st, nil
}

func overall(events []EventStatus) State {
	count := map[State]int{}
	for _, e := range events {
		count[e.State]++
	}
	switch {
	case count[Edited] > 0:
		return Edited
	case count[Missing] == len(events):
		return Missing
	case count[Missing] > 0:
		return Partly
	}
	return Installed
}

func (s Setup) env(name string) string {
	if s.Env == nil {
		return ""
	}
	return s.Env(name)
}

// folder is where a client keeps its settings: in the project, where the
// variable says, or in the home directory.
func (s Setup) folder(inProject, variable string, atHome ...string) string {
	if s.Scope == Project {
		return filepath.Join(s.Root, inProject)
	}
	if dir := s.env(variable); variable != "" && dir != "" {
		return dir
	}
	return filepath.Join(append([]string{s.Home}, atHome...)...)
}

// command is what the client's shell runs for an event. Whatever happens to
// our binary, the agent sees success and no output: some clients read exit
// code 2 as a refusal, and a Go program that panics exits with 2.
func (s Setup) command(agent, event string) string {
	c := shellWord(s.Exe) + " hook " + agent + " " + event + " 2>/dev/null || true"
	if !strings.Contains(filepath.Base(s.Exe), "retcon") {
		c += " # retcon"
	}
	return c
}

var (
	hookCommand = regexp.MustCompile(`^('(?:[^']|'\\'')*'|\S+) hook (\S+) \S+(?: |$)`)
	plainWord   = regexp.MustCompile(`^[A-Za-z0-9_./+:@%-]+$`)
)

// ours tells whether a command is a hook that we have installed for the
// agent, whatever event it is for and wherever our binary was.
func ours(command, agent string) bool {
	m := hookCommand.FindStringSubmatch(command)
	return m != nil && m[2] == agent &&
		(strings.Contains(filepath.Base(strings.Trim(m[1], "'")), "retcon") || strings.HasSuffix(command, " # retcon"))
}

func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
