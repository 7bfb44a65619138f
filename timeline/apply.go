package timeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Phases of an operation. Before restoring the worktree is as it was, and a
// crash is settled by going back; from there on by going forward.
const (
	phaseBegun     = 1
	phaseRestoring = 4
)

// clockSlack is how far an operation's clock may lie behind a checkpoint's.
const clockSlack = time.Hour

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
}

// Request is a move as asked for.
type Request struct {
	Verb      string
	Target    string            // as the user named it
	To        ledger.Checkpoint // ID 0: a commit without a row
	Paths     []string          // relative to the root; nil for all
	Exact     bool              // whoever changed it
	Conflicts string            // Refuse, Theirs, Mine
	Head      bool
	Index     bool
	DryRun    bool
	Steal     bool   // although a run is going on
	PlanID    string // refuse any other plan
	RequestID string
	Confirm   func(*Plan) (bool, error) // nil is yes

	back *ledger.Op // the operation that is undone or redone
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
	b, _ := json.Marshal([]any{r.Verb, r.To.Commit, r.Paths, r.Exact, r.Conflicts, r.Head, r.Index}) // plain values
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
	unlock, err := m.W.LockMove(m.Owner.String())
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
		if !plan.Empty() && len(plan.Conflicts) == 0 {
			if yes, err := r.Confirm(plan); err != nil {
				return nil, err
			} else if !yes {
				return &Result{Verb: r.Verb, Plan: plan}, ErrDeclined
			}
			base = plan.Base
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
		}
		if m.Actor == User || m.Actor == "" {
			return nil
		}
		n, oldest, err := tx.CountMutations(m.Actor, m.Now().Add(-time.Hour))
		if err == nil && n >= movesPerHour {
			err = &RateLimitError{Actor: m.Actor, Retry: oldest.Add(time.Hour)}
		}
		return err
	})
}

// preview plans without keeping anything locked.
func (m *Mover) preview(ctx context.Context, r Request) (*Plan, error) {
	release, err := m.W.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	unshare, err := m.W.Shared(ctx)
	if err != nil {
		return nil, err
	}
	defer unshare()
	m.progress("scan", 0, 0)
	now, err := m.W.Capture(ctx, vcs.CaptureOptions{NoCaps: true})
	if err != nil {
		return nil, err
	}
	return m.plan(ctx, r, now)
}

// plan decides, from the worktree as it is now.
func (m *Mover) plan(ctx context.Context, r Request, now *vcs.Capture) (*Plan, error) {
	target := vcs.Commit(r.To.Commit)
	p := &Plan{Verb: r.Verb, Root: m.W.Root(), Target: r.Target, TargetCommit: target, Base: now.Commit,
		Head: r.Head, Index: r.Index || r.Head, Request: requestDigest(r)}
	changes, err := m.W.Diff(ctx, now.Commit, target)
	if err != nil {
		return nil, err
	}
	f := facts{changes: changes, paths: r.Paths, policy: r.Conflicts, owner: func(string) Owner { return Anybody }}
	switch {
	case r.back != nil:
		back, err := decodePlan(r.back.Plan)
		if err != nil {
			return nil, fmt.Errorf("op %d: %w", r.back.ID, err)
		}
		p.Undoes, p.Head, p.Index = r.back.ID, back.Head, back.Index
		f.changes, f.owner = m.backwards(changes, back)
	case r.To.Tier == ledger.TierRescue:
		f.changes, f.paths = rescued(changes, r)
	case r.To.RunID != 0 && !r.Exact:
		if f.owner, err = m.owners(ctx, r.To, now.Commit); err != nil {
			return nil, err
		}
	}
	p.decide(f)
	head, operation, err := m.W.Describe(target)
	if err != nil {
		return nil, err
	}
	if head != now.Head && (p.Head || head != (vcs.Head{})) {
		p.HeadMoved = &HeadChange{From: now.Head, To: head}
	}
	if now.Operation != "" && now.Operation != operation {
		p.Warnings = append(p.Warnings, "git is in the middle of a "+now.Operation+" here")
	}
	p.seal()
	return p, nil
}

// rescued narrows the changes to what a rescue checkpoint is about: it holds
// some paths, not a state, so nothing is absent from it.
func rescued(changes []vcs.FileChange, r Request) ([]vcs.FileChange, []string) {
	paths := r.Paths
	var about struct {
		Paths [][]byte `json:"paths"`
	}
	if err := json.Unmarshal([]byte(r.To.Stats), &about); err == nil && paths == nil {
		for _, p := range about.Paths {
			paths = append(paths, string(p))
		}
	}
	return slices.DeleteFunc(changes, func(c vcs.FileChange) bool { return c.New.Kind == vcs.KindAbsent }), paths
}

