package retcon

import (
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/cassette"
	"github.com/retcon-dev/retcon/ledger"
)

// callCell is a call of a tool on its way to the tape of its session.
type callCell struct {
	w     *Workspace
	tape  *cassette.Tape
	call  cassette.Call
	ready cassette.Prepared
	why   error // a hole is what it will be
}

// cell makes the event's call ready for the tape, with what it was given and
// what it gave back as the hook has them; nil where the session is not recorded.
// Do it before a transaction is begun.
func (s *session) cell(after ledger.Checkpoint) *callCell {
	if !s.run.Tape {
		return nil
	}
	e := s.event
	c := &callCell{w: s.w, tape: s.tape(), call: cassette.Call{Run: s.run.ID, Op: e.Tool, Args: e.ToolInput, Output: e.ToolOutput,
		Failed: e.Kind == agent.ToolFailed || e.Error != "", Denied: e.Denied, TreeOut: after.Tree, Actor: e.Agent}}
	if e.Command != "" {
		c.call.Exit = e.Exit
	}
	if len(c.call.Output) == 0 && e.Error != "" {
		c.call.Output = encodedBody(map[string]string{"error": e.Error})
	}
	c.ready, c.why = c.tape.Prepare(c.call)
	return c
}

// tape is what the session's calls are recorded on. Where that is switched off
// after the session has begun, each call leaves a hole.
func (s *session) tape() *cassette.Tape {
	if t := s.w.tape(s.db); t != nil {
		return t
	}
	return &cassette.Tape{DB: s.db, Off: true}
}

// lostCellError says that a call could not be put on the tape. The rest of the
// transaction has nothing to do with that.
type lostCellError struct{ err error }

func (e *lostCellError) Error() string { return "tape: " + e.err.Error() }
func (e *lostCellError) Unwrap() error { return e.err }

// put puts a call on the tape, as part of the attempt that it was.
func (c *callCell) put(tx *ledger.Tx, a ledger.Attempt) error {
	if c == nil {
		return nil
	}
	treeIn := ""
	if a.Before != 0 {
		before, err := tx.Checkpoint(a.Before)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		treeIn = before.Tree
	}
	took := tx.Now().Sub(a.Started)
	if c.why == nil {
		if _, err := c.ready.In(a.ID, a.Branch, treeIn, took).Append(tx); err != nil {
			return &lostCellError{err}
		}
		return nil
	}
	c.call.Attempt, c.call.Branch, c.call.TreeIn, c.call.Took = a.ID, a.Branch, treeIn, took
	_, first, err := c.tape.Hole(tx, c.call, c.why)
	if err != nil {
		return &lostCellError{err}
	}
	if first {
		c.w.missed("tape", fmt.Errorf("%s of r%d was not recorded: %w", c.call.Op, c.call.Run, c.why))
	}
	return nil
}

// less is what is left to be tried after a failure: to mark a hole, and then
// nothing.
func (c *callCell) less(why error) *callCell {
	if c.why != nil {
		c.w.missed("tape", fmt.Errorf("%s of r%d was not recorded, nor marked: %w", c.call.Op, c.call.Run, why))
		return nil
	}
	less := *c
	less.why = why
	return &less
}

// recorded does something with the ledger together with a call's cell; if the
// cell is what fails, without.
func (c *callCell) recorded(do func(c *callCell) error) error {
	for {
		err := do(c)
		var lost *lostCellError
		if c == nil || !errors.As(err, &lost) {
			return err
		}
		c = c.less(lost.err)
	}
}

// errEndUnseen is why the tape has a hole where a call was interrupted.
var errEndUnseen = errors.New("its end was not told")

// unended marks on the tape that calls have ended and nobody knows with what.
func (s *session) unended(tx *ledger.Tx, open []ledger.Attempt) error {
	if !s.run.Tape {
		return nil
	}
	for _, a := range open {
		returned, err := heard(tx, a, EventBackground, keyOf(a))
		if err != nil {
			return err
		}
		if returned {
			continue // the tape has what was told at once
		}
		_, tool, _ := cutLast(a.Task, "/")
		tool, _, _ = cutLast(tool, "[")
		_, _, err = s.tape().Hole(tx, cassette.Call{Run: a.RunID, Attempt: a.ID, Branch: a.Branch, Op: tool, Actor: s.event.Agent}, errEndUnseen)
		if err != nil {
			return err
		}
	}
	return nil
}
