package retcon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/internal/redact"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
)

// callBody is what the events of a tool call hold.
type callBody struct {
	Tool       string   `json:"tool"`
	Attempt    int64    `json:"attempt"`
	Checkpoint int64    `json:"checkpoint"`
	Command    string   `json:"command,omitempty"` // its first line, redacted
	Paths      []string `json:"paths,omitempty"`
	Error      string   `json:"error,omitempty"`
}

func (s *session) callBody(a ledger.Attempt, c ledger.Checkpoint) []byte {
	e := s.event
	return encodedBody(callBody{Tool: e.Tool, Attempt: a.ID, Checkpoint: c.ID, Command: firstLine(e.Command), Paths: e.Paths, Error: firstLine(e.Error)})
}

// lineMax is how much of a text is kept to know it again.
const lineMax = 200

// firstLine is the first line of a text that has anything in it, without
// secrets.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text, _ = redact.New().Text(text)
	line := []rune(text)
	if len(line) > lineMax {
		line = append(line[:lineMax-1], '…')
	}
	return string(line)
}

// callKey is what a call is known by: its id, or what it is to do, where a
// client has no ids.
func callKey(e agent.Event) (key string, counted bool) {
	if e.CallID != "" {
		return e.CallID, false
	}
	return agent.CallKey(e.Tool, e.ToolInput), true
}

// suffix ends the task of a call's attempt. A counted key has a number behind
// it, which is part of the key.
func suffix(key string) string { return "[" + key + "]" }

// isOf tells that an attempt is of the call with a key.
func isOf(a ledger.Attempt, key string, counted bool) bool {
	if counted {
		return strings.Contains(a.Task, "["+key+".")
	}
	return strings.HasSuffix(a.Task, suffix(key))
}

// endedBy tells which attempts an event itself ends: where the client's process
// is not known they look as if it had died.
func endedBy(e agent.Event) func(ledger.Attempt) bool {
	key, counted := callKey(e)
	return func(a ledger.Attempt) bool {
		return (e.Kind == agent.ToolAfter || e.Kind == agent.ToolFailed) && isOf(a, key, counted)
	}
}

// keyOf is the key of the call that an attempt is of; "" when it is of none.
func keyOf(a ledger.Attempt) string {
	at := strings.LastIndexByte(a.Task, '[')
	if at < 0 || !strings.HasSuffix(a.Task, "]") {
		return ""
	}
	return a.Task[at+1 : len(a.Task)-1]
}

// calls are the calls of the session that have not ended, oldest first.
func (s *session) calls(tx *ledger.Tx) ([]ledger.Attempt, error) {
	open, err := tx.OpenAttempts(s.run.WorktreeID)
	return slices.DeleteFunc(open, func(a ledger.Attempt) bool { return a.RunID != s.run.ID || keyOf(a) == "" }), err
}

// before opens the window of a call.
func (s *session) before(ctx context.Context) error {
	key, counted := callKey(s.event)
	known := func(tx *ledger.Tx) (bool, error) {
		if counted {
			return false, nil // the same again is another one
		}
		_, known, err := s.tried(tx, key)
		return known, err
	}
	if seen, err := s.seen(ctx, known); seen || err != nil {
		return err
	}
	c, err := s.checkpoint(ctx, strings.TrimSpace("before "+s.event.Tool+" "+s.event.CallID))
	if err != nil {
		return err
	}
	acts := s.recognise()
	return s.db.Update(ctx, func(tx *ledger.Tx) error {
		if again, err := known(tx); again || err != nil {
			return err
		}
		a, err := s.start(tx, c, c)
		if err != nil {
			return err
		}
		return s.intend(tx, a, acts)
	})
}

func (s *session) seen(ctx context.Context, known func(*ledger.Tx) (bool, error)) (seen bool, err error) {
	err = s.db.View(ctx, func(tx *ledger.Tx) error {
		seen, err = known(tx)
		return err
	})
	return seen, err
}

// tried is the newest attempt of the call with a key; false when there is none.
func (s *session) tried(tx *ledger.Tx, key string) (a ledger.Attempt, known bool, err error) {
	a, err = tx.LastOfCall(s.run.ID, key)
	if errors.Is(err, ledger.ErrNotFound) {
		return a, false, nil
	}
	return a, err == nil, err
}

// start opens the attempt of the event's call, from a checkpoint on.
func (s *session) start(tx *ledger.Tx, from, now ledger.Checkpoint) (ledger.Attempt, error) {
	t, head, err := s.opened(tx, now)
	if err != nil {
		return ledger.Attempt{}, err
	}
	scope, err := s.scope(tx, t, head)
	if err != nil {
		return ledger.Attempt{}, err
	}
	call, counted := callKey(s.event)
	key := call
	if counted {
		if key, err = s.nextKey(tx, call); err != nil {
			return ledger.Attempt{}, err
		}
	}
	a := ledger.Attempt{RunID: s.run.ID, Call: call, Task: scope + "/" + s.event.Tool + suffix(key), Before: from.ID, Owner: s.owner,
		Branch: head.ID, StartSeq: head.HeadSeq}
	if s.elsewhere() {
		a.Worktree = s.row.ID
	}
	if a, err = tx.StartAttempt(a); err != nil {
		return a, err
	}
	return a, tx.AppendEvents(head.ID, []ledger.Event{{Type: EventToolBefore, Task: scope, ExtID: key, Actor: s.event.Agent, Body: s.callBody(a, from)}})
}

// nextKey numbers the calls that are to do the same.
func (s *session) nextKey(tx *ledger.Tx, call string) (string, error) {
	last, known, err := s.tried(tx, call)
	if err != nil || !known {
		return call + ".1", err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(keyOf(last), call+"."))
	if err != nil {
		return "", fmt.Errorf("attempt %d of %s: its call has no number", last.ID, last.Task)
	}
	return fmt.Sprintf("%s.%d", call, n+1), nil
}

