package workflow

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// What a task has done outside its worktree stands until somebody undoes it,
// leaves it behind on purpose, or says that it did not happen. A task is not begun
// again across what stands, but for the same call once more, under the same key:
// whoever is called knows it again. The tries that a body asks for are its own.

// errStanding ends the lines of a run that can't go on before somebody has
// decided about what stands.
var errStanding = errors.New("what was done outside is in the way")

// StandingError says that a run has stopped before tasks that would do again what
// they have done outside. Nothing of them was begun.
type StandingError struct {
	Run   int64
	Tasks []StandingTask
}

// StandingTask is a task that was not begun, and what stands of it.
type StandingTask struct {
	Task    string
	Effects []ledger.Effect
}

func (e *StandingError) Error() string {
	var lines []string
	for _, t := range e.Tasks {
		for _, f := range t.Effects {
			what := "has"
			if f.Status != sideeffect.Succeeded {
				what = "may have"
			}
			line := fmt.Sprintf("%s would do again what it %s done: effect %d (%s)", t.Task, what, f.ID, strings.TrimSpace(f.Tool+" "+f.Command))
			if f.Task != t.Task {
				line = fmt.Sprintf("%s stands in place of %s, which %s done effect %d (%s)", t.Task, f.Task, what, f.ID, strings.TrimSpace(f.Tool+" "+f.Command))
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ") + "; undo it, say that it did not happen, or cross it"
}

// standing are the effects of a run that stand, by task.
type standing struct {
	of    map[string][]ledger.Effect
	names map[string][]string // tasks by their name
	was   map[string]bool     // all tasks that the run had
}

// readStanding is what stands when a run is taken up again, with the rows it had.
func readStanding(ctx context.Context, db *ledger.DB, run int64, set *snapshot.Set) (s standing, err error) {
	var all []ledger.Effect
	err = db.View(ctx, func(tx *ledger.Tx) error {
		all, err = tx.Standing(run)
		return err
	})
	if len(all) == 0 {
		return s, err
	}
	s = standing{of: map[string][]ledger.Effect{}, names: map[string][]string{}, was: make(map[string]bool, set.Len())}
	for r := range set.Rows() {
		s.was[r.Key] = true
	}
	for _, f := range all {
		if s.of[f.Task] == nil {
			s.names[taskName(f.Task)] = append(s.names[taskName(f.Task)], f.Task)
		}
		s.of[f.Task] = append(s.of[f.Task], f)
	}
	return s, nil
}

// stood are the effects that stand of a task, or, where it was not there before,
// of one by the same name that is not declared: it was given something else then,
// and has another id.
func (e *engine) stood(t *task) []ledger.Effect {
	if e.past == nil || e.past.standing.of == nil {
		return nil
	}
	s := e.past.standing
	if found := s.of[t.id]; found != nil {
		return found
	}
	if s.was[t.id] {
		return nil
	}
	var found []ledger.Effect
	for _, id := range s.names[taskName(t.id)] {
		if e.tasks[id] == nil {
			found = append(found, s.of[id]...)
		}
	}
	return found
}

// across are those among effects that an attempt would make again, as another
// call.
func (e *engine) across(t *task, input [32]byte, x *execution, effects []ledger.Effect) (in []ledger.Effect) {
	if len(effects) == 0 {
		return nil
	}
	_, whole := e.effectsOf(t, x)
	for _, f := range effects {
		if f.Stands() && !e.sameCall(t, input, x, whole, f) {
			in = append(in, f)
		}
	}
	return in
}

// sameCall tells that an effect would be made by the same call once more: with
// the same arguments, on the same files, under the same key.
func (e *engine) sameCall(t *task, input [32]byte, x *execution, whole bool, f ledger.Effect) bool {
	if f.Task != t.id || !slices.ContainsFunc(e.past.tasks[t.id].on, func(a *ledger.AttemptOutcome) bool { return a.ID == f.Attempt && a.Input == input }) {
		return false
	}
	if whole {
		return f.Key == sideeffect.Key(e.run.UID, t.id, callOf(x), f.Epoch)
	}
	return !unnamedCall().MatchString(f.Key)
}

// unnamedCall is in the key of a call that nobody has named: each is another one.
var unnamedCall = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`/([0-9]+\.[0-9]+|x[0-9a-z]{11,13})#[0-9]+$`)
})

// callOf names the one call that a task is.
func callOf(x *execution) string { return hashOf(value.Encode(x.Args)).String()[:12] }

// decide looks once more, in the transaction that begins an attempt, at what
// stands of its task. What is in the way is returned; by force it is crossed.
func (e *engine) decide(tx *ledger.Tx, j *job, x *execution) (in []ledger.Effect, err error) {
	now := make([]ledger.Effect, len(j.stood))
	for i, f := range j.stood {
		if now[i], err = tx.Effect(f.ID); err != nil {
			return nil, err
		}
	}
	if in = e.across(j.task, j.input, x, now); len(in) == 0 || !e.opt.Force {
		return in, nil
	}
	x.anew = true
	ids := make([]int64, len(in))
	for i, f := range in {
		ids[i] = f.ID
		why := fmt.Sprintf("%s ran again although effect %d, %s, is still there", j.task.id, f.ID, strings.TrimSpace(f.Tool+" "+f.Command))
		if err := tx.Flag(e.run.ID, 0, f.ID, why); err != nil {
			return nil, err
		}
	}
	crash.Point("workflow.crossed")
	return nil, tx.AppendEvents(e.branch, []ledger.Event{event(EventCrossed, j.task.id, map[string]any{"effects": ids})})
}

// blocked is what has stopped the run, of the tasks that could not begin.
func (e *engine) blocked() *StandingError {
	s := &StandingError{Run: e.run.ID}
	for _, t := range e.order {
		if t.stands != nil {
			s.Tasks = append(s.Tasks, StandingTask{Task: t.id, Effects: t.stands})
		}
	}
	return s
}

// stands are the effects that a task of a preview would, or may, make again.
func (e *engine) stands(t *task, what string) []ledger.Effect {
	switch what {
	case WillRun, WillRunEdit, WillRunNew:
		if !t.fed() || t.failedRef() != nil || t.decl.run == nil {
			return e.stood(t)
		}
		return e.across(t, t.digestOf(e.entryTree(t)), &execution{Task: t.id, Args: e.arguments(t)}, e.stood(t))
	case MayRun:
		return e.stood(t)
	}
	return nil
}

// annulled says that effects were undone by other tasks of the run, whose own
// are part of that.
func (e *engine) annulled(tx *ledger.Tx, tasks map[string]int) error {
	all, err := tx.Standing(e.run.ID)
	if err != nil {
		return err
	}
	for _, f := range all {
		if _, ok := tasks[f.Task]; !ok || e.tasks[f.Task] == nil || e.tasks[f.Task].out == nil || !e.tasks[f.Task].out.ok() {
			continue
		}
		if _, err := tx.BeginCompensation(f.ID, 0); err != nil {
			return err
		}
		if _, err := tx.EndCompensation(f.ID, sideeffect.Outcome{Result: sideeffect.Done, Detail: "the body has undone it"}); err != nil {
			return err
		}
	}
	return nil
}
