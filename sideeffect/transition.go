package sideeffect

import "fmt"

// TransitionError: an effect can't go from one status to another. Somebody else
// has moved it: read it again.
type TransitionError struct {
	Effect   string // its key
	From, To string
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("effect %s is %s and can't become %s", e.Effect, e.From, e.To)
}

// Settle gives an effect its outcome. What is intended may become anything, what
// is unknown may be found out; a known outcome is never replaced, and repeating
// it changes nothing. An effect that is settled after its compensation has begun
// is marked late.
func (e Effect) Settle(to Status) (Effect, error) {
	switch {
	case to != Succeeded && to != Failed && to != Unknown:
		return e, e.refuse(string(e.Status), string(to))
	case e.Status == to:
		return e, nil
	case e.Status != Intended && (e.Status != Unknown || to == Unknown):
		return e, e.refuse(string(e.Status), string(to))
	}
	e.Status = to
	e.Late = e.Late || e.Comp != CompNone
	return e, nil
}

// BeginCompensation is called, and stored, before the compensation is carried
// out. It may begin again after a failure or a crash.
func (e Effect) BeginCompensation() (Effect, error) {
	if e.Status == Failed || e.Comp == Compensated || e.Comp == Crossed {
		return e, e.refuse(e.standing(), string(Compensating))
	}
	e.Comp, e.CompDetail = Compensating, ""
	return e, nil
}

// EndCompensation stores what came of a compensation that was begun. Anything
// but done is a failure, with its detail.
func (e Effect) EndCompensation(o Outcome) (Effect, error) {
	to := CompFailed
	if o.Result == Done {
		to = Compensated
	}
	if e.Comp != Compensating {
		return e, e.refuse(e.standing(), string(to))
	}
	e.Comp, e.CompDetail = to, ""
	if to == CompFailed {
		e.CompDetail = o.String()
	}
	return e, nil
}

// Cross leaves an effect as it is, for good. What was compensated can't be
// crossed: there is nothing left to cross. A compensation that was cut short can.
func (e Effect) Cross() (Effect, error) {
	if e.Comp == Compensated {
		return e, e.refuse(e.standing(), string(Crossed))
	}
	e.Comp = Crossed
	return e, nil
}

// standing is the state that stands in the way of a compensation.
func (e Effect) standing() string {
	if e.Comp == CompNone {
		return string(e.Status)
	}
	return string(e.Comp)
}

func (e Effect) refuse(from, to string) error {
	return &TransitionError{Effect: e.Key, From: from, To: to}
}
