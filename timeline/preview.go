package timeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// captured gives do the worktree as it is, held: nobody else captures or moves
// it, and nothing is collected, until do returns.
func (m *Mover) captured(ctx context.Context, sync bool, do func(now *vcs.Capture) error) error {
	release, err := m.W.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	unshare, err := m.W.Shared(ctx)
	if err != nil {
		return err
	}
	defer unshare()
	crash.Point("move.capture")
	m.progress("scan", 0, 0)
	now, err := m.W.Capture(ctx, vcs.CaptureOptions{NoCaps: true, Quick: true, Sync: sync})
	if err != nil {
		return err
	}
	return do(now)
}

// preview plans, and keeps nothing held afterwards.
func (m *Mover) preview(ctx context.Context, r Request) (p *Plan, err error) {
	err = m.captured(ctx, false, func(now *vcs.Capture) error {
		p, err = m.plan(ctx, r, now)
		return err
	})
	return p, err
}

// plan decides, from the worktree as it is now.
func (m *Mover) plan(ctx context.Context, r Request, now *vcs.Capture) (*Plan, error) {
	var history *History
	var effects []EffectStep
	var only *part
	var disputes []vcs.Conflict
	if r.aim != nil {
		a, err := m.aimed(ctx, r)
		if err != nil {
			return nil, err
		}
		history, r.To, effects = a.history, a.to, m.steps(a, r)
		if a.paths != nil {
			r.Paths = a.paths
		}
		if only = a.only; only != nil {
			merged, err := m.without(ctx, only, now.Commit, r)
			if err != nil {
				return nil, err
			}
			r.Paths, r.To.Commit, disputes = only.paths, string(merged.Commit), merged.Conflicts
		}
		if r.To.Commit == "" {
			r.To = ledger.Checkpoint{Commit: string(now.Commit)}
		}
	}
	if r.aim == nil || r.back != nil {
		var err error
		if effects, err = m.crosses(ctx, r); err != nil {
			return nil, err
		}
	}
	target := vcs.Commit(r.To.Commit)
	p := &Plan{History: history, Effects: effects, Verb: r.Verb, Root: m.W.Root(), Target: r.Target, TargetCommit: target, Base: now.Commit,
		Head: r.Head, Index: r.Index || r.Head, Request: requestDigest(r)}
	changes, err := m.W.Diff(ctx, now.Commit, target)
	if err != nil {
		return nil, err
	}
	f := facts{all: changes, changes: changes, paths: r.Paths, policy: r.Conflicts, owner: func(string) Owner { return Anybody }}
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
	case only != nil && !r.Exact:
		if f.owner, err = m.ownersOf(ctx, only.before, only.after); err != nil {
			return nil, err
		}
	case r.To.RunID != 0 && !r.Exact:
		if f.owner, err = m.owners(ctx, r.To, now.Commit); err != nil {
			return nil, err
		}
	}
	p.decide(f)
	p.disputed(disputes, f)
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
	p.Reason = r.Reason
	if m.Strays != nil {
		p.Warnings = append(p.Warnings, m.Strays(ctx)...) // they come and go, and make no other plan
	}
	return p, nil
}

func (m *Mover) aimed(ctx context.Context, r Request) (a aim, err error) {
	err = m.DB.View(ctx, func(tx *ledger.Tx) error {
		a, err = r.aim(tx)
		return err
	})
	return a, err
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
