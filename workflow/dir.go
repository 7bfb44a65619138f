package workflow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// ForeignEditError says that a worktree can't be put to the content a task is
// to begin with: a path was changed by somebody else as well.
type ForeignEditError struct{ Paths []string }

func (e *ForeignEditError) Error() string {
	return fmt.Sprintf("%d paths were changed from outside, and would have to be put back", len(e.Paths))
}

// root is the directory of a place that has been entered.
func (p *place) root() string { return p.recorder.Worktree.Root() }

// enter gives a place the content that a task is to begin with, and records it
// as the edge before the attempt. What somebody changed by hand stays, and is
// told in end.
func (e *engine) enter(ctx context.Context, j job, end *attemptEnd) (files, error) {
	p := j.place
	p.mu.Lock()
	defer p.mu.Unlock()
	now, by, err := p.arrange(ctx, e, j)
	if err != nil {
		return files{}, err
	}
	row, err := p.recorder.Record(ctx, checkpoint.What{Tier: ledger.TierTool, Run: e.run.ID, Attempt: end.settled.attempt.ID,
		Edge: ledger.EdgeBefore, Actor: e.opt.Actor, Capture: taken(now), Note: p.placed()})
	if err != nil {
		return files{}, err
	}
	in := files{commit: now.Commit, tree: now.Tree, id: row.Checkpoint.ID}
	p.known = in
	if by {
		end.outside = &outside{task: j.task.id, base: j.entry.tree, now: in}
		end.input = j.digest(in.tree)
	}
	return in, e.opt.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		if err := tx.SetAttemptBefore(end.settled.attempt.ID, row.Checkpoint.ID); err != nil {
			return err
		}
		return tx.SetAttemptInput(end.settled.attempt.ID, end.input, in.tree, j.reopen != nil)
	})
}

// taken hands a capture that was made already to a recorder.
func taken(c *vcs.Capture) func(context.Context, vcs.CaptureOptions) (*vcs.Capture, error) {
	return func(_ context.Context, o vcs.CaptureOptions) (*vcs.Capture, error) {
		if o.Then != nil {
			if err := o.Then(c); err != nil {
				return nil, err
			}
		}
		return c, nil
	}
}

// furnished makes sure that a place has a directory, and returns the number of
// its worktree when it is not the run's own.
func (e *engine) furnished(ctx context.Context, p *place, entry files) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p == e.main {
		return 0, nil
	}
	if p.recorder == nil {
		if err := e.furnish(ctx, p, entry); err != nil {
			return 0, err
		}
	}
	return p.worktree, nil
}

// furnish makes the directory of a branch's place.
func (e *engine) furnish(ctx context.Context, p *place, entry files) error {
	main := e.main.recorder.Worktree
	dir := filepath.Join(main.OwnedFolder(), fmt.Sprintf("r%d-%s", e.run.ID, plain(p.id)))
	if err := e.tidy(ctx, dir); err != nil {
		return fmt.Errorf("the worktree that was left for %s: %w", p.id, err)
	}
	w, err := main.Checkout(ctx, entry.commit, dir, vcs.CheckoutOptions{})
	if err != nil {
		return fmt.Errorf("a worktree for %s: %w", p.id, err)
	}
	crash.Point("workflow.checkout")
	p.recorder = &checkpoint.Recorder{Ledger: e.opt.Ledger, Worktree: w, Host: e.main.recorder.Host, Adopt: true}
	p.known = entry
	return e.opt.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		row, err := p.recorder.Ensure(tx)
		p.worktree = row.ID
		return err
	})
}

// tidy removes a worktree that a process has left behind. What an attempt that
// died with it has written there is kept in a checkpoint.
func (e *engine) tidy(ctx context.Context, dir string) error {
	if _, err := os.Lstat(dir); err != nil {
		return nil // there is none
	}
	left, err := vcs.Open(dir, vcs.Options{})
	if err == nil {
		r := &checkpoint.Recorder{Ledger: e.opt.Ledger, Worktree: left, Host: e.main.recorder.Host, Adopt: true}
		_, err = r.Record(ctx, e.remains())
		err = errors.Join(err, left.Close())
	}
	if err != nil && !errors.Is(err, vcs.ErrIncomplete) {
		return err
	}
	return e.main.recorder.Worktree.RemoveOwned(ctx, dir)
}

// remains is the checkpoint of what an attempt has left that did not come to
// its end.
func (e *engine) remains() checkpoint.What {
	return checkpoint.What{Tier: ledger.TierRescue, Run: e.run.ID, Actor: e.opt.Actor, OnlyChanges: true,
		Note: fmt.Sprintf("left by an attempt of r%d that did not come to its end", e.run.ID)}
}

// plain is a scope as the name of a directory.
func plain(scope string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, scope), "-")
}

