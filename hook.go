package retcon

import (
	"context"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
)

// HookOptions are one call of a hook by an agent.
type HookOptions struct {
	Agent   string // the client, as package agent names it
	Event   string // as the client names it; "": the payload tells
	Payload []byte // what the client sent

	// Client is the process that the agent is. While one of its tools runs,
	// nothing is moved. 0 is this process.
	Client int
}

// ErrNoSession: the payload does not say which conversation it is about.
var ErrNoSession = errors.New("the payload names no session")

// HookDirs are the directories that a payload says the agent works in, the
// likeliest first: the workspace of a hook is that of the first which has one.
// Idle tells that there is nothing to record, wherever it is.
func HookDirs(o HookOptions) (dirs []string, idle bool) {
	e, err := agent.Decode(o.Agent, o.Event, o.Payload)
	if err != nil {
		return nil, false
	}
	for _, d := range append([]string{e.CWD}, e.Roots...) {
		if d != "" {
			dirs = append(dirs, d)
		}
	}
	return dirs, unrecorded(e.Kind)
}

// unrecorded are the kinds of which nothing is kept.
func unrecorded(k agent.Kind) bool {
	switch k {
	case agent.Other, agent.Unknown, agent.Notification, agent.Moved:
		return true
	}
	return false
}

// Hook records what an agent's hook tells, and returns what the agent is to be
// told, which is mostly nothing: the bytes to print. A session is a run, a
// prompt a task with a frame of its own, a tool call an attempt below it with a
// checkpoint on either side.
//
// The stream of events is taken as lossy: what comes twice is recorded once,
// what never comes is made up for by what comes next. An error is noted where
// Doctor finds it; whoever calls for an agent should say nothing about it.
func (w *Workspace) Hook(ctx context.Context, o HookOptions) ([]byte, error) {
	if w.opt.Config.Disabled {
		return nil, nil
	}
	answer, err := w.hook(ctx, o)
	if err != nil {
		err = fmt.Errorf("hook %s %s: %w", o.Agent, o.Event, err)
		w.missedHook(o, err)
		return nil, err
	}
	return answer, nil
}

func (w *Workspace) hook(ctx context.Context, o HookOptions) ([]byte, error) {
	e, err := agent.Decode(o.Agent, o.Event, o.Payload)
	if err != nil {
		return nil, err
	}
	if unrecorded(e.Kind) {
		return nil, nil
	}
	if e.Session == "" {
		return nil, ErrNoSession
	}
	denied, err := w.denial(ctx, o.Agent, e)
	if err != nil {
		return nil, err
	}
	if denied != "" {
		return agent.Encode(o.Agent, e.Name, agent.Answer{Deny: true, Reason: denied})
	}
	owner := w.owner()
	owner.Name = e.Agent
	if o.Client != 0 {
		owner = checkpoint.Process(e.Agent, o.Client)
	}
	s, err := w.session(ctx, e, owner)
	if err != nil {
		return nil, err
	}
	_, s.hears, err = agent.Hears(o.Agent, e.Name)
	if err != nil {
		return nil, err
	}
	defer s.done()
	note, err := s.record(ctx)
	if err != nil {
		return nil, err
	}
	return agent.Encode(o.Agent, e.Name, agent.Answer{Note: note})
}

// record does what an event asks for. What the agent should know comes back.
func (s *session) record(ctx context.Context) (note string, err error) {
	switch s.event.Kind {
	case agent.Prompt:
		return s.prompt(ctx)
	case agent.ToolBefore:
		return "", s.before(ctx)
	case agent.ToolAfter, agent.ToolFailed:
		first := s.first(ctx)
		if err := s.after(ctx); err != nil || !first {
			return "", err
		}
		s.catchUp(ctx) // by now the client has written the prompt down
		return "", nil
	case agent.ToolBatch, agent.BackgroundEnd:
		return "", s.close(ctx, s.named())
	case agent.TurnEnd:
		return "", s.turnEnd(ctx)
	case agent.SubagentStart:
		return "", s.db.Update(ctx, s.subagent)
	case agent.SubagentEnd:
		return "", s.db.Update(ctx, s.subagentEnd)
	case agent.SessionEnd:
		return "", s.end(ctx)
	case agent.SessionStart:
		if err := s.began(ctx); err != nil {
			return "", err
		}
		return s.where(ctx)
	case agent.Compact:
		return "", s.note(ctx, EventCompact, map[string]string{"reason": s.event.Reason})
	case agent.Rewind:
		return "", s.rewind(ctx)
	}
	return "", nil
}

// note records an event that has nothing to do with files.
func (s *session) note(ctx context.Context, kind string, body any) error {
	return s.db.Update(ctx, func(tx *ledger.Tx) error {
		head, err := tx.RunHead(s.run.ID)
		if err != nil {
			return err
		}
		return tx.AppendEvents(head.ID, []ledger.Event{{Type: kind, Actor: s.event.Agent, Body: encodedBody(body)}})
	})
}

func (s *session) subagent(tx *ledger.Tx) error {
	t, head, err := s.opened(tx, ledger.Checkpoint{})
	if err == nil {
		_, err = s.scope(tx, t, head)
	}
	return err
}

func (s *session) subagentEnd(tx *ledger.Tx) error {
	t, head, err := s.open(tx)
	if err != nil || t == nil || s.event.Subagent == "" {
		return err
	}
	scope, err := s.scope(tx, t, head)
	if err != nil {
		return err
	}
	return tx.AppendEvents(head.ID, []ledger.Event{{Type: EventSubagentEnd, Task: scope, ExtID: s.event.Subagent, Actor: s.event.Agent}})
}

// CloseFast closes the workspace for a process that is about to end and that
// somebody waits for.
func (w *Workspace) CloseFast() error {
	if w.db != nil {
		w.db.CloseFast()
		w.db = nil
	}
	return w.vcs.Close()
}
