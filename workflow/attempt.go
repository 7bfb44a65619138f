package workflow

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// runner carries out one attempt of a task. A failure is an outcome; an error
// says that the engine can't go on.
type runner func(ctx context.Context, x *execution) (value.V, *value.Failure, error)

// execution is what a runner gets.
type execution struct {
	Task    string
	Attempt int
	Args    value.Dict // with outcomes in place of handles
	Dir     string     // where files are; "" for a pure task
	Env     []string
	session string // conversation that an agent goes on with
	row     int64  // of the attempt
	seq     int64  // of the newest frame when it was dispatched
	effects []made
	anew    bool // what it does outside is another call than those before
	unsent  bool // a request that did not leave
	e       *engine
	place   *place
	tape    tapeNote
}

// job is a dispatch of a task: everything it needs, taken under the engine's
// lock.
type job struct {
	task    *task
	place   *place
	entry   files
	sides   []files
	input   snapshot.Hash
	args    value.Dict
	session string
	seq     int64 // of the newest frame
	tried   int   // attempts of this dispatch that have failed before
	number  int   // of the next attempt
	reopen  *ledger.AttemptOutcome
	due     time.Time
	keep    bool
	stood   []ledger.Effect // what stands of the task
	digest  func(tree string) snapshot.Hash
}

// job collects what an attempt needs.
func (e *engine) job(t *task) job {
	j := job{task: t, seq: e.head.Seq, args: e.arguments(t), number: 1, keep: e.opt.KeepFiles && !e.past.fresh(t.id), session: e.session(t)}
	tree := e.entryTree(t)
	j.input = t.digestOf(tree)
	if t.decl.Fx.reads() {
		j.place, j.entry = t.ver.place, t.entry()
		refs := make(map[string]*task, len(t.refs))
		for _, r := range t.refs {
			refs[r.id] = r
		}
		for _, s := range t.sides {
			j.sides = append(j.sides, s.newest.content())
		}
		j.digest = t.digestOf
	}
	if e.past == nil {
		return j
	}
	e.past.again(&j)
	j.stood = e.stood(t)
	return j
}

// arguments are a task's with the outcomes in place of the handles.
func (e *engine) arguments(t *task) value.Dict {
	out := func(id string) value.V {
		for _, r := range t.refs {
			if r.id == id {
				return r.out.value
			}
		}
		panic("BUG: " + t.id + " is dispatched before " + id)
	}
	blob := func(b value.Blob) value.V {
		if b.Text {
			return string(e.blobs[b.Hash])
		}
		return e.blobs[b.Hash]
	}
	return substitute(t.decl.Args, out, blob).(value.Dict)
}

// dispatch is a job that is begun.
type dispatch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	job    job
}

// brief tells that there is nothing to an attempt but what the body's own
// program computes: nobody could see it go on.
func (d dispatch) brief() bool { return d.job.place == nil && d.job.task.decl.unseen() }

// unseen tells that the beginning of an attempt is not written.
func (d *Decl) unseen() bool { return d.Kind == KindPure && !d.compensated() }

// here carries out a dispatch in the goroutine of a line, while nothing else
// goes on. As in a goroutine of its own, a panic ends the process: the body,
// whose line it is, must not get to recover from it.
func (e *engine) here(d dispatch) attemptEnd {
	returned := false
	defer func() {
		if !returned {
			why := recover()
			if why == nil {
				why = "its function has left its goroutine"
			}
			ended := fmt.Sprintf("%s: %v\n\n%s", d.job.task.id, why, debug.Stack())
			go panic(ended)
			select {}
		}
	}()
	end := e.attempts(d)
	returned = true
	return end
}

// attempts tries a task until it succeeds, or as often as it may.
func (e *engine) attempts(d dispatch) attemptEnd {
	defer d.cancel(nil)
	ctx, j := d.ctx, d.job
	retry := j.task.decl.Retry
	for {
		if !e.sleepUntil(ctx, j.due) {
			return attemptEnd{task: j.task}
		}
		end := e.attempt(ctx, j)
		j.tried++
		if end.err != nil || end.out == nil || end.out.state != snapshot.Failed || j.tried >= retry.attempts() || final(end.out) {
			e.fallback(j.task, &end)
			return end
		}
		j.due = e.opt.Now().Add(retry.wait(j.tried + 1))
		note := event(EventRetry, j.task.id, retryNote{Attempt: j.number, Due: j.due.UTC(), Failure: end.out.failure.Message})
		if err := e.writeEnd(end.settled, note); err != nil {
			end.err = err
			return end
		}
		e.tell(Progress{Kind: Retried, Task: j.task.id, TaskKind: j.task.decl.Kind, Attempt: j.number, Failure: end.out.failure.Message, Due: j.due})
		crash.Point("workflow.retry")
		j.number, j.reopen, j.stood = j.number+1, nil, nil
		if retry.KeepFiles {
			j.keep = true
		}
	}
}

