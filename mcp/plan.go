package mcp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

// consent is what stands between a plan and what it does. It is part of the
// arguments of every tool that moves something.
type consent struct {
	DryRun    bool   `json:"dry_run,omitempty" jsonschema:"return the plan and change nothing, whatever else is given"`
	PlanID    string `json:"plan_id,omitempty" jsonschema:"the plan_id of the plan that is to be carried out; if things have changed since, STALE_PLAN"`
	Confirm   bool   `json:"confirm,omitempty" jsonschema:"carry out the plan of plan_id"`
	RequestID string `json:"request_id,omitempty" jsonschema:"carry this out once, however often it is asked for under the same key"`
}

// given tells that a plan was seen and agreed to. A plan that is named and not
// confirmed is a *UnconfirmedError.
func (c consent) given(tool string) (bool, error) {
	switch {
	case c.DryRun || c.PlanID == "":
		return false, nil
	case !c.Confirm:
		return false, &UnconfirmedError{Tool: tool, PlanID: c.PlanID}
	}
	return true, nil
}

// listed is how many paths an answer lists.
const listed = 200

// moved is a plan, or what came of it.
type moved struct {
	Done     bool   `json:"done" jsonschema:"something was changed"`
	PlanID   string `json:"plan_id" jsonschema:"names this plan"`
	Next     string `json:"next" jsonschema:"how to carry it out, or to take it back"`
	Op       int64  `json:"op" jsonschema:"number of the operation; 0 when nothing was done"`
	Verb     string `json:"verb"`
	Target   string `json:"target"`
	Undoes   int64  `json:"undoes" jsonschema:"the operation that is taken back or done again; 0 for none"`
	Replayed bool   `json:"replayed" jsonschema:"it was done before, under this request_id: this is that answer"`

	Changes       []step   `json:"changes"`
	More          int      `json:"more" jsonschema:"changes that are not listed"`
	Totals        totals   `json:"totals"`
	Kept          []note   `json:"kept" jsonschema:"paths that differ and are left as they are"`
	Conflicts     []note   `json:"conflicts" jsonschema:"the plan is refused until conflicts says which side to take"`
	NotRestorable []note   `json:"not_restorable"`
	Warnings      []string `json:"warnings"`

	History *timeline.History `json:"history" jsonschema:"what becomes of the run's record; null when it stays"`
	Effects []effectStep      `json:"effects" jsonschema:"what was done outside and is gone behind, newest first"`

	Safety  string   `json:"safety" jsonschema:"checkpoint of the worktree as it was before"`
	Rescue  string   `json:"rescue" jsonschema:"checkpoint of what somebody wrote meanwhile"`
	Rescued []string `json:"rescued"`
}

// change is what differs at a path.
type change struct {
	Path   string `json:"path"`
	Change string `json:"change" jsonschema:"added, removed, changed, mode, or kind: a file became a link, say"`
}

// step is what a move does to a path.
type step struct {
	change
	Action string `json:"action" jsonschema:"create, replace, delete, chmod, mkdir or rmdir"`
	Owner  string `json:"owner" jsonschema:"who changed it since: run, outside, both, move; empty where it does not matter"`
}

// note is a path that is left as it is, and why.
type note struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// totals count changes.
type totals struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

func (t *totals) add(change string) {
	switch change {
	case "added":
		t.Added++
	case "removed":
		t.Removed++
	default:
		t.Changed++
	}
}

func newChange(f retcon.FileChange) change {
	c := change{Path: valid(f.Path), Change: "changed"}
	switch {
	case f.Old.Kind == retcon.KindAbsent:
		c.Change = "added"
	case f.New.Kind == retcon.KindAbsent:
		c.Change = "removed"
	case f.Old.Kind != f.New.Kind:
		c.Change = "kind"
	case f.Old.ID == f.New.ID && f.Old.Mode != f.New.Mode:
		c.Change = "mode"
	}
	return c
}

// valid is a path as text can hold it.
func valid(path string) string { return strings.ToValidUTF8(path, "�") }

func newMoved(r *retcon.Result, tool string) moved {
	m := moved{Done: r.Op != 0, Op: r.Op, Verb: r.Verb, Replayed: r.Replayed, Safety: r.Safety, Rescue: r.Rescue, Rescued: []string{},
		Changes: []step{}, Kept: []note{}, Conflicts: []note{}, NotRestorable: []note{}, Warnings: []string{}, Effects: []effectStep{}}
	for _, path := range r.Rescued {
		m.Rescued = append(m.Rescued, valid(path))
	}
	if p := r.Plan; p != nil {
		m.plan(p)
	}
	m.Next = m.next(r, tool)
	return m
}

func (m *moved) plan(p *retcon.Plan) {
	m.PlanID, m.Target, m.Undoes, m.History = p.ID, p.Target, p.Undoes, p.History
	for _, s := range p.Changes {
		one := step{change: newChange(s.FileChange), Action: s.Action, Owner: string(s.Owner)}
		m.Totals.add(one.Change)
		if len(m.Changes) < listed {
			m.Changes = append(m.Changes, one)
		}
	}
	m.More = len(p.Changes) - len(m.Changes)
	m.Kept, m.Conflicts, m.NotRestorable = newNotes(p.Kept), newNotes(p.Conflicts), newNotes(p.NotRestorable)
	m.Warnings = append(m.Warnings, p.Warnings...)
	for _, s := range p.Effects {
		m.Effects = append(m.Effects, effectStep{ID: s.ID, Run: runRef(s.Run), Task: s.Task, Tool: s.Tool, Summary: s.Summary,
			Status: s.Status, What: s.What, How: s.How, Why: s.Why, Unblock: s.Unblock})
	}
}

// newNotes are the first of them; a plan's totals say how many paths it changes.
func newNotes(all []timeline.Note) []note {
	told := []note{}
	for _, n := range all[:min(len(all), listed)] {
		told = append(told, note{valid(n.Path), n.Why})
	}
	return told
}

// next says what the caller can do now.
func (m *moved) next(r *retcon.Result, tool string) string {
	switch {
	case m.Done && m.Verb == "undo":
		return "undo_operation with redo: true takes the undo back"
	case m.Done:
		return fmt.Sprintf("undo_operation takes operation %d back", m.Op)
	case r.NothingToDo || r.Plan != nil && r.Plan.Empty() && len(m.Conflicts) == 0:
		return "nothing to do: it is as asked for already"
	case len(m.Conflicts) > 0:
		return "refused like this: ask for another plan with conflicts theirs or mine"
	case slices.ContainsFunc(m.Effects, func(s effectStep) bool { return s.What == timeline.Blocked }):
		return "refused like this: effects are in the way, and each says what would unblock it"
	}
	return fmt.Sprintf("nothing was changed: call %s again with the same arguments, plan_id %q and confirm: true", tool, m.PlanID)
}
