package mcp

import (
	"context"

	"github.com/retcon-dev/retcon"
)

// travelTools are those that move along a run.
func (o *offer) travelTools() {
	add(o, tool{name: "rewind_run", title: "Rewind a run", needs: Travel, destructive: true,
		about: "Take a run, and the worktree with it, back to a frame. Later frames are cut off and kept; resume_run goes on from there." + inTwo},
		func(ctx context.Context, c *call, in rewindInput) (moved, error) {
			to := in.options(retcon.TravelOptions{Run: in.Run, Frame: in.Frame, LedgerOnly: in.LedgerOnly, Head: in.Head})
			return c.travel(ctx, in.moving, reapplied(to, in.Reapply), c.Rewind)
		})
	add(o, tool{name: "time_travel", title: "Travel to a task", needs: Travel, destructive: true,
		about: "Take a run, and the worktree with it, back to where an attempt of a task began, so that the task runs again on resume_run." + inTwo},
		func(ctx context.Context, c *call, in timeTravelInput) (moved, error) {
			to := in.options(retcon.TravelOptions{Run: in.Run, Task: in.Task, Attempt: in.Attempt, After: in.After, Cascade: in.Cascade,
				LedgerOnly: in.LedgerOnly, Head: in.Head})
			return c.travel(ctx, in.moving, reapplied(to, in.Reapply), c.TimeTravel)
		})
	add(o, tool{name: "revert_attempt", title: "Revert to an attempt", needs: Travel, destructive: true,
		about: "Put the worktree to what an attempt of a task left, and leave the run's record alone." + inTwo},
		func(ctx context.Context, c *call, in revertInput) (moved, error) {
			return c.travel(ctx, in.moving, in.options(retcon.TravelOptions{Run: in.Run, Task: in.Task, Attempt: in.Attempt,
				Before: in.Before, Only: in.Only}), c.Revert)
		})
	add(o, tool{name: "retry_task", title: "Retry a task", needs: Travel, destructive: true,
		about: "Let a task run again on resume_run, with the files it began with. Nothing is cut off." + inTwo},
		func(ctx context.Context, c *call, in retryInput) (moved, error) {
			return c.travel(ctx, in.moving, in.options(retcon.TravelOptions{Run: in.Run, Task: in.Task, Attempt: in.Attempt,
				Cascade: in.Cascade, KeepFiles: in.KeepFiles}), c.RetryTask)
		})
	add(o, tool{name: "rerun_tasks", title: "Run tasks again", needs: Travel, destructive: true,
		about: "Open a new generation of a run, in which the named tasks run again on resume_run and the others are taken over." + inTwo},
		func(ctx context.Context, c *call, in rerunInput) (moved, error) {
			return c.travel(ctx, in.moving, in.options(retcon.TravelOptions{Run: in.Run, Tasks: in.Tasks, From: in.From, Failed: in.Failed,
				Cascade: in.Cascade}), c.Rerun)
		})
}

// inTwo ends what is said of a tool that moves something.
const inTwo = " Without plan_id and confirm it returns the plan and changes nothing."

// moving are the arguments that all moves have but undo.
type moving struct {
	Exact     bool   `json:"exact,omitempty" jsonschema:"make the worktree as it was, whoever changed it since"`
	Conflicts string `json:"conflicts,omitempty" jsonschema:"of paths changed by the run and from outside: theirs takes the recorded content, mine keeps what is there; refused when left out"`
	Steal     bool   `json:"steal,omitempty" jsonschema:"move although a run is going on here; needs the capability force"`
	consent
}

// guarded are the arguments of moves that undo what was done outside.
type guarded struct {
	NoCompensate bool `json:"no_compensate,omitempty" jsonschema:"undo nothing outside: what could be undone is in the way"`
	moving
}

// options fills in what these say.
func (m moving) options(o retcon.TravelOptions) retcon.TravelOptions {
	o.Exact, o.Conflicts, o.Steal, o.PlanID, o.RequestID = m.Exact, m.Conflicts, m.Steal, m.PlanID, m.RequestID
	return o
}

