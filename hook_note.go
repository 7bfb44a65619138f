package retcon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// denial says why what an agent is about to do must not be done: a move holds
// the workspace. "" when nothing speaks against it, or the agent could not be
// told.
func (w *Workspace) denial(ctx context.Context, client string, e agent.Event) (reason string, err error) {
	deny, _, err := agent.Hears(client, e.Name)
	if err != nil || !deny {
		return "", err
	}
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		open, err := tx.OpenOps()
		for _, op := range open {
			if moves(op, row.ID) && checkpoint.Alive(op.Owner) {
				reason = fmt.Sprintf("retcon is moving the files of this workspace back (%s, op %d, pid %d). Nothing was done. "+
					"Try again in a moment, and read files again before you change them.", op.Verb, op.ID, op.Owner.PID)
			}
		}
		return err
	})
	return reason, err
}

func moves(op ledger.Op, worktree int64) bool {
	return slices.ContainsFunc(op.Worktrees, func(at ledger.OpWorktree) bool { return at.WorktreeID == worktree })
}

// noteBody is what an event of the type EventNote holds.
type noteBody struct {
	Op   int64  `json:"op"` // the newest that was told of
	Text string `json:"text"`
}

// news is what an agent should know of the moves since it was told last, and
// notes that it was told.
func (s *session) news(tx *ledger.Tx, head ledger.Branch) (string, error) {
	if !s.hears {
		return "", nil
	}
	ops, err := tx.Ops(ledger.OpQuery{Worktree: s.run.WorktreeID, Limit: 50})
	if err != nil || len(ops) == 0 {
		return "", err
	}
	told, err := s.told(tx)
	if err != nil {
		return "", err
	}
	var lines []string
	newest := told
	for _, op := range slices.Backward(ops) {
		if op.ID <= told || op.Result != ledger.ResultOK || op.Started.Before(s.run.Created) || op.Verb == VerbNative {
			continue // what was done inside a client it knows
		}
		line, err := s.moveLine(tx, op)
		if err != nil {
			return "", err
		}
		lines, newest = append(lines, line), op.ID
	}
	if len(lines) == 0 {
		return "", nil
	}
	text := "Since your last turn, files of this workspace were put back with retcon:\n" + strings.Join(lines, "\n") +
		"\nRead files again before you rely on what you know of them."
	return text, tx.AppendEvents(head.ID, []ledger.Event{{Type: EventNote, Actor: s.event.Agent, ExtID: fmt.Sprintf("op-%d", newest),
		Body: encodedBody(noteBody{Op: newest, Text: text})}})
}

// told is the newest move that the session was told of, on whatever branch.
func (s *session) told(tx *ledger.Tx) (newest int64, err error) {
	branches, err := tx.Branches(s.run.ID)
	if err != nil {
		return 0, err
	}
	for _, b := range branches {
		if b.State == ledger.BranchPurged {
			continue
		}
		events, err := tx.NamedEvents(b.ID, b.BaseSeq, EventNote)
		if err != nil {
			return 0, err
		}
		for _, e := range events {
			var n noteBody
			if err := decodeEvent(tx, e, &n); err != nil {
				return 0, err
			}
			newest = max(newest, n.Op)
		}
	}
	return newest, nil
}

// moveLine tells of a move: its verb, where it went, how many files it touched,
// which prompts of the session it took back, who asked for it, and why.
func (s *session) moveLine(tx *ledger.Tx, op ledger.Op) (string, error) {
	var p timeline.Plan
	if err := json.Unmarshal([]byte(op.Plan), &p); err != nil {
		return "", fmt.Errorf("op %d: plan: %w", op.ID, err)
	}
	const few = 8
	var paths []string
	for _, c := range p.Changes[:min(len(p.Changes), few)] {
		paths = append(paths, c.Path)
	}
	line := fmt.Sprintf("- %s %s: %d files", op.Verb, p.Target, len(p.Changes))
	if len(p.Changes) == 1 {
		line = strings.TrimSuffix(line, "s")
	}
	if len(paths) > 0 {
		line += " (" + strings.Join(paths, ", ")
		if len(p.Changes) > few {
			line += ", …"
		}
		line += ")"
	}
	said, err := s.takenBack(tx, p.History)
	if err != nil {
		return "", err
	}
	if said != "" {
		line += "; taken back: " + said
	}
	line += "; by " + op.Actor
	if p.Reason != "" {
		line += ": " + firstLine(p.Reason)
	}
	return line, nil
}

// takenBack are the prompts of the session that a move has cut off.
func (s *session) takenBack(tx *ledger.Tx, h *timeline.History) (string, error) {
	if h == nil || h.Run != s.run.ID || h.Undoes != 0 || h.Cut == 0 {
		return "", nil
	}
	const few = 4
	var said []string
	for frame := h.Frame + 1; frame <= h.Head; frame++ {
		if len(said) == few {
			said = append(said, "…")
			break
		}
		f, err := tx.FrameAt(h.Branch, frame, false)
		if errors.Is(err, ledger.ErrNotFound) { // purged since
			continue
		}
		if err != nil {
			return "", err
		}
		said = append(said, fmt.Sprintf("prompt-%d (%s)", frame, f.Note))
	}
	return strings.Join(said, ", "), nil
}
