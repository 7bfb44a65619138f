package workflow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// engine runs or renders one body. The body's lines take turns with it: while
// one of them runs, nothing is dispatched, and a frame is the graph when all of
// them wait.
type engine struct {
	opt       Options
	run       ledger.Run
	lineageID string // of the first run of the tree of forks
	begin     time.Time
	held      ledger.Lease
	ctx       context.Context // of the lines

	mu        sync.Mutex
	quiet     *sync.Cond // all lines wait
	running   int        // lines that do not
	launched  bool       // there are lines
	driven    bool       // a line that waits takes the turns
	broken    error      // what ended the turns
	rendering bool       // nothing is run; a missing outcome suspends the line
	stopped   error      // why the lines have to end

	tasks    map[string]*task
	room     []task // not taken yet
	order    []*task
	open     []*task                 // not settled, as of the last look
	seen     int                     // how many of order have been in open
	dirty    []*task                 // whose rows may differ from those of the last frame
	extra    map[string]snapshot.Row // rows that are no tasks: input, definition, loops, the end
	events   []ledger.Event          // for the next frame
	label    string                  // likewise
	contents []ledger.Prepared       // likewise
	written  []*task                 // whose rows are being written

	main   *place
	places []*place

	past     *past          // nil in a new run
	lineage  []int64        // the run and its ancestors by fork, nearest first
	used     map[int64]bool // attempts whose result is taken
	taken    []int64        // likewise, not in used yet: nobody has asked
	head     *ledger.Head
	branch   int64      // of head, for attempts: head moves while they run
	proving  bool       // what was recorded is being rendered, and nothing else done
	untold   []Progress // until it is proved
	proved   bool       // what was recorded was, and the newest frame came out again
	caught   bool       // what was recorded has been rendered
	ends     chan attemptEnd
	inflight int
	done     bool // the body has ended
	bodyErr  error
	result   value.V
	sessions map[string]string   // of agents, by task
	revoked  map[string]int      // tasks that were undone, and what undid them, with their attempt
	took     []int64             // signals that are answered with the next frame
	blobs    map[[32]byte][]byte // what the body was interned
}

func newEngine(o Options) *engine {
	e := &engine{opt: o, tasks: map[string]*task{}, extra: map[string]snapshot.Row{},
		used: map[int64]bool{}, blobs: map[[32]byte][]byte{}, sessions: map[string]string{}, ends: make(chan attemptEnd, 8)}
	e.quiet = sync.NewCond(&e.mu)
	e.main = &place{}
	e.main.base = &version{place: e.main}
	e.main.newest = e.main.base
	e.places = []*place{e.main}
	return e
}

// block gives the lock up until w is released. The line counts as waiting, and
// takes the turns itself while nobody else goes on: most of them release it
// again, and cost less than to hand them to another goroutine and back.
func (e *engine) block(w *waiters) {
	if w.wake == nil {
		w.wake = make(chan struct{})
	}
	w.n++
	wake := w.wake
	e.running--
	e.drive()
	e.mu.Unlock()
	<-wake
	e.mu.Lock()
}

// release lets the lines go on that wait for something. They count as running
// before the lock is given up, so that nobody takes the engine for quiet.
func (e *engine) release(w *waiters) {
	if w.wake == nil {
		return
	}
	e.running += w.n
	close(w.wake)
	*w = waiters{}
}

// drive takes turns until a line goes on.
func (e *engine) drive() {
	if e.driven {
		return // by another line, which is about to look
	}
	e.driven = true
	for e.running == 0 && e.broken == nil && !e.proving {
		e.mu.Unlock()
		_, err := e.step(e.ctx) // the body has not ended: there is always another turn
		e.mu.Lock()
		e.broken = err
	}
	e.driven = false
	if e.running == 0 {
		e.quiet.Broadcast()
	}
}

// pause ends a line, or lets it wait for what no turn brings.
func (e *engine) pause() {
	e.running--
	if e.running == 0 {
		e.quiet.Broadcast()
	}
}

// spread runs lines side by side and returns when all of them have ended.
func (e *engine) spread(n int, run func(i int)) {
	if n == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all waiters
	left := n
	e.running += n
	for i := range n {
		go func() {
			defer func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				if left--; left == 0 {
					e.release(&all)
				}
				e.pause()
			}()
			run(i)
		}()
	}
	e.block(&all)
}

