package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/vcs"
)

// past is what was recorded of a run, up to the frame a render begins with.
type past struct {
	db       *ledger.DB
	set      *snapshot.Set            // the graph; reset has taken outcomes out of it
	outs     map[snapshot.Hash]string // outcomes that events hold
	tasks    map[string]tries
	all      []*ledger.AttemptOutcome                 // of the lineage, the run's own last
	results  map[snapshot.Hash]*ledger.AttemptOutcome // attempts by outcome; made when first asked for
	timers   map[string]time.Time
	retries  map[string]retryNote
	sessions map[string]string
	resets   map[string]int // the newest attempt when a task was reset
	forced   map[string]int // likewise, of tasks that have to run again
	outside  map[string]outside
	standing standing      // of what was done outside
	switched *switchedNote // the last one, of the run's own worktree
	halted   []string      // tasks that stopped the run; nil when it was resumed since
	start    files
	cut      bool  // an attempt has died in the run's own worktree, and nothing was captured since
	last     files // what the worktree was last seen to hold
}

// tries are the attempts of a task.
type tries struct {
	on      []*ledger.AttemptOutcome // on the branches the frame stands on
	highest int                      // number, on any branch of the run
}

// readPast reads a run's state at a frame, and the events up to that of number
// to: one more than the frame's takes in what has happened since.
func readPast(ctx context.Context, db *ledger.DB, run ledger.Run, head *ledger.Head, lineage []int64, to int64) (*past, error) {
	p := &past{db: db, set: head.Set, outs: map[snapshot.Hash]string{}, tasks: make(map[string]tries, head.Set.Len()),
		timers: map[string]time.Time{}, retries: map[string]retryNote{}, resets: map[string]int{}, outside: map[string]outside{}, sessions: map[string]string{}, forced: map[string]int{}}
	return p, db.View(ctx, func(tx *ledger.Tx) error {
		if err := p.readEvents(tx, head, to); err != nil {
			return err
		}
		if err := p.readAttempts(tx, run, head, lineage); err != nil {
			return err
		}
		return p.readFiles(tx, run, head)
	})
}

func (p *past) readEvents(tx *ledger.Tx, head *ledger.Head, to int64) error {
	q := ledger.EventQuery{To: to, Limit: 5000}
	for {
		events, err := tx.Events(head.Branch, q)
		if err != nil {
			return err
		}
		for _, ev := range events {
			if ev.Seq > to { // To 0 is no limit
				return nil
			}
			if ev.Body, err = tx.EventBody(ev); err != nil {
				return err
			}
			if err := p.read(ev); err != nil {
				return err
			}
			q.From, q.FromIdx = ev.Seq, int64(ev.Idx)+1
		}
		if len(events) < q.Limit {
			return nil
		}
	}
}

func (p *past) readAttempts(tx *ledger.Tx, run ledger.Run, head *ledger.Head, lineage []int64) error {
	on := map[int64]bool{}
	for id := head.Branch; id != 0; {
		on[id] = true
		b, err := tx.BranchByID(id)
		if err != nil {
			return err
		}
		id = b.Parent
	}
	for i := len(lineage) - 1; i >= 0; i-- {
		all, err := tx.Outcomes(lineage[i])
		if err != nil {
			return err
		}
		for i, a := range all {
			t := p.tasks[a.Task]
			if a.RunID == run.ID {
				t.highest = max(t.highest, a.Number)
			}
			switch {
			case !on[a.Branch]:
			case t.on == nil:
				t.on = all[i : i+1 : i+1]
			default:
				t.on = append(t.on, a)
			}
			p.tasks[a.Task] = t
		}
		if p.all == nil {
			p.all = all
		} else {
			p.all = append(p.all, all...)
		}
	}
	return nil
}

// readFiles finds what the run began with, and what its worktree was last seen
// to hold.
func (p *past) readFiles(tx *ledger.Tx, run ledger.Run, head *ledger.Head) error {
	first, err := tx.FrameAt(head.Branch, 0, false)
	if err != nil {
		return err
	}
	c, err := tx.Checkpoint(first.Checkpoint)
	if err != nil {
		return fmt.Errorf("where r%d began: %w", run.ID, err)
	}
	p.start = files{commit: vcs.Commit(c.Commit), tree: c.Tree, id: c.ID}
	if c, err = checkpoint.Left(tx, run); err != nil {
		return err
	}
	p.last = files{commit: vcs.Commit(c.Commit), tree: c.Tree, id: c.ID}
	for _, a := range p.all {
		if a.RunID == run.ID && a.Worktree == 0 && a.After == 0 && a.Before == c.ID && a.Outcome != ledger.OutcomeOK && a.Outcome != ledger.OutcomeFailed {
			p.cut = p.cut || slices.Contains(p.tasks[a.Task].on, a)
		}
	}
	return nil
}

func (p *past) timer(id string) (time.Time, bool) {
	if p == nil {
		return time.Time{}, false
	}
	due, ok := p.timers[id]
	return due, ok
}

