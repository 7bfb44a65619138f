package retcon

import (
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
)

// KindSubagent is what a run is called that is a subagent's session, with a
// client that gives it one of its own. It has no frames: what it does is part of
// a prompt of its parent, as it is with other clients.
const KindSubagent = "subagent"

// ownSession tells that an event begins a session that is a subagent's.
func ownSession(e agent.Event) bool {
	return e.Kind == agent.SubagentStart && e.Subagent == e.Session
}

// adopt takes the event of a subagent's session for one of the session that it
// works for.
func (s *session) adopt(tx *ledger.Tx) (err error) {
	if s.run.Kind != KindSubagent {
		if ownSession(s.event) { // of nobody that is known
			s.event.Kind, s.event.Subagent = agent.SessionStart, ""
		}
		return nil
	}
	for s.run.Kind == KindSubagent {
		if s.run, err = tx.Run(s.run.Parent); err != nil {
			return err
		}
	}
	e := &s.event
	e.Subagent, e.Session = e.Session, s.run.ExtID
	switch e.Kind {
	case agent.SessionStart:
		e.Kind = agent.SubagentStart
	case agent.TurnEnd, agent.SessionEnd:
		e.Kind = agent.SubagentEnd
	case agent.Compact, agent.Rewind: // of its conversation, not of its parent's
		e.Kind = agent.Other
	}
	return nil
}