// arrange captures the directory and, when a task is to begin with another
// content than the last one left, puts it there. by tells that somebody else
// has changed something; that stays as it is.
func (p *place) arrange(ctx context.Context, e *engine, j job) (now *vcs.Capture, by bool, err error) {
	w := p.recorder.Worktree
	if now, err = w.Capture(ctx, vcs.CaptureOptions{}); err != nil {
		return nil, false, err
	}
	var theirs map[string]bool
	if cut := p.cut && !j.keep; cut {
		// What has changed since that attempt began is its own.
		what := e.remains()
		what.Capture = taken(now)
		if _, err := p.recorder.Record(ctx, what); err != nil {
			return nil, false, err
		}
		p.known = files{commit: now.Commit, tree: now.Tree}
	} else if theirs, err = p.foreign(ctx, now); err != nil {
		return nil, false, err
	}
	p.cut = false
	if j.keep || j.entry.tree == now.Tree || j.entry.tree == p.known.tree {
		return now, now.Tree != j.entry.tree, nil
	}
	changes, err := w.Diff(ctx, now.Commit, j.entry.commit)
	if err != nil {
		return nil, false, err
	}
	changes = slices.DeleteFunc(changes, func(c vcs.FileChange) bool { return theirs[c.Path] })
	changes, _ = vcs.Restorable(changes)
	if len(changes) > 0 {
		if len(theirs) > 0 { // so that what we change from here on is told from it
			what := checkpoint.What{Tier: ledger.TierTool, Run: e.run.ID, Actor: e.opt.Actor, Capture: taken(now)}
			if _, err := p.recorder.Record(ctx, what); err != nil {
				return nil, false, err
			}
		}
		p.moved = true
		if err := p.put(ctx, e, j.entry.commit, changes); err != nil {
			return nil, false, err
		}
		if now, err = w.Capture(ctx, vcs.CaptureOptions{}); err != nil {
			return nil, false, err
		}
	}
	return now, now.Tree != j.entry.tree, nil
}

// placed is the note of a checkpoint before which the run itself has put the
// worktree to another content.
func (p *place) placed() string {
	moved := p.moved
	p.moved = false
	if moved {
		return checkpoint.Placed
	}
	return ""
}

// foreign are the paths that somebody else has changed since the directory was
// last seen. In one that we were putting to another content when the process
// died, what is as it was to become is ours.
func (p *place) foreign(ctx context.Context, now *vcs.Capture) (map[string]bool, error) {
	paths := map[string]bool{}
	if now.Commit == p.known.commit || p.known.commit == "" {
		return paths, nil
	}
	w := p.recorder.Worktree
	changes, err := w.Diff(ctx, p.known.commit, now.Commit)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		paths[c.Path] = true
	}
	if p.switched == nil {
		return paths, nil
	}
	if changes, err = w.Diff(ctx, vcs.Commit(p.switched.To), now.Commit); err != nil {
		return nil, err
	}
	differ := map[string]bool{}
	for _, c := range changes {
		differ[c.Path] = true
	}
	for path := range paths {
		if !differ[path] {
			delete(paths, path)
		}
	}
	return paths, nil
}

// put changes the directory, after writing down that it is about to: a process
// that dies on the way leaves a note of what it was doing.
func (p *place) put(ctx context.Context, e *engine, to vcs.Commit, changes []vcs.FileChange) error {
	w := p.recorder.Worktree
	note := event(EventSwitched, "", switchedNote{Place: p.id, From: string(p.known.commit), To: string(to)})
	err := e.opt.Ledger.Commit(ctx, func(tx *ledger.Tx) error {
		return tx.AppendEvents(e.branch, []ledger.Event{note})
	})
	if err != nil {
		return err
	}
	unlock, err := w.LockMove(e.opt.Owner.String(), e.opt.Now())
	if err != nil {
		return err
	}
	defer unlock()
	release, err := w.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := w.DiscardStages(ctx, func(c vcs.Commit, paths []string) error { return p.keep(ctx, e, c, paths) }); err != nil {
		return err
	}
	crash.Point("workflow.switch")
	staged, err := w.Stage(ctx, fmt.Sprintf("run-%d", e.run.ID), changes)
	if err != nil {
		return err
	}
	if err = staged.Swap(ctx); err == nil {
		crash.Point("workflow.switched")
		_, err = staged.Verify(ctx)
	}
	// What somebody wrote meanwhile comes before what the run wants there.
	if rerr := p.rescue(ctx, e, staged, err != nil); rerr != nil && err == nil {
		err = staged.TakeBack(rerr)
	} else if rerr != nil {
		return errors.Join(err, rerr) // it stays in the stage
	}
	var stuck *vcs.RollbackError
	if errors.As(err, &stuck) {
		return err
	}
	if err == nil {
		err = staged.Settle()
	}
	return errors.Join(err, staged.Discard())
}

// rescue keeps what somebody wrote to the directory while it was changed.
func (p *place) rescue(ctx context.Context, e *engine, staged *vcs.Staged, all bool) error {
	unshare, err := p.recorder.Worktree.Shared(ctx)
	if err != nil {
		return err
	}
	defer unshare()
	c, paths, err := staged.Rescue(ctx, all)
	if err != nil || c == "" {
		return err
	}
	return p.keep(ctx, e, c, paths)
}

// keep records what was rescued.
func (p *place) keep(ctx context.Context, e *engine, c vcs.Commit, paths []string) error {
	return e.opt.Ledger.Commit(ctx, func(tx *ledger.Tx) error {
		row, err := p.recorder.Ensure(tx)
		if err != nil {
			return err
		}
		_, err = checkpoint.AppendRescue(tx, p.recorder.Worktree, row.ID, c, paths, fmt.Sprintf("written while r%d went on", e.run.ID), e.opt.Actor)
		return err
	})
}

// record captures the place and writes a checkpoint.
func (p *place) record(ctx context.Context, what checkpoint.What) (files, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.recorder.Record(ctx, what)
	if err != nil {
		return files{}, 0, err
	}
	p.known = files{commit: vcs.Commit(r.Checkpoint.Commit), tree: r.Checkpoint.Tree, id: r.Checkpoint.ID}
	p.switched = nil
	return p.known, r.Checkpoint.ID, nil
}
