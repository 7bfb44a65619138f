package timeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/vcs"
)

// User is the actor that is not rate limited.
const User = "user"

// movesPerHour limits every other actor.
const movesPerHour = 10

// Mover carries out moves of one worktree.
type Mover struct {
	W          *vcs.Worktree
	DB         *ledger.DB
	WorktreeID int64
	Actor      string
	Owner      ledger.Owner
	Alive      func(ledger.Owner) bool
	Now        func() time.Time
	Progress   func(stage string, done, total int) // may be nil
	Handlers   sideeffect.Handlers                 // undo what was done outside

	// Strays, if set, are warnings of processes that still work in the worktree
	// though their run does not go on.
	Strays func(context.Context) []string
}

// Request is a move as asked for.
type Request struct {
	Verb         string
	Target       string            // as the user named it
	To           ledger.Checkpoint // ID 0: a commit without a row
	Paths        []string          // relative to the root; nil for all
	Exact        bool              // whoever changed it
	Conflicts    string            // Refuse, Theirs, Mine
	Head         bool
	Index        bool
	DryRun       bool
	Steal        bool   // although a run is going on
	NoCompensate bool   // what could be undone outside is in the way
	Force        bool   // move past what can't be undone outside
	PlanID       string // refuse any other plan
	RequestID    string
	Reason       string                    // in the words of who asks for it
	Confirm      func(*Plan) (bool, error) // nil is yes

	back  *ledger.Op                    // the operation that is undone or redone
	aim   func(*ledger.Tx) (aim, error) // of a move along a run
	about string                        // what was asked of a run
}

// Result is what a move did.
type Result struct {
	Op          int64    `json:"op,omitempty"`
	Verb        string   `json:"verb"`
	Plan        *Plan    `json:"plan"`
	DryRun      bool     `json:"dry_run,omitempty"`
	NothingToDo bool     `json:"nothing_to_do,omitempty"`
	Safety      string   `json:"safety,omitempty"` // checkpoint of the worktree as it was
	Rescue      string   `json:"rescue,omitempty"` // checkpoint of what somebody wrote meanwhile
	Rescued     []string `json:"rescued,omitempty"`
	Left        []string `json:"left,omitempty"` // directories that were not empty
	Verified    int      `json:"verified"`
	Replayed    bool     `json:"replayed,omitempty"` // the stored result of the same request
}

