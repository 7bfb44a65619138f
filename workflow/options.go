package workflow

import (
	"net/http"
	"time"

	"github.com/retcon-dev/retcon/cassette"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// Options of running. Ledger, Recorder, Owner and Now are needed.
type Options struct {
	Ledger   *ledger.DB
	Recorder *checkpoint.Recorder // of the worktree the run works in
	Owner    ledger.Owner
	Alive    func(ledger.Owner) bool
	Actor    string
	Now      func() time.Time

	// Env is the environment of commands, whole. Nothing else is passed on.
	Env []string

	// Jobs is how many attempts go on at the same time; 8 when zero.
	Jobs int

	// Wait stays while a signal is all that is waited for. Otherwise the run
	// is left, to be resumed.
	Wait bool

	// KeepFiles begins a task that has failed before with the files as they
	// are, not with those it began with.
	KeepFiles bool

	// Force lets tasks run again across what they have done outside, and flags the
	// run.
	Force bool

	// On is told what happens, from any goroutine, one call at a time is not
	// promised.
	On func(Progress)

	// Tape records operations; nil records none.
	Tape *cassette.Tape

	// HTTP is the client of http tasks; http.DefaultClient when nil.
	HTTP *http.Client

	// Rules recognise what commands do outside their worktree. The zero value
	// knows the built-in ones.
	Rules sideeffect.Rules

	// Input is the body's argument.
	Input value.V

	edited  bool // what is rendered may differ from what was recorded
	carries bool // the lineage may hold results to carry
}

func (o *Options) jobs() int {
	if o.Jobs <= 0 {
		return 8
	}
	return o.Jobs
}

// Kinds of Progress.
const (
	Declared = "declared"
	Started  = "started"
	Printed  = "printed"
	Retried  = "retried"
	Settled  = "settled"
	Framed   = "framed"
	Missed   = "missed" // an operation that is not on the tape
)

// Progress is something that happened in a run.
type Progress struct {
	Kind     string
	Task     string
	TaskKind string
	State    snapshot.State
	Attempt  int
	Carried  bool
	Frame    int64
	Failure  string
	Stream   string    // of Printed
	Line     string    // of Printed
	Due      time.Time // of Retried
}
