package sideeffect

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Status says how far an effect has come.
type Status string

// The statuses of an effect. A row is Intended before anything is done.
const (
	Intended  Status = "intended"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"  // it was refused: nothing was done
	Unknown   Status = "unknown" // it may have been done
)

// CompState says how far the compensation of an effect has come.
type CompState string

// The states of a compensation.
const (
	CompNone     CompState = ""
	Compensating CompState = "compensating" // begun: it may have been carried out
	Compensated  CompState = "compensated"
	CompFailed   CompState = "failed"
	Crossed      CompState = "crossed" // left as it is, and moved past
)

// Class says what an effect means for a move.
type Class string

// The classes of effects. What only reads is no effect.
const (
	Write  Class = "write"  // changes something outside
	Maybe  Class = "maybe"  // may change something outside
	Push   Class = "push"   // a push of commits: listed, never in the way
	Exempt Class = "exempt" // declared to be in nobody's way: listed
)

// Effect is something done outside the worktree.
//
// Args, Command, Output and Fields hold what a tool was given and what it
// answered. The caller redacts them before they are stored.
type Effect struct {
	// Seq orders effects over all runs, the newest highest.
	Seq int64 `json:"seq,omitempty"`

	Key   string `json:"key,omitempty"`   // see Key
	Epoch int    `json:"epoch,omitempty"` // the one in Key

	Tool    string            `json:"tool"`
	Rule    string            `json:"rule,omitempty"`    // what recognised it: "gh issue create"
	Args    json.RawMessage   `json:"args,omitempty"`    // the tool's arguments
	Command string            `json:"command,omitempty"` // the one command, as it was written
	Output  string            `json:"output,omitempty"`  // JSON or text
	Fields  map[string]string `json:"fields,omitempty"`  // values found for the compensation
	Class   Class             `json:"class"`
	Status  Status            `json:"status"`

	// Remote and Refs say where a push went, when the command says so.
	Remote string   `json:"remote,omitempty"`
	Refs   []string `json:"refs,omitempty"`

	Compensation Compensation `json:"compensation,omitzero"`
	Comp         CompState    `json:"comp,omitempty"`
	CompDetail   string       `json:"comp_detail,omitempty"` // why Comp is CompFailed

	// Late: it was settled after its compensation had begun, or after it had
	// been crossed. Somebody has to look.
	Late bool `json:"late,omitempty"`

	// Source is the digest of the configuration that the compensation comes
	// from, which has to be trusted before it runs. Empty for our own.
	Source string `json:"source,omitempty"`
}

// Happened reports whether the effect is in the world, as far as anybody knows.
func (e Effect) Happened() bool { return e.Status == Succeeded || e.Status == Unknown }

// Stands reports whether the effect is in the world and in the way of those who
// would go behind it, or do it again.
func (e Effect) Stands() bool {
	return e.Status != Failed && e.Comp != Compensated && e.Comp != Crossed && !e.listed()
}

// listed: it is told of, and in nobody's way.
func (e Effect) listed() bool {
	return e.Class == Push || e.Class == Exempt || e.Compensation.NotNeeded != ""
}

// NextEpoch is the epoch of the next call in the same place: a new one after
// compensation, so that a provider that remembers the key does not answer with
// what was undone.
func (e Effect) NextEpoch() int {
	if e.Comp == Compensated {
		return e.Epoch + 1
	}
	return e.Epoch
}

func (e Effect) String() string {
	what := e.Rule
	if what == "" {
		what = e.Tool
	}
	if e.Key == "" {
		return what
	}
	return what + " (" + e.Key + ")"
}

// Key names one call in one task of a run: the same in every retry of the call,
// another one after compensation. Different arguments give different keys. A key
// is printable ASCII without spaces, fit for a header.
func Key(run, task, call string, epoch int) string {
	return escape(run, "/") + "/" + escape(task, "") + "/" + escape(call, "/") + "#" + strconv.Itoa(epoch)
}

// escape keeps run and call free of the slashes that separate the parts; those
// of a task can stand, being between the first and the last.
func escape(s, also string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || c == '#' || c == '%' || strings.IndexByte(also, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
