package retcon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
)

// A client lets a person go back in a conversation, and tells no hook of it.
// What its transcript says at the next event is compared with what was recorded:
// a prompt that is not in the conversation any more was taken back.

// catchUp reads on in the transcript, records what was taken back in it, and
// keeps a copy. That it can't is noted, and in nobody's way.
func (s *session) catchUp(ctx context.Context) {
	if err := s.caughtUp(ctx); err != nil {
		s.missed("conversation", err)
	}
}

func (s *session) caughtUp(ctx context.Context) error {
	f, err := s.transcript(ctx)
	if err != nil || f == nil {
		return err
	}
	if !f.straight || f.copy.ID == 0 {
		frame, lost, err := s.lost(ctx, f)
		if err == nil && lost {
			err = s.rewound(ctx, frame, "")
		}
		if err == nil && f.copy.ID == 0 {
			err = s.forked(ctx, f)
		}
		if errors.Is(err, errLater) {
			return nil // what was read is read again
		}
		if err != nil {
			return err
		}
	}
	return f.keep(ctx, s.db)
}

// errLater: the run, or its worktree, is being moved. The next event finds out
// again what this one did.
var errLater = errors.New("being moved")

// transcript is the one that the event names, read once for each event.
func (s *session) transcript(ctx context.Context) (*follower, error) {
	if s.heard == nil {
		f, err := s.follow(ctx)
		if err != nil || f == nil {
			return nil, err
		}
		s.heard = f
	}
	return s.heard, nil
}

// asked is a prompt that has a frame.
type asked struct {
	frame int64
	body  promptBody
}

// lost tells from which frame a conversation went on, when prompts that came
// after that frame are not in it any more.
func (s *session) lost(ctx context.Context, f *follower) (frame int64, lost bool, err error) {
	var prompts []asked
	var old []text
	err = s.db.View(ctx, func(tx *ledger.Tx) error {
		head, err := tx.RunHead(s.run.ID)
		if err == nil {
			prompts, err = promptsOf(tx, head)
		}
		if err != nil || len(prompts) == 0 {
			return err
		}
		copies, err := tx.Transcripts(s.run.ID)
		for _, t := range copies {
			if err != nil || t.ID == f.copy.ID {
				continue
			}
			var whole []byte
			if whole, err = copied(tx, t); err == nil {
				old, err = addText(old, s.event.Agent, t.Path, whole)
			}
		}
		return err
	})
	if err != nil || len(prompts) == 0 {
		return 0, false, err
	}
	entries, _, err := agent.ReadTranscript(s.event.Agent, f.part(), 0)
	if errors.Is(err, agent.ErrUnsupported) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	now := text{path: f.copy.Path, entries: entries}
	base := now.base()
	if base != nil && base.Session != s.event.Session {
		return 0, false, nil // it is a fork's
	}
	live, err := conversationNow(s.event.Agent, append(old, now))
	if err != nil {
		return 0, false, err
	}
	anew := f.copy.ID == 0 && base == nil // a file of another content, or in another place
	if base == nil && !f.wentOn() {
		return 0, false, nil // it may be what comes before a prompt
	}
	frame, lost = firstLost(prompts, append(old, now), live)
	switch {
	case !lost:
	case frame > 0:
		return frame, true, nil
	case anew: // nothing of what was recorded is in it: it may be about anything
		return 0, false, nil
	case base == nil && len(live) > 0 && live[0].Kind == agent.Aside && !slices.ContainsFunc(f.entries, func(e agent.Entry) bool { return e.Kind == agent.Cut }):
		return 0, false, nil // it was summed up: what was said is left out, and not taken back
	}
	return frame, lost, nil
}

// wentOn tells that a prompt was said, or the conversation cut, in what came
// since.
func (f *follower) wentOn() bool {
	return slices.ContainsFunc(f.entries, func(e agent.Entry) bool { return e.Kind == agent.Said || e.Kind == agent.Cut })
}

