package workflow

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// Source is what a workflow's run names as what recorded it.
const Source = "workflow"

// How a run ended, beside the ledger's words for it.
const StatusWaiting = "waiting" // for a signal: it goes on when it is resumed

// Result is how running a workflow ended.
type Result struct {
	Run    int64
	Frame  int64
	Status string  // ok, failed, waiting or interrupted
	Value  value.V // what the body returned, when it is ok
	Err    error   // why it is not: *HaltError, *BodyError, *FailError, ErrInterrupted; nil while it waits
	Tasks  []TaskState
}

// TaskState is where a task stands at the end.
type TaskState struct {
	ID      string
	Kind    string
	State   snapshot.State
	Attempt int
	Carried bool
	At      string
	Failure string
	Waiting bool // for a signal
}

// Start runs a program as a new run. input is the body's argument as JSON, nil
// for none. Nothing is written before the input is found to be what the body
// asks for.
func Start(ctx context.Context, o Options, p *Program, name string, input []byte) (*Result, error) {
	v, err := p.checkInput(input, "-i")
	if err != nil {
		return nil, err
	}
	o.Input = v
	return start(ctx, o, p.p, name)
}

// checkInput holds an input to the body's schema, and fills in its defaults.
func (p *Program) checkInput(input []byte, origin string) (value.V, error) {
	var v value.V = value.Dict{}
	if len(input) > 0 {
		var err error
		if v, err = value.FromJSON(input); err != nil {
			return nil, &InputError{What: "input", Value: "not JSON", Origin: origin, Reason: err.Error()}
		}
	}
	if p.p.input == nil {
		return v, nil
	}
	v = p.p.defaults(v)
	for _, bad := range p.p.input.Check(v) {
		return nil, &InputError{What: "input", Field: bad.Field, Value: string(bad.Value), Origin: origin, Reason: bad.Problem}
	}
	return v, nil
}

// defaults fills in what the schema of an object has a default for.
func (p *program) defaults(v value.V) value.V {
	d, ok := v.(value.Dict)
	schema, isDict := p.schema.(value.Dict)
	if !ok || !isDict {
		return v
	}
	props, _ := schema.Get("properties")
	all, _ := props.(value.Dict)
	for name, s := range all.All() {
		one, _ := s.(value.Dict)
		def, has := one.Get("default")
		if _, given := d.Get(name); has && !given {
			d = d.With(name, def)
		}
	}
	return d
}

func start(ctx context.Context, o Options, b body, name string) (*Result, error) {
	def := b.definition()
	e := newEngine(o)
	var seed snapshot.Hash
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, err
	}
	in := succeeded(o.Input)
	contents := append(def.contents(), ledger.Prepare(in.encoded()))
	err := o.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		row, err := o.Recorder.Ensure(tx)
		if err != nil {
			return err
		}
		if err := e.lease(tx, row.ID); err != nil {
			return err
		}
		for _, c := range contents {
			if _, err := tx.PutContent(c); err != nil {
				return err
			}
		}
		e.run, err = tx.CreateRun(ledger.Run{Source: Source, Kind: Source, Name: name, WorktreeID: row.ID, Command: def.Main,
			Def: def.Hash, Input: in.hash, Seed: seed, Tape: o.Tape != nil})
		if err != nil {
			return err
		}
		e.head, err = tx.CreateBranch(e.run.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	crash.Point("workflow.created")
	e.branch = e.head.Branch
	e.begin, e.lineage, e.lineageID = o.Now(), []int64{e.run.ID}, e.run.UID
	e.main.recorder, e.main.worktree = o.Recorder, e.run.WorktreeID
	first, _, err := e.main.record(ctx, checkpoint.What{Tier: ledger.TierTool, Run: e.run.ID, Actor: o.Actor})
	if err != nil {
		return nil, errors.Join(err, e.close(ledger.OutcomeFailed))
	}
	e.main.base.start = first
	e.fixed(def)
	return e.conduct(ctx, b)
}

// lease keeps a second process from running in the same worktree.
func (e *engine) lease(tx *ledger.Tx, worktree int64) error {
	l, err := tx.Acquire(ledger.WorkflowResource(worktree), e.opt.Owner, 0, e.opt.alive())
	e.held = l
	return err
}

func (o *Options) alive() func(ledger.Owner) bool {
	if o.Alive != nil {
		return o.Alive
	}
	return checkpoint.Alive
}

// conduct runs the engine to its end and writes how it ended.
func (e *engine) conduct(ctx context.Context, b body) (*Result, error) {
	err := e.live(ctx, b)
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &Result{Run: e.run.ID, Frame: e.head.Seq, Tasks: e.states()}
	switch {
	case err != nil:
		r.Status, r.Err = ledger.OutcomeInterrupted, err
	case e.bodyErr == nil:
		r.Status, r.Value = ledger.OutcomeOK, e.result
	case errors.Is(e.bodyErr, errParked):
		r.Status = StatusWaiting
	case errors.Is(e.bodyErr, errStanding):
		err = e.blocked()
		r.Status, r.Err = ledger.OutcomeInterrupted, err
	case errors.Is(e.bodyErr, ErrInterrupted):
		r.Status, r.Err = ledger.OutcomeInterrupted, e.bodyErr
	default:
		r.Status, r.Err = ledger.OutcomeFailed, e.bodyErr
	}
	if err == nil {
		err = e.halt(r)
	}
	if r.Status == ledger.OutcomeOK {
		if perr := e.arrive(ctx); perr != nil {
			r.Status, r.Err = ledger.OutcomeInterrupted, perr
			err = perr
		}
	}
	cerr := e.close(r.Status)
	return r, errors.Join(err, cerr, e.clear(ctx))
}

