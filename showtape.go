package retcon

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// Cell is an operation as the tape of a run has it: without secrets.
type Cell struct {
	Number    int64           `json:"cell"` // counted in the run
	Op        string          `json:"op"`
	Args      json.RawMessage `json:"args,omitempty"`
	Exit      *int            `json:"exit,omitempty"`
	Output    string          `json:"output,omitempty"` // its beginning
	Bytes     int64           `json:"bytes"`            // of the whole output
	TreeIn    string          `json:"tree_in,omitempty"`
	TreeOut   string          `json:"tree_out,omitempty"`
	Failed    bool            `json:"failed,omitempty"`
	Denied    bool            `json:"denied,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // the end of the output was not kept
	Hole      string          `json:"hole,omitempty"`      // why it was not recorded
}

// Call is a call of a tool in an agent's session.
type Call struct {
	Task string `json:"task"`
	Attempt
}

// cellShown is how much of an output is shown where there may be many.
const cellShown = 2 << 10

// cells are a part of the tape of the run that an attempt was made in; only
// those that belong to one of the attempts.
func (v *viewer) cells(q ledger.CellQuery, of ...ledger.Attempt) (all []Cell, err error) {
	err = v.tape(q, of, func(_ int64, c Cell) { all = append(all, c) })
	return all, err
}

// tape hands out the cells of attempts of one run, each with its attempt.
func (v *viewer) tape(q ledger.CellQuery, of []ledger.Attempt, each func(attempt int64, c Cell)) error {
	if len(of) == 0 {
		return nil
	}
	wanted := make(map[int64]bool, len(of))
	for _, a := range of {
		wanted[a.ID] = true
	}
	for {
		page, err := v.tx.Cells(of[0].RunID, q)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, c := range page {
			q.After = c.Seq
			if !wanted[c.AttemptID] {
				continue
			}
			told, err := v.cell(c)
			if err != nil {
				return err
			}
			each(c.AttemptID, told)
		}
	}
}

func (v *viewer) cell(c ledger.Cell) (Cell, error) {
	told := Cell{Number: c.Seq, Op: c.Op, Exit: c.Exit, Bytes: c.OutSize, TreeIn: c.TreeIn, TreeOut: c.TreeOut,
		Failed: c.Flags.Has(ledger.CellError), Denied: c.Flags.Has(ledger.CellDenied), Truncated: c.Flags.Has(ledger.CellTruncated)}
	view, err := v.tx.CellView(c)
	if err != nil {
		return told, fmt.Errorf("cell %d of r%d: %w", c.Seq, c.RunID, err)
	}
	if c.Flags.Has(ledger.CellHole) {
		var why struct{ Hole string }
		_ = json.Unmarshal(view, &why) // one whose reason can't be read is a hole all the same
		told.Hole = why.Hole
		if told.Hole == "" {
			told.Hole = "not recorded"
		}
		return told, nil
	}
	told.Args = view
	out, err := v.tx.CellOutput(c)
	if err != nil {
		return told, fmt.Errorf("cell %d of r%d: output: %w", c.Seq, c.RunID, err)
	}
	told.Output = beginning(out, cellShown)
	return told, nil
}

// beginning is the first n bytes of a text, or fewer: it is cut between characters.
func beginning(b []byte, n int) string {
	if len(b) > n {
		for n > 0 && !utf8.RuneStart(b[n]) {
			n--
		}
		b = b[:n]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// calls lists the calls of a prompt, oldest first.
func (v *viewer) calls(t *ShownTask) error {
	if v.run.Kind != KindSession {
		return nil
	}
	all, err := v.tx.Attempts(v.run.ID)
	if err != nil {
		return err
	}
	var made []ledger.Attempt
	at := map[int64]int{}
	for _, a := range all {
		if keyOf(a) == "" || !strings.HasPrefix(a.Task, t.ID+"/") {
			continue
		}
		made, at[a.ID] = append(made, a), len(t.Calls)
		t.Calls = append(t.Calls, Call{Task: a.Task, Attempt: attemptOf(a)})
	}
	return v.tape(ledger.CellQuery{}, made, func(attempt int64, c Cell) {
		one := &t.Calls[at[attempt]]
		one.Cells = append(one.Cells, c)
	})
}

// call shows a call of a session's, named as its attempts are or by the id that
// the client gave it; false when there is none of that name.
func (v *viewer) call(named string) (bool, error) {
	if v.run.Kind != KindSession {
		return false, nil
	}
	all, err := v.tx.Attempts(v.run.ID)
	if err != nil {
		return false, err
	}
	var made []ledger.Attempt
	for _, a := range all {
		if key := keyOf(a); key != "" && (a.Task == named || key == named) {
			made = append(made, a)
		}
	}
	if len(made) == 0 {
		return false, nil
	}
	newest := made[len(made)-1]
	told := &ShownTask{Task: Task{ID: newest.Task, Name: called(newest.Task), Scope: scopeOf(newest.Task), Kind: "call",
		State: callState(newest.Outcome), Attempt: newest.Number}, Attempts: []Attempt{}}
	v.out.Task = told
	for _, a := range made {
		one := attemptOf(a)
		if one.Cells, err = v.cells(ledger.CellQuery{Attempt: a.ID}, a); err != nil {
			return true, err
		}
		told.Attempts = append(told.Attempts, one)
	}
	told.Output, err = v.answered(newest)
	return true, err
}

// answered is what a call gave back, as far as the tape has it: JSON as it is,
// and text as a string.
func (v *viewer) answered(a ledger.Attempt) (json.RawMessage, error) {
	cells, err := v.tx.Cells(a.RunID, ledger.CellQuery{Attempt: a.ID})
	if err != nil || len(cells) == 0 {
		return nil, err
	}
	out, err := v.tx.CellOutput(cells[len(cells)-1])
	if err != nil || len(out) == 0 {
		return nil, err
	}
	if json.Valid(out) {
		return out, nil
	}
	return json.Marshal(strings.ToValidUTF8(string(out), "\uFFFD"))
}

func callState(outcome string) string {
	switch outcome {
	case ledger.OutcomeOK:
		return snapshot.Done.String()
	case ledger.OutcomeFailed:
		return snapshot.Failed.String()
	case ledger.OutcomeInterrupted:
		return snapshot.Cancelled.String()
	}
	return snapshot.Running.String()
}
