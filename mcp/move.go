package mcp

import (
	"context"

	"github.com/retcon-dev/retcon"
)

// moveTools are those that move the worktree, and take moves back.
func (o *offer) moveTools() {
	add(o, tool{name: "restore_checkpoint", title: "Restore a checkpoint", needs: Travel, destructive: true,
		about: "Put the worktree, or some of its paths, back to a checkpoint. No run's record is touched." + inTwo}, restoreCheckpoint)
	add(o, tool{name: "undo_operation", title: "Undo a move", needs: Travel, destructive: true,
		about: "Take back the newest move, files and record together; with redo, the newest undo." + inTwo}, undoOperation)
}

type restoreInput struct {
	Checkpoint string   `json:"checkpoint" jsonschema:"what to put back: c17, a label, r7@3, r7@plan.before"`
	Paths      []string `json:"paths,omitempty" jsonschema:"only these and what lies below; relative to where the server was started"`
	Head       bool     `json:"head,omitempty" jsonschema:"put back where git's HEAD and its branch were, too"`
	moving
}

func restoreCheckpoint(ctx context.Context, c *call, in restoreInput) (moved, error) {
	return c.move(in.consent, in.Steal, func(dry bool) (*retcon.Result, error) {
		return c.Restore(ctx, retcon.RestoreOptions{Ref: retcon.Ref(in.Checkpoint), Paths: in.Paths, Exact: in.Exact, Conflicts: in.Conflicts,
			Head: in.Head, DryRun: dry, Steal: in.Steal, PlanID: in.PlanID, RequestID: in.RequestID})
	})
}

type undoInput struct {
	Operation int64  `json:"operation,omitempty" jsonschema:"refuse when the next one is another"`
	Redo      bool   `json:"redo,omitempty" jsonschema:"do again what the newest undo took back"`
	Conflicts string `json:"conflicts,omitempty" jsonschema:"of paths changed since: theirs takes the recorded content, mine keeps what is there; refused when left out"`
	Steal     bool   `json:"steal,omitempty" jsonschema:"move although a run is going on here; needs the capability force"`
	consent
}

func undoOperation(ctx context.Context, c *call, in undoInput) (moved, error) {
	do := c.Undo
	if in.Redo {
		do = c.Redo
	}
	return c.move(in.consent, in.Steal, func(dry bool) (*retcon.Result, error) {
		return do(ctx, retcon.MoveOptions{Op: in.Operation, Conflicts: in.Conflicts, DryRun: dry, Steal: in.Steal, PlanID: in.PlanID, RequestID: in.RequestID})
	})
}

// move shows the plan of a move, or carries out the one that was agreed to.
func (c *call) move(in consent, steal bool, do func(dry bool) (*retcon.Result, error)) (moved, error) {
	if steal {
		if err := c.s.may(Force); err != nil {
			return moved{}, err
		}
	}
	given, err := in.given(c.tool)
	if err != nil {
		return moved{}, err
	}
	done, err := c.turn()
	if err != nil {
		return moved{}, err
	}
	defer done()
	r, err := do(!given)
	if err != nil {
		return moved{}, err
	}
	return newMoved(r, c.tool), nil
}