// arrive gives the run's own worktree the content of its last version: carried
// writers have not touched it yet.
func (e *engine) arrive(ctx context.Context) error {
	want := e.main.newest.content()
	p := e.main
	p.mu.Lock()
	same := want.tree == p.known.tree
	var err error
	if !same {
		_, _, err = p.arrange(ctx, e, job{entry: want})
	}
	p.mu.Unlock()
	if same || err != nil {
		return err
	}
	_, _, err = p.record(ctx, checkpoint.What{Tier: ledger.TierTool, Run: e.run.ID, Actor: e.opt.Actor, Note: p.placed()})
	return err
}

// halt writes why a run does not go on.
func (e *engine) halt(r *Result) error {
	if r.Status != ledger.OutcomeFailed {
		return nil
	}
	n := haltedNote{Error: r.Err.Error(), Tasks: []string{}}
	for _, t := range e.order {
		if t.out != nil && !t.out.ok() && !t.handled && t.out.state != snapshot.Skipped {
			n.Tasks = append(n.Tasks, t.id)
		}
	}
	e.events = append(e.events, event(EventHalted, "", n))
	if len(e.revoked) == 0 {
		return e.flush(context.Background())
	}
	events := append(e.events, event(EventForced, "", resetNote{Tasks: e.revoked}))
	e.events = nil
	return e.opt.Ledger.Update(context.Background(), func(tx *ledger.Tx) error {
		if err := e.annulled(tx, e.revoked); err != nil {
			return err
		}
		return tx.AppendEvents(e.branch, events)
	})
}

// revoke says that a task's result does not stand any more: it was undone, by
// tasks that would have to do so again. When the run goes on, they all run.
func (e *engine) revoke(t *task, by []*task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.revoked == nil {
		e.revoked = map[string]int{}
	}
	for _, one := range append([]*task{t}, by...) {
		e.revoked[one.id] = int(one.attempt)
	}
}

// close writes the run's status and gives its lease back.
func (e *engine) close(status string) error {
	return e.opt.Ledger.Update(context.Background(), func(tx *ledger.Tx) error {
		if err := tx.SetRunStatus(e.run.ID, status); err != nil {
			return err
		}
		err := tx.Release(e.held)
		if errors.Is(err, ledger.ErrFenced) {
			return nil // it expired with a process before us
		}
		return err
	})
}

// clear removes the worktrees of branches: what was in them is captured.
func (e *engine) clear(ctx context.Context) error {
	var errs []error
	for _, p := range e.places {
		if p == e.main || p.recorder == nil {
			continue
		}
		w := p.recorder.Worktree
		dir := w.Root()
		errs = append(errs, w.Close(), e.main.recorder.Worktree.RemoveOwned(context.WithoutCancel(ctx), dir))
	}
	return errors.Join(errs...)
}

// states lists the tasks in the order of the body.
func (e *engine) states() []TaskState {
	all := make([]TaskState, 0, len(e.order))
	for _, t := range e.order {
		s := TaskState{ID: t.id, Kind: t.decl.Kind, At: t.decl.At, Attempt: int(t.attempt), Carried: t.carried}
		if t.out != nil {
			s.State, s.Failure = t.out.state, t.out.failure.Message
		} else if t.decl.Kind == KindSignal && !t.input.IsZero() {
			s.Waiting, s.State = true, snapshot.Waiting
		}
		all = append(all, s)
	}
	return all
}

// halts tells that a line ended because of an outcome, or gave up.
func halts(err error) bool {
	var h *HaltError
	var f *FailError
	return errors.As(err, &h) || errors.As(err, &f)
}

// ResumeOptions say how a run goes on.
type ResumeOptions struct {
	// Program is what is run; nil for the definition the run is pinned to.
	Program *Program

	// Forced are tasks that run again, in a preview of letting them.
	Forced []string
}

// Resume goes on with a run that was halted, interrupted or left waiting. What
// is settled stays; the tasks that stopped it run again. With another program,
// the digests of its tasks decide what is kept.
//
// It fails with *FinishedError, *LiveError or *DivergedError, when the pinned
// definition does not give the recorded frame again, and with a *StandingError
// when it has stopped before what was done outside.
func Resume(ctx context.Context, o Options, run int64, ro ResumeOptions) (*Result, error) {
	if ro.Program != nil {
		return resume(ctx, o, run, ro.Program.p, true)
	}
	return resume(ctx, o, run, nil, false)
}

