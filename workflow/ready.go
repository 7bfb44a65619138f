package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// look brings the list of open tasks up to date.
func (e *engine) look() {
	keep := e.open[:0]
	for _, t := range e.open {
		if t.out == nil {
			keep = append(keep, t)
		}
	}
	e.open = append(keep, e.order[e.seen:]...)
	e.seen = len(e.order)
}

// settleReady settles what needs no attempt: what was recorded, what can be
// carried, and what the engine decides by itself.
func (e *engine) settleReady(ctx context.Context) (moved bool, err error) {
	e.look()
	for _, t := range e.open {
		if t.out != nil || t.going {
			continue
		}
		out, err := e.atOnce(ctx, t)
		if err != nil {
			return moved, fmt.Errorf("%s: %w", t.id, err)
		}
		if out != nil {
			e.settle(t, out)
			moved = true
		}
	}
	return moved, nil
}

// atOnce returns the outcome of a task that needs no attempt, or nil.
func (e *engine) atOnce(ctx context.Context, t *task) (*outcome, error) {
	if t.lost {
		return e.gaveWay(ctx, t)
	}
	if t.decl.Kind == KindRace {
		return e.winner(t), nil
	}
	if !t.fed() {
		return nil, nil
	}
	if up := t.failedRef(); up != nil {
		return ended(snapshot.Skipped, value.Failure{Type: "upstream", Message: up.id + " did not end well", Task: up.id}), nil
	}
	if !t.free() {
		return nil, nil
	}
	input := t.digestOf(e.entryTree(t))
	if out, err := e.served(ctx, t); out != nil || err != nil {
		return out, err
	}
	if t.decl.Kind == KindSignal && t.input != input {
		t.input = input
		e.touch(t)
	}
	if e.strictly() || e.halted() {
		return nil, nil
	}
	if out, err := e.carry(ctx, t, input); out != nil || err != nil || e.rendering {
		return out, err
	}
	return e.own(ctx, t, input)
}

// gaveWay is the outcome of a task whose race another one has won. One that was
// going on then ends later, and may have come to its own end by that time: what
// was recorded counts.
func (e *engine) gaveWay(ctx context.Context, t *task) (*outcome, error) {
	out, err := e.served(ctx, t)
	if out != nil || err != nil {
		return out, err
	}
	out = ended(snapshot.Cancelled, value.Failure{Type: "cancelled", Message: "another one won the race"})
	switch row, ok := e.past.row(t); {
	case ok && row.State == snapshot.Cancelled:
		t.input, t.attempt, t.noted = row.Input, row.Attempt, true
	case e.strictly():
		return nil, nil
	}
	return out, nil
}

// own settles the kinds that the engine answers itself.
func (e *engine) own(ctx context.Context, t *task, input snapshot.Hash) (*outcome, error) {
	switch t.decl.Kind {
	case KindNow, KindUUID, KindRandom, KindChoice:
		t.input = input
		return e.recordedValue(t)
	case KindMark:
		t.input = input
		return e.mark(t), nil
	case KindTimer:
		return e.timer(t, input)
	case KindSignal:
		return e.signal(ctx, t, input)
	}
	return nil, nil
}

// halted tells that the body has ended without going to its end: nothing new is
// begun.
func (e *engine) halted() bool { return e.done && e.bodyErr != nil }

// fed tells that all outcomes a task is given are there.
func (t *task) fed() bool {
	for _, r := range t.refs {
		if r.out == nil {
			return false
		}
	}
	return true
}

func (t *task) failedRef() *task {
	for _, r := range t.refs {
		if !r.out.ok() {
			return r
		}
	}
	return nil
}

// digestOf is the input digest of a task that is fed, over a tree.
func (t *task) digestOf(tree string) snapshot.Hash {
	if len(t.refs) == 0 {
		return t.decl.input(nil, tree)
	}
	return t.decl.input(func(id string) ([32]byte, bool) {
		for _, r := range t.refs {
			if r.id == id && r.out != nil {
				return r.out.hash, true
			}
		}
		return [32]byte{}, false
	}, tree)
}

// entryTree is the tree a task is to begin with, "" when it has nothing to do
// with files. What somebody changed by hand just before it was noticed then,
// and is part of it.
func (e *engine) entryTree(t *task) string {
	if !t.decl.Fx.reads() {
		return ""
	}
	e.replayOutside(t)
	return t.over(t.entry().tree)
}

