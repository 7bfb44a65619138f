package mcp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/retcon-dev/retcon"
)

// effectTools tell of what was done outside the worktree.
func (o *offer) effectTools() {
	add(o, tool{name: "list_effects", title: "List effects", needs: Read,
		about: "List what runs did outside the worktree, newest first: what came of it, and what undoes it when a move goes behind it."}, listEffects)
}

type listEffectsInput struct {
	Run    string `json:"run,omitempty" jsonschema:"only what this run did: r7, the beginning of its id, its name, or last"`
	Before int64  `json:"before,omitempty" jsonschema:"only those older than the effect of this number"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most this many; 50 when left out"`
}

type effectList struct {
	Effects []effect `json:"effects"`
	More    bool     `json:"more" jsonschema:"there are older ones: ask with before"`
}

// effect is something a run did outside.
type effect struct {
	ID           int64             `json:"id"`
	Run          string            `json:"run"`
	Frame        int64             `json:"frame" jsonschema:"it leads to: a move to an earlier one goes behind it"`
	Task         string            `json:"task"`
	Attempt      int               `json:"attempt" jsonschema:"of the task; 0 for none"`
	Key          string            `json:"key" jsonschema:"its idempotency key"`
	Tool         string            `json:"tool"`
	Rule         string            `json:"rule" jsonschema:"that recognised it"`
	Command      string            `json:"command"`
	Args         json.RawMessage   `json:"args"`
	Output       string            `json:"output"`
	Fields       map[string]string `json:"fields" jsonschema:"values that undoing it may need"`
	Class        string            `json:"class" jsonschema:"write, maybe, push or exempt; the last two are never in the way"`
	Status       string            `json:"status" jsonschema:"intended, succeeded, failed (it did not happen) or unknown, which counts as happened"`
	Compensation json.RawMessage   `json:"compensation" jsonschema:"how it is undone; null when nobody knows"`
	State        string            `json:"state" jsonschema:"of undoing it: compensating, compensated, failed or crossed; empty for none"`
	Detail       string            `json:"detail" jsonschema:"why it could not be undone"`
	Op           int64             `json:"op" jsonschema:"the operation that undid or crossed it; 0 for none"`
	Late         bool              `json:"late" jsonschema:"it ended after it was undone or crossed: somebody has to look"`
	How          string            `json:"how" jsonschema:"the call that would undo it now"`
	Why          string            `json:"why" jsonschema:"why there is none: it is in the way of a move"`
	Created      time.Time         `json:"created"`
	Updated      time.Time         `json:"updated"`
}

// pageMax is how many of a list are told when nothing else is said.
const pageMax = 50

func listEffects(ctx context.Context, c *call, in listEffectsInput) (effectList, error) {
	out := effectList{Effects: []effect{}}
	if in.Limit <= 0 {
		in.Limit = pageMax
	}
	found, err := c.Effects(ctx, retcon.EffectsOptions{Run: in.Run, Before: in.Before, Limit: in.Limit + 1})
	if out.More = len(found) > in.Limit; out.More {
		found = found[:in.Limit]
	}
	for i := range found {
		out.Effects = append(out.Effects, newEffect(&found[i]))
	}
	return out, err
}

func newEffect(e *retcon.Effect) effect {
	told := effect{ID: e.ID, Run: e.Run, Frame: e.Frame, Task: e.Task, Attempt: e.Attempt, Key: e.Key, Tool: e.Tool, Rule: e.Rule,
		Command: e.Command, Args: e.Args, Output: e.Output, Fields: e.Fields, Class: e.Class, Status: e.Status, State: e.State,
		Detail: e.Detail, Op: e.Op, Late: e.Late, How: e.How, Why: e.Why, Created: e.Created.UTC(), Updated: e.Updated.UTC()}
	if !e.Compensation.IsZero() {
		b, err := json.Marshal(e.Compensation)
		if err != nil {
			panic("BUG: a compensation has no JSON: " + err.Error()) // it was read from JSON
		}
		told.Compensation = b
	}
	return told
}

// effectStep is what a move does about an effect.
type effectStep struct {
	ID      int64  `json:"id"`
	Run     string `json:"run"`
	Task    string `json:"task"`
	Tool    string `json:"tool"`
	Summary string `json:"summary"`
	Status  string `json:"status"`
	What    string `json:"what" jsonschema:"compensate: it is undone first; blocked: it is in the way; crossed: it is left in the world; listed: it is in nobody's way"`
	How     string `json:"how" jsonschema:"the call that undoes it"`
	Why     string `json:"why" jsonschema:"it is blocked, crossed or listed"`
	Unblock string `json:"unblock" jsonschema:"what would help"`
}
