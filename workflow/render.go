package workflow

import (
	"context"
	"errors"

	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// catchUp settles, in a render, what was recorded, until a task has its
// outcome. When it has none the line is suspended.
func (e *engine) catchUp(t *task) error {
	for t.out == nil {
		moved, err := e.settleReady(e.ctx)
		if err != nil {
			return err
		}
		if !moved && t.out == nil {
			return errSuspended
		}
	}
	return nil
}

// render runs a body from the top against what was recorded, and returns the
// graph. Nothing is run and nothing is written.
func (e *engine) render(ctx context.Context, b body) (*snapshot.Set, error) {
	e.rendering, e.ctx, e.running = true, ctx, 1
	e.body(b)
	if e.bodyErr != nil && !suspends(e.bodyErr) && !halts(e.bodyErr) {
		return nil, e.bodyErr
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		moved, err := e.settleReady(ctx)
		if err != nil {
			return nil, err
		}
		if !moved {
			break
		}
	}
	set := snapshot.NewSet()
	for _, t := range e.order {
		set.Put(t.row())
	}
	for _, r := range e.extra {
		set.Put(r)
	}
	return set, nil
}

// strictly tells that only what was recorded may settle.
func (e *engine) strictly() bool { return e.proving || e.rendering && !e.opt.edited }

// prove runs the body as far as what was recorded leads it, and holds its graph
// to the newest frame. Its lines go on from there when the run does: a run that
// is resumed is rendered once. Nothing is written.
func (e *engine) prove(ctx context.Context, b body) error {
	e.proving = true
	e.launch(ctx, b)
	err := e.settleRecorded(ctx)
	switch {
	case err != nil:
	case e.bodyErr != nil && !halts(e.bodyErr):
		err = e.bodyErr
	case !e.same():
		// What is reported is the first difference in the order of the body, which
		// lines side by side don't have.
		if err = e.strict(ctx, b); err == nil {
			err = errors.New("BUG: a body gave another graph while it ran than in a render")
		}
	}
	if err != nil {
		return errors.Join(err, e.abandon(err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proving, e.proved = false, true
	for _, p := range e.untold {
		e.tell(p)
	}
	e.untold = nil
	return nil
}

// settleRecorded settles what was recorded until the lines get no further.
func (e *engine) settleRecorded(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for moved := true; moved; {
		for e.running > 0 {
			e.quiet.Wait()
		}
		var err error
		if moved, err = e.settleReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// same tells that the graph is that of the newest frame, and forgets that it
// has changed: it has not, since then. The definition's row is left out: what
// the body does is held to the frame, not how it is written.
func (e *engine) same() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, t := range e.order {
		if r := t.row(); !e.head.Set.Has(&r) {
			return false
		}
		n++
	}
	for key, r := range e.extra {
		has := e.head.Set.Has(&r)
		if _, there := e.head.Set.Get(key); has || key == keyDefinition && there {
			n++
		} else {
			return false
		}
		if has {
			delete(e.extra, key)
		}
	}
	e.undirty()
	return n == e.head.Set.Len()
}

// diverged compares a render with the frame it was to give again, and reports
// the first difference in the order of the body.
func (e *engine) diverged(frame int64, want, got *snapshot.Set) error {
	if want.Root() == got.Root() {
		return nil
	}
	changes := map[string]snapshot.Change{}
	for _, c := range snapshot.Diff(want, got) {
		changes[c.Key] = c
	}
	for _, t := range e.order {
		if c, ok := changes[t.id]; ok {
			d := &DivergedError{Frame: frame, Task: t.id, At: t.decl.At, Code: DivergedChanged}
			if c.Old == nil {
				d.Code = DivergedExtra
			}
			return e.explainRow(d, c)
		}
	}
	for key, c := range changes {
		d := &DivergedError{Frame: frame, Task: key, Code: DivergedChanged}
		if c.New == nil {
			d.Code = DivergedMissing
		}
		if e.firstOf(changes) == key {
			return e.explainRow(d, c)
		}
	}
	return nil
}

// firstOf is the lowest key of changes, so that a report is always the same.
func (e *engine) firstOf(changes map[string]snapshot.Change) string {
	low := ""
	for key := range changes {
		if low == "" || key < low {
			low = key
		}
	}
	return low
}

// explainRow says what of a row differs.
func (e *engine) explainRow(d *DivergedError, c snapshot.Change) error {
	if c.Old == nil || c.New == nil {
		return d
	}
	switch o, n := c.Old, c.New; {
	case o.Decl != n.Decl:
		d.Path, d.Old, d.New = "its declaration", o.Decl.Short(), n.Decl.Short()
	case o.Input != n.Input:
		d.Path, d.Old, d.New = "what it was given", o.Input.Short(), n.Input.Short()
	case o.Out != n.Out:
		d.Path, d.Old, d.New = "its outcome", o.Out.Short(), n.Out.Short()
	case o.State != n.State:
		d.Path, d.Old, d.New = "its state", o.State.String(), n.State.String()
	case o.Tree != n.Tree:
		d.Path, d.Old, d.New = "the files it left", short(o.Tree), short(n.Tree)
	case o.After != n.After:
		d.Path, d.Old, d.New = "the writer before it", o.After, n.After
	}
	return d
}

func short(s string) string { return s[:min(12, len(s))] }

// fixed are the rows a frame has whatever the body does.
func (e *engine) fixed(def *Definition) {
	in := succeeded(e.opt.Input)
	e.extra[keyInput] = snapshot.Row{Key: keyInput, Kind: "input", State: snapshot.Done, Out: in.hash}
	e.extra[keyDefinition] = snapshot.Row{Key: keyDefinition, Kind: "def", State: snapshot.Done, Out: def.Hash}
}

var _ = value.Hash
