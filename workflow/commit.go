package workflow

import (
	"context"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

func hashOf(b []byte) snapshot.Hash { return value.Hash(b) }

// Reserved keys of a workflow's frames.
const (
	keyInput      = "~input"
	keyDefinition = "~def"
	keyEnd        = "~end" // what the body returned, or why it stopped
)

// inline is the size up to which an outcome is kept in its event.
const inline = 256

// commit writes a frame with what has changed since the last: outcomes, and the
// tasks that were declared because of them. Without a change nothing is
// written, and events that came up wait for the next.
func (e *engine) commit(ctx context.Context) error {
	f := e.changes()
	if e.rendering {
		return nil
	}
	e.caught = true
	if len(f.Put)+len(f.Delete) == 0 && e.head.Seq >= 0 {
		defer e.clean()
		return e.flush(ctx)
	}
	if err := e.write(ctx, f); err != nil {
		return err
	}
	e.clean()
	e.tell(Progress{Kind: Framed, Frame: e.head.Seq})
	return nil
}

// changes is the frame that would be written now.
func (e *engine) changes() ledger.NewFrame {
	f := ledger.NewFrame{Kind: ledger.FrameOutcome, Note: e.label, Checkpoint: e.main.settledContent().id}
	put := func(r snapshot.Row) {
		if !e.head.Set.Has(&r) {
			f.Put = append(f.Put, r)
		}
	}
	for _, t := range e.dirty {
		put(t.row())
		e.written = append(e.written, t)
	}
	for _, r := range e.extra {
		put(r)
	}
	if !e.caught && e.past != nil {
		f.Kind = "resumed"
	}
	if f.Kind == "resumed" && !e.proved {
		for r := range e.head.Set.Rows() {
			if _, ok := e.extra[r.Key]; !ok && e.tasks[r.Key] == nil {
				f.Delete = append(f.Delete, r.Key)
			}
		}
	}
	if e.head.Seq < 0 {
		f.Kind = "start"
	}
	return f
}

// clean forgets what has been written.
func (e *engine) clean() {
	for _, t := range e.written {
		t.finish = nil
	}
	e.written = e.written[:0]
	e.undirty()
	clear(e.extra)
	e.events, e.label = nil, ""
}

func (e *engine) undirty() {
	for _, t := range e.dirty {
		t.dirty = false
	}
	e.dirty = e.dirty[:0]
}

// write commits a frame, with the ends of attempts and the contents it rests
// on, in one transaction.
func (e *engine) write(ctx context.Context, f ledger.NewFrame) error {
	var contents []ledger.Prepared
	for _, t := range e.written {
		if t.out == nil || t.noted {
			continue
		}
		note := settledNote{State: t.out.state.String(), Attempt: t.attempt, Carried: t.origin}
		if t.finish == nil && !t.carried || t.finish != nil && t.finish.fellBack {
			if b := t.out.encoded(); len(b) <= inline {
				note.Out = b
			} else {
				contents = append(contents, ledger.Prepare(b))
			}
		}
		if t.finish != nil {
			f.Events = append(f.Events, t.finish.events...)
		}
		if t.decl.Kind != KindPure || note.Out != nil || t.carried {
			f.Events = append(f.Events, event(EventSettled, t.id, note))
		}
	}
	f.Events = append(e.events, f.Events...)
	contents = append(contents, e.contents...)
	err := e.opt.Ledger.Update(context.WithoutCancel(ctx), func(tx *ledger.Tx) error {
		for _, c := range contents {
			if _, err := tx.PutContent(c); err != nil {
				return err
			}
		}
		for _, t := range e.written {
			if t.finish == nil {
				continue
			}
			if err := e.finishAttempt(tx, t); err != nil {
				return err
			}
		}
		frame, err := tx.AppendFrame(e.head, f)
		if err != nil {
			return err
		}
		for _, id := range e.took {
			if err := tx.MarkSignal(id, frame.Seq); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.contents, e.took = nil, nil
	for _, t := range e.written {
		t.noted = t.out != nil
	}
	return nil
}

// finishAttempt writes how the last attempt of a task ended. Of one whose
// beginning nobody could have seen, that is all there is.
func (e *engine) finishAttempt(tx *ledger.Tx, t *task) error {
	s := t.finish
	s.end.EndSeq = e.head.Seq + 1
	if s.attempt.ID != 0 {
		e.use(s.attempt.ID)
		return s.write(tx)
	}
	s.attempt.Number, s.attempt.Decl = int(t.attempt), snapshot.Hash{} // its frame has what was declared
	a, err := tx.RecordAttempt(s.attempt, s.end)
	if err != nil {
		return err
	}
	s.attempt = a
	e.use(a.ID)
	return nil
}

// write writes the end of an attempt whose beginning was.
func (s *settled) write(tx *ledger.Tx) error {
	if s.cell != nil {
		cut, err := s.cell(tx, s.attempt)
		if err != nil {
			return err
		}
		s.end.Truncated = s.end.Truncated || cut
	}
	return tx.FinishAttempt(s.attempt.ID, s.end)
}

// flush writes events that no frame has taken along.
func (e *engine) flush(ctx context.Context) error {
	if len(e.events) == 0 {
		return nil
	}
	events := e.events
	e.events = nil
	return e.opt.Ledger.Update(context.WithoutCancel(ctx), func(tx *ledger.Tx) error {
		return tx.AppendEvents(e.branch, events)
	})
}