// backwards narrows the changes to the paths a move touched, and takes a path
// for changed by both when it is not what the move made of it.
func (m *Mover) backwards(changes []vcs.FileChange, back *Plan) ([]vcs.FileChange, func(string) Owner) {
	made := make(map[string]vcs.State, len(back.Changes))
	for _, s := range back.Changes {
		made[s.Path] = s.New
	}
	owner := make(map[string]Owner)
	var out []vcs.FileChange
	for _, c := range changes {
		to, ok := made[c.Path]
		if !ok {
			continue
		}
		// Ignore rules may have changed with the move: what it touched it takes back.
		c.Old.Ignored, c.New.Ignored = false, false
		owner[c.Path] = Run
		if !to.Is(c.Old) && c.Old.Kind != vcs.KindDir {
			owner[c.Path] = Both
		}
		out = append(out, c)
	}
	return out, func(path string) Owner { return owner[path] }
}

// apply carries a request out: base, unless empty, is what the plan that was
// agreed to was made for.
func (m *Mover) apply(ctx context.Context, r Request, base vcs.Commit) (*Result, error) {
	release, err := m.W.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	unshare, err := m.W.Shared(ctx)
	if err != nil {
		return nil, err
	}
	defer unshare()
	crash.Point("move.capture")
	m.progress("scan", 0, 0)
	now, err := m.W.Capture(ctx, vcs.CaptureOptions{NoCaps: true, Sync: !r.DryRun})
	if err != nil {
		return nil, err
	}
	p, err := m.plan(ctx, r, now)
	if err != nil {
		return nil, err
	}
	res := &Result{Verb: r.Verb, Plan: p, DryRun: r.DryRun}
	switch {
	case r.DryRun:
		return res, nil
	case base != "" && base != p.Base, r.PlanID != "" && r.PlanID != p.ID:
		return res, &BaseMovedError{Plan: p}
	case len(p.Conflicts) > 0:
		return res, &ConflictError{Plan: p}
	case p.Empty():
		res.NothingToDo = true
		return res, nil
	}
	op, safety, err := m.begin(ctx, r, p, now)
	if err != nil {
		return res, err
	}
	crash.Point("move.begun")
	res.Op, res.Safety = op.ID, fmt.Sprintf("c%d", safety.ID)
	staged, err := m.W.Stage(ctx, op.UID, p.files())
	if err != nil {
		return res, errors.Join(err, m.finish(op, ledger.ResultFailed, res))
	}
	defer staged.Discard()
	return res, m.carryOut(ctx, &op, staged, res)
}

// begin journals the move: from here a crash is noticed.
func (m *Mover) begin(ctx context.Context, r Request, p *Plan, now *vcs.Capture) (op ledger.Op, safety ledger.Checkpoint, err error) {
	plan, err := json.Marshal(p)
	if err != nil {
		return op, safety, err
	}
	facts := checkpoint.Known(ctx, m.W, now, "")
	err = m.DB.Commit(ctx, func(tx *ledger.Tx) error {
		safety, err = checkpoint.Append(tx, m.WorktreeID, now, facts, checkpoint.What{Tier: ledger.TierSafety,
			Note: "before " + p.Verb + " " + p.Target, Actor: m.Actor})
		if err != nil {
			return err
		}
		o := ledger.Op{Verb: p.Verb, Actor: m.Actor, Owner: m.Owner, Plan: string(plan), Undoes: p.Undoes,
			Worktrees: []ledger.OpWorktree{{WorktreeID: m.WorktreeID, From: string(now.Commit), Safety: string(now.Commit), Target: string(p.TargetCommit)}}}
		if r.RequestID != "" {
			o.RequestKey, o.RequestDigest = r.RequestID, requestDigest(r)
		}
		op, err = tx.BeginOp(o, m.Alive)
		return err
	})
	return op, safety, err
}

