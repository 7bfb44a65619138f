package retcon

import (
	"context"
	"crypto/sha256"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// conversationRow is the row that counts the prompts of a conversation, and
// chains what was said.
const conversationRow = "~conv"

// prompt records that somebody said something. A turn whose end was not told
// ends here: that is what an interrupt looks like.
func (s *session) prompt(ctx context.Context) (note string, err error) {
	e := s.event
	if e.Subagent != "" {
		return "", s.db.Update(ctx, s.subagent) // its prompt is part of the one it works for
	}
	var going *turn
	err = s.db.View(ctx, func(tx *ledger.Tx) error {
		going, _, err = s.open(tx)
		return err
	})
	if err != nil {
		return "", err
	}
	body := promptBody{Text: firstLine(e.Prompt), Entry: e.Entry, Turn: e.Turn, Transcript: e.Transcript, Seen: true}
	if going != nil {
		if going.same(body) {
			return "", nil // it was delivered twice
		}
		if err := s.endTurn(ctx, snapshot.Cancelled); err != nil {
			return "", err
		}
	}
	if s.calling(ctx) {
		if err := s.close(ctx, func(ledger.Attempt) bool { return true }); err != nil {
			return "", err
		}
	}
	s.catchUp(ctx) // once more, where a turn has ended: it may be among what was taken back
	c, err := s.checkpoint(ctx, "prompt")
	if err != nil {
		return "", err
	}
	body.Checkpoint = c.ID
	err = s.db.Update(ctx, func(tx *ledger.Tx) error {
		going, head, err := s.open(tx)
		if err != nil || going != nil {
			return err // another hook was quicker
		}
		if _, err := s.ask(tx, head, body); err != nil {
			return err
		}
		note, err = s.news(tx, head)
		return err
	})
	return note, err
}

// same tells that a prompt is the one that is worked on already.
func (t *turn) same(b promptBody) bool {
	return t.body.Seen && t.body.Turn == b.Turn && t.body.Text == b.Text
}

func (s *session) calling(ctx context.Context) bool {
	some, _ := s.seen(ctx, func(tx *ledger.Tx) (bool, error) { // closing them will say what is wrong
		open, err := s.calls(tx)
		return len(open) > 0, err
	})
	return some
}

// turnEnd ends the prompt that an event says has ended.
func (s *session) turnEnd(ctx context.Context) error {
	e := s.event
	if e.Subagent != "" {
		return nil
	}
	var going *turn
	err := s.db.View(ctx, func(tx *ledger.Tx) (err error) {
		going, _, err = s.open(tx)
		return err
	})
	if err == nil && going == nil {
		s.catchUp(ctx) // with what was written after the turn
	}
	if err != nil || going == nil {
		return err
	}
	if e.Turn != "" && going.id != "" && e.Turn != going.id {
		return nil // of a subagent's, or told late
	}
	state := snapshot.Done
	switch {
	case e.Interrupted:
		state = snapshot.Cancelled
	case e.Error != "":
		state = snapshot.Failed
	}
	return s.endTurn(ctx, state)
}

// end records that the client has gone.
func (s *session) end(ctx context.Context) error {
	if err := s.endTurn(ctx, snapshot.Cancelled); err != nil {
		return err
	}
	return s.note(ctx, EventSessionEnd, endBody{Reason: s.event.Reason, Client: s.owner.PID})
}

// endTurn records the frame of the prompt that is worked on, if one is.
func (s *session) endTurn(ctx context.Context, state snapshot.State) error {
	s.catchUp(ctx)
	var going *turn
	err := s.db.View(ctx, func(tx *ledger.Tx) (err error) {
		going, _, err = s.open(tx)
		return err
	})
	if err != nil || going == nil {
		return err
	}
	c, err := s.checkpoint(ctx, "end of "+going.task)
	if err != nil {
		return err
	}
	pointer, err := s.pointer(ctx)
	if err != nil {
		s.missed("conversation", err) // the frame is worth more
	}
	return s.db.Update(ctx, func(tx *ledger.Tx) error {
		t, head, err := s.open(tx)
		if err != nil || t == nil || t.task != going.task {
			return err // another hook was quicker
		}
		if err := s.closeTurn(tx, head, c); err != nil {
			return err
		}
		return s.frame(tx, t, head, state, c, pointer)
	})
}

// closeTurn closes the windows of calls that ended unseen; those that go on in
// the background stay open.
func (s *session) closeTurn(tx *ledger.Tx, head ledger.Branch, c ledger.Checkpoint) error {
	open, err := s.calls(tx)
	if err != nil {
		return err
	}
	var over []ledger.Attempt
	for _, a := range open {
		if len(s.event.Running) > 0 || s.event.Kind == agent.Prompt || s.event.Agent != agent.Claude {
			goesOn, err := heard(tx, a, EventBackground, keyOf(a))
			if err != nil {
				return err
			}
			if goesOn {
				continue
			}
		}
		over = append(over, a)
	}
	return s.finishAll(tx, over, c)
}

// frame appends the frame of a prompt.
func (s *session) frame(tx *ledger.Tx, t *turn, head ledger.Branch, state snapshot.State, c ledger.Checkpoint, p *conversation) error {
	if s.elsewhere() {
		c = ledger.Checkpoint{} // of another worktree: the run's was left as it is
	}
	now, err := tx.LoadFrame(head.ID, ledger.Newest)
	if err != nil {
		return err
	}
	outcome := map[snapshot.State]string{snapshot.Done: ledger.OutcomeOK, snapshot.Failed: ledger.OutcomeFailed, snapshot.Cancelled: ledger.OutcomeInterrupted}[state]
	a, err := tx.StartAttempt(ledger.Attempt{RunID: s.run.ID, Task: t.task, Before: t.body.Checkpoint, Owner: s.owner, Branch: head.ID, StartSeq: head.HeadSeq})
	if err != nil {
		return err
	}
	// What else changed between Before and After, outside of its calls, is not
	// the agent's: of a prompt, a move takes only its calls for windows.
	if err := tx.FinishAttempt(a.ID, ledger.Finish{Outcome: outcome, After: c.ID, TreeOut: c.Tree, EndSeq: head.HeadSeq + 1}); err != nil {
		return err
	}
	rows, err := s.rows(tx, t, head, now.Set, a, state, c)
	if err != nil {
		return err
	}
	events := []ledger.Event{{Type: EventTurnEnd, Task: t.task, Actor: s.event.Agent,
		Body: encodedBody(map[string]string{"state": state.String(), "message": firstLine(s.event.Message), "error": firstLine(s.event.Error)})}}
	if p != nil {
		events = append(events, ledger.Event{Type: EventConversation, Task: t.task, Actor: s.event.Agent, Body: encodedBody(p)})
	}
	if _, err := tx.AppendFrame(now, ledger.NewFrame{Put: rows, Kind: "prompt", Note: t.body.Text, Checkpoint: c.ID, Events: events}); err != nil {
		return err
	}
	return tx.SetRunStatus(s.run.ID, outcome)
}

// rows are the prompt, the parts that subagents had in it, and the
// conversation, after a turn.
func (s *session) rows(tx *ledger.Tx, t *turn, head ledger.Branch, set *snapshot.Set, a ledger.Attempt, state snapshot.State, c ledger.Checkpoint) ([]snapshot.Row, error) {
	said := snapshot.Hash(sha256.Sum256([]byte(t.body.Text)))
	prompt := snapshot.Row{Key: t.task, Kind: "prompt", State: state, Attempt: uint32(a.Number), Input: said, Tree: c.Tree}
	conv, _ := set.Get(conversationRow)
	prompt.After = lastPrompt(set)
	conv.Key, conv.Kind, conv.State = conversationRow, "conversation", snapshot.Done
	conv.Iter++
	chain := append(append([]byte{}, conv.Out[:]...), said[:]...)
	conv.Out = sha256.Sum256(append(chain, s.event.Message...))
	rows := []snapshot.Row{prompt, conv}
	subs, err := tx.NamedEvents(head.ID, head.HeadSeq, EventSubagent)
	for _, e := range subs {
		rows = append(rows, snapshot.Row{Key: e.Task, Kind: "subagent", State: state, Attempt: 1})
	}
	return rows, err
}

// lastPrompt is the newest prompt of a state; "" when there is none.
func lastPrompt(set *snapshot.Set) string {
	newest, at := "", int64(-1)
	for r := range set.Rows() {
		if r.Kind != "prompt" {
			continue
		}
		if seq, _ := set.ChangedAt(r.Key); seq > at {
			newest, at = r.Key, seq
		}
	}
	return newest
}