// over is what the input digest covers of the files, when a task begins with a
// tree.
func (t *task) over(tree string) string {
	for _, side := range t.sides {
		tree += "+" + side.newest.content().tree
	}
	return tree
}

// winner settles a race when one of its runners has succeeded, the first in
// order of those that have, or all have failed. Who has won once has won.
func (e *engine) winner(t *task) *outcome {
	open, won := false, -1
	runners := t.runners()
	row, recorded := e.past.row(t)
	for i, r := range runners {
		switch {
		case r.out == nil:
			open = true
		case r.out.ok() && recorded && row.Input == t.wonBy(r):
			return e.win(t, i, runners)
		case r.out.ok() && won < 0:
			won = i
		}
	}
	switch {
	case won >= 0 && (!open || !recorded || !e.rendering && e.caught):
		return e.win(t, won, runners)
	case open:
		return nil
	}
	return failed(value.Failure{Type: "race", Message: "none of the runners succeeded"})
}

// win settles a race for one of its runners. The others give way.
func (e *engine) win(t *task, i int, runners []*task) *outcome {
	for _, other := range runners {
		if other.out == nil {
			other.lost = true
			if other.cancel != nil {
				other.cancel(errLost)
			}
		}
	}
	t.input = t.wonBy(runners[i])
	return succeeded(value.NewDict(map[string]value.V{"index": int64(i), "value": runners[i].out.value}))
}

// wonBy is the input digest of a race that a runner has won: the others' ends
// are no part of it.
func (t *task) wonBy(r *task) snapshot.Hash {
	return t.decl.input(func(id string) ([32]byte, bool) { return r.out.hash, id == r.id }, "")
}

// runners are those who take part in a race, in the order of the body.
func (t *task) runners() (all []*task) {
	list, _ := t.decl.Args.Get("runners")
	refs, _ := list.([]value.V)
	for _, v := range refs {
		for _, r := range t.refs {
			if ref, ok := v.(value.Ref); ok && ref.Task == r.id {
				all = append(all, r)
			}
		}
	}
	return all
}

// mark names the frame that is about to be written.
func (e *engine) mark(t *task) *outcome {
	label, _ := t.decl.Args.Get("label")
	e.label, _ = label.(string)
	return succeeded(label)
}

// timer sets a deadline once, and settles when it has passed.
func (e *engine) timer(t *task, input snapshot.Hash) (*outcome, error) {
	if t.due.IsZero() {
		due, err := e.deadline(t)
		if err != nil {
			return nil, err
		}
		t.due = due
	}
	if e.opt.Now().Before(t.due) {
		return nil, nil
	}
	t.input = input
	return succeeded(t.due.UTC().Format(time.RFC3339Nano)), nil
}

// deadline is what was recorded, or is counted from now and recorded.
func (e *engine) deadline(t *task) (time.Time, error) {
	if due, ok := e.past.timer(t.id); ok {
		return due, nil
	}
	due := e.opt.Now()
	if s, ok := t.decl.Args.Get("seconds"); ok {
		due = due.Add(time.Duration(number(s) * float64(time.Second)))
	} else {
		at, _ := t.decl.Args.Get("until")
		text, _ := at.(string)
		var err error
		if due, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return due, &BodyError{At: t.decl.At, Message: fmt.Sprintf("until: %q is no time like 2030-01-31T12:00:00Z", text)}
		}
	}
	e.events = append(e.events, timerEvent(t.id, due))
	return due, nil
}

func number(v value.V) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// startReady begins attempts of what is ready, as many at once as is allowed.
func (e *engine) startReady(ctx context.Context) (begun []dispatch) {
	for _, t := range e.open {
		if e.inflight >= e.opt.jobs() {
			break
		}
		if t.out != nil || t.going || t.stands != nil || t.decl.run == nil || t.lost || !t.fed() || t.failedRef() != nil || !t.free() {
			continue
		}
		ctx, cancel := context.WithCancelCause(ctx)
		t.going, t.cancel = true, cancel
		e.inflight++
		begun = append(begun, dispatch{ctx, cancel, e.job(t)})
	}
	return begun
}
