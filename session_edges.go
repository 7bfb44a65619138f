package retcon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// What leads from one session to another, or from one part of a session to the
// next.
const (
	EdgeResume   = "resume"        // the client was started again, and went on
	EdgeCompact  = "compact"       // the conversation was summed up
	EdgeRewind   = "native-rewind" // the conversation was cut inside the client
	EdgeClear    = "clear"         // a new conversation, in the place of another
	EdgeFork     = "fork"          // a copy of another, made by the client
	EdgeContinue = "continue"      // a copy that ends earlier, prepared by retcon
	EdgeSubagent = "subagent"      // a conversation with an agent, not with a person
)

// VerbNative is the verb of an operation that was a rewind made inside a client.
const VerbNative = ledger.VerbNative

// Edge is one step in the graph of sessions.
type Edge = timeline.Edge

// edgeBody is what an event of the type EventEdge holds.
type edgeBody struct {
	Kind  string `json:"kind"`
	From  int64  `json:"from,omitempty"` // a run
	Frame int64  `json:"frame"`          // of From; -1: nobody saw which
	To    int64  `json:"to,omitempty"`   // a run
}

// edgesOf are the edges of a run to others; with all, those within it too.
func edgesOf(tx *ledger.Tx, run ledger.Run, all bool) ([]Edge, error) {
	edges := []Edge{}
	if run.Kind != KindSession && run.Kind != KindSubagent {
		return edges, nil
	}
	if run.Parent != 0 {
		edges = append(edges, Edge{Kind: EdgeSubagent, From: runRef(run.Parent), At: run.Created.UTC()})
	}
	branches, err := tx.Branches(run.ID)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		if b.State == ledger.BranchPurged {
			continue
		}
		events, err := tx.NamedEvents(b.ID, -1, EventEdge)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			var body edgeBody
			if err := decodeEvent(tx, e, &body); err != nil {
				return nil, err
			}
			one := Edge{Kind: body.Kind, To: runRef(body.To), Frame: e.Seq - 1, At: e.At.UTC()}
			if body.From != 0 {
				one.From = runRef(body.From)
				if body.Frame >= 0 {
					one.From = fmt.Sprintf("r%d@%d", body.From, body.Frame)
				}
			}
			edges = append(edges, one)
		}
	}
	if !all || run.HeadBranch == 0 {
		return edges, nil
	}
	within, err := edgesWithin(tx, run.HeadBranch)
	edges = append(edges, within...)
	slices.SortStableFunc(edges, func(a, b Edge) int { return int(a.Frame - b.Frame) })
	return edges, err
}

// edgesWithin are those between the parts of a session, on one line of it.
func edgesWithin(tx *ledger.Tx, branch int64) (edges []Edge, err error) {
	const page = 1000
	for q := (ledger.EventQuery{Types: []string{EventSessionStart, EventCompact, EventNativeRewind}, Limit: page}); ; {
		events, err := tx.Events(branch, q)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			kind := map[string]string{EventCompact: EdgeCompact, EventNativeRewind: EdgeRewind}[e.Type]
			if e.Type == EventSessionStart {
				var body struct{ Source string }
				if err := decodeEvent(tx, e, &body); err != nil {
					return nil, err
				}
				if body.Source == EdgeResume {
					kind = EdgeResume
				}
			}
			repeated := len(edges) > 0 && kind == EdgeCompact && edges[len(edges)-1].Kind == kind && edges[len(edges)-1].Frame == e.Seq-1
			if kind != "" && !repeated { // a client tells before and after it
				edges = append(edges, Edge{Kind: kind, Frame: e.Seq - 1, At: e.At.UTC()})
			}
		}
		if len(events) < page {
			return edges, nil
		}
		last := events[len(events)-1]
		q.From, q.FromIdx = last.Seq, int64(last.Idx)+1
	}
}

// link records that the session came from another: in both, once.
func (s *session) link(ctx context.Context, kind string, from ledger.Run, frame int64) error {
	if from.ID == s.run.ID {
		return nil
	}
	return s.db.Update(ctx, func(tx *ledger.Tx) error {
		return s.linked(tx, kind, from, frame)
	})
}

func (s *session) linked(tx *ledger.Tx, kind string, from ledger.Run, frame int64) error {
	branches, err := tx.Branches(s.run.ID)
	if err != nil {
		return err
	}
	for _, b := range branches { // it may have been moved since
		known, err := tx.NamedEvents(b.ID, -1, EventEdge)
		if err != nil {
			return err
		}
		for _, e := range known {
			if e.ExtID == "from" {
				return nil
			}
		}
	}
	head, err := tx.RunHead(s.run.ID)
	if err != nil {
		return err
	}
	there, err := tx.RunHead(from.ID)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	err = tx.AppendEvents(head.ID, []ledger.Event{{Type: EventEdge, ExtID: "from", Actor: s.event.Agent,
		Body: encodedBody(edgeBody{Kind: kind, From: from.ID, Frame: frame})}})
	if err != nil {
		return err
	}
	return tx.AppendLate(there.ID, []ledger.Event{{Type: EventEdge, ExtID: fmt.Sprintf("to-r%d", s.run.ID), Actor: s.event.Agent,
		Body: encodedBody(edgeBody{Kind: kind, To: s.run.ID, Frame: -1})}})
}