// stop makes the lines of the body end, with an error as their reason.
func (e *engine) stop(why error) {
	if e.stopped == nil {
		e.stopped = why
	}
	for _, t := range e.order {
		if t.cancel != nil {
			t.cancel(why)
		}
		e.release(&t.waiting)
	}
}

// touch says that a task's row may be another than the last frame has.
func (e *engine) touch(t *task) {
	if !t.dirty {
		t.dirty = true
		e.dirty = append(e.dirty, t)
	}
}

// settle gives a task its outcome, and lets those go on that wait for it.
func (e *engine) settle(t *task, out *outcome) {
	if t.out != nil {
		panic("BUG: " + t.id + " has settled twice")
	}
	t.out = out
	e.touch(t)
	e.release(&t.waiting)
	e.tell(Progress{Kind: Settled, Task: t.id, TaskKind: t.decl.Kind, State: out.state, Attempt: int(t.attempt), Carried: t.carried,
		Failure: out.failure.Message})
}

// body runs a body as the root line of the engine.
func (e *engine) body(b body) {
	root := e.root()
	err := b.main(root, e.opt.Input)
	if err == nil {
		err = root.settle()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done, e.bodyErr, e.result = true, err, root.result
	if err == nil {
		out := succeeded(root.result)
		e.extra[keyEnd] = snapshot.Row{Key: keyEnd, Kind: "end", State: snapshot.Done, Out: out.hash}
		e.contents = append(e.contents, ledger.Prepare(out.encoded()))
	}
	e.pause()
}

// live runs the body until it ends, halts or has nothing to do but wait.
func (e *engine) live(ctx context.Context, b body) error {
	e.launch(ctx, b)
	for {
		again, err := e.turn(ctx)
		if err != nil {
			return errors.Join(err, e.abandon(err))
		}
		if !again {
			return nil
		}
	}
}

// launch begins to run the body, unless it has begun.
func (e *engine) launch(ctx context.Context, b body) {
	if e.launched {
		return
	}
	e.launched, e.running, e.ctx = true, 1, ctx
	go e.body(b)
}

// turn waits until all lines do, and takes a turn unless one of them has.
func (e *engine) turn(ctx context.Context) (again bool, err error) {
	e.mu.Lock()
	for e.running > 0 || e.driven {
		e.quiet.Wait()
	}
	err = e.broken
	e.mu.Unlock()
	if err != nil {
		return false, err
	}
	return e.step(ctx)
}

// step is one turn, taken while all lines wait: what can settle at once settles,
// a frame is written, what is ready is started, and something is waited for.
func (e *engine) step(ctx context.Context) (again bool, err error) {
	e.mu.Lock()
	moved, err := e.settleReady(ctx)
	if err != nil && ctx.Err() != nil { // it could not look things up any more
		e.stop(ErrInterrupted)
		moved, err = true, nil
		if e.done {
			moved = false
		}
	}
	if err != nil || moved {
		e.mu.Unlock()
		return true, err
	}
	if err := e.commit(ctx); err != nil {
		e.mu.Unlock()
		return false, err
	}
	if e.done && e.inflight == 0 {
		e.mu.Unlock()
		return false, nil
	}
	var begun []dispatch
	if !e.done && ctx.Err() == nil {
		begun = e.startReady(ctx)
	}
	for_, err := e.waitFor(ctx)
	alone := err == nil && len(begun) == 1 && e.inflight == 1 && for_ == awaited{} && begun[0].brief()
	e.mu.Unlock()
	if alone {
		return true, e.take(e.here(begun[0]))
	}
	for _, d := range begun {
		go func() { e.ends <- e.attempts(d) }()
	}
	if err != nil {
		return false, err
	}
	return true, e.await(ctx, for_)
}

// awaited says what can bring the run on.
type awaited struct {
	due  time.Time // the next timer; zero for none
	poll bool      // somebody may send a signal
}

// waitFor finds out what the run waits for. With nothing to wait for, the body
// is stopped.
func (e *engine) waitFor(ctx context.Context) (a awaited, err error) {
	signals, blocked := 0, false
	for _, t := range e.open {
		if t.out != nil {
			continue
		}
		blocked = blocked || t.stands != nil && !t.lost
		if !t.due.IsZero() && (a.due.IsZero() || t.due.Before(a.due)) {
			a.due = t.due
		}
		if t.decl.Kind == KindSignal && !t.input.IsZero() {
			signals++
		}
	}
	switch {
	case ctx.Err() != nil:
		e.stop(ErrInterrupted)
	case e.inflight > 0 || e.done:
		a.poll = signals > 0
	case blocked:
		e.stop(errStanding)
	case !a.due.IsZero():
		a.poll = signals > 0
	case signals > 0 && e.opt.Wait:
		a.poll = true
	case signals > 0:
		e.stop(errParked)
	case e.stopped == nil:
		return a, errors.New("BUG: nothing is going on and nothing is waited for")
	}
	return a, nil
}

// pollEvery is how often a run looks for signals while it waits for one.
const pollEvery = 100 * time.Millisecond

// await waits for an attempt to end, a timer or a signal.
func (e *engine) await(ctx context.Context, a awaited) error {
	e.mu.Lock()
	if e.running > 0 || e.done && e.inflight == 0 {
		e.mu.Unlock()
		return nil // the lines are ending
	}
	busy := e.inflight > 0
	e.mu.Unlock()
	var timer <-chan time.Time
	if !a.due.IsZero() {
		timer = time.After(max(0, a.due.Sub(e.opt.Now())))
	}
	if a.poll {
		if d := a.due.Sub(e.opt.Now()); timer == nil || d > pollEvery {
			timer = time.After(pollEvery)
		}
	}
	interrupted := ctx.Done()
	if ctx.Err() != nil {
		interrupted = nil // told already
		if !busy {
			return nil
		}
	}
	select {
	case end := <-e.ends:
		return e.take(end)
	case <-timer:
	case <-interrupted:
	}
	return nil
}

// take applies the ends of attempts: of this one, and of those that have come
// in meanwhile. Together they make one frame.
func (e *engine) take(end attemptEnd) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if err := e.apply(end); err != nil {
			return err
		}
		select {
		case end = <-e.ends:
		default:
			return nil
		}
	}
}