// fresh tells that a task was never tried.
func (p *past) fresh(id string) bool { return p == nil || len(p.tasks[id].on) == 0 }

// attempt is the one that a row's outcome came of, nil when none did. Its own
// outcome is another where the task fell back.
func (p *past) attempt(id string, row *snapshot.Row) *ledger.AttemptOutcome {
	for _, a := range p.tasks[id].on {
		if a.Number == int(row.Attempt) && a.Input == row.Input && !row.Carried {
			return a
		}
	}
	if a, ok := p.byOutcome()[row.Out]; ok && a.Input == row.Input {
		return a
	}
	return nil
}

// byOutcome finds attempts by what came of them, of several the last.
func (p *past) byOutcome() map[snapshot.Hash]*ledger.AttemptOutcome {
	if p.results == nil {
		p.results = make(map[snapshot.Hash]*ledger.AttemptOutcome, len(p.all))
		for _, a := range p.all {
			if !a.Out.IsZero() {
				p.results[a.Out] = a
			}
		}
	}
	return p.results
}

// outcome returns what was recorded for a row, and the files it left. The
// attempt is that of the row, nil when it has none.
func (p *past) outcome(ctx context.Context, row *snapshot.Row, a *ledger.AttemptOutcome) (out string, left files, err error) {
	out = p.outs[row.Out]
	own := a != nil && a.Out == row.Out
	if out == "" && own {
		out, _ = a.Inline()
	}
	if out != "" && row.Tree == "" {
		return out, left, nil
	}
	err = p.db.View(ctx, func(tx *ledger.Tx) error {
		if out == "" {
			if out, err = outcomeBody(tx, row, a, own); err != nil {
				return err
			}
		}
		if row.Tree == "" {
			return nil
		}
		left, err = treeFiles(tx, a, row.Tree)
		return err
	})
	return out, left, err
}

// outcomeBody reads an outcome that is long, or that no attempt came to.
func outcomeBody(tx *ledger.Tx, row *snapshot.Row, a *ledger.AttemptOutcome, own bool) (string, error) {
	if own {
		b, err := tx.OutcomeBody(a)
		if b != nil || err != nil {
			return string(b), err
		}
	}
	b, err := tx.Content(row.Out)
	if err != nil {
		return "", fmt.Errorf("its recorded outcome %s: %w", row.Out.Short(), err)
	}
	return string(b), nil
}

// treeFiles finds the commit that has the tree an attempt has left.
func treeFiles(tx *ledger.Tx, a *ledger.AttemptOutcome, tree string) (files, error) {
	if a == nil {
		return files{}, fmt.Errorf("no attempt has left the tree %.12s", tree)
	}
	for _, id := range []int64{a.After, a.Before} {
		c, err := tx.Checkpoint(id)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil || c.Tree == tree {
			return files{commit: vcs.Commit(c.Commit), tree: tree, id: c.ID}, err
		}
	}
	return files{}, fmt.Errorf("the checkpoint with the tree %.12s is not there any more", tree)
}

// again adds to a job what was tried before.
func (p *past) again(j *job) {
	id := j.task.id
	j.number = p.tasks[id].highest + 1
	for _, a := range p.tasks[id].on {
		if a.Number <= p.resets[id] || a.Input != j.input {
			continue
		}
		switch a.Outcome {
		case ledger.OutcomeFailed:
			j.tried++
		case ledger.OutcomeInterrupted, "":
			if a.Number == p.tasks[id].highest {
				j.reopen, j.number = a, a.Number
			}
		}
	}
	if n, ok := p.retries[id]; ok && n.Attempt > p.resets[id] {
		j.due = n.Due
	}
	j.tried = min(j.tried, j.task.decl.Retry.attempts()-1)
}

// toReset are the tasks that have to run again: those that stopped the run, that
// gave way to another, or that were told to.
func (p *past) toReset() resetNote {
	n := resetNote{Tasks: map[string]int{}}
	for _, id := range p.halted {
		if row, ok := p.set.Get(id); ok && row.State.Settled() && row.State != snapshot.Done {
			n.Tasks[id] = p.tasks[id].highest
		}
	}
	for _, id := range p.set.InState(snapshot.Cancelled) {
		n.Tasks[id] = p.tasks[id].highest
	}
	for id, number := range p.forced {
		if row, ok := p.set.Get(id); !ok || !row.State.Settled() || int(row.Attempt) <= number || row.Carried {
			n.Tasks[id] = number // it has not since
		}
	}
	return n
}

// reset takes the outcomes of tasks that have to run again out of what is
// served.
func (p *past) reset(n resetNote) {
	for id := range p.forced {
		if _, ok := n.Tasks[id]; !ok {
			delete(p.forced, id)
		}
	}
	if len(n.Tasks) > 0 {
		p.set = p.set.Clone()
	}
	for id := range n.Tasks {
		p.set.Delete(id)
		p.resets[id] = n.Tasks[id]
		delete(p.retries, id)
		delete(p.timers, id)
	}
}
