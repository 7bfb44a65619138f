package workflow

import (
	"context"
	"fmt"

	"github.com/retcon-dev/retcon/vcs"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// mergeRunner joins what branches made of their worktrees into the one they
// began with.
func mergeRunner(sides []*place) runner {
	return func(ctx context.Context, x *execution) (value.V, *value.Failure, error) {
		p := x.place
		p.mu.Lock()
		defer p.mu.Unlock()
		w := p.recorder.Worktree
		x.e.mu.Lock()
		base := sides[0].base.from.content()
		commits := make([]vcs.Commit, len(sides))
		for i, s := range sides {
			commits[i] = s.newest.content().commit
		}
		x.e.mu.Unlock()
		all := append([]vcs.Commit{p.known.commit}, commits...)
		merged, err := w.Merge(ctx, base.commit, all, vcs.MergeOptions{})
		if err != nil {
			return nil, nil, err
		}
		if len(merged.Conflicts) > 0 {
			return nil, conflictFailure(merged.Conflicts), nil
		}
		changes, err := w.Diff(ctx, p.known.commit, merged.Commit)
		if err != nil {
			return nil, nil, err
		}
		changes, _ = vcs.Restorable(changes)
		if len(changes) > 0 {
			if err := p.put(ctx, x.e, merged.Commit, changes); err != nil {
				return nil, nil, err
			}
		}
		return value.NewDict(map[string]value.V{"changed": int64(len(changes))}), nil, nil
	}
}

// conflictFailure tells what could not be merged.
func conflictFailure(conflicts []vcs.Conflict) *value.Failure {
	var paths []value.V
	for _, c := range conflicts {
		paths = append(paths, value.NewDict(map[string]value.V{"path": c.Path, "kind": string(c.Kind)}))
	}
	return &value.Failure{Type: FailureConflict, Code: fmt.Sprint(len(conflicts)), Data: paths,
		Message: fmt.Sprintf("branches changed the same: %s (%s), %d in all", conflicts[0].Path, conflicts[0].Kind, len(conflicts))}
}
