package workflow

import (
	"context"
	"sort"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// What a preview says of a task.
const (
	WillKeep    = "kept"
	WillRun     = "will run"
	MayRun      = "may run" // what it is given is not known yet
	WillBeGone  = "gone"    // it is not declared any more
	WillWait    = "waits"   // for a signal
	WillRunNew  = "new"     // it was not there before, and will run
	WillRunEdit = "changed" // its declaration has changed, and it will run
)

// Preview is what resuming would do, found out without doing anything.
type Preview struct {
	Run   int64
	Tasks []PreviewTask
}

// PreviewTask is one task of a preview.
type PreviewTask struct {
	ID    string
	Kind  string
	What  string
	At    string
	Reset bool // it has failed, and is tried again

	// Stands are the effects that it would make again, when it will run, or may
	// make again.
	Stands []ledger.Effect
}

// Look says what resuming a run would run again and what it would keep, with
// another program or with its own. Nothing is written.
func Look(ctx context.Context, o Options, run int64, ro ResumeOptions) (*Preview, error) {
	var b body
	if ro.Program != nil {
		b = ro.Program.p
	}
	e, p, err := openRun(ctx, o, run, b)
	if err != nil {
		return nil, err
	}
	before := e.head.Set
	for _, id := range ro.Forced {
		e.past.forced[id] = e.past.tasks[id].highest
	}
	reset := e.past.toReset()
	e.past.reset(reset)
	e.opt.edited, e.opt.carries = true, true
	e.main.base.start = e.past.start
	e.fixed(p.definition())
	if _, err := e.render(ctx, p); err != nil {
		return nil, err
	}
	out := &Preview{Run: run}
	for _, t := range e.order {
		_, again := reset.Tasks[t.id]
		what := e.fate(t, before)
		out.Tasks = append(out.Tasks, PreviewTask{ID: t.id, Kind: t.decl.Kind, At: t.decl.At, Reset: again, What: what, Stands: e.stands(t, what)})
	}
	var rest []string
	for row := range before.Rows() {
		if e.tasks[row.Key] == nil && row.Key[0] != '~' {
			rest = append(rest, row.Key)
		}
	}
	sort.Strings(rest)
	what := WillBeGone
	if e.bodyErr != nil && suspends(e.bodyErr) {
		what = MayRun // the body has not come to where it could be declared
	}
	for _, id := range rest {
		row, _ := before.Get(id)
		out.Tasks = append(out.Tasks, PreviewTask{ID: id, Kind: row.Kind, What: what})
	}
	return out, nil
}

// fate says what becomes of a task that a render has declared.
func (e *engine) fate(t *task, before *snapshot.Set) string {
	old, was := before.Get(t.id)
	switch {
	case t.out != nil:
		return WillKeep
	case !t.fed() || !t.free():
		return MayRun
	case t.decl.Kind == KindSignal:
		return WillWait
	case was && old.Decl == t.digest:
		return WillRun
	case was || e.replaces(t, before):
		return WillRunEdit
	}
	return WillRunNew
}

// replaces tells that a task of the same name in the same scope is not declared
// any more: it was edited, and got another id.
func (e *engine) replaces(t *task, before *snapshot.Set) bool {
	for row := range before.Rows() {
		if e.tasks[row.Key] == nil && taskName(row.Key) == taskName(t.id) {
			return true
		}
	}
	return false
}

// taskName is an id with its scope, without key and digest.
func taskName(id string) string {
	scope, name := "", id
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '/' {
			scope, name = id[:i+1], id[i+1:]
			break
		}
	}
	for i, r := range name {
		if r == '~' || r == '[' || r == '#' {
			return scope + name[:i]
		}
	}
	return scope + name
}