// final tells failures that trying again can't mend.
func final(o *outcome) bool { return o.failure.Type == FailureRefused }

// fallback puts the value a task falls back to in place of its failure.
func (e *engine) fallback(t *task, end *attemptEnd) {
	if t.decl.Fallback == nil || end.out == nil || end.out.state != snapshot.Failed {
		return
	}
	end.settled.events = append(end.settled.events, event(EventFallback, t.id, map[string]string{"failure": end.out.failure.Message}))
	end.out = succeeded(*t.decl.Fallback)
	end.settled.fellBack = true
}

// writeEnd writes the end of an attempt that is not a task's last.
func (e *engine) writeEnd(s settled, note ledger.Event) error {
	return e.opt.Ledger.Update(context.Background(), func(tx *ledger.Tx) error {
		if s.attempt.ID == 0 {
			a, err := tx.StartAttempt(s.attempt)
			if err != nil {
				return err
			}
			s.attempt = a
		}
		if err := s.write(tx); err != nil {
			return err
		}
		return tx.AppendEvents(e.branch, append(s.events, note))
	})
}

// sleepUntil returns false when the wait was cut short.
func (e *engine) sleepUntil(ctx context.Context, due time.Time) bool {
	if d := due.Sub(e.opt.Now()); !due.IsZero() && d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// attempt is one try.
func (e *engine) attempt(ctx context.Context, j job) attemptEnd {
	t := j.task
	end := attemptEnd{task: t, number: uint32(j.number), input: j.input}
	row := ledger.Attempt{RunID: e.run.ID, Branch: e.branch, Task: t.id, Decl: t.digest, Input: j.input,
		StartSeq: j.seq, Generation: e.run.Generation, Owner: e.opt.Owner}
	x := &execution{Task: t.id, Attempt: j.number, Args: j.args, Env: e.opt.Env, e: e, place: j.place, session: j.session, seq: j.seq}
	if j.place == nil && t.decl.unseen() {
		end.settled.attempt = row
		return e.conclude(ctx, &end, x, e.try(ctx, t, x))
	}
	if j.place != nil {
		id, err := e.furnished(ctx, j.place, j.entry)
		if err != nil {
			end.err = err
			return end
		}
		row.Worktree = id
	}
	switch in, err := e.start(ctx, &j, x, &row); {
	case err != nil:
		end.err = err
		return end
	case len(in) > 0:
		return attemptEnd{task: t, stands: in}
	}
	end.settled.attempt, x.row = row, row.ID
	e.tell(Progress{Kind: Started, Task: t.id, TaskKind: t.decl.Kind, Attempt: j.number})
	crash.Point("workflow.started")
	if j.place == nil {
		return e.conclude(ctx, &end, x, e.try(ctx, t, x))
	}
	return e.inPlace(ctx, j, x, &end)
}

// start writes that an attempt begins, unless effects are in its way. One that
// died with its process begins again under its number.
func (e *engine) start(ctx context.Context, j *job, x *execution, row *ledger.Attempt) (in []ledger.Effect, err error) {
	note := event(EventStarted, j.task.id, startedNote{Attempt: j.number, At: j.task.decl.At})
	err = e.opt.Ledger.Update(context.WithoutCancel(ctx), func(tx *ledger.Tx) (err error) {
		if in, err = e.decide(tx, j, x); err != nil || len(in) > 0 {
			return err
		}
		if j.reopen != nil {
			*row, err = tx.RestartAttempt(j.reopen.ID, row.Worktree, e.opt.Owner)
		} else {
			*row, err = tx.StartAttempt(*row)
		}
		if err == nil && row.Number != j.number {
			err = fmt.Errorf("BUG: attempt %d of %s has number %d", j.number, j.task.id, row.Number)
		}
		if err != nil {
			return err
		}
		return tx.AppendEvents(e.branch, []ledger.Event{note})
	})
	return in, err
}

// tried is what came of a runner.
type tried struct {
	value   value.V
	failure *value.Failure
	err     error
}

// try calls a task's runner within its time.
func (e *engine) try(ctx context.Context, t *task, x *execution) (r tried) {
	limited := ctx
	if t.decl.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, t.decl.Timeout)
		defer cancel()
	}
	if x.effects, r.err = e.intend(ctx, t, x); r.err != nil {
		return r
	}
	x.tape.began = e.opt.Now()
	r.value, r.failure, r.err = t.decl.run(limited, x)
	r.err = errors.Join(r.err, e.settleEffects(x, r, limited.Err() != nil))
	if ctx.Err() == nil && limited.Err() != nil {
		r.value, r.err, r.failure = nil, nil, &value.Failure{Type: "timeout", Message: fmt.Sprintf("it took longer than %s", t.decl.Timeout)}
	}
	return r
}

