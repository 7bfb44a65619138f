package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// branch is one line of a body: where it stands, and what it counts. It belongs
// to one goroutine.
type branch struct {
	e      *engine
	scope  string // "" or "p0.api/"
	parent *branch
	counts map[string]int // of identical declarations, and of scopes by their letter
	forced uint32         // outputs forced here and in the parents before
	place  *place         // where its tasks run
	lazy   bool           // its first writer gets a place of its own
	once   string
	tasks  []*task   // declared here, in order
	undoes []*handle // of a saga, in the order they were declared in
	result value.V   // what the body returned
}

func (e *engine) root() *branch {
	return &branch{e: e, counts: map[string]int{}, place: e.main}
}

// count is how often something was seen in this scope before.
func (b *branch) count(what string) int {
	n := b.counts[what]
	b.counts[what]++
	return n
}

// child is a branch in a scope below this one.
func (b *branch) child(scope string) *branch {
	return &branch{e: b.e, scope: b.scope + scope + "/", parent: b, counts: map[string]int{}, forced: b.forced,
		place: b.place, lazy: true, once: b.once}
}

// sub is a scope of the same line: it runs in the same place, one after the
// other with what stands around it.
func (b *branch) sub(scope string) *branch {
	c := b.child(scope)
	c.lazy = b.lazy
	return c
}

// declare adds a task to the graph and returns it. The same declaration at the
// same place of the body gives the same task in every render.
func (b *branch) declare(d Decl) (*task, error) {
	e := b.e
	if d.Once == "" {
		d.Once = b.once
	}
	var room [512]byte
	canonical := d.canonical(room[:0])
	digest := hashOf(canonical)
	base := d.base(digest)
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.newTask()
	t.decl, t.id, t.digest, t.branch, t.control = d, b.scope+base, digest, b, b.forced
	if e.tasks[t.id] != nil {
		if d.Key != "" {
			return nil, &DuplicateKeyError{ID: t.id, At: d.At}
		}
		t.id = fmt.Sprintf("%s#%d", t.id, b.count(base)+2)
	}
	for _, ref := range value.Refs(d.Args) {
		from := e.tasks[ref]
		if from == nil {
			return nil, &BodyError{At: d.At, Message: fmt.Sprintf("%s is given the outcome of %q, which is not a task of this run", d.Name, ref)}
		}
		t.refs = append(t.refs, from)
		from.passed = true
	}
	b.stand(t)
	if d.kept() {
		e.contents = append(e.contents, ledger.Prepare(slices.Clone(canonical)))
	}
	e.tasks[t.id] = t
	e.order = append(e.order, t)
	e.touch(t)
	b.tasks = append(b.tasks, t)
	e.tell(Progress{Kind: Declared, Task: t.id, TaskKind: d.Kind})
	return t, nil
}

// newTask makes room for a task: one allocation for some.
func (e *engine) newTask() *task {
	if len(e.room) == 0 {
		e.room = make([]task, 16) // 8 KiB
	}
	t := &e.room[0]
	e.room = e.room[1:]
	return t
}

// stand puts a task into the order of its place.
func (b *branch) stand(t *task) {
	switch {
	case t.decl.Fx.writes():
		if b.lazy {
			b.place, b.lazy = b.e.newPlace(b), false
		}
		t.ver = b.place.write(t)
	case t.decl.Fx.reads():
		t.ver = b.place.newest
		t.ver.readers = append(t.ver.readers, t)
	}
}

// force waits for a task's outcome. In a render it returns errSuspended when
// there is none yet.
func (b *branch) force(t *task) (*outcome, error) {
	e := b.e
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recall(t)
	if e.rendering {
		if err := e.catchUp(t); err != nil {
			return nil, err
		}
	}
	for t.out == nil {
		if e.stopped != nil {
			return nil, e.stopped
		}
		e.block(&t.waiting)
	}
	b.forced++
	return t.out, nil
}

// value is force for a body that goes on only with a value: what did not end
// well halts the scope.
func (b *branch) value(t *task) (value.V, error) {
	out, err := b.force(t)
	if err != nil {
		return nil, err
	}
	if !out.ok() {
		return nil, &HaltError{Task: t.id, At: t.decl.At, Failure: *out.failure, State: out.state}
	}
	return out.value, nil
}

