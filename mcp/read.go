package mcp

import (
	"context"
	"strings"
	"time"

	"github.com/retcon-dev/retcon"
)

// readTools are those that change nothing.
func (o *offer) readTools() {
	add(o, tool{name: "list_runs", title: "List runs", needs: Read,
		about: "List the runs recorded in this workspace, newest first."}, listRuns)
	add(o, tool{name: "get_run", title: "Show a run", needs: Read,
		about: "Show a run, the tasks of its graph at a frame, what it waits for, or all that is known of one task."}, getRun)
	add(o, tool{name: "get_timeline", title: "Timeline of a run", needs: Read,
		about: "List the frames of a run, newest first: what happened at each, and where one can go back to."}, getTimeline)
	add(o, tool{name: "list_snapshots", title: "List checkpoints", needs: Read,
		about: "List the recorded states of the worktree, newest first. restore_checkpoint puts one back."}, listSnapshots)
	add(o, tool{name: "diff_runs", title: "Compare two places in history", needs: Read,
		about: "Compare the files of two places in history: runs, frames, tasks, checkpoints, or the worktree as it is."}, diffRuns)
	add(o, tool{name: "list_operations", title: "List moves", needs: Read,
		about: "List the moves made in this workspace, newest first: who moved what, and whether it was undone."}, listOperations)
}

type listRunsInput struct {
	Limit int `json:"limit,omitempty" jsonschema:"at most this many; 50 when left out"`
}

type runList struct {
	Runs []retcon.Run `json:"runs"`
}

func listRuns(ctx context.Context, c *call, in listRunsInput) (runList, error) {
	found, err := c.Runs(ctx, in.Limit)
	return runList{found}, err
}

type getRunInput struct {
	Run  string `json:"run" jsonschema:"a run, or a place in its history: r7, last, r7@3, r7@plan#2"`
	Task string `json:"task,omitempty" jsonschema:"tell all about this task: what it was given, what came of it, each attempt"`
}

func getRun(ctx context.Context, c *call, in getRunInput) (*retcon.Shown, error) {
	return c.Show(ctx, retcon.ShowOptions{At: in.Run, Task: in.Task})
}

type listSnapshotsInput struct {
	Run    string `json:"run,omitempty" jsonschema:"only those of this run"`
	Tier   string `json:"tier,omitempty" jsonschema:"only those taken for this reason"`
	All    bool   `json:"all,omitempty" jsonschema:"those that moves took for themselves, too"`
	Before int64  `json:"before,omitempty" jsonschema:"only those older than the checkpoint of this number"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most this many; 50 when left out"`
}

type snapshotList struct {
	Checkpoints []checkpoint `json:"checkpoints"`
}

// checkpoint is a recorded state of the worktree.
type checkpoint struct {
	Ref     string    `json:"ref" jsonschema:"names it: c17"`
	Commit  string    `json:"commit"`
	Tier    string    `json:"tier" jsonschema:"why it was taken: manual, tool, watch, safety, rescue"`
	Run     string    `json:"run"`
	Edge    string    `json:"edge" jsonschema:"before or after an attempt of the run"`
	Label   string    `json:"label"`
	Note    string    `json:"note"`
	Actor   string    `json:"actor"`
	Created time.Time `json:"created"`
	Files   int       `json:"files"`
	Changed int       `json:"changed" jsonschema:"paths that differ from the checkpoint before; -1 when not known"`
	Partial bool      `json:"partial" jsonschema:"something was not captured"`
}

func listSnapshots(ctx context.Context, c *call, in listSnapshotsInput) (snapshotList, error) {
	found, err := c.Snapshots(ctx, retcon.ListOptions{Run: retcon.Ref(in.Run), Tier: in.Tier, All: in.All, Before: in.Before, Limit: in.Limit})
	out := snapshotList{Checkpoints: []checkpoint{}}
	for _, f := range found {
		out.Checkpoints = append(out.Checkpoints, checkpoint{Ref: f.Ref, Commit: f.Commit, Tier: f.Tier, Run: f.Run, Edge: f.Edge,
			Label: f.Label, Note: f.Note, Actor: f.Actor, Created: f.Created, Files: f.Files, Changed: f.Changed, Partial: f.Partial})
	}
	return out, err
}