// conclude turns what a runner returned into the end of the attempt.
func (e *engine) conclude(ctx context.Context, end *attemptEnd, x *execution, r tried) attemptEnd {
	switch {
	case r.err != nil && ctx.Err() == nil:
		end.err = r.err
		return *end
	case ctx.Err() != nil:
		end.out = nil
		if lost := errors.Is(context.Cause(ctx), errLost); lost {
			end.out = ended(snapshot.Cancelled, value.Failure{Type: "cancelled", Message: "another one won the race"})
		}
		end.settled.end.Outcome = ledger.OutcomeInterrupted
	case r.failure != nil:
		r.failure.Task = x.Task
		end.out = failed(*r.failure)
		end.settled.end.Outcome = ledger.OutcomeFailed
	default:
		end.out = succeeded(r.value)
		end.settled.end.Outcome = ledger.OutcomeOK
	}
	if end.out != nil {
		end.settled.end.Output = end.out.encoded()
	}
	end.settled.end.ExitCode, end.settled.end.Truncated = x.tape.exit, x.tape.open
	if x.tape.session != "" {
		end.session = x.tape.session
		end.settled.events = append(end.settled.events, event(EventSession, x.Task, sessionNote{Session: x.tape.session, Attempt: x.Attempt}))
	}
	end.settled.cell = e.cell(end, x)
	if end.out == nil && end.settled.attempt.ID != 0 { // nobody else will write it
		end.err = e.opt.Ledger.Update(context.WithoutCancel(ctx), end.settled.write)
	}
	return *end
}

// inPlace runs an attempt in its worktree, captured before and after.
func (e *engine) inPlace(ctx context.Context, j job, x *execution, end *attemptEnd) attemptEnd {
	t := j.task
	in, err := e.enter(ctx, j, end)
	if err != nil {
		if ctx.Err() != nil {
			return e.conclude(ctx, end, x, tried{})
		}
		return *e.unmade(end, err)
	}
	x.Dir = j.place.root()
	x.tape.treeIn = in.tree
	r := e.try(ctx, t, x)
	crash.Point("workflow.ran")
	out, after, err := j.place.record(context.WithoutCancel(ctx), checkpoint.What{Tier: ledger.TierTool, Run: e.run.ID,
		Attempt: end.settled.attempt.ID, Edge: ledger.EdgeAfter, Actor: e.opt.Actor})
	if err != nil {
		return *e.unmade(end, errors.Join(r.err, err))
	}
	crash.Point("workflow.captured")
	x.tape.treeOut = out.tree
	switch {
	case t.decl.Fx.writes():
		end.left = out
	case out.tree != in.tree:
		end.over = &out
		end.settled.events = append(end.settled.events, event(EventUpgraded, t.id, map[string]string{"tree": out.tree}))
	}
	end.settled.end.After, end.settled.end.TreeOut = after, out.tree
	return e.conclude(ctx, end, x, r)
}

// unmade ends an attempt whose worktree could not be captured.
func (e *engine) unmade(end *attemptEnd, err error) *attemptEnd {
	end.err = err
	ferr := e.opt.Ledger.Update(context.Background(), func(tx *ledger.Tx) error {
		return tx.FinishAttempt(end.settled.attempt.ID, ledger.Finish{Outcome: ledger.OutcomeInterrupted})
	})
	end.err = errors.Join(err, ferr)
	return end
}

// session is the conversation that an agent's task goes on with: one by name,
// or that of another task.
func (e *engine) session(t *task) string {
	v, _ := t.decl.Args.Get("session")
	switch v := v.(type) {
	case string:
		return v
	case value.Ref:
		return e.sessions[v.Task]
	}
	return ""
}
