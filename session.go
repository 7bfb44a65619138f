package retcon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/vcs"
)

// KindSession is what a run is called that is a conversation with an agent. Its
// frames are counted as its prompts are: frame 0 is the start, and frame 3 what
// the third prompt left.
const KindSession = "session"

// The events of a session. Each is recorded once for its ExtID.
const (
	EventSessionStart = "session-start"
	EventSessionEnd   = "session-end"
	EventPrompt       = "prompt"       // ExtID: of the turn
	EventTurnEnd      = "turn-end"     // in the frame of the prompt
	EventConversation = "conversation" // in the frame of the prompt: where the conversation stands
	EventToolBefore   = "tool-before"  // ExtID: of the call
	EventToolAfter    = "tool-after"   // likewise
	EventBackground   = "background"   // the call has returned and goes on; likewise
	EventSubagent     = "subagent"     // ExtID: of the subagent
	EventSubagentEnd  = "subagent-end" // likewise
	EventCompact      = "compact"
	EventNativeRewind = "native-rewind" // the conversation was cut inside the client
	EventNote         = "note"          // what the agent was told about a move
	EventEdge         = "edge"          // to or from another session; ExtID: "from", or "to-r5"
	EventContinued    = "continued"     // another conversation was prepared; ExtID: of that one
)

// session is a run that an agent's hook is about.
type session struct {
	w     *Workspace
	db    *ledger.DB
	event agent.Event
	owner ledger.Owner
	row   ledger.Worktree // where the hook runs
	run   ledger.Run
	hears bool      // the agent can be told something in reply
	heard *follower // the transcript, once it was read
}

// session finds the run of an event, and begins it with the first one: frame 0
// holds the worktree as that event found it.
func (w *Workspace) session(ctx context.Context, e agent.Event, owner ledger.Owner) (*session, error) {
	db, err := w.settledBut(ctx, endedBy(e))
	if err != nil {
		return nil, err
	}
	s := &session{w: w, db: db, event: e, owner: owner}
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		s.row = row
		if s.run, err = tx.RunByExt(e.Agent, e.Session); err == nil {
			err = s.adopt(tx)
		}
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) || err == nil && s.row.ID == 0 {
		err = s.create(ctx)
	}
	if err == nil && s.run.HeadBranch == 0 {
		err = s.begin(ctx)
	}
	return s, err
}

func (s *session) create(ctx context.Context) error {
	return s.db.Update(ctx, func(tx *ledger.Tx) (err error) {
		if s.row, err = s.w.recorder(s.db).Ensure(tx); err != nil {
			return err
		}
		e := s.event
		s.run, err = tx.RunByExt(e.Agent, e.Session)
		if err == nil {
			return s.adopt(tx) // another hook of the session was quicker
		}
		if !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		var parent ledger.Run
		if e.Parent != "" {
			parent, err = tx.RunByExt(e.Agent, e.Parent)
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
		}
		kind := KindSession
		if ownSession(e) && parent.ID != 0 {
			kind = KindSubagent
		}
		s.run, err = tx.CreateRun(ledger.Run{Source: e.Agent, ExtID: e.Session, Kind: kind, WorktreeID: s.row.ID,
			Status: ledger.OutcomeOK, Command: e.Agent, Parent: parent.ID, Tape: !s.w.opt.NoTape})
		if err == nil {
			err = s.adopt(tx)
		}
		return err
	})
}

// begin records frame 0.
func (s *session) begin(ctx context.Context) error {
	c, err := s.checkpoint(ctx, "session start")
	if err != nil {
		return err
	}
	return s.db.Update(ctx, func(tx *ledger.Tx) (err error) {
		if s.run, err = tx.Run(s.run.ID); err != nil || s.run.HeadBranch != 0 {
			return err
		}
		head, err := tx.CreateBranch(s.run.ID)
		if err != nil {
			return err
		}
		s.run.HeadBranch = head.Branch
		_, err = tx.AppendFrame(head, ledger.NewFrame{Kind: "start", Checkpoint: c.ID, Put: []snapshot.Row{{Key: conversationRow, Kind: "conversation"}}})
		return err
	})
}

// elsewhere tells that the hook runs in another worktree than the session.
func (s *session) elsewhere() bool { return s.row.ID != s.run.WorktreeID }

