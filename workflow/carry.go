package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/vcs"
)

// served returns the outcome that the frame a render began with has for a task,
// when it is of the same declaration and input.
func (e *engine) served(ctx context.Context, t *task) (*outcome, error) {
	row, ok := e.past.row(t)
	if !ok || !t.began(row.Input) {
		return nil, nil
	}
	a := e.past.attempt(t.id, &row)
	b, left, err := e.past.outcome(ctx, &row, a)
	if err != nil {
		return nil, err
	}
	out, err := hashedOutcome(row.State, b, row.Out)
	if err != nil {
		return nil, err
	}
	t.input, t.attempt, t.carried, t.noted = row.Input, row.Attempt, row.Carried, true
	if row.Tree != "" {
		t.left = left
		if t.ver != nil && t.ver.writer != t {
			left := t.left
			t.ver.over = &left
		}
	}
	if a != nil {
		e.use(a.ID)
	}
	return out, nil
}

// use says that an attempt's result is taken.
func (e *engine) use(attempt int64) { e.taken = append(e.taken, attempt) }

// uses tells that an attempt's result is.
func (e *engine) uses(attempt int64) bool {
	for _, id := range e.taken {
		e.used[id] = true
	}
	e.taken = e.taken[:0]
	return e.used[attempt]
}

// row is what was recorded of a task, when it has ended and is declared as it
// was then.
func (p *past) row(t *task) (row snapshot.Row, ok bool) {
	if p == nil {
		return row, false
	}
	row, ok = p.set.Get(t.id)
	return row, ok && row.State.Settled() && row.Decl == t.digest
}

// recall settles a task that a line waits for, while what was recorded is being
// caught up with, if the outcome is at hand: the engine need not be waited for.
// What goes wrong, goes wrong again when the engine looks.
func (e *engine) recall(t *task) {
	if t.out != nil || e.caught || e.past == nil || e.stopped != nil ||
		t.decl.Kind == KindRace || t.lost || !t.fed() || t.failedRef() != nil || !t.free() {
		return
	}
	e.entryTree(t)
	if out, err := e.served(e.ctx, t); err == nil && out != nil {
		e.settle(t, out)
	}
}

// began tells whether an input digest is of what the task is given, and of the
// files it can have begun with.
func (t *task) began(input snapshot.Hash) bool {
	if t.ver == nil {
		return t.digestOf("") == input
	}
	return slices.ContainsFunc(t.entries(), func(f files) bool { return t.digestOf(t.over(f.tree)) == input })
}

// carry returns a successful result of the same input that the lineage has and
// that this run does not use yet.
func (e *engine) carry(ctx context.Context, t *task, input snapshot.Hash) (*outcome, error) {
	if e.past.forces(t.id) {
		return nil, nil
	}
	if t.decl.run == nil || t.decl.Cache == 0 && t.decl.Once == "" && !e.opt.carries {
		return nil, nil
	}
	var found *ledger.Attempt
	var body []byte
	var left files
	err := e.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		from, err := tx.ResultByInput(e.lineage, input)
		if err != nil {
			return err
		}
		if found = e.pick(t, from); found == nil && t.decl.Cache > 0 {
			if found, err = e.cached(tx, input, t.decl.Cache); err != nil {
				return err
			}
		}
		if found == nil {
			return nil
		}
		if body, err = tx.AttemptOutput(*found); err != nil || found.After == 0 {
			return err
		}
		after, err := tx.Checkpoint(found.After)
		left = files{commit: vcs.Commit(after.Commit), tree: found.TreeOut, id: after.ID}
		return err
	})
	if err != nil || found == nil {
		return nil, err
	}
	out, err := decodeOutcome(snapshot.Done, body)
	if err != nil {
		return nil, fmt.Errorf("the result of attempt %d: %w", found.ID, err)
	}
	e.use(found.ID)
	t.input, t.carried, t.attempt = input, true, uint32(found.Number)
	t.origin = found.ID
	if t.decl.Fx.writes() && found.TreeOut != "" {
		t.left = left
	}
	return out, nil
}

// forces tells that a task has to run again.
func (p *past) forces(id string) bool {
	if p == nil {
		return false
	}
	_, ok := p.forced[id]
	return ok
}

// pick chooses among results: the task's own before another's. What is kept for
// the lineage may be used any number of times.
func (e *engine) pick(t *task, from []ledger.Attempt) *ledger.Attempt {
	var other *ledger.Attempt
	for i, a := range from {
		switch {
		case e.uses(a.ID) && t.decl.Once == "":
		case a.Task == t.id:
			return &from[i]
		case other == nil:
			other = &from[i]
		}
	}
	return other
}

// cached is a result of any run that is not too old, of the newest run first.
func (e *engine) cached(tx *ledger.Tx, input snapshot.Hash, ttl time.Duration) (*ledger.Attempt, error) {
	runs, err := tx.Runs(ledger.RunQuery{Limit: 100_000})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	all, err := tx.ResultByInput(ids, input)
	return e.recent(all, ttl), err
}

func (e *engine) recent(from []ledger.Attempt, ttl time.Duration) *ledger.Attempt {
	for i, a := range from {
		if e.opt.Now().Sub(a.Ended) <= ttl {
			return &from[i]
		}
	}
	return nil
}

// replayOutside puts a change by hand that was noticed before a task back into
// the order, if the place has the content again that it was made to.
func (e *engine) replayOutside(t *task) {
	if e.past == nil {
		return
	}
	o, ok := e.past.outside[t.id]
	if !ok || t.entry().tree != o.base {
		return
	}
	v := t.ver
	if v.writer == t {
		v = v.prev
	}
	now := o.now
	v.over = &now
	r := outsideRow(o)
	e.extra[r.Key] = r
}