// promptsOf are the prompts on a branch that have a frame, oldest first.
func promptsOf(tx *ledger.Tx, head ledger.Branch) (all []asked, err error) {
	const page = 1000
	q := ledger.EventQuery{From: 1, To: head.HeadSeq, Types: []string{EventPrompt}, Limit: page}
	for head.HeadSeq > 0 {
		events, err := tx.Events(head.ID, q)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			p := asked{frame: e.Seq}
			if err := decodeEvent(tx, e, &p.body); err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		if len(events) < page {
			break
		}
		last := events[len(events)-1]
		q.From, q.FromIdx = last.Seq, int64(last.Idx)+1
	}
	return all, nil
}

// text is a transcript, or our copy of one.
type text struct {
	path    string
	entries []agent.Entry
}

func addText(all []text, client, path string, content []byte) ([]text, error) {
	entries, _, err := agent.ReadTranscript(client, bytes.NewReader(content), 0)
	if errors.Is(err, agent.ErrUnsupported) {
		return all, nil
	}
	return append(all, text{path, entries}), err
}

// base is what a transcript goes on from; nil when it stands by itself.
func (t text) base() *agent.Base {
	for _, e := range t.entries {
		if e.Base != nil {
			return e.Base
		}
	}
	return nil
}

// conversationNow is the conversation as the newest of some transcripts has it,
// with what that one goes on from.
func conversationNow(client string, all []text) ([]agent.Entry, error) {
	now := all[len(all)-1]
	live, err := agent.Live(client, now.entries)
	base := now.base()
	if err != nil || base == nil {
		return live, err
	}
	for i, t := range slices.Backward(all[:len(all)-1]) {
		if t.path == now.path {
			continue
		}
		before, err := conversationNow(client, all[:i+1])
		if err != nil {
			return nil, err
		}
		before = slices.DeleteFunc(before, func(e agent.Entry) bool { return e.Offset >= base.Offset })
		return append(before, live...), nil
	}
	return live, nil
}

// firstLost is the frame before the first prompt that was in a transcript, and
// is not in the conversation. When one that came later is in it, nothing was
// taken back.
func firstLost(prompts []asked, all []text, live []agent.Entry) (frame int64, lost bool) {
	var said []agent.Entry
	for _, t := range all {
		for _, e := range t.entries {
			if e.Kind == agent.Said {
				said = append(said, e)
			}
		}
	}
	alive := map[string]bool{}
	for _, e := range live {
		if e.Kind == agent.Said {
			alive[e.ID] = true
		}
	}
	from := 0
	for _, p := range prompts {
		found, live := p.among(said, from, alive)
		if found < 0 {
			continue
		}
		if p.nameless() {
			from = found + 1
		}
		switch {
		case live && lost:
			return 0, false
		case !live && !lost:
			frame, lost = p.frame-1, true
		}
	}
	return frame, lost
}

// nameless: the client gave the prompt no id.
func (p asked) nameless() bool { return p.body.Turn == "" && p.body.Entry == "" }

// among finds the entry of a prompt: by what its client calls it, else by its
// text, behind that of the prompt before. -1 when there is none. The same may
// have been said before, and taken back: one that is in the conversation is
// taken first.
func (p asked) among(said []agent.Entry, from int, alive map[string]bool) (at int, live bool) {
	at = -1
	for i, e := range said {
		is := e.Turn != "" && e.Turn == p.body.Turn || e.ID != "" && (e.ID == p.body.Entry || e.ID == p.body.Turn)
		if p.nameless() {
			is = i >= from && p.body.Text != "" && firstLine(e.Text) == p.body.Text
		}
		switch {
		case is && alive[e.ID]:
			return i, true
		case is && at < 0:
			at = i
		}
	}
	return at, false
}

