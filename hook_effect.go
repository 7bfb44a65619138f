package retcon

import (
	"fmt"
	"os"
	"slices"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/redact"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
)

// recognise are the effects of the event's call, as far as the event tells what
// came of them, without secrets. A call that is not over has intended them.
func (s *session) recognise() []sideeffect.Effect {
	e := s.event
	call := sideeffect.ToolCall{Tool: e.Tool, Command: e.Command, Args: e.ToolInput}
	if e.Server != "" { // clients have different names for the same tool
		call.Tool = "mcp__" + e.Server + "__" + e.ServerTool
	}
	over := e.Kind != agent.ToolBefore && !e.Background
	if over {
		call.Output, call.Exit = e.Output, e.Exit
	}
	found := s.w.rules().Recognise(call)
	if len(found) == 0 {
		return nil
	}
	if over && e.Exit == nil && e.Command != "" && !e.Interrupted {
		if call.Exit = s.exit(); call.Exit != nil {
			found = s.w.rules().Recognise(call)
		}
	}
	for i := range found {
		switch {
		case e.Denied:
			found[i].Status = sideeffect.Failed // it was not even begun
		case over && found[i].Status == sideeffect.Intended:
			found[i].Status = sideeffect.Unknown
		}
		found[i] = checkpoint.RedactEffect(redact.New(), found[i])
	}
	return found
}

// exit looks for how a command ended where only the client's own record of the
// conversation has it; nil when it has not.
func (s *session) exit() *int {
	path := s.event.Transcript
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil // it counts as unknown, which stands in the way of a move and says why
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	exit, err := agent.ExitInTranscript(s.event.Agent, f, info.Size(), s.event.CallID)
	if err != nil {
		return nil
	}
	return exit
}

// intend records effects of a call before it is made.
func (s *session) intend(tx *ledger.Tx, a ledger.Attempt, found []sideeffect.Effect) error {
	for i, f := range found {
		if _, err := s.intendOne(tx, a, i, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) intendOne(tx *ledger.Tx, a ledger.Attempt, i int, f sideeffect.Effect) (ledger.Effect, error) {
	f.Status, f.Output = sideeffect.Intended, ""
	row := ledger.Effect{Effect: f, RunID: a.RunID, Branch: a.Branch, Frame: a.StartSeq + 1, Attempt: a.ID, Task: a.Task}
	call := fmt.Sprintf("%d.%d", a.Number, i+1)
	return tx.Intend(row, true, func(epoch int) string { return sideeffect.Key(s.run.UID, a.Task, call, epoch) })
}

// settle records what came of the effects of a call. One that nobody has seen
// intended is recorded now. What was intended and is not among them was not
// done as it was told before: somebody has changed the call, or stopped it, and
// what came of that nobody knows.
func (s *session) settle(tx *ledger.Tx, a ledger.Attempt, found []sideeffect.Effect) error {
	made, err := tx.EffectsOf(a.RunID, a.Task)
	if err != nil {
		return err
	}
	for i, f := range found {
		at := slices.IndexFunc(made, func(m ledger.Effect) bool {
			return m.Tool == f.Tool && m.Rule == f.Rule && m.Command == f.Command
		})
		var row ledger.Effect
		if at >= 0 {
			row = made[at]
			made = slices.Delete(made, at, at+1)
		} else if row, err = s.intendOne(tx, a, i, f); err != nil {
			return err
		}
		if err := settleAs(tx, row, f); err != nil {
			return err
		}
	}
	if s.event.Background {
		return nil // it goes on
	}
	for _, m := range made {
		if m.Status == sideeffect.Intended {
			if err := settleAs(tx, m, sideeffect.Effect{Status: sideeffect.Unknown}); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleAs gives an effect the outcome and the values of another.
func settleAs(tx *ledger.Tx, row ledger.Effect, now sideeffect.Effect) error {
	if now.Status == sideeffect.Intended {
		return nil
	}
	return tx.SettleAs(row.ID, now)
}
