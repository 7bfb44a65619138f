package retcon

import (
	"context"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Status is the state of a workspace at a glance, and what can be done.
type Status struct {
	Root        string       `json:"root"`
	Kind        string       `json:"kind"`
	Folder      string       `json:"folder"` // of ledger and store
	Actor       string       `json:"actor"`
	Newest      *Checkpoint  `json:"newest"`      // what "last" means; null before the first
	At          string       `json:"at"`          // a checkpoint that the worktree is the same as; "" when there is none
	Checkpoints int          `json:"checkpoints"` // up to 1000
	Changes     []FileChange `json:"changes"`     // since the newest
	Head        Head         `json:"head"`
	Operation   string       `json:"operation"` // what git is in the middle of
	NotCaptured []Missing    `json:"not_captured"`
	OpenRuns    []Run        `json:"open_runs"`
	LastOp      *Op          `json:"last_op"`
	CanUndo     bool         `json:"can_undo"`
	CanRedo     bool         `json:"can_redo"`
	Warnings    []string     `json:"warnings"`
	Next        []string     `json:"next"` // commands that make sense now
}

// Status looks at the workspace and changes nothing in it.
func (w *Workspace) Status(ctx context.Context) (*Status, error) {
	s := &Status{Root: w.Root(), Kind: w.Kind(), Folder: w.Folder(), Actor: w.opt.Actor, Changes: []FileChange{},
		NotCaptured: []Missing{}, OpenRuns: []Run{}, Warnings: []string{}, Next: []string{}}
	if err := w.view(ctx, s.recorded); err != nil {
		return nil, err
	}
	if err := w.now(ctx, s); err != nil {
		return nil, err
	}
	if why := w.vcs.FilesOnly(); why != "" && s.Kind != ledger.KindPlain {
		s.Warnings = append(s.Warnings, "only files are recorded, not HEAD and index: "+why)
	}
	s.advise()
	switch p := w.project; {
	case p.Err != nil:
		s.Warnings = append(s.Warnings, p.Err.Error()+"; nothing of it is in force")
	case p.Waits():
		s.Warnings = append(s.Warnings, p.Waiting())
		s.Next = append(s.Next, "retcon trust")
	}
	return s, nil
}

// recorded fills in what the ledger knows.
func (s *Status) recorded(tx *ledger.Tx, row ledger.Worktree) error {
	if row.ID == 0 {
		return nil
	}
	page, err := tx.Checkpoints(ledger.CheckpointQuery{Worktree: row.ID, Limit: 1000})
	if err != nil {
		return err
	}
	s.Checkpoints = len(page)
	for _, c := range page {
		if ofMoves(c.Tier) {
			continue
		}
		if s.Newest, err = shown(c); err != nil {
			return err
		}
		break
	}
	runs, err := tx.Runs(ledger.RunQuery{Worktree: row.ID, Status: ledger.StatusRunning, Limit: 20})
	if err != nil {
		return err
	}
	for _, r := range runs {
		run, err := shownRun(tx, r)
		if err != nil {
			return err
		}
		s.OpenRuns = append(s.OpenRuns, *run)
	}
	ops, err := tx.Ops(ledger.OpQuery{Worktree: row.ID, Limit: 1})
	if err != nil {
		return err
	}
	for _, o := range ops {
		if s.LastOp, err = shownOp(o, false); err != nil {
			return err
		}
		if o.Result == "" && !checkpoint.Alive(o.Owner) {
			s.Warnings = append(s.Warnings, fmt.Sprintf("op %d (%s) was interrupted", o.ID, o.Verb))
		}
	}
	if s.CanUndo, err = can(tx.UndoTarget(row.ID)); err != nil {
		return err
	}
	s.CanRedo, err = can(tx.RedoTarget(row.ID))
	return err
}

func can(_ ledger.Op, err error) (bool, error) {
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// now fills in how the worktree is.
func (w *Workspace) now(ctx context.Context, s *Status) error {
	unlock, err := w.vcs.Shared(ctx) // what is captured to be compared has no row
	if err != nil {
		return err
	}
	defer unlock()
	now, err := w.vcs.Capture(ctx, vcs.CaptureOptions{Progress: func(done int) { w.progress("scan", done, 0) }})
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	s.Head, s.Operation = now.Head, now.Operation
	s.NotCaptured = append(s.NotCaptured, now.NotCaptured...)
	if s.Newest == nil {
		return nil
	}
	changes, err := w.vcs.Diff(ctx, vcs.Commit(s.Newest.Commit), now.Commit)
	if err != nil {
		return fmt.Errorf("compare with %s: %w", s.Newest.Ref, err)
	}
	s.Changes = append(s.Changes, checkpoint.Shown(changes)...)
	return w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		c, err := tx.CheckpointByCommit(row.ID, string(now.Commit))
		if err == nil {
			s.At = checkpointRef(c.ID)
		}
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		return err
	})
}

// advise says what makes sense now.
func (s *Status) advise() {
	if s.LastOp != nil && s.LastOp.Result == "" && len(s.Warnings) > 0 {
		s.Next = append(s.Next, "retcon recover")
	}
	switch {
	case s.Newest == nil:
		s.Next = append(s.Next, "retcon checkpoint")
	case len(s.Changes) > 0:
		s.Next = append(s.Next, "retcon diff", "retcon checkpoint", "retcon restore "+s.Newest.Ref)
	}
	for _, r := range s.OpenRuns {
		if r.Dead {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s was interrupted", r.Ref))
		}
	}
	if s.CanUndo {
		s.Next = append(s.Next, "retcon undo")
	}
	if s.CanRedo {
		s.Next = append(s.Next, "retcon redo")
	}
	if s.Checkpoints > 0 {
		s.Next = append(s.Next, "retcon log")
	}
}