func (g guarded) options(o retcon.TravelOptions) retcon.TravelOptions {
	o.NoCompensate = g.NoCompensate
	return g.moving.options(o)
}

func reapplied(o retcon.TravelOptions, reapply string) retcon.TravelOptions {
	if reapply != "all" {
		o.Reapply = reapply
	}
	return o
}

type rewindInput struct {
	Run        string `json:"run" jsonschema:"the run: r7, the beginning of its id, its name, or last"`
	Frame      int64  `json:"frame" jsonschema:"number of the frame, as get_timeline shows it"`
	LedgerOnly bool   `json:"ledger_only,omitempty" jsonschema:"leave the worktree as it is"`
	Head       bool   `json:"head,omitempty" jsonschema:"put back where git's HEAD and its branch were, too"`
	Reapply    string `json:"reapply,omitempty" jsonschema:"signals that were answered since: all of them again where the question is the same, or none"`
	guarded
}

type timeTravelInput struct {
	Run        string `json:"run" jsonschema:"the run: r7, the beginning of its id, its name, or last"`
	Task       string `json:"task" jsonschema:"the task: its id, the beginning of it, or what it is called"`
	Attempt    int    `json:"attempt,omitempty" jsonschema:"this one of its attempts; the newest when left out"`
	After      bool   `json:"after,omitempty" jsonschema:"to where the attempt ended; the task keeps its outcome"`
	Cascade    bool   `json:"cascade,omitempty" jsonschema:"what depends on the task runs again too, whatever it is given"`
	LedgerOnly bool   `json:"ledger_only,omitempty" jsonschema:"leave the worktree as it is"`
	Head       bool   `json:"head,omitempty" jsonschema:"put back where git's HEAD and its branch were, too"`
	Reapply    string `json:"reapply,omitempty" jsonschema:"signals that were answered since: all of them again where the question is the same, or none"`
	guarded
}

type revertInput struct {
	Run     string `json:"run" jsonschema:"the run: r7, the beginning of its id, its name, or last"`
	Task    string `json:"task" jsonschema:"the task: its id, the beginning of it, or what it is called"`
	Attempt int    `json:"attempt,omitempty" jsonschema:"this one of its attempts; the newest when left out"`
	Before  bool   `json:"before,omitempty" jsonschema:"to where the attempt began"`
	Only    bool   `json:"only,omitempty" jsonschema:"take back only what that attempt changed"`
	guarded
}

type retryInput struct {
	Run       string `json:"run" jsonschema:"the run: r7, the beginning of its id, its name, or last"`
	Task      string `json:"task" jsonschema:"the task: its id, the beginning of it, or what it is called"`
	Attempt   int    `json:"attempt,omitempty" jsonschema:"with the files of this one of its attempts; the newest when left out"`
	Cascade   bool   `json:"cascade,omitempty" jsonschema:"what depends on the task runs again too, whatever it is given"`
	KeepFiles bool   `json:"keep_files,omitempty" jsonschema:"leave the worktree as it is"`
	guarded
}

type rerunInput struct {
	Run     string   `json:"run" jsonschema:"the run: r7, the beginning of its id, its name, or last"`
	Tasks   []string `json:"tasks,omitempty" jsonschema:"the tasks"`
	From    string   `json:"from,omitempty" jsonschema:"this task, and what came after it"`
	Failed  bool     `json:"failed,omitempty" jsonschema:"what did not end well"`
	Cascade bool     `json:"cascade,omitempty" jsonschema:"what depends on the tasks runs again too, whatever it is given"`
	guarded
}

// travel shows the plan of a move along a run, or carries it out.
func (c *call) travel(ctx context.Context, in moving, o retcon.TravelOptions, do func(context.Context, retcon.TravelOptions) (*retcon.Result, error)) (moved, error) {
	return c.move(in.consent, in.Steal, func(dry bool) (*retcon.Result, error) {
		o.DryRun = dry
		return do(ctx, o)
	})
}