func (e *engine) apply(end attemptEnd) error {
	e.inflight--
	t := end.task
	t.going, t.cancel = false, nil
	if end.err != nil {
		return fmt.Errorf("%s: %w", t.id, end.err)
	}
	if end.outside != nil {
		e.outside(t, *end.outside)
	}
	if end.out == nil { // given up, without an outcome
		t.stands = end.stands
		return nil
	}
	t.input, t.attempt, t.left = end.input, end.number, end.left
	if end.over != nil {
		t.left, t.ver.over = *end.over, end.over
	}
	s := end.settled
	t.finish = &s
	if end.session != "" {
		e.sessions[t.id] = end.session
	}
	e.settle(t, end.out)
	return nil
}

// outside notes a change that nobody in the run made: the place has another
// content from here on.
func (e *engine) outside(t *task, o outside) {
	v := t.ver
	if v.writer == t {
		v = v.prev
	}
	now := o.now
	v.over = &now
	r := outsideRow(o)
	e.extra[r.Key] = r
	e.events = append(e.events, outsideEvent(o))
}

// abandon ends the lines of the body and the attempts after an error of the
// engine's own, and waits for them.
func (e *engine) abandon(err error) error {
	if !e.launched {
		return nil
	}
	e.mu.Lock()
	e.broken = err // no line takes turns any more
	e.stop(err)
	for !e.done || e.inflight > 0 {
		if e.running > 0 {
			e.quiet.Wait()
			continue
		}
		if e.inflight > 0 {
			e.mu.Unlock()
			end := <-e.ends
			e.mu.Lock()
			e.inflight--
			end.task.going = false
			continue
		}
		e.stop(err) // lines that began to wait since
	}
	e.mu.Unlock()
	return nil
}

// tell reports progress.
func (e *engine) tell(p Progress) {
	switch {
	case e.opt.On == nil || e.rendering:
	case e.proving:
		e.untold = append(e.untold, p)
	default:
		e.opt.On(p)
	}
}

// print passes on what a body prints, once: a render is silent.
func (e *engine) print(s string) {
	if e.caught {
		e.tell(Progress{Kind: Printed, Stream: "body", Line: s})
	}
}

// intern keeps a large value of the body, which tasks are given by its hash.
func (e *engine) intern(b []byte) value.Blob {
	h := value.Hash(b)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.blobs[h] == nil {
		e.blobs[h] = b
		e.contents = append(e.contents, ledger.Prepare(b))
	}
	return value.Blob{Hash: h, Size: int64(len(b))}
}
