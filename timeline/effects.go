package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
)

// EventCrossed is the type of the event that says that a move has left effects
// in the world which the run no longer knows of.
const EventCrossed = "SideEffectBoundaryCrossed"

// What a move does about an effect.
const (
	Compensate = "compensate" // it is undone first
	Blocked    = "blocked"    // it is in the way
	Crossed    = "crossed"    // it is left in the world, by force
	Listed     = "listed"     // it is not in the way
)

// EffectStep is what happens to one effect that a move goes behind.
type EffectStep struct {
	ID      int64  `json:"id"`
	Run     int64  `json:"run"`
	Task    string `json:"task"`
	Tool    string `json:"tool"`
	Summary string `json:"summary"`
	Status  string `json:"status"`
	What    string `json:"what"`
	How     string `json:"how,omitempty"`     // the call that undoes it, without secrets
	Why     string `json:"why,omitempty"`     // it is blocked, crossed or listed
	Unblock string `json:"unblock,omitempty"` // what would help
	Reason  string `json:"reason,omitempty"`  // it is blocked, for programs: one of sideeffect's
}

// BlockedError refuses a move because of what was done outside the worktree.
// Nothing was called, and nothing was moved.
type BlockedError struct {
	Plan    *Plan
	Effects []EffectStep // those in the way, newest first
}

func (e *BlockedError) Error() string {
	var lines []string
	for _, s := range e.Effects {
		lines = append(lines, fmt.Sprintf("effect %d (%s): %s; %s", s.ID, s.Summary, s.Why, s.Unblock))
	}
	if len(lines) == 1 {
		return "in the way is " + lines[0]
	}
	return fmt.Sprintf("%d effects are in the way: %s", len(lines), strings.Join(lines, "; "))
}

// CompensationError says that an effect could not be undone. The move has
// stopped there: worktree and history are as they were, what was undone before
// stays undone, and asking for the move again goes on with this effect.
type CompensationError struct {
	Effect  ledger.Effect
	Outcome sideeffect.Outcome
	Undone  int // effects that were undone before it
}

func (e *CompensationError) Error() string {
	return fmt.Sprintf("effect %d (%s) could not be undone: %s", e.Effect.ID, e.Effect.Rule, e.Outcome.Detail)
}

// summary says what an effect is, in a few words.
func summary(e sideeffect.Effect) string {
	what := e.Command
	if what == "" {
		what = e.Rule
	}
	if what == "" {
		what = e.Tool
	}
	what = strings.Join(strings.Fields(what), " ")
	if runes := []rune(what); len(runes) > 80 {
		what = string(runes[:79]) + "…"
	}
	return what
}

func newStep(e ledger.Effect, what string) EffectStep {
	return EffectStep{ID: e.ID, Run: e.RunID, Task: e.Task, Tool: e.Tool, Summary: summary(e.Effect), Status: string(e.Status), What: what}
}

// guard decides about the effects that a move goes behind, and calls nothing.
func (m *Mover) guard(effects []ledger.Effect, r Request) []EffectStep {
	rows := make(map[int64]ledger.Effect, len(effects))
	bare := make([]sideeffect.Effect, len(effects))
	for i, e := range effects {
		rows[e.ID], bare[i] = e, e.Effect
	}
	decided, err := sideeffect.Boundary(bare, sideeffect.BoundaryOptions{NoCompensate: r.NoCompensate, Force: r.Force}, m.Handlers)
	var blocked *sideeffect.BlockedError
	if err != nil && !errors.As(err, &blocked) {
		panic("BUG: Boundary returned " + err.Error())
	}
	var steps []EffectStep
	for _, c := range decided.Compensate {
		s := newStep(rows[c.Effect.Seq], Compensate)
		s.How = c.Shown
		steps = append(steps, s)
	}
	for _, b := range decided.Blocked {
		s := newStep(rows[b.Effect.Seq], Blocked)
		s.Why, s.Unblock, s.Reason = b.Detail, b.Unblock, string(b.Reason)
		steps = append(steps, s)
	}
	for _, e := range decided.Crossed {
		s := newStep(rows[e.Seq], Crossed)
		s.Why = "it can't be undone, and stays in the world"
		steps = append(steps, s)
	}
	for _, e := range decided.Listed {
		s := newStep(rows[e.Seq], Listed)
		s.Why = listedBecause(e)
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b EffectStep) int { return int(b.ID - a.ID) })
	return steps
}

func listedBecause(e sideeffect.Effect) string {
	switch {
	case e.Compensation.NotNeeded != "":
		return e.Compensation.NotNeeded
	case e.Class == sideeffect.Push:
		return "a push of commits stays where it went"
	}
	return "declared to be in nobody's way"
}