type diffInput struct {
	From  string   `json:"from" jsonschema:"a place in history: r7, r7@3, r7@plan.before, c17, a label"`
	To    string   `json:"to,omitempty" jsonschema:"another; the worktree as it is when left out"`
	Paths []string `json:"paths,omitempty" jsonschema:"only these and what lies below"`
	Patch bool     `json:"patch,omitempty" jsonschema:"with the difference as text"`
}

// difference is what differs between two states of the worktree.
type difference struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Changes []change `json:"changes"`
	More    int      `json:"more" jsonschema:"changes that are not listed"`
	Totals  totals   `json:"totals"`
	Patch   string   `json:"patch"`
	Cut     bool     `json:"cut" jsonschema:"the patch goes on"`
}

// patchMax is how much of a patch is sent.
const patchMax = 64 << 10

func diffRuns(ctx context.Context, c *call, in diffInput) (out difference, err error) {
	d, err := c.Diff(ctx, retcon.DiffOptions{From: retcon.Ref(in.From), To: retcon.Ref(in.To), Paths: in.Paths})
	if err != nil {
		return out, err
	}
	out = difference{From: d.From, To: d.To, Changes: []change{}}
	for _, f := range d.Changes {
		one := newChange(f)
		out.Totals.add(one.Change)
		if len(out.Changes) < listed {
			out.Changes = append(out.Changes, one)
		}
	}
	out.More = len(d.Changes) - len(out.Changes)
	if !in.Patch {
		return out, nil
	}
	var text strings.Builder
	if err := c.Patch(ctx, &text, d, retcon.PatchOptions{}); err != nil {
		return out, err
	}
	out.Patch = strings.ToValidUTF8(text.String(), "�")
	if len(out.Patch) > patchMax {
		out.Patch, out.Cut = strings.ToValidUTF8(out.Patch[:patchMax], ""), true
	}
	return out, nil
}

type listOperationsInput struct {
	Before int64 `json:"before,omitempty" jsonschema:"only those older than the operation of this number"`
	Limit  int   `json:"limit,omitempty" jsonschema:"at most this many; 50 when left out"`
}

type operationList struct {
	Operations []operation `json:"operations"`
}

// operation is a move in the log.
type operation struct {
	Op        int64      `json:"op"`
	Verb      string     `json:"verb"`
	Actor     string     `json:"actor"`
	Target    string     `json:"target"`
	Result    string     `json:"result" jsonschema:"ok, aborted, failed or rolled-back; empty while it is open"`
	Started   time.Time  `json:"started"`
	Finished  *time.Time `json:"finished"`
	Safety    string     `json:"safety" jsonschema:"checkpoint of the worktree as it was"`
	Rescue    string     `json:"rescue" jsonschema:"checkpoint of what somebody wrote meanwhile"`
	Undoes    int64      `json:"undoes"`
	UndoneBy  int64      `json:"undone_by"`
	Pruned    bool       `json:"pruned" jsonschema:"it can't be undone any more"`
	RequestID string     `json:"request_id"`
	Paths     int        `json:"paths"`
}

func listOperations(ctx context.Context, c *call, in listOperationsInput) (operationList, error) {
	found, err := c.Ops(ctx, in.Before, in.Limit)
	out := operationList{Operations: []operation{}}
	for _, o := range found {
		out.Operations = append(out.Operations, operation{Op: o.ID, Verb: o.Verb, Actor: o.Actor, Target: o.Target, Result: o.Result,
			Started: o.Started, Finished: o.Finished, Safety: o.Safety, Rescue: o.Rescue, Undoes: o.Undoes, UndoneBy: o.UndoneBy,
			Pruned: o.Pruned, RequestID: o.RequestID, Paths: o.Paths})
	}
	return out, err
}