// resume goes on with a run. Of another body than the pinned one differences
// are expected.
func resume(ctx context.Context, o Options, run int64, b body, edited bool) (*Result, error) {
	e, p, err := openRun(ctx, o, run, b)
	if err != nil {
		return nil, err
	}
	same := p.definition().Hash == e.run.Def
	if e.run.Status == ledger.OutcomeOK && same {
		return nil, &FinishedError{Run: run}
	}
	note := e.past.toReset()
	e.fixed(p.definition())
	switch {
	case !same || edited:
	case len(note.Tasks) > 0: // the run goes on from another graph than the recorded one
		err = e.strict(ctx, p)
	default:
		err = e.prove(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	err = o.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		if err := e.lease(tx, e.run.WorktreeID); err != nil {
			return &LiveError{Run: run, Err: err}
		}
		for _, c := range p.definition().contents() {
			if _, err := tx.PutContent(c); err != nil {
				return err
			}
		}
		if err := tx.SetRunDef(run, p.definition().Hash); err != nil {
			return err
		}
		return tx.SetRunStatus(run, ledger.StatusRunning)
	})
	if err != nil {
		return nil, errors.Join(err, e.abandon(err))
	}
	e.opt.edited, e.opt.carries, e.begin = true, true, o.Now()
	e.past.reset(note)
	e.events = append(e.events, event(EventResumed, "", map[string]string{"def": p.definition().Hash.String()}))
	if len(note.Tasks) > 0 {
		e.events = append(e.events, event(EventReset, "", note))
	}
	return e.conduct(ctx, p)
}

// openRun reads a run and what it executes.
func openRun(ctx context.Context, o Options, run int64, other body) (*engine, body, error) {
	e := newEngine(o)
	p := other
	var in []byte
	err := o.Ledger.View(ctx, func(tx *ledger.Tx) error {
		r, err := tx.Run(run)
		if err != nil {
			return err
		}
		if r.Kind != Source {
			return &NotWorkflowError{Run: run, Source: r.Source}
		}
		e.run = r
		if e.lineage, err = tx.Lineage(run); err != nil {
			return err
		}
		first, err := tx.Run(r.Lineage)
		if err != nil {
			return err
		}
		e.lineageID = first.UID
		if e.head, err = tx.LoadFrame(r.HeadBranch, ledger.Newest); err != nil {
			return err
		}
		if in, err = tx.Content(r.Input); err != nil {
			return fmt.Errorf("the input of r%d: %w", run, err)
		}
		if other != nil {
			return nil
		}
		def, err := storedDefinition(tx, r.Def)
		if err != nil {
			return err
		}
		if def.IsGo() {
			return &GoProgramError{Run: run, Name: def.Name}
		}
		loaded, err := loadProgram(def, nil)
		if err == nil {
			p = loaded.p
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if e.opt.Input, err = value.Decode(in); err != nil {
		return nil, nil, fmt.Errorf("the input of r%d: %w", run, err)
	}
	e.branch = e.head.Branch
	n := e.head.Set.Len()
	e.tasks, e.order, e.taken = make(map[string]*task, n), make([]*task, 0, n), make([]int64, 0, n)
	if e.head.Seq < 0 {
		return nil, nil, &NothingBegunError{Run: run}
	}
	if e.past, err = readPast(ctx, o.Ledger, e.run, e.head, e.lineage, e.head.Seq+1); err != nil {
		return nil, nil, err
	}
	if e.past.standing, err = readStanding(ctx, o.Ledger, run, e.head.Set); err != nil {
		return nil, nil, err
	}
	e.main.recorder, e.main.worktree = o.Recorder, e.run.WorktreeID
	e.main.base.start, e.main.known = e.past.start, e.past.last
	e.main.switched, e.main.cut, e.sessions = e.past.switched, e.past.cut, e.past.sessions
	return e, p, nil
}

// NotWorkflowError says that a run is of another kind.
type NotWorkflowError struct {
	Run    int64
	Source string
}

func (e *NotWorkflowError) Error() string {
	return fmt.Sprintf("r%d is not the run of a workflow: %s recorded it", e.Run, e.Source)
}

// NothingBegunError says that a run has died before its first frame.
type NothingBegunError struct{ Run int64 }

func (e *NothingBegunError) Error() string {
	return fmt.Sprintf("r%d ended before it had begun: run it again", e.Run)
}

// GoProgramError says that only the program that started a run can go on with
// it.
type GoProgramError struct {
	Run  int64
	Name string
}

func (e *GoProgramError) Error() string {
	return fmt.Sprintf("r%d is a run of the Go program %s, which alone can resume it", e.Run, e.Name)
}

// strict renders the pinned definition and holds it to the newest frame.
func (e *engine) strict(ctx context.Context, p body) error {
	r := newEngine(e.opt)
	r.run, r.past, r.head, r.lineage, r.lineageID = e.run, e.past, e.head, e.lineage, e.lineageID
	r.main.base.start = e.past.start
	r.fixed(p.definition())
	if row, ok := e.head.Set.Get(keyDefinition); ok {
		r.extra[keyDefinition] = row // what the body does is held to the frame, not how it is written
	}
	got, err := r.render(ctx, p)
	if err != nil {
		return err
	}
	return r.diverged(e.head.Seq, e.head.Set, got)
}