// list is guard for a move that leaves the record as it is: nothing is in the
// way.
func list(effects []ledger.Effect, undone int64) (steps []EffectStep) {
	for _, e := range effects {
		s := newStep(e, Listed)
		switch {
		case undone != 0 && e.CompOp == undone && e.Comp == sideeffect.Compensated:
			s.Why = fmt.Sprintf("op %d has undone it, and that stays so", undone)
		case e.Status == sideeffect.Failed || e.Comp == sideeffect.Compensated:
			continue
		default:
			s.Why = "it stays in the world"
		}
		steps = append(steps, s)
	}
	return steps
}

// crosses are the effects that a move without a guard goes behind.
func (m *Mover) crosses(ctx context.Context, r Request) (steps []EffectStep, err error) {
	since, undone := r.To.Created, int64(0)
	if r.back != nil {
		since, undone = r.back.Started, r.back.ID
	}
	if since.IsZero() {
		return nil, nil
	}
	err = m.DB.View(ctx, func(tx *ledger.Tx) error {
		made, err := tx.Effects(ledger.EffectQuery{Worktree: m.WorktreeID, Since: since})
		if err == nil && undone != 0 {
			var before []ledger.Effect
			before, err = tx.CompensatedBy(undone)
			made = append(made, slices.DeleteFunc(before, func(e ledger.Effect) bool { return !e.Created.Before(since) })...)
		}
		steps = list(made, undone)
		return err
	})
	return steps, err
}

// blocked are the steps that are in the way.
func (p *Plan) blocked() (in []EffectStep) {
	for _, s := range p.Effects {
		if s.What == Blocked {
			in = append(in, s)
		}
	}
	return in
}

// acts tells that something outside is undone or left behind.
func (p *Plan) acts() bool {
	return slices.ContainsFunc(p.Effects, func(s EffectStep) bool { return s.What == Compensate || s.What == Crossed })
}

// reject writes that a move was refused because of effects.
func (m *Mover) reject(p *Plan) error {
	in := p.blocked()
	ids := make([]int64, len(in))
	for i, s := range in {
		ids[i] = s.ID
	}
	about, err := json.Marshal(map[string]any{"verb": p.Verb, "target": p.Target, "effects": ids})
	if err == nil {
		err = m.DB.Commit(context.Background(), func(tx *ledger.Tx) error { return tx.Audit(m.Actor, "op.rejected", string(about)) })
	}
	return errors.Join(&BlockedError{Plan: p, Effects: in}, err)
}

// compensate undoes what a plan says, newest first, and stops at the first that
// can't be undone. What was undone before is passed over, so it can be called
// again.
func (m *Mover) compensate(ctx context.Context, op *ledger.Op, p *Plan) error {
	ctx = context.WithoutCancel(ctx)
	done := 0
	for _, s := range p.Effects {
		if s.What != Compensate {
			continue
		}
		m.progress("effects", done, len(p.Effects))
		err := m.undoEffect(ctx, op, s.ID)
		var stopped *CompensationError
		if errors.As(err, &stopped) {
			stopped.Undone = done
		}
		if err != nil {
			return err
		}
		done++
	}
	return nil
}

// undoEffect undoes one effect as part of an operation. What it is about to do
// is written before, and what came of it after; each time the operation has to
// be still ours.
func (m *Mover) undoEffect(ctx context.Context, op *ledger.Op, id int64) error {
	var e ledger.Effect
	err := m.DB.Commit(ctx, func(tx *ledger.Tx) (err error) {
		if *op, err = tx.AdvanceOp(op.ID, op.Token, phaseCompensating, nil); err != nil {
			return err
		}
		if e, err = tx.Effect(id); err != nil || e.Comp == sideeffect.Compensated {
			return err
		}
		e, err = tx.BeginCompensation(id, op.ID)
		return err
	})
	if err != nil || e.Comp == sideeffect.Compensated {
		return err
	}
	crash.Point("move.effect.begun")
	out := m.call(ctx, e)
	crash.Point("move.effect.called")
	err = m.DB.Commit(ctx, func(tx *ledger.Tx) (err error) {
		if *op, err = tx.AdvanceOp(op.ID, op.Token, phaseCompensating, nil); err != nil {
			return err
		}
		e, err = tx.EndCompensation(id, out)
		return err
	})
	crash.Point("move.effect.ended")
	if err == nil && out.Result != sideeffect.Done {
		err = &CompensationError{Effect: e, Outcome: out}
	}
	return err
}

