package retcon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
	"github.com/retcon-dev/retcon/workflow"
)

// Run is one execution that was recorded.
type Run struct {
	ID             int64     `json:"id"`
	Ref            string    `json:"ref"` // "r3"
	UID            string    `json:"uid"`
	Source         string    `json:"source"` // what recorded it: "exec", an agent's name
	Name           string    `json:"name,omitempty"`
	Status         string    `json:"status"` // running, ok, failed or interrupted
	Command        string    `json:"command"`
	Parent         string    `json:"parent,omitempty"`
	Created        time.Time `json:"created"`
	Updated        time.Time `json:"updated"`
	Before         string    `json:"before,omitempty"` // checkpoint where its first attempt began
	After          string    `json:"after,omitempty"`  // and where its newest ended
	Exit           *int      `json:"exit,omitempty"`
	Attempts       int       `json:"attempts"`
	NeedsAttention []string  `json:"needs_attention,omitempty"` // what somebody has to look at, until it is acknowledged
	Dead           bool      `json:"dead,omitempty"`            // it is said to be running, but its process is gone
	Edges          []Edge    `json:"edges,omitempty"`           // of a session, to others
}

func shownRun(tx *ledger.Tx, r ledger.Run) (*Run, error) {
	out := &Run{ID: r.ID, Ref: runRef(r.ID), UID: r.UID, Source: r.Source, Name: r.Name, Status: r.Status, Command: r.Command,
		Parent: runRef(r.Parent), Created: r.Created.UTC(), Updated: r.Updated.UTC()}
	attempts, err := tx.Attempts(r.ID)
	if err != nil {
		return nil, err
	}
	out.Attempts = len(attempts)
	if out.NeedsAttention, err = attention(tx, r.ID); err != nil {
		return nil, err
	}
	if out.Edges, err = edgesOf(tx, r, false); err != nil {
		return nil, err
	}
	for i, a := range attempts {
		if i == 0 {
			out.Before = checkpointRef(a.Before)
		}
		out.After, out.Exit = checkpointRef(a.After), a.ExitCode
		out.Dead = out.Dead || a.Outcome == "" && !checkpoint.Alive(a.Owner)
	}
	if r.Kind == workflow.Source && r.Status == StatusRunning {
		live, _, err := livingRun(tx, r.WorktreeID)
		if err != nil {
			return nil, err
		}
		out.Dead = live != r.ID
	}
	return out, nil
}

func runRef(id int64) string        { return numbered("r", id) }
func checkpointRef(id int64) string { return numbered("c", id) }

func numbered(letter string, id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d", letter, id)
}

// Runs lists the runs in this worktree, newest first; 50 when limit is zero.
func (w *Workspace) Runs(ctx context.Context, limit int) ([]Run, error) {
	if limit <= 0 {
		limit = 50
	}
	out := []Run{}
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		if row.ID == 0 {
			return nil
		}
		runs, err := tx.Runs(ledger.RunQuery{Worktree: row.ID, Limit: limit})
		if err != nil {
			return err
		}
		for _, r := range runs {
			s, err := shownRun(tx, r)
			if err != nil {
				return err
			}
			out = append(out, *s)
		}
		return nil
	})
	return out, err
}

// ExecOptions say what is run. Run does it, with the variables in env beside all
// others, and returns the exit code; an error means that it could not be started
// or waited for. By the variables what is run knows which run it is in.
type ExecOptions struct {
	Name string
	Argv []string
	Run  func(ctx context.Context, env []string) (exit int, err error)
}

// ExecResult is what a command did to the worktree.
type ExecResult struct {
	Run     string       `json:"run"` // "r3"
	Before  *Checkpoint  `json:"before"`
	After   *Checkpoint  `json:"after"`
	Exit    int          `json:"exit"`
	Changes []FileChange `json:"changes"`
}

// task is the name of the one task in a run of Exec's.
const task = "exec"

// Exec records a command: the worktree before it and after it, also when it was
// interrupted. Nothing is run when the worktree could not be captured before.
//
// With an error that came after the command was run there is a result as well,
// as far as it goes.
func (w *Workspace) Exec(ctx context.Context, o ExecOptions) (*ExecResult, error) {
	db, err := w.settled(ctx)
	if err != nil {
		return nil, err
	}
	run, attempt, err := w.begin(ctx, o)
	if err != nil {
		return nil, err
	}
	out := &ExecResult{Run: runRef(run.ID), Changes: []FileChange{}}
	outlive := context.WithoutCancel(ctx)
	around := checkpoint.What{Tier: TierTool, Run: run.ID, Attempt: attempt.ID, Edge: ledger.EdgeBefore}
	out.Before, err = w.record(ctx, around)
	if err == nil {
		err = db.Update(ctx, func(tx *ledger.Tx) error { return tx.SetAttemptBefore(attempt.ID, out.Before.ID) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("before the command, which was not run: %w", err),
			end(outlive, db, attempt, ledger.Finish{Outcome: ledger.OutcomeFailed}))
	}
	exit, ran := o.Run(ctx, []string{"RETCON_RUN=" + out.Run, "RETCON_TASK=" + task, fmt.Sprintf("RETCON_ATTEMPT=%d", attempt.Number)})
	out.Exit = exit
	f := ledger.Finish{Outcome: ledger.OutcomeOK, ExitCode: &exit}
	switch {
	case ctx.Err() != nil:
		f.Outcome = ledger.OutcomeInterrupted
	case ran != nil:
		f.Outcome, f.ExitCode = ledger.OutcomeFailed, nil
	case exit != 0:
		f.Outcome = ledger.OutcomeFailed
	}
	around.Edge = ledger.EdgeAfter
	out.After, err = w.record(outlive, around)
	if err != nil {
		err = fmt.Errorf("after the command: %w", err)
		w.missed("after "+out.Run, err)
	} else {
		f.After = out.After.ID
	}
	if err = errors.Join(ran, err, end(outlive, db, attempt, f)); out.After == nil {
		return out, err
	}
	changes, derr := w.vcs.Diff(outlive, vcs.Commit(out.Before.Commit), vcs.Commit(out.After.Commit))
	if changes = checkpoint.Shown(changes); changes != nil {
		out.Changes = changes
	}
	return out, errors.Join(err, derr)
}

func (w *Workspace) begin(ctx context.Context, o ExecOptions) (run ledger.Run, attempt ledger.Attempt, err error) {
	err = w.update(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		run, err = tx.CreateRun(ledger.Run{Source: task, Name: o.Name, WorktreeID: row.ID, Command: quoted(o.Argv)})
		if err != nil {
			return err
		}
		attempt, err = tx.StartAttempt(ledger.Attempt{RunID: run.ID, Task: task, Owner: w.owner()})
		return err
	})
	return run, attempt, err
}

// end finishes the one attempt of a run, and the run.
func end(ctx context.Context, db *ledger.DB, a ledger.Attempt, f ledger.Finish) error {
	return db.Update(ctx, func(tx *ledger.Tx) error {
		if err := tx.FinishAttempt(a.ID, f); err != nil {
			return err
		}
		return tx.SetRunStatus(a.RunID, f.Outcome)
	})
}

// quoted writes a command as it can be typed into a shell.
func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = shellWord(a)
	}
	return strings.Join(words, " ")
}

// plain are the characters that mean nothing to a shell.
const plain = "%+,-./:=@_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func shellWord(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