// others are the sessions of the same client in the worktree, newest first.
func (s *session) others(tx *ledger.Tx) (all []ledger.Run, err error) {
	runs, err := tx.Runs(ledger.RunQuery{Worktree: s.run.WorktreeID, Limit: 100})
	for _, r := range runs {
		if r.ID != s.run.ID && r.Kind == KindSession && r.Source == s.run.Source && r.HeadBranch != 0 {
			all = append(all, r)
		}
	}
	return all, err
}

// endBody is what an event of the type EventSessionEnd holds.
type endBody struct {
	Reason string `json:"reason"`
	Client int64  `json:"client,omitempty"` // the process that it was
}

// began records the start of a session, or that it goes on, and where it comes
// from as far as that is known.
func (s *session) began(ctx context.Context) error {
	err := s.note(ctx, EventSessionStart, map[string]string{"source": s.event.Source, "model": s.event.Model})
	if err != nil || s.run.Parent != 0 {
		return err
	}
	var from ledger.Run
	kind, frame := EdgeContinue, int64(-1)
	err = s.db.View(ctx, func(tx *ledger.Tx) error {
		all, err := s.others(tx)
		if err != nil {
			return err
		}
		if from, frame, err = s.prepared(tx, all); err != nil || from.ID != 0 || s.event.Source != "clear" {
			return err
		}
		kind = EdgeClear
		from, frame, err = s.cleared(tx, all)
		return err
	})
	if err != nil || from.ID == 0 {
		return err
	}
	return s.link(ctx, kind, from, frame)
}

// prepared finds the session that retcon has made this one of.
func (s *session) prepared(tx *ledger.Tx, all []ledger.Run) (from ledger.Run, frame int64, err error) {
	for _, r := range all {
		branches, err := tx.Branches(r.ID)
		if err != nil {
			return from, 0, err
		}
		for _, b := range branches {
			e, err := tx.EventByExt(b.ID, EventContinued, s.event.Session)
			if errors.Is(err, ledger.ErrNotFound) {
				continue
			}
			var body continuedBody
			if err == nil {
				err = decodeEvent(tx, e, &body)
			}
			return r, body.Frame, err
		}
	}
	return from, -1, nil
}

// cleared finds the session that the client has put this one in the place of:
// the one that it ended last, to begin another.
func (s *session) cleared(tx *ledger.Tx, all []ledger.Run) (from ledger.Run, frame int64, err error) {
	for _, r := range all {
		head, err := tx.RunHead(r.ID)
		if err != nil {
			return from, -1, err
		}
		ends, err := tx.Events(head.ID, ledger.EventQuery{From: head.HeadSeq + 1, Types: []string{EventSessionEnd}, Limit: 1000})
		if err != nil {
			return from, -1, err
		}
		if len(ends) == 0 {
			continue
		}
		var body endBody
		if err := decodeEvent(tx, ends[len(ends)-1], &body); err != nil {
			return from, -1, err
		}
		if body.Reason == "clear" && (body.Client == 0 || body.Client == s.owner.PID) {
			return r, head.HeadSeq, nil
		}
	}
	return from, -1, nil
}

// forked finds out of which session a new transcript is a copy, from what is in
// it: a client does not tell its hooks.
func (s *session) forked(ctx context.Context, f *follower) error {
	var from ledger.Run
	frame := int64(-1)
	err := s.db.View(ctx, func(tx *ledger.Tx) error {
		for _, e := range f.entries {
			if e.Base == nil || e.Base.Session == s.event.Session {
				continue
			}
			r, err := tx.RunByExt(s.event.Agent, e.Base.Session)
			if errors.Is(err, ledger.ErrNotFound) {
				return nil
			}
			from = r
			return err
		}
		return nil
	})
	if err == nil && from.ID == 0 {
		from, frame, err = s.copiedFrom(ctx, f)
	}
	if err != nil || from.ID == 0 {
		return err
	}
	return s.link(ctx, EdgeFork, from, frame)
}

// copiedFrom finds another session that has the same prompts: the frame is that
// of the last one that is in the copy.
func (s *session) copiedFrom(ctx context.Context, f *follower) (from ledger.Run, frame int64, err error) {
	turns := map[string]bool{}
	for _, e := range f.entries {
		if e.Kind == agent.Said && e.Turn != "" && e.Turn != s.event.Turn {
			turns[e.Turn] = true
		}
	}
	frame = -1
	if len(turns) == 0 {
		return from, frame, nil
	}
	err = s.db.View(ctx, func(tx *ledger.Tx) error {
		all, err := s.others(tx)
		for _, r := range all {
			if err != nil || from.ID != 0 {
				return err
			}
			var branches []ledger.Branch
			if branches, err = tx.Branches(r.ID); err != nil {
				return err
			}
			for _, b := range branches {
				for turn := range turns {
					e, err := tx.EventByExt(b.ID, EventPrompt, turn)
					if errors.Is(err, ledger.ErrNotFound) {
						continue
					}
					if err != nil {
						return err
					}
					from, frame = r, max(frame, e.Seq)
				}
			}
		}
		return err
	})
	return from, frame, err
}
