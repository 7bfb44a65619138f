package timeline

import (
	"context"
	"slices"

	"github.com/retcon-dev/retcon/ledger"
)

// repeated are the effects that tasks would make again, beside those that a move
// names, by their digest.
type repeated struct{ will, may []int64 }

// again asks which effects would be made again after a retry or a rerun.
func (m *Mover) again(ctx context.Context, run ledger.Run, t Travel, find func(*ledger.Tx, ledger.Run, Travel) (aim, error)) (r repeated, err error) {
	if t.Again == nil || t.Verb != VerbRetry && t.Verb != VerbRerun {
		return r, nil
	}
	var a aim
	err = m.DB.View(ctx, func(tx *ledger.Tx) error {
		a, err = find(tx, run, t)
		return err
	})
	if err != nil {
		return r, nil // the move says so, unless it was carried out before
	}
	var tasks []string
	for _, f := range a.history.Forced {
		tasks = append(tasks, f.Task)
	}
	r.will, r.may, err = t.Again(ctx, tasks)
	return r, err
}

// guard adds those that would be made again to the effects of an aim.
func (r repeated) guard(tx *ledger.Tx, a *aim) error {
	known := map[int64]bool{}
	for _, e := range a.effects {
		known[e.ID] = true
	}
	add := func(to *[]ledger.Effect, ids []int64) error {
		for _, id := range ids {
			if known[id] {
				continue
			}
			e, err := tx.Effect(id)
			if err != nil {
				return err
			}
			known[id] = true
			if e.Stands() {
				*to = append(*to, e)
			}
		}
		return nil
	}
	if err := add(&a.effects, r.will); err != nil {
		return err
	}
	return add(&a.may, r.may)
}

// steps are what a move does about the effects of its aim.
func (m *Mover) steps(a aim, r Request) []EffectStep {
	steps := m.guard(a.effects, r)
	for _, e := range a.may {
		s := newStep(e, Listed)
		s.Why = "its task may run again, and the run stops before it if it does"
		if r.Force {
			s.Why = "its task may run again, and it stays in the world"
		}
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b EffectStep) int { return int(b.ID - a.ID) })
	return steps
}

// stillGuarded refuses a plan, in the transaction that begins its move, when
// something was done outside since that it does not know of.
func (m *Mover) stillGuarded(tx *ledger.Tx, r Request, p *Plan) error {
	if r.aim == nil || r.back != nil {
		return nil
	}
	a, err := r.aim(tx)
	if err != nil {
		return err
	}
	if !slices.Equal(m.steps(a, r), p.Effects) {
		return &StaleHistoryError{Run: a.to.RunID}
	}
	return nil
}