func (r Request) digest() string {
	b, _ := json.Marshal([]any{r.Verb, r.To.Commit, r.Paths, r.Exact, r.Conflicts, r.Head, r.Index, r.about, r.NoCompensate, r.Force}) // plain values
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Move plans and carries out a restore.
func (m *Mover) Move(ctx context.Context, r Request) (*Result, error) {
	if r.Verb == "" {
		r.Verb = "restore"
	}
	if res, err := m.replay(ctx, r); res != nil || err != nil {
		return res, err
	}
	unlock, err := m.W.LockMove(m.Owner.String(), m.Now())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := m.recoverLocked(ctx); err != nil {
		return nil, err
	}
	if err := m.permit(ctx, r); err != nil {
		return nil, err
	}
	base := vcs.Commit("")
	if r.Confirm != nil && !r.DryRun {
		plan, err := m.preview(ctx, r)
		if err != nil {
			return nil, err
		}
		if !plan.Empty() && len(plan.Conflicts) == 0 && len(plan.blocked()) == 0 {
			if yes, err := r.Confirm(plan); err != nil {
				return nil, err
			} else if !yes {
				return &Result{Verb: r.Verb, Plan: plan}, ErrDeclined
			}
			base, r.PlanID = plan.Base, plan.ID
		}
	}
	return m.apply(ctx, r, base)
}

// Undo takes back the newest move, or op when it is that one; Redo takes back
// the newest undo.
func (m *Mover) Undo(ctx context.Context, r Request) (*Result, error) {
	return m.back(ctx, ledger.VerbUndo, (*ledger.Tx).UndoTarget, r)
}

// Redo does again what the newest undo took back.
func (m *Mover) Redo(ctx context.Context, r Request) (*Result, error) {
	return m.back(ctx, ledger.VerbRedo, (*ledger.Tx).RedoTarget, r)
}

func (m *Mover) back(ctx context.Context, verb string, target func(*ledger.Tx, int64) (ledger.Op, error), r Request) (*Result, error) {
	r.Verb = verb
	if r.RequestID != "" { // the target moves on, so the first answer is looked for first
		if res, err := m.replay(ctx, r); res != nil || err != nil {
			return res, err
		}
	}
	err := m.DB.View(ctx, func(tx *ledger.Tx) error {
		op, err := target(tx, m.WorktreeID)
		if err == nil {
			r.back = &op
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.Target = fmt.Sprintf("op %d", r.back.ID)
	r.To = ledger.Checkpoint{Commit: r.back.Worktrees[0].Safety}
	back, err := decodePlan(r.back.Plan)
	if err != nil {
		return nil, fmt.Errorf("op %d: %w", r.back.ID, err)
	}
	if !back.History.nothing() {
		r.aim = func(tx *ledger.Tx) (aim, error) { return backAim(tx, r.back.ID, back.History, r.To) }
	}
	return m.Move(ctx, r)
}

// replay returns the stored result of a request made before.
func (m *Mover) replay(ctx context.Context, r Request) (*Result, error) {
	if r.RequestID == "" || r.DryRun {
		return nil, nil
	}
	var op ledger.Op
	err := m.DB.View(ctx, func(tx *ledger.Tx) (err error) {
		op, err = tx.RequestByKey(r.RequestID, requestDigest(r))
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	var busy *ledger.InProgressError
	if errors.As(err, &busy) && !m.alive(busy.Owner) {
		return nil, nil // its process died: recovery settles it first
	}
	if err != nil {
		return nil, err
	}
	res, err := decodeResult(op)
	if err != nil {
		return nil, err
	}
	if op.Result == ledger.ResultFailed {
		return nil, &RequestFailedError{Key: r.RequestID, Op: op.ID}
	}
	res.Replayed = true
	return res, nil
}

// requestDigest of an undo or redo does not cover its target, which the first
// call moves on.
func requestDigest(r Request) string {
	if r.Verb == ledger.VerbUndo || r.Verb == ledger.VerbRedo {
		r.To = ledger.Checkpoint{}
	}
	return r.digest()
}

func (m *Mover) alive(o ledger.Owner) bool { return m.Alive != nil && m.Alive(o) }

// permit refuses what must not begin: under a live run, or too often.
func (m *Mover) permit(ctx context.Context, r Request) error {
	return m.DB.View(ctx, func(tx *ledger.Tx) error {
		if !r.Steal {
			open, err := tx.OpenAttempts(m.WorktreeID)
			if err != nil {
				return err
			}
			for _, a := range open {
				if m.alive(a.Owner) {
					return &LiveRunError{Run: a.RunID, Owner: a.Owner, Since: a.Started}
				}
			}
			if err := m.running(tx); err != nil {
				return err
			}
		}
		if m.Actor == User || m.Actor == "" || r.DryRun { // looking is free
			return nil
		}
		n, oldest, err := tx.CountMutations(m.Actor, m.Now().Add(-time.Hour))
		if err == nil && n >= movesPerHour {
			err = &RateLimitError{Actor: m.Actor, Retry: oldest.Add(time.Hour)}
		}
		return err
	})
}

// running refuses a move under a workflow that is being run here, also while no
// task of it is.
func (m *Mover) running(tx *ledger.Tx) error {
	l, err := tx.Lease(ledger.WorkflowResource(m.WorktreeID))
	if errors.Is(err, ledger.ErrNotFound) || err == nil && (!m.alive(l.Owner) || l.Owner == m.Owner) {
		return nil
	}
	if err != nil {
		return err
	}
	runs, err := tx.Runs(ledger.RunQuery{Worktree: m.WorktreeID, Limit: 20})
	if err != nil {
		return err
	}
	live := &LiveRunError{Owner: l.Owner, Since: l.Acquired}
	for _, r := range runs {
		if r.Status == ledger.StatusRunning {
			live.Run = r.ID
			break
		}
	}
	return live
}

func (m *Mover) progress(stage string, done, total int) {
	if m.Progress != nil {
		m.Progress(stage, done, total)
	}
}