// rewindBody is what an event of the type EventNativeRewind holds.
type rewindBody struct {
	Op    int64  `json:"op"`
	Frame int64  `json:"frame"`
	Entry string `json:"entry,omitempty"`
}

// rewound records that a conversation went on from a frame. The prompt that is
// worked on was said after that, and moves along. It fails with errLater.
func (s *session) rewound(ctx context.Context, frame int64, entry string) error {
	if s.elsewhere() {
		return nil // another event of the session shows its own worktree
	}
	var head ledger.Branch
	var now ledger.Checkpoint
	err := s.db.View(ctx, func(tx *ledger.Tx) (err error) {
		var going *turn
		if going, head, err = s.open(tx); err == nil && going != nil {
			now, err = tx.Checkpoint(going.body.Checkpoint)
		}
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if now.ID == 0 || now.WorktreeID != s.run.WorktreeID {
		if now, err = s.checkpoint(ctx, "rewound inside "+s.event.Agent); err != nil {
			return err
		}
	}
	if frame >= head.HeadSeq {
		return nil
	}
	m := timeline.Mover{W: s.w.vcs, DB: s.db, WorktreeID: s.run.WorktreeID, Actor: s.event.Agent, Owner: s.owner,
		Alive: checkpoint.Alive, Now: s.w.opt.Now}
	_, err = m.RecordNative(ctx, timeline.Native{Run: s.run.ID, Branch: head.ID, Head: head.HeadSeq, Frame: frame, Now: now,
		Then: func(tx *ledger.Tx, old, next ledger.Branch, op ledger.Op) error {
			err := tx.AppendEvents(next.ID, []ledger.Event{{Type: EventNativeRewind, ExtID: fmt.Sprintf("op-%d", op.ID), Actor: s.event.Agent,
				Body: encodedBody(rewindBody{Op: op.ID, Frame: frame, Entry: entry})}})
			if err != nil {
				return err
			}
			said, err := tx.FirstComing(old, EventPrompt)
			if errors.Is(err, ledger.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			return tx.Regraft(old, next, said.Idx, said.Task, promptTask(next))
		}})
	var stale *timeline.StaleHistoryError
	var busy *ledger.InProgressError
	var locked *ledger.LockedError
	var gated *ledger.GatedError
	if errors.As(err, &stale) || errors.As(err, &busy) || errors.As(err, &locked) || errors.As(err, &gated) || errors.Is(err, ledger.ErrStale) {
		return errLater
	}
	return err
}

// promptTask is the prompt that comes next on a branch.
func promptTask(head ledger.Branch) string { return fmt.Sprintf("prompt-%d", head.HeadSeq+1) }

// rewind records what a client tells of a rewind made inside it: the prompt that
// it names, and all that came after, are taken back.
func (s *session) rewind(ctx context.Context) error {
	entry := s.event.Entry
	if err := s.endTurn(ctx, snapshot.Cancelled); err != nil {
		return err
	}
	frame, again := int64(-1), false
	err := s.db.View(ctx, func(tx *ledger.Tx) error {
		head, err := tx.RunHead(s.run.ID)
		if err != nil {
			return err
		}
		prompts, err := promptsOf(tx, head)
		for _, p := range prompts {
			if entry != "" && (p.body.Entry == entry || p.body.Turn == entry) {
				frame = p.frame - 1
			}
		}
		if err != nil || frame >= 0 {
			return err
		}
		last, err := tx.FirstComing(head, EventNativeRewind)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		var was rewindBody
		if err == nil {
			err = decodeEvent(tx, last, &was)
		}
		again = err == nil && was.Entry == entry
		return err
	})
	switch {
	case err != nil || again:
		return err
	case frame >= 0:
		if err = s.rewound(ctx, frame, entry); !errors.Is(err, errLater) {
			return err
		}
	}
	return s.note(ctx, EventNativeRewind, rewindBody{Frame: -1, Entry: entry}) // where to nobody recorded, or it could not be carried out in the record
}