// checkpoint records the worktree for the session. Where it is as the session's
// newest checkpoint says, that one is returned.
func (s *session) checkpoint(ctx context.Context, note string) (ledger.Checkpoint, error) {
	var found vcs.Commit
	what := checkpoint.What{Tier: ledger.TierTool, Run: s.run.ID, Note: note, Actor: s.event.Agent, OnlyChanges: true,
		Capture: func(ctx context.Context, o vcs.CaptureOptions) (*vcs.Capture, error) {
			then := o.Then
			o.Then = func(c *vcs.Capture) error {
				found = c.Commit
				return then(c)
			}
			if s.w.capture != nil {
				return s.w.capture(ctx, o)
			}
			return s.w.vcs.Capture(ctx, o)
		}}
	r := s.w.recorder(s.db)
	done, err := r.Record(ctx, what)
	if err != nil || done.Checkpoint.ID != 0 {
		return done.Checkpoint, err
	}
	var newest []ledger.Checkpoint
	err = s.db.View(ctx, func(tx *ledger.Tx) (err error) {
		newest, err = tx.Checkpoints(ledger.CheckpointQuery{Worktree: s.row.ID, Limit: 1})
		if err == nil && len(newest) == 1 && newest[0].RunID != s.run.ID { // mostly it is the session's
			newest, err = tx.Checkpoints(ledger.CheckpointQuery{Worktree: s.row.ID, Limit: 20})
		}
		return err
	})
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	for _, c := range newest {
		if c.Commit == string(found) && c.RunID == s.run.ID && c.Tier == ledger.TierTool {
			return c, nil
		}
		if c.Commit != string(found) {
			break // what lies before is not this state, but one that was like it
		}
	}
	what.OnlyChanges = false // it is somebody else's: the session needs one of its own
	done, err = r.Record(ctx, what)
	return done.Checkpoint, err
}

// turn is a prompt that the agent works on.
type turn struct {
	task string // "prompt-3"
	id   string // the client's; may be ""
	body promptBody
}

// promptBody is what an event of the type EventPrompt holds.
type promptBody struct {
	Text       string `json:"text"` // its first line
	Entry      string `json:"entry,omitempty"`
	Turn       string `json:"turn,omitempty"`
	Transcript string `json:"transcript,omitempty"`
	Checkpoint int64  `json:"checkpoint"`
	Seen       bool   `json:"seen"` // false: the agent worked, and no prompt was heard of
}

// open finds the prompt that the agent works on, on the branch that the run
// goes on with; nil when it waits for one.
func (s *session) open(tx *ledger.Tx) (*turn, ledger.Branch, error) {
	head, err := tx.RunHead(s.run.ID)
	if err != nil {
		return nil, head, err
	}
	said, err := tx.FirstComing(head, EventPrompt)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, head, nil
	}
	if err != nil {
		return nil, head, err
	}
	t := &turn{task: said.Task, id: said.ExtID}
	return t, head, decodeEvent(tx, said, &t.body)
}

// opened is open, and begins a prompt that nobody has heard of where there is
// none: a tool was used.
func (s *session) opened(tx *ledger.Tx, c ledger.Checkpoint) (*turn, ledger.Branch, error) {
	t, head, err := s.open(tx)
	if err != nil || t != nil {
		return t, head, err
	}
	t, err = s.ask(tx, head, promptBody{Text: "(no prompt was heard of)", Checkpoint: c.ID})
	return t, head, err
}

// ask records that a prompt was said.
func (s *session) ask(tx *ledger.Tx, head ledger.Branch, body promptBody) (*turn, error) {
	t := &turn{task: promptTask(head), id: body.Turn, body: body}
	err := tx.AppendEvents(head.ID, []ledger.Event{{Type: EventPrompt, Task: t.task, ExtID: body.Turn, Actor: s.event.Agent, Body: encodedBody(body)}})
	if err != nil {
		return nil, err
	}
	return t, tx.SetRunStatus(s.run.ID, ledger.StatusRunning)
}

// scope is the part of a prompt that an event's actor works on: the prompt, or
// a subagent's part of it.
func (s *session) scope(tx *ledger.Tx, t *turn, head ledger.Branch) (string, error) {
	id := s.event.Subagent
	if id == "" {
		return t.task, nil
	}
	known, err := tx.EventByExt(head.ID, EventSubagent, id)
	if err == nil && known.Seq == head.HeadSeq+1 {
		return known.Task, nil
	}
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return "", err
	}
	started, err := tx.NamedEvents(head.ID, head.HeadSeq, EventSubagent)
	if err != nil {
		return "", err
	}
	scope := fmt.Sprintf("%s/sub-%d", t.task, len(started)+1)
	return scope, tx.AppendEvents(head.ID, []ledger.Event{{Type: EventSubagent, Task: scope, ExtID: id, Actor: s.event.Agent,
		Body: encodedBody(map[string]string{"type": s.event.SubagentType})}})
}

func decodeEvent(tx *ledger.Tx, e ledger.Event, into any) error {
	b, err := tx.EventBody(e)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return fmt.Errorf("event %s of branch %d: %w", e.Type, e.Branch, err)
	}
	return nil
}

func encodedBody(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("BUG: the body of an event: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