func (m *Mover) call(ctx context.Context, e ledger.Effect) sideeffect.Outcome {
	h := m.Handlers
	h.About = append(slices.Clone(h.About), fmt.Sprintf("RETCON_EFFECT_RUN=r%d", e.RunID))
	call, err := sideeffect.Resolve(e.Effect, h)
	if err != nil {
		return sideeffect.Outcome{Result: sideeffect.Refused, Detail: err.Error()}
	}
	return call.Run(ctx)
}

// Compensate undoes one effect outside of a move, or tries it once more. The
// error is a *CompensationError when it could not be undone, and a
// *BlockedError when nothing can be called.
func (m *Mover) Compensate(ctx context.Context, id int64) (e ledger.Effect, err error) {
	unlock, err := m.W.LockMove(m.Owner.String(), m.Now())
	if err != nil {
		return e, err
	}
	defer unlock()
	if _, err := m.recoverLocked(ctx); err != nil {
		return e, err
	}
	err = m.DB.Commit(ctx, func(tx *ledger.Tx) (err error) {
		if e, err = tx.Effect(id); err != nil {
			return err
		}
		if _, err := sideeffect.Resolve(e.Effect, m.Handlers); err != nil {
			var why *sideeffect.UnresolvedError
			if errors.As(err, &why) {
				s := newStep(e, Blocked)
				s.Why, s.Unblock, s.Reason = why.Detail, why.Unblock, string(why.Reason)
				return &BlockedError{Effects: []EffectStep{s}}
			}
			return err
		}
		e, err = tx.BeginCompensation(id, 0)
		return err
	})
	if err != nil {
		return e, err
	}
	crash.Point("effect.begun")
	out := m.call(context.WithoutCancel(ctx), e)
	crash.Point("effect.called")
	err = m.DB.Commit(context.Background(), func(tx *ledger.Tx) (err error) {
		if e, err = tx.EndCompensation(id, out); err == nil {
			err = tx.Audit(m.Actor, "effect.compensate", string(mustJSON(map[string]any{"effect": id, "result": out.Result})))
		}
		return err
	})
	if err == nil && out.Result != sideeffect.Done {
		err = &CompensationError{Effect: e, Outcome: out}
	}
	return e, err
}

// cross leaves effects in the world, in the transaction that is the move's
// commit point, and says so in the runs they belong to.
func (p *Plan) cross(tx *ledger.Tx, op ledger.Op) error {
	left := map[int64][]int64{}
	for _, s := range p.Effects {
		if s.What != Crossed {
			continue
		}
		if _, err := tx.Cross(s.ID, op.ID); err != nil {
			return err
		}
		left[s.Run] = append(left[s.Run], s.ID)
	}
	for run, ids := range left {
		b, err := tx.RunHead(run)
		if errors.Is(err, ledger.ErrNotFound) {
			continue // a run without frames has no log
		}
		if err == nil {
			err = tx.AppendLate(b.ID, []ledger.Event{{Type: EventCrossed, Actor: op.Actor, Body: mustJSON(map[string]any{"op": op.ID, "effects": ids})}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// guardedEffects are those that a move along a run goes behind: what was made
// after the frame it goes back to, or by the tasks that run again.
func guardedEffects(tx *ledger.Tx, run ledger.Run, t Travel, a aim) ([]ledger.Effect, error) {
	switch t.Verb {
	case VerbRewind, VerbTimeTravel:
		all, err := tx.EffectsAfter(run.ID, a.history.Frame)
		if t.Inside != 0 && err == nil {
			all, err = notYet(tx, all, t.Inside)
		}
		return all, err
	case VerbRevert:
		all, err := tx.EffectsAfter(run.ID, a.attempt.StartSeq)
		if t.Only {
			all = slices.DeleteFunc(all, func(e ledger.Effect) bool {
				ofCall := e.RunID == run.ID && run.Kind == session && strings.HasPrefix(e.Task+"/", a.attempt.Task+"/")
				return e.Attempt != a.attempt.ID && !ofCall
			})
		}
		return all, err
	}
	again := map[string]bool{}
	for _, f := range a.history.Forced {
		again[f.Task] = true
	}
	all, err := tx.EffectsAfter(run.ID, -1)
	return slices.DeleteFunc(all, func(e ledger.Effect) bool { return e.RunID != run.ID || !again[e.Task] }), err
}

// notYet drops the effects of attempts that had ended when a checkpoint was
// taken.
func notYet(tx *ledger.Tx, all []ledger.Effect, checkpoint int64) (after []ledger.Effect, err error) {
	for _, e := range all {
		a := ledger.Attempt{}
		if e.Attempt != 0 {
			if a, err = tx.Attempt(e.Attempt); err != nil {
				return nil, err
			}
		}
		if a.After == 0 || a.After > checkpoint {
			after = append(after, e)
		}
	}
	return after, nil
}