// handled says that a failure of the task is dealt with by the body.
func (b *branch) handled(t *task) {
	b.e.mu.Lock()
	t.handled = true
	b.e.mu.Unlock()
}

// settle waits for all that was declared here, and halts for the first failure
// that nobody has dealt with.
func (b *branch) settle() error {
	for i := 0; i < len(b.tasks); i++ {
		t := b.tasks[i]
		out, err := b.force(t)
		if err != nil {
			return err
		}
		if !out.ok() && !t.handled && !t.passed {
			return &HaltError{Task: t.id, At: t.decl.At, Failure: *out.failure, State: out.state}
		}
	}
	return nil
}

// limb is one branch of a parallel call.
type limb struct {
	name string
	body func(b *branch) (value any, err error)
}

// parallel runs branches side by side and waits for all of them. The error is
// that of the first in order; others do not hide it. Branches that wrote are
// merged into this one's place.
func (b *branch) parallel(letter string, limbs []limb, merge bool) ([]any, error) {
	scope := fmt.Sprintf("%s%d", letter, b.count("/"+letter))
	kids := make([]*branch, len(limbs))
	for i, l := range limbs {
		part := scope + "." + l.name
		if letter == "e" {
			part = fmt.Sprintf("%s[%s]", scope, l.name)
		}
		kids[i] = b.child(part)
	}
	values, errs := make([]any, len(limbs)), make([]error, len(limbs))
	run := func(i int) {
		values[i], errs[i] = limbs[i].body(kids[i])
		if errs[i] == nil {
			errs[i] = kids[i].settle()
		}
	}
	if b.e.rendering {
		for i := range limbs {
			run(i)
		}
	} else {
		b.e.spread(len(limbs), run)
	}
	for _, k := range kids {
		b.undoes = append(b.undoes, k.undoes...)
	}
	if err := first(errs); err != nil {
		return nil, err
	}
	if merge {
		if err := b.merge(scope, limbs, kids); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// first is the error that stands for several: one that ended a branch before
// one that only waits.
func first(errs []error) error {
	var waits error
	for _, err := range errs {
		switch {
		case err == nil:
		case suspends(err):
			waits = err
		default:
			return err
		}
	}
	return waits
}

// merge joins the places of branches that wrote.
func (b *branch) merge(scope string, limbs []limb, kids []*branch) error {
	var names []value.V
	var sides []*place
	for i, k := range kids {
		if k.place != b.place {
			names, sides = append(names, limbs[i].name), append(sides, k.place)
		}
	}
	if len(sides) == 0 {
		return nil
	}
	t, err := b.declare(Decl{Kind: KindMerge, Name: scope + ".merge", Key: "join", Fx: FxWrite,
		Args: value.NewDict(map[string]value.V{"branches": names}), run: mergeRunner(sides)})
	if err != nil {
		return err
	}
	b.e.mu.Lock()
	t.sides = sides
	b.e.mu.Unlock()
	_, err = b.value(t)
	return err
}

// deps are the keys of the tasks that a task was given the outcomes of.
func (t *task) deps() []string {
	var keys []string
	for _, r := range t.refs {
		keys = append(keys, r.id)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// row is the task as a frame has it.
func (t *task) row() snapshot.Row {
	r := snapshot.Row{Key: t.id, Kind: t.decl.Kind, Decl: t.digest, Deps: t.deps(), Control: t.control}
	if t.ver != nil {
		if w := t.ver.before(t); w != nil {
			r.After = w.id
		}
	}
	switch {
	case t.out != nil:
		r.State, r.Out, r.Attempt, r.Input, r.Tree, r.Carried = t.out.state, t.out.hash, t.attempt, t.input, t.tree(), t.carried
	case t.decl.Kind == KindSignal && !t.input.IsZero():
		r.State, r.Input = snapshot.Waiting, t.input
	}
	return r
}

// name is a task's id without its scope.
func (t *task) short() string { return t.id[strings.LastIndex(t.id, "/")+1:] }

// finish keeps what the body returned.
func (b *branch) finish(v value.V) error {
	b.result = v
	return nil
}
