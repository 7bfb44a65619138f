package timeline

import (
	"context"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// part is what one attempt changed, to be taken back from what there is now.
type part struct {
	before, after ledger.Checkpoint
	paths         []string
}

// partOf is what an attempt of a run changed. Of a prompt it is what its calls
// did: what else changed meanwhile is somebody else's.
func (m *Mover) partOf(tx *ledger.Tx, run ledger.Run, try ledger.Attempt) (*part, error) {
	before, after, err := edges(tx, run, try)
	if err != nil {
		return nil, err
	}
	before.RunID = run.ID // whose change it is, is asked of it
	p := &part{before: before, after: after, paths: []string{}}
	if before.ID == 0 || after.ID == 0 {
		return p, nil
	}
	windows := []ledger.Attempt{{Before: before.ID, After: after.ID}}
	if run.Kind == session {
		all, err := tx.AttemptsSince(before.ID)
		if err != nil {
			return nil, err
		}
		windows = slices.DeleteFunc(all, func(a ledger.Attempt) bool {
			return a.RunID != run.ID || a.Branch != try.Branch || a.Before == a.After || a.Before == 0 || a.After == 0 ||
				!strings.HasPrefix(a.Task, try.Task+"/")
		})
	}
	seen := map[string]bool{}
	for _, w := range windows {
		if err := m.changedIn(tx, w, seen); err != nil {
			return nil, err
		}
	}
	for path := range seen {
		p.paths = append(p.paths, path)
	}
	slices.Sort(p.paths)
	return p, nil
}

func (m *Mover) changedIn(tx *ledger.Tx, w ledger.Attempt, seen map[string]bool) error {
	from, err := tx.Checkpoint(w.Before)
	if err != nil {
		return err
	}
	to, err := tx.Checkpoint(w.After)
	if err != nil || from.Commit == to.Commit || from.WorktreeID != m.WorktreeID {
		return err
	}
	changes, err := m.W.Diff(context.Background(), vcs.Commit(from.Commit), vcs.Commit(to.Commit))
	for _, c := range changes {
		seen[c.Path] = true
	}
	return err
}

// edges are where an attempt began and ended. Of a prompt whose own were not
// noted, they are those of the frames around it.
func edges(tx *ledger.Tx, run ledger.Run, try ledger.Attempt) (before, after ledger.Checkpoint, err error) {
	if before, err = checkpointOr0(tx, try.Before); err != nil {
		return before, after, err
	}
	if after, err = checkpointOr0(tx, try.After); err != nil || run.Kind != session {
		return before, after, err
	}
	if before.ID == 0 {
		if before, err = frameCheckpoint(tx, run, try.StartSeq); err != nil {
			return before, after, err
		}
	}
	if after.ID == 0 && try.EndSeq != 0 {
		after, err = frameCheckpoint(tx, run, try.EndSeq)
	}
	return before, after, err
}

// without is what there is now without what a part changed: a text that was
// changed again since keeps that, line by line. Where the same lines were
// changed it has what is there now, or, with the policy Theirs, what was there
// before.
func (m *Mover) without(ctx context.Context, p *part, now vcs.Commit, r Request) (*vcs.Merged, error) {
	sides := []vcs.Commit{now, vcs.Commit(p.before.Commit)}
	if r.Conflicts == Theirs {
		slices.Reverse(sides)
	}
	return m.W.Merge(ctx, vcs.Commit(p.after.Commit), sides, vcs.MergeOptions{Lines: r.Conflicts != Refuse, Sync: !r.DryRun})
}

// disputed notes what can't be taken back because it was changed again.
func (p *Plan) disputed(conflicts []vcs.Conflict, f facts) {
	for _, c := range conflicts {
		if !slices.Contains(f.paths, c.Path) || f.policy == Theirs {
			continue
		}
		note := Note{c.Path, "changed again since, in the same place"}
		if f.policy == Mine {
			p.Kept = append(p.Kept, note)
		} else {
			p.Conflicts = append(p.Conflicts, note)
		}
	}
}
