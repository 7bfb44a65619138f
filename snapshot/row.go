package snapshot

import (
	"errors"
	"fmt"
	"slices"
)

// State is where a task stands.
type State uint8

const (
	Pending   State = iota // declared, waits for its arguments or its turn
	Running                // an attempt is under way
	Waiting                // waits for a signal, a time or a retry
	Done                   // has its value
	Failed                 // has its failure, and no attempts left
	Cancelled              // given up, by a race or by hand
	Skipped                // never will run
)

var states = [...]string{"pending", "running", "waiting", "done", "failed", "cancelled", "skipped"}

// String is the word used in JSON.
func (s State) String() string {
	if int(s) < len(states) {
		return states[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Settled tells that the state is final until somebody resets it.
func (s State) Settled() bool { return s >= Done }

// MarshalText writes the state as String does.
func (s State) MarshalText() ([]byte, error) {
	if int(s) >= len(states) {
		return nil, fmt.Errorf("%s is no state", s)
	}
	return []byte(states[s]), nil
}

// UnmarshalText reads what MarshalText writes.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(states[:], string(text))
	if i < 0 {
		return fmt.Errorf("%.40q is no state", text)
	}
	*s = State(i)
	return nil
}

// Row is one line of a state: a task, or under a reserved key something else
// that a frame brings back. Reserved keys begin with "~": "~input", "~def",
// "~loop/<id>", "~signal/<name>", "~conv".
type Row struct {
	Key     string
	Kind    string // "sh", "agent", "pure", …
	State   State
	Attempt uint32   // the newest attempt, 0 before the first
	Iter    uint32   // of a loop: iterations done
	Decl    Hash     // what was declared
	Input   Hash     // what it was given, known when dispatched
	Out     Hash     // the canonical outcome, value or failure
	Tree    string   // the tree a writer left, in hexadecimal; "" for none
	Deps    []string // keys whose outputs are arguments, sorted, each once
	After   string   // the last writer before it in its worktree
	Control uint32   // outputs forced in its scope before it was declared
	Carried bool     // the outcome is another generation's, or another run's
}

// Equal tells that two rows say the same.
func (r Row) Equal(o Row) bool {
	return r.Key == o.Key && r.Kind == o.Kind && r.State == o.State && r.Attempt == o.Attempt && r.Iter == o.Iter &&
		r.Decl == o.Decl && r.Input == o.Input && r.Out == o.Out && r.Tree == o.Tree && slices.Equal(r.Deps, o.Deps) &&
		r.After == o.After && r.Control == o.Control && r.Carried == o.Carried
}

// Check says why a row can't be part of a state: it has no key, a state that
// is none, a tree that is not lower-case hexadecimal, or dependencies that are
// empty, repeated or out of order.
func (r Row) Check() error {
	switch {
	case r.Key == "":
		return errors.New("row without a key")
	case int(r.State) >= len(states):
		return fmt.Errorf("row %q: %s is no state", r.Key, r.State)
	case !isHex(r.Tree):
		return fmt.Errorf("row %q: tree %q is not hexadecimal", r.Key, r.Tree)
	}
	for i, d := range r.Deps {
		if d == "" || i > 0 && d <= r.Deps[i-1] {
			return fmt.Errorf("row %q: its dependencies are not sorted, each once: %q", r.Key, r.Deps)
		}
	}
	return nil
}
