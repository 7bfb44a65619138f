package mcp

import (
	"fmt"
	"slices"
	"strings"
)

// Capability is a kind of thing that callers may be permitted to do.
type Capability string

const (
	Read   Capability = "read"   // look at runs, frames, files and operations
	Fork   Capability = "fork"   // begin new runs from old ones
	Travel Capability = "travel" // move runs and the worktree, and let runs go on
	Signal Capability = "signal" // answer what runs wait for
	Force  Capability = "force"  // pass guards: move under a run that goes on
)

// Capabilities are all there are.
func Capabilities() []Capability { return []Capability{Read, Fork, Travel, Signal, Force} }

// Usual are those that callers have when nothing else is said.
func Usual() []Capability { return []Capability{Read, Fork, Travel, Signal} }

// ParseCapabilities reads "read,travel".
func ParseCapabilities(text string) ([]Capability, error) {
	allowed := []Capability{}
	for word := range strings.SplitSeq(text, ",") {
		c := Capability(strings.TrimSpace(word))
		if !slices.Contains(Capabilities(), c) {
			return nil, fmt.Errorf("there is no capability %q, only %s", string(c), list(Capabilities(), ", "))
		}
		allowed = append(allowed, c)
	}
	return allowed, nil
}

func list(all []Capability, between string) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = string(c)
	}
	return strings.Join(words, between)
}

// CapabilityError refuses what callers are not permitted to do. Whoever starts
// the server decides that.
type CapabilityError struct {
	Missing Capability
	Allowed []Capability
}

func (e *CapabilityError) Error() string {
	return fmt.Sprintf("this needs the capability %s; this server permits %s", e.Missing, list(e.Allowed, ", "))
}

// may fails with a *CapabilityError unless callers have a capability; none is
// always had.
func (s *Server) may(c Capability) error {
	if c == "" || slices.Contains(s.opt.Allow, c) {
		return nil
	}
	return &CapabilityError{Missing: c, Allowed: s.opt.Allow}
}
