package workflow

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/cassette"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/proc"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// tapeNote is what a runner tells of its operation, for the tape.
type tapeNote struct {
	exit            *int
	open            bool // somebody it started may have printed more
	stdout, stderr  []byte
	session         string // of an agent
	treeIn, treeOut string
	began           time.Time
}

func (n *tapeNote) command(r proc.Result) {
	exit := r.Exit
	n.exit, n.stdout, n.stderr, n.open = &exit, r.Stdout, r.Stderr, r.Open
}

func (n *tapeNote) answer(status int, body []byte) { n.exit, n.stdout = &status, body }

// taped is the output of an operation as the tape has it.
type taped struct {
	Exit    *int            `json:"exit,omitempty"`
	Stdout  string          `json:"stdout"`
	Stderr  string          `json:"stderr,omitempty"`
	Session string          `json:"session,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
	Failure json.RawMessage `json:"failure,omitempty"`
}

// cell prepares an attempt's operation for the tape. It is written together
// with the end of the attempt, and tells whether its output was cut off.
func (e *engine) cell(end *attemptEnd, x *execution) func(*ledger.Tx, ledger.Attempt) (bool, error) {
	t := end.task
	switch t.decl.Kind {
	case KindShell, KindAgent, KindHTTP:
	default:
		return nil
	}
	if e.opt.Tape == nil {
		return nil
	}
	out := taped{Exit: x.tape.exit, Stdout: strings.ToValidUTF8(string(x.tape.stdout), "\uFFFD"),
		Stderr: strings.ToValidUTF8(string(x.tape.stderr), "\uFFFD"), Session: x.tape.session}
	failed := end.out == nil || end.out.state != snapshot.Done
	switch {
	case end.out == nil:
	case failed:
		out.Failure = value.JSON(end.out.failure.V())
	default:
		out.Value = value.JSON(end.out.value)
	}
	body, err := json.Marshal(out)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	call := cassette.Call{Run: e.run.ID, Attempt: end.settled.attempt.ID, Branch: e.branch, Op: t.decl.Kind,
		Args: json.RawMessage(value.JSON(x.Args)), Exit: x.tape.exit, Output: body, Failed: failed,
		TreeIn: x.tape.treeIn, TreeOut: x.tape.treeOut, Took: e.opt.Now().Sub(x.tape.began), Actor: e.opt.Actor}
	prepared, why := e.opt.Tape.Prepare(call)
	return func(tx *ledger.Tx, _ ledger.Attempt) (bool, error) {
		if why != nil {
			_, first, err := e.opt.Tape.Hole(tx, call, why)
			if first {
				e.tell(Progress{Kind: Missed, Task: t.id, Failure: why.Error()})
			}
			return false, err
		}
		c, err := prepared.Append(tx)
		return c.Flags&ledger.CellTruncated != 0, err
	}
}
