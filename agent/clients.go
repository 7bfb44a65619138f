package agent

import (
	"errors"
	"fmt"
	"slices"
)

// The names of the clients, as a hook's command line carries them.
const (
	Claude   = "claude"
	Codex    = "codex"
	OpenCode = "opencode"
	Gemini   = "gemini"
	Cline    = "cline"
	Cursor   = "cursor"
	Copilot  = "copilot"
	Generic  = "generic"
)

// ErrUnknown: no client has that name. List the names with [Clients].
var ErrUnknown = errors.New("unknown agent")

// ErrUnsupported: the client has no such thing, for example a transcript file.
var ErrUnsupported = errors.New("not supported by this agent")

// Info is what a person should know about a client.
type Info struct {
	Name     string
	Title    string
	Binary   string // to look up in PATH; empty: not run by command line
	Hint     string // how to install it
	Verified string // version its hooks were recorded from; empty: from published schemas only
	Hooks    bool   // hooks can be installed
	Headless bool   // it can be run without a person
}

// client is everything that is particular to one of them. What it does not
// support is nil.
type client struct {
	Info
	decode   func(event string, o object) Event
	answers  map[string]form
	setup    installer
	variable string // by which what it starts finds the session it was started in
	headless *headless
	record   *record
	resume   func(Pointer, ContinueOptions) (Continuation, error)
}

// clients are all of them, in the order in which they are listed.
func clients() []*client {
	return []*client{&claude, &codex, &openCode, &gemini, &cline, &cursor, &copilot, &generic}
}

// Clients lists the clients that we know.
func Clients() []Info {
	var all []Info
	for _, c := range clients() {
		i := c.Info
		i.Hooks, i.Headless = c.setup != nil, c.headless != nil
		all = append(all, i)
	}
	return all
}

// Known tells what there is to say about a client. It fails with [ErrUnknown].
func Known(agent string) (Info, error) {
	for _, i := range Clients() {
		if i.Name == agent {
			return i, nil
		}
	}
	return Info{}, fmt.Errorf("%q: %w", agent, ErrUnknown)
}

func named(agent string) (*client, error) {
	all := clients()
	i := slices.IndexFunc(all, func(c *client) bool { return c.Name == agent })
	if i < 0 {
		return nil, fmt.Errorf("%q: %w", agent, ErrUnknown)
	}
	return all[i], nil
}

func unsupported(c *client, what string) error {
	return fmt.Errorf("%s: %s: %w", c.Name, what, ErrUnsupported)
}
