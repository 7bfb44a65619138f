package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Recorder records the checkpoints of one worktree.
type Recorder struct {
	Ledger   *ledger.DB
	Worktree *vcs.Worktree
	Host     string // the name of this machine

	// Adopt goes on with the history of a worktree although another directory
	// stands in its place now.
	Adopt bool
}

// Placed is the note of a checkpoint of a run before which the run itself, and
// nobody else, has put the worktree to a content recorded earlier.
const Placed = "placed by the run"

// What is to be recorded, and why. The zero value of each field but Tier is
// fine.
type What struct {
	Tier    string // one of the ledger's; decides how careful the capture is
	Run     int64
	Attempt int64
	Edge    string
	Label   string
	Note    string
	Actor   string
	Pin     bool

	// MoveLabel takes the label from the checkpoint that carries it.
	MoveLabel bool

	// OnlyChanges records nothing when the worktree is what the newest
	// checkpoint says.
	OnlyChanges bool

	// Capture is how the worktree is captured; its own Capture when nil. A
	// watcher has a cheaper one.
	Capture func(context.Context, vcs.CaptureOptions) (*vcs.Capture, error)

	// Progress is told how many files have been looked at.
	Progress func(done int)
}

// Recorded is a checkpoint that has been recorded. Its Checkpoint has no number
// when there was nothing to record.
type Recorded struct {
	Checkpoint ledger.Checkpoint
	Facts      Facts
	Stats      vcs.Stats // what the capture cost
}

// careful says how a capture for a tier is made. What was asked for by a person
// or guards a move survives a power cut, and what guards a move leaves nothing
// out for its size.
func (w What) careful() vcs.CaptureOptions {
	o := vcs.CaptureOptions{Progress: w.Progress}
	switch w.Tier {
	case ledger.TierManual, ledger.TierRescue:
		o.Sync = true
	case ledger.TierSafety:
		o.Sync, o.NoCaps = true, true
	}
	return o
}

// Record captures the worktree and adds the checkpoint to the ledger. After an
// error the ledger is as it was.
//
// It fails with *ledger.RootChangedError when another directory stands at the
// worktree's path, with *ledger.LabelError or *LabelSyntaxError when the label
// can't be given, and with what a capture and a transaction fail with.
func (r *Recorder) Record(ctx context.Context, w What) (Recorded, error) {
	unlock, err := r.Worktree.Shared(ctx)
	if err != nil {
		return Recorded{}, err
	}
	defer unlock()
	if _, err := r.before(ctx, w); err != nil {
		return Recorded{}, err
	}
	capture := w.Capture
	if capture == nil {
		capture = r.Worktree.Capture
	}
	var out Recorded
	var failed error // of what came after the capture
	o := w.careful()
	o.Then = func(found *vcs.Capture) error { // so that numbers are in the order of the captures
		out, failed = r.append(ctx, w, found)
		return failed
	}
	if _, err := capture(ctx, o); failed != nil {
		return Recorded{}, failed
	} else if err != nil {
		return Recorded{}, fmt.Errorf("capture: %w", err)
	}
	return out, nil
}

// append adds what was found to the ledger.
func (r *Recorder) append(ctx context.Context, w What, found *vcs.Capture) (Recorded, error) {
	previous, err := r.before(ctx, w) // which others may have recorded while we waited
	if err != nil {
		return Recorded{}, err
	}
	if w.OnlyChanges && found.Commit == previous {
		return Recorded{Stats: found.Stats}, nil
	}
	crash.Point("checkpoint.captured")
	facts := factsOf(found)
	facts.Changed = r.changed(ctx, previous, found.Commit)
	facts.Unchanged = previous == found.Commit
	out := Recorded{Facts: facts, Stats: found.Stats}
	write := r.Ledger.Update
	if w.careful().Sync {
		write = r.Ledger.Commit
	}
	err = write(ctx, func(tx *ledger.Tx) error {
		row, err := r.Ensure(tx)
		if err != nil {
			return err
		}
		out.Checkpoint, err = Append(tx, row.ID, found, facts, w)
		return err
	})
	if err != nil {
		return Recorded{}, err
	}
	crash.Point("checkpoint.recorded")
	return out, nil
}

// Append adds a row for a capture that has been made, inside a transaction of
// the caller's, who has held Shared since before the capture. Facts are those
// of [Known].
func Append(tx *ledger.Tx, worktree int64, found *vcs.Capture, facts Facts, w What) (ledger.Checkpoint, error) {
	stats, err := facts.encode()
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	c := ledger.Checkpoint{WorktreeID: worktree, RunID: w.Run, AttemptID: w.Attempt, Edge: w.Edge, Tier: w.Tier,
		Commit: string(found.Commit), Tree: found.Tree, Label: w.Label, Pinned: w.Pin, Note: w.Note, Actor: w.Actor,
		Partial: len(found.NotCaptured) > 0, Stats: stats}
	if w.Label != "" {
		if err := CheckLabel(w.Label); err != nil {
			return ledger.Checkpoint{}, err
		}
	}
	if w.Label == "" || !w.MoveLabel {
		return tx.AppendCheckpoint(c)
	}
	c.Label = ""
	if c, err = tx.AppendCheckpoint(c); err != nil {
		return ledger.Checkpoint{}, err
	}
	c.Label = w.Label
	return c, tx.MoveLabel(c.ID, w.Label, w.Actor)
}

// before looks at what there is before anything is captured: what can be
// refused is refused here. It returns the commit of the newest checkpoint, ""
// when this is the first.
func (r *Recorder) before(ctx context.Context, w What) (vcs.Commit, error) {
	if w.Label != "" {
		if err := CheckLabel(w.Label); err != nil {
			return "", err
		}
	}
	var previous vcs.Commit
	err := r.Ledger.View(ctx, func(tx *ledger.Tx) error {
		row, err := r.Row(tx)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if w.Label != "" && !w.MoveLabel {
			holder, err := tx.CheckpointByLabel(row.ID, w.Label)
			if err == nil {
				return &ledger.LabelError{Label: w.Label, Holder: holder.ID, Has: w.Label}
			}
			if !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
		}
		c, err := tx.LatestCheckpoint(row.ID)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		previous = vcs.Commit(c.Commit)
		return err
	})
	return previous, err
}

// changed counts the paths that differ from the checkpoint before; Unknown when
// there is none or it can't be read, which is no reason not to record this one.
func (r *Recorder) changed(ctx context.Context, previous, now vcs.Commit) int {
	if previous == "" {
		return Unknown
	}
	changes, err := r.Worktree.Diff(ctx, previous, now)
	if err != nil {
		return Unknown
	}
	return len(Shown(changes))
}
