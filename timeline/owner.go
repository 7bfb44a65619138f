package timeline

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// owners says for every path that changed since checkpoint from, up to now,
// whether run did it. What changed between the two checkpoints around an
// attempt of the run is the run's; what changed at any other time is not. What a
// move of ours changed is nobody's: it put there what had been recorded, so
// there is nothing of anybody's to lose.
func (m *Mover) owners(ctx context.Context, from ledger.Checkpoint, now vcs.Commit) (func(string) Owner, error) {
	return m.ownersOf(ctx, from, ledger.Checkpoint{Commit: string(now)})
}

// ownersOf is owners up to another checkpoint; one without a number is now.
func (m *Mover) ownersOf(ctx context.Context, from, to ledger.Checkpoint) (func(string) Owner, error) {
	var points []ledger.Checkpoint
	var attempts, others []ledger.Attempt
	moves := make(map[string]*Plan) // safety checkpoint -> what the move did next
	err := m.DB.View(ctx, func(tx *ledger.Tx) error {
		points = append(points, from)
		err := tx.CheckpointsAfter(m.WorktreeID, from.ID, func(c ledger.Checkpoint) error {
			if c.Tier != ledger.TierRescue && (to.ID == 0 || c.ID <= to.ID) { // a rescue holds a few paths, not a state
				points = append(points, c)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if attempts, others, err = m.windows(tx, from); err != nil {
			return err
		}
		return m.movesSince(tx, from.ID, moves)
	})
	if err != nil {
		return nil, err
	}
	if to.ID == 0 {
		points = append(points, to)
	}
	owner, moved := make(map[string]Owner), make(map[string]bool)
	for i := 0; i+1 < len(points); i++ {
		a, b := points[i], points[i+1]
		if a.Commit == b.Commit {
			continue
		}
		changes, err := m.W.Diff(ctx, vcs.Commit(a.Commit), vcs.Commit(b.Commit))
		if err != nil {
			return nil, err
		}
		who := Outside
		if covered(attempts, a.ID, b.ID) || b.RunID == from.RunID && b.Note == checkpoint.Placed {
			who = Run
			if covered(others, a.ID, b.ID) { // which of the two, nobody saw
				who = Both
			}
		}
		var ours map[string]vcs.State
		if did := moves[fmt.Sprintf("c%d", a.ID)]; did != nil {
			ours = make(map[string]vcs.State)
			for _, s := range did.Changes {
				ours[s.Path] = s.New
			}
		}
		for _, c := range changes {
			if to, ok := ours[c.Path]; ok && to.Is(c.New) {
				moved[c.Path] = true
				continue
			}
			switch owner[c.Path] {
			case Anybody, who:
				owner[c.Path] = who
			default:
				owner[c.Path] = Both
			}
		}
	}
	return func(path string) Owner {
		if o, ok := owner[path]; ok {
			return o
		}
		if moved[path] {
			return Moved
		}
		return Outside // differs, and no capture saw how: not ours to touch
	}, nil
}

// movesSince adds what the moves did that came after a checkpoint, under the
// checkpoint each took first. The newer an operation, the newer that is.
func (m *Mover) movesSince(tx *ledger.Tx, checkpoint int64, moves map[string]*Plan) error {
	for before := int64(0); ; {
		ops, err := tx.Ops(ledger.OpQuery{Worktree: m.WorktreeID, Before: before, Limit: 20})
		if err != nil || len(ops) == 0 {
			return err
		}
		for _, o := range ops {
			before = o.ID
			if o.Result != ledger.ResultOK {
				continue
			}
			r, err := decodeResult(o)
			if err != nil {
				continue // a move that can't be read is like none: its paths are somebody's
			}
			if number, err := strconv.ParseInt(strings.TrimPrefix(r.Safety, "c"), 10, 64); err == nil && number < checkpoint {
				return nil
			}
			moves[r.Safety] = r.Plan
		}
	}
}

// session is the kind of a run that is an agent's conversation. Several can go on
// in one worktree.
const session = "session"

// windows are the attempts of the run that a checkpoint belongs to and, of a
// session, those of other sessions in the worktree, that can have changed
// something since.
func (m *Mover) windows(tx *ledger.Tx, from ledger.Checkpoint) (own, others []ledger.Attempt, err error) {
	run, err := tx.Run(from.RunID)
	if err != nil {
		return nil, nil, err
	}
	all, err := tx.AttemptsSince(from.ID)
	if err != nil {
		return nil, nil, err
	}
	sessions := map[int64]bool{run.ID: run.Kind == session}
	for _, a := range all {
		here, known := sessions[a.RunID]
		if !known && run.Kind == session { // a workflow's are inside its tasks, and an exec around others: those are no rivals
			r, err := tx.Run(a.RunID)
			if err != nil {
				return nil, nil, err
			}
			here = r.Kind == session && r.WorktreeID == m.WorktreeID
			sessions[a.RunID] = here
		}
		switch {
		case here && !strings.Contains(a.Task, "["): // of a prompt, only its calls change files; in between the user does
		case a.RunID == run.ID:
			own = append(own, a)
		case here:
			others = append(others, a)
		}
	}
	return own, others, nil
}

// covered tells that the time between two checkpoints lies within an attempt.
// A checkpoint without a number is now.
func covered(attempts []ledger.Attempt, from, to int64) bool {
	for _, a := range attempts {
		if a.Before == 0 || a.Before > from {
			continue
		}
		if a.After == 0 && a.Outcome == "" || to != 0 && a.After >= to {
			return true
		}
	}
	return false
}
