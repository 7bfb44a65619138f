package sideeffect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// BoundaryOptions are what a person allows.
type BoundaryOptions struct {
	// NoCompensate: undo nothing. What could be undone is in the way then.
	NoCompensate bool

	// Force: move past what can't be undone, and leave it in the world.
	Force bool
}

// Blocker is an effect in the way of a move, and why.
type Blocker = UnresolvedError

// Plan is what will happen to effects when the history they belong to is
// discarded. Nothing has been called yet.
type Plan struct {
	Compensate []Call    // newest first
	Blocked    []Blocker // newest first; when there is one, nothing may be called
	Crossed    []Effect  // by force; newest first
	Listed     []Effect  // not in the way: pushes, exempt ones, those that need no undoing
}

// BlockedError: effects are in the way. Nothing was called.
type BlockedError struct {
	Blocked []Blocker
}

func (e *BlockedError) Error() string {
	lines := make([]string, len(e.Blocked))
	for i := range e.Blocked {
		lines[i] = e.Blocked[i].Error()
	}
	if len(lines) == 1 {
		return "an effect is in the way: " + lines[0]
	}
	return fmt.Sprintf("%d effects are in the way:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// Boundary decides about the effects after the target of a move. It resolves all
// of them and calls nothing; if any is in the way it returns a *BlockedError
// beside the plan.
//
// Give it the effects of everything that will be cut, children included. What
// was compensated or crossed before is passed over; a compensation that failed
// or was cut short is planned again. An effect that is still intended counts as
// unknown: whoever began it is gone.
func Boundary(effects []Effect, o BoundaryOptions, h Handlers) (Plan, error) {
	newest := slices.Clone(effects)
	slices.SortStableFunc(newest, func(a, b Effect) int { return cmp.Compare(b.Seq, a.Seq) })
	var p Plan
	for _, e := range newest {
		if e.Status != Failed && e.Comp != Compensated && e.Comp != Crossed {
			p.add(e, o, h)
		}
	}
	if len(p.Blocked) > 0 {
		return p, &BlockedError{Blocked: p.Blocked}
	}
	return p, nil
}

func (p *Plan) add(e Effect, o BoundaryOptions, h Handlers) {
	if e.listed() {
		p.Listed = append(p.Listed, e)
		return
	}
	call, err := Resolve(e, h)
	if err == nil && o.NoCompensate {
		err = &UnresolvedError{Effect: e, Reason: NotAsked, Detail: "it would be undone by " + call.Shown,
			Unblock: "allow compensation, or cross it"}
	}
	var blocker *Blocker
	switch {
	case err == nil:
		p.Compensate = append(p.Compensate, call)
	case o.Force:
		p.Crossed = append(p.Crossed, e)
	case errors.As(err, &blocker):
		p.Blocked = append(p.Blocked, *blocker)
	default:
		panic("BUG: Resolve returned " + err.Error())
	}
}