// carryOut does what may not be interrupted by a cancelled context any more:
// from the point of no return on, the move ends in the new state or the old.
func (m *Mover) carryOut(ctx context.Context, op *ledger.Op, staged *vcs.Staged, res *Result) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(err, m.finish(*op, ledger.ResultAborted, res))
	}
	ctx = context.WithoutCancel(ctx)
	err := m.DB.Commit(ctx, func(tx *ledger.Tx) (err error) {
		*op, err = tx.AdvanceOp(op.ID, op.Token, phaseRestoring, nil)
		return err
	})
	if err != nil {
		return err
	}
	crash.Point("move.restoring")
	m.progress("restore", 0, staged.Count())
	if err := staged.Swap(ctx); err != nil {
		return errors.Join(err, m.rescue(ctx, op, staged, true, res), m.finish(*op, ledger.ResultRolledBack, res))
	}
	if res.Verified, err = staged.Verify(ctx); err != nil {
		return errors.Join(err, m.rescue(ctx, op, staged, true, res), m.finish(*op, ledger.ResultRolledBack, res))
	}
	res.Left = staged.Kept()
	if err := m.rescue(ctx, op, staged, false, res); err != nil {
		// Keeping those bytes comes before the move.
		return errors.Join(err, staged.Rollback(), m.finish(*op, ledger.ResultRolledBack, res))
	}
	crash.Point("move.restored")
	if res.Plan.Head || res.Plan.Index {
		who := vcs.Ident{}
		if err := m.W.PutGit(res.Plan.TargetCommit, res.Plan.Base, vcs.PutOptions{Head: res.Plan.Head, Index: res.Plan.Index,
			Message: "retcon: " + res.Plan.Verb + " " + res.Plan.Target, Who: who, Now: m.Now()}); err != nil {
			return errors.Join(err, staged.Rollback(), m.finish(*op, ledger.ResultRolledBack, res))
		}
		crash.Point("move.head")
	}
	return m.finish(*op, ledger.ResultOK, res)
}

// rescue keeps what somebody wrote between the capture and the swap.
func (m *Mover) rescue(ctx context.Context, op *ledger.Op, staged *vcs.Staged, all bool, res *Result) error {
	c, paths, err := staged.Rescue(ctx, all)
	if err != nil || c == "" {
		return err
	}
	row, err := m.keepRescue(ctx, op, c, paths)
	res.Rescue, res.Rescued = row, paths
	return err
}

func (m *Mover) keepRescue(ctx context.Context, op *ledger.Op, c vcs.Commit, paths []string) (ref string, err error) {
	tree, err := m.W.TreeOf(c)
	if err != nil {
		return "", err
	}
	err = m.DB.Commit(ctx, func(tx *ledger.Tx) error {
		about := make([][]byte, len(paths)) // base64: names are bytes
		for i, p := range paths {
			about[i] = []byte(p)
		}
		stats, err := json.Marshal(map[string]any{"paths": about})
		if err != nil {
			return err
		}
		row, err := tx.AppendCheckpoint(ledger.Checkpoint{WorktreeID: m.WorktreeID, Tier: ledger.TierRescue, Commit: string(c),
			Tree: tree, Note: fmt.Sprintf("written during op %d", op.ID), Actor: m.Actor, Stats: string(stats)})
		if err != nil {
			return err
		}
		ref = fmt.Sprintf("c%d", row.ID)
		*op, err = tx.AdvanceOp(op.ID, op.Token, op.Phase, func(o *ledger.Op) error {
			o.Worktrees[0].Rescue = string(c)
			return nil
		})
		return err
	})
	return ref, err
}

// finish is the commit point.
func (m *Mover) finish(op ledger.Op, result string, res *Result) error {
	detail, err := json.Marshal(stored{Safety: res.Safety, Rescue: res.Rescue, Rescued: res.Rescued, Left: res.Left, Verified: res.Verified})
	if err != nil {
		return err
	}
	crash.Point("move.finish")
	err = m.DB.Commit(context.Background(), func(tx *ledger.Tx) error {
		_, err := tx.FinishOp(op.ID, op.Token, result, string(detail))
		return err
	})
	crash.Point("move.finished")
	return err
}

// stored is the part of a result that the operation's row keeps.
type stored struct {
	Safety   string   `json:"safety,omitempty"`
	Rescue   string   `json:"rescue,omitempty"`
	Rescued  []string `json:"rescued,omitempty"`
	Left     []string `json:"left,omitempty"`
	Verified int      `json:"verified"`
}

func decodePlan(text string) (*Plan, error) {
	var p Plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("stored plan: %w", err)
	}
	return &p, nil
}

func decodeResult(op ledger.Op) (*Result, error) {
	p, err := decodePlan(op.Plan)
	if err != nil {
		return nil, err
	}
	var s stored
	if err := json.Unmarshal([]byte(op.Detail), &s); err != nil {
		return nil, fmt.Errorf("stored result: %w", err)
	}
	return &Result{Op: op.ID, Verb: op.Verb, Plan: p, Safety: s.Safety, Rescue: s.Rescue, Rescued: s.Rescued, Left: s.Left, Verified: s.Verified}, nil
}

func (m *Mover) progress(stage string, done, total int) {
	if m.Progress != nil {
		m.Progress(stage, done, total)
	}
}
