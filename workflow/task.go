package workflow

import (
	"context"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// task is a unit of a run's graph. Its fields are guarded by the engine's mu,
// but those that never change after declare.
type task struct {
	decl   Decl
	id     string
	digest snapshot.Hash // of the declaration
	branch *branch
	refs   []*task  // whose outcomes are arguments
	ver    *version // what it reads, or makes; nil for none
	sides  []*place // of a merge

	control uint32
	attempt uint32
	out     *outcome      // nil until it has settled
	input   snapshot.Hash // of the outcome, or of a wait
	left    files         // by a writer
	origin  int64         // attempt that a carried outcome is of
	carried bool
	handled bool // the body deals with its failure
	passed  bool // its outcome was given to another task
	lost    bool // a race
	noted   bool // its outcome is in the log
	dirty   bool // it is in the engine's list of those
	going   bool // an attempt is under way

	stands  []ledger.Effect         // in the way of its next attempt
	cancel  context.CancelCauseFunc // of the attempt
	due     time.Time               // of a timer
	finish  *settled                // how its last attempt ended, until a frame has it
	waiting waiters
}

// settled is what is written about the last attempt of a task.
type settled struct {
	attempt ledger.Attempt // ID 0: its beginning was not written
	end     ledger.Finish
	events  []ledger.Event
	cell    func(tx *ledger.Tx, a ledger.Attempt) (truncated bool, err error)

	fellBack bool // the outcome is another than the attempt's
}

// waiters are the lines of the body that wait for something.
type waiters struct {
	n    int
	wake chan struct{}
}

// attemptEnd is what came of a dispatch.
type attemptEnd struct {
	task    *task
	out     *outcome // nil: it was given up
	number  uint32
	input   snapshot.Hash
	left    files    // by a writer
	over    *files   // by a reader, against its declaration
	outside *outside // found when it began
	settled settled
	session string          // of an agent
	stands  []ledger.Effect // it was not begun because of them
	err     error           // the engine can't go on
}

// outside is a change that nobody in the run made, noticed before a task.
type outside struct {
	task string
	base string // the tree it was made to
	now  files
}
