// Package handover is the short way of an agent's hook: to nobody, where
// recording is switched off, or to a process that watches the workspace and can
// record what the hook tells sooner than a new process could. An agent waits
// for every hook, so this is written to start at once: it imports next to
// nothing.
//
// What it is not sure of goes the long way, to the whole program, which decides
// alone. The package does not know what an event means, what an agent is told,
// or how anything is recorded.
package handover

import (
	"io"
)

// Hook is a process that an agent has called, or its like in a test.
type Hook struct {
	Args   []string // of the command line: "hook", the agent, the event
	Getenv func(string) string
	Parent int // the process that started it
	In     io.Reader
	Out    io.Writer

	// Long is called with what was read of In when the short way leads nowhere.
	Long func(payload []byte) error
}

// PayloadMax is how much of a payload is read.
const PayloadMax = 16 << 20

// Off tells whether the variable RETCON_DISABLE, with this value, switches
// recording off.
func Off(value string) bool { return value != "" && value != "0" }

// Run does what the agent has called the hook for.
func (h Hook) Run() error {
	if Off(h.Getenv("RETCON_DISABLE")) {
		return nil
	}
	payload, err := io.ReadAll(io.LimitReader(h.In, PayloadMax))
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, h.In) // so that the agent can write all of it
	answer, done := h.short(payload)
	if !done {
		return h.Long(payload)
	}
	if len(answer) > 0 {
		_, err = h.Out.Write(answer)
	}
	return err
}

// asItIs are variables that change what a hook does: a process that watches has
// none of this hook's.
var asItIs = []string{"RETCON_DEBUG", "RETCON_RUN", "RETCON_TAPE", "RETCON_TAPE_MAX_BYTES"}

// short answers the hook; done is false when the whole program has to.
func (h Hook) short(payload []byte) (answer []byte, done bool) {
	if len(h.Args) != 3 || h.Args[0] != "hook" {
		return nil, false
	}
	p, found := Find(Dir(h.Args[1], payload))
	if !found {
		return nil, false
	}
	if p.Disabled() {
		return nil, true
	}
	for _, name := range asItIs {
		if h.Getenv(name) != "" {
			return nil, false
		}
	}
	return Ask(p, Call{Agent: h.Args[1], Event: h.Args[2], Home: h.Getenv("HOME"), XDGConfigHome: h.Getenv("XDG_CONFIG_HOME"),
		Parent: h.Parent, Payload: payload})
}