// after closes the window of a call.
func (s *session) after(ctx context.Context) error {
	key, counted := callKey(s.event)
	done := func(tx *ledger.Tx) (bool, error) {
		if counted {
			return false, nil
		}
		tried, known, err := s.tried(tx, key)
		if err != nil || !known {
			return false, err
		}
		kind := EventToolAfter
		if s.event.Background {
			kind = EventBackground
		}
		return heard(tx, tried, kind, key)
	}
	if seen, err := s.seen(ctx, done); seen || err != nil {
		return err
	}
	c, err := s.checkpoint(ctx, strings.TrimSpace("after "+s.event.Tool+" "+s.event.CallID))
	if err != nil {
		return err
	}
	acts, cell := s.recognise(), s.cell(c)
	return cell.recorded(func(cell *callCell) error {
		return s.db.Update(ctx, func(tx *ledger.Tx) error {
			if again, err := done(tx); again || err != nil {
				return err
			}
			return s.finish(tx, c, acts, cell)
		})
	})
}

// heard tells that the branch on which a call began has an event about it.
func heard(tx *ledger.Tx, a ledger.Attempt, kind, key string) (bool, error) {
	_, err := tx.EventByExt(a.Branch, kind, key)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// finish closes the window of the event's call at a checkpoint. Of a call that
// nobody saw begin it is not known what was there before it: its window is
// empty, so that nothing is taken for its work that may be somebody else's.
func (s *session) finish(tx *ledger.Tx, c ledger.Checkpoint, acts []sideeffect.Effect, cell *callCell) error {
	a, err := s.window(tx, c)
	if err != nil {
		return err
	}
	if err := s.settle(tx, a, acts); err != nil {
		return err
	}
	if err := cell.put(tx, a); err != nil {
		return err
	}
	kind := EventToolAfter
	if s.event.Background {
		kind = EventBackground // its window stays open
	} else {
		f := ledger.Finish{Outcome: ledger.OutcomeOK, After: c.ID}
		if s.event.Kind == agent.ToolFailed || s.event.Error != "" {
			f.Outcome = ledger.OutcomeFailed
		}
		if err := tx.FinishAttempt(a.ID, f); err != nil {
			return err
		}
	}
	scope, _, _ := cutLast(a.Task, "/")
	return tx.AppendLate(a.Branch, []ledger.Event{{Type: kind, Task: scope, ExtID: keyOf(a), Actor: s.event.Agent, Body: s.callBody(a, c)}})
}

// window is the open attempt of the event's call. One that was closed without
// its end being seen goes on where it was closed, or where it began.
func (s *session) window(tx *ledger.Tx, now ledger.Checkpoint) (ledger.Attempt, error) {
	key, counted := callKey(s.event)
	open, err := s.calls(tx)
	if err != nil {
		return ledger.Attempt{}, err
	}
	if i := slices.IndexFunc(open, func(a ledger.Attempt) bool { return isOf(a, key, counted) }); i >= 0 {
		return open[i], nil
	}
	from := now
	if !counted {
		tried, known, err := s.tried(tx, key)
		if err != nil {
			return ledger.Attempt{}, err
		}
		if known {
			return s.reopen(tx, tried)
		}
	}
	return s.start(tx, from, now)
}

// reopen begins another attempt of a call, from where the one before ended.
func (s *session) reopen(tx *ledger.Tx, a ledger.Attempt) (ledger.Attempt, error) {
	from := a.After
	if from == 0 {
		from = a.Before
	}
	return tx.StartAttempt(ledger.Attempt{RunID: a.RunID, Call: a.Call, Task: a.Task, Before: from, Owner: s.owner, Branch: a.Branch,
		StartSeq: a.StartSeq, Worktree: a.Worktree})
}

// named are the calls that a batch, or the end of background work, is about.
func (s *session) named() func(ledger.Attempt) bool {
	keys := []string{s.event.CallID}
	for _, c := range s.event.Calls {
		keys = append(keys, c.ID)
	}
	return func(a ledger.Attempt) bool { return slices.Contains(keys, keyOf(a)) }
}

// close closes the windows of calls whose end was not seen.
func (s *session) close(ctx context.Context, which func(ledger.Attempt) bool) error {
	background := s.event.Kind == agent.BackgroundEnd
	chosen := func(tx *ledger.Tx) (open []ledger.Attempt, err error) {
		all, err := s.calls(tx)
		for _, a := range all {
			if err != nil || !which(a) {
				continue
			}
			goesOn := false
			if !background {
				goesOn, err = heard(tx, a, EventBackground, keyOf(a))
			}
			if !goesOn {
				open = append(open, a)
			}
		}
		return open, err
	}
	some, err := s.seen(ctx, func(tx *ledger.Tx) (bool, error) {
		open, err := chosen(tx)
		return len(open) > 0, err
	})
	if err != nil || !some {
		return err
	}
	c, err := s.checkpoint(ctx, "calls ended")
	if err != nil {
		return err
	}
	return s.db.Update(ctx, func(tx *ledger.Tx) error {
		open, err := chosen(tx)
		if err != nil {
			return err
		}
		return s.finishAll(tx, open, c)
	})
}

// finishAll closes windows at a checkpoint. Another hook may have closed them.
func (s *session) finishAll(tx *ledger.Tx, open []ledger.Attempt, c ledger.Checkpoint) error {
	if err := s.unended(tx, open); err != nil {
		return err
	}
	for _, a := range open {
		err := tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeInterrupted, After: c.ID})
		if err != nil && !errors.Is(err, ledger.ErrFinished) {
			return err
		}
	}
	return nil
}
