package retcon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/redact"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/timeline"
)

// What sideeffect says, under the names the doors know.
type (
	Compensation = sideeffect.Compensation
	EffectStep   = timeline.EffectStep
)

// What came of an effect, and of undoing it.
const (
	EffectIntended  = string(sideeffect.Intended)
	EffectSucceeded = string(sideeffect.Succeeded)
	EffectFailed    = string(sideeffect.Failed)
	EffectUnknown   = string(sideeffect.Unknown)

	EffectCompensated = string(sideeffect.Compensated)
	EffectCrossed     = string(sideeffect.Crossed)
)

// Effect is something a run did outside its worktree.
type Effect struct {
	ID           int64             `json:"id"`
	Run          string            `json:"run"`
	Frame        int64             `json:"frame"` // it leads to
	Task         string            `json:"task"`
	Attempt      int               `json:"attempt,omitempty"` // its number
	Key          string            `json:"key"`
	Tool         string            `json:"tool"`
	Rule         string            `json:"rule,omitempty"`
	Command      string            `json:"command,omitempty"`
	Args         json.RawMessage   `json:"args,omitempty"`
	Output       string            `json:"output,omitempty"`
	Fields       map[string]string `json:"fields"`
	Class        string            `json:"class"`
	Status       string            `json:"status"`
	Compensation Compensation      `json:"compensation,omitzero"`
	State        string            `json:"state"`            // of its compensation; "" for none
	Detail       string            `json:"detail,omitempty"` // why it could not be undone
	Op           int64             `json:"op,omitempty"`     // that undid or crossed it
	Late         bool              `json:"late,omitempty"`
	Created      time.Time         `json:"created"`
	Updated      time.Time         `json:"updated"`

	// How is the call that would undo it now; Why says why there is none.
	How string `json:"how,omitempty"`
	Why string `json:"why,omitempty"`
}

// EffectError says that there is no effect of a number.
type EffectError struct{ ID int64 }

func (e *EffectError) Error() string { return fmt.Sprintf("no effect %d", e.ID) }

// EffectInputError says what is wrong with an effect that is to be recorded.
type EffectInputError struct{ Reason string }

func (e *EffectInputError) Error() string { return "effect: " + e.Reason }

// handlers are what effects are undone with.
func (w *Workspace) handlers() sideeffect.Handlers {
	return sideeffect.Handlers{Dir: w.Root(), Env: sideeffect.Environment(w.opt.Env), Named: w.opt.Env, Client: &http.Client{},
		Go: w.opt.Handlers, Trusted: w.trusts, Offered: w.project.Digest}
}

// EffectsOptions select a page of effects, newest first.
type EffectsOptions struct {
	Run    string // only what this one did; what all in this worktree did when empty
	Before int64  // only older than the effect of this number
	Limit  int    // 200 when zero
}

// Effects lists what was done outside, newest first.
func (w *Workspace) Effects(ctx context.Context, o EffectsOptions) ([]Effect, error) {
	out := []Effect{}
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		q := ledger.EffectQuery{Worktree: row.ID, Before: o.Before, Limit: o.Limit}
		switch {
		case o.Run != "":
			r, err := findRun(tx, row, o.Run)
			if err != nil {
				return err
			}
			q.Run, q.Worktree = r.ID, 0
		case row.ID == 0:
			return nil
		}
		rows, err := tx.Effects(q)
		if err != nil {
			return err
		}
		for _, e := range rows {
			told, err := w.shownEffect(tx, e)
			if err != nil {
				return err
			}
			out = append(out, told)
		}
		return nil
	})
	return out, err
}

// Effect returns one effect, or an *EffectError.
func (w *Workspace) Effect(ctx context.Context, id int64) (*Effect, error) {
	var out Effect
	err := w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		e, err := tx.Effect(id)
		if err == nil {
			out, err = w.shownEffect(tx, e)
		}
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		err = &EffectError{ID: id}
	}
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func (w *Workspace) shownEffect(tx *ledger.Tx, e ledger.Effect) (Effect, error) {
	out := Effect{ID: e.ID, Run: runRef(e.RunID), Frame: e.Frame, Task: e.Task, Key: e.Key, Tool: e.Tool, Rule: e.Rule, Command: e.Command,
		Args: e.Args, Output: e.Output, Fields: e.Fields, Class: string(e.Class), Status: string(e.Status), Compensation: e.Compensation,
		State: string(e.Comp), Detail: e.CompDetail, Op: e.CompOp, Late: e.Late, Created: e.Created, Updated: e.Updated}
	if out.Fields == nil {
		out.Fields = map[string]string{}
	}
	if e.Attempt != 0 {
		a, err := tx.Attempt(e.Attempt)
		if err != nil {
			return out, err
		}
		out.Attempt = a.Number
	}
	if e.Status == sideeffect.Failed || e.Comp == sideeffect.Compensated || e.Comp == sideeffect.Crossed {
		return out, nil
	}
	call, err := sideeffect.Resolve(e.Effect, w.handlers())
	out.How = call.Shown
	var why *sideeffect.UnresolvedError
	if errors.As(err, &why) {
		out.Why = why.Detail + "; " + why.Unblock
	}
	return out, nil
}

// EffectRecord is an effect as somebody else records it, before it is made or
// after.
type EffectRecord struct {
	Run     string `json:"run"`
	Task    string `json:"task,omitempty"`
	Attempt int    `json:"attempt,omitempty"` // 0 for the newest of the task, if there is one
	Call    string `json:"call,omitempty"`    // names the call in the task; the same call has the same key

	Tool         string            `json:"tool"`
	Command      string            `json:"command,omitempty"`
	Args         json.RawMessage   `json:"args,omitempty"`
	Output       string            `json:"output,omitempty"`
	Fields       map[string]string `json:"fields,omitempty"`
	Class        string            `json:"class,omitempty"`  // write when empty
	Status       string            `json:"status,omitempty"` // intended when empty
	Compensation Compensation      `json:"compensation,omitzero"`
}

// RecordEffect records an effect. Recording the same call again, by its name,
// gives the same effect, unless it was undone or crossed meanwhile.
//
// It fails with *RunError and *EffectInputError.
func (w *Workspace) RecordEffect(ctx context.Context, r EffectRecord) (*Effect, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var out Effect
	err := w.update(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		run, err := findRun(tx, row, r.Run)
		if err != nil {
			return err
		}
		e, err := r.row(tx, run)
		if err != nil {
			return err
		}
		call := r.Call
		if call == "" {
			call = "x" + strconv.FormatInt(w.opt.Now().UnixNano(), 36)
		}
		if e, err = tx.Intend(e, r.Call == "", func(epoch int) string { return sideeffect.Key(run.UID, e.Task, call, epoch) }); err != nil {
			return err
		}
		if to := sideeffect.Status(r.Status); r.Status != "" && to != sideeffect.Intended {
			if e, err = tx.Settle(e.ID, to, nil); err != nil {
				return err
			}
		}
		out, err = w.shownEffect(tx, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func (r *EffectRecord) check() error {
	statuses := []string{"", EffectIntended, EffectSucceeded, EffectFailed, EffectUnknown}
	classes := []string{"", string(sideeffect.Write), string(sideeffect.Maybe), string(sideeffect.Push), string(sideeffect.Exempt)}
	switch {
	case r.Run == "":
		return &EffectInputError{Reason: "whose is it? run is missing"}
	case r.Tool == "":
		return &EffectInputError{Reason: "what made it? tool is missing"}
	case !slices.Contains(statuses, r.Status):
		return &EffectInputError{Reason: fmt.Sprintf("status %q is none of %s", r.Status, strings.Join(statuses[1:], ", "))}
	case !slices.Contains(classes, r.Class):
		return &EffectInputError{Reason: fmt.Sprintf("class %q is none of %s", r.Class, strings.Join(classes[1:], ", "))}
	case len(r.Args) > 0 && !json.Valid(r.Args):
		return &EffectInputError{Reason: "args are no JSON"}
	}
	if err := r.Compensation.Validate(); err != nil {
		return &EffectInputError{Reason: err.Error()}
	}
	return nil
}

// row is the record as the ledger has it: where the run stands now.
func (r *EffectRecord) row(tx *ledger.Tx, run ledger.Run) (ledger.Effect, error) {
	e := ledger.Effect{RunID: run.ID, Task: r.Task}
	class := sideeffect.Class(r.Class)
	if class == "" {
		class = sideeffect.Write
	}
	e.Effect = checkpoint.RedactEffect(redact.New(), sideeffect.Effect{Tool: r.Tool, Command: r.Command, Args: r.Args, Output: r.Output,
		Fields: r.Fields, Class: class, Compensation: r.Compensation})
	if run.HeadBranch != 0 {
		b, err := tx.RunHead(run.ID)
		if err != nil {
			return e, err
		}
		e.Branch, e.Frame = b.ID, b.HeadSeq+1
	}
	if r.Task == "" {
		return e, nil
	}
	tried, err := tx.AttemptsOf(run.ID, r.Task)
	if err != nil {
		return e, err
	}
	for _, a := range tried {
		if r.Attempt == 0 || a.Number == r.Attempt {
			e.Attempt = a.ID
		}
	}
	if r.Attempt != 0 && e.Attempt == 0 {
		return e, &EffectInputError{Reason: fmt.Sprintf("%s has no attempt %d of %q", runRef(run.ID), r.Attempt, r.Task)}
	}
	return e, nil
}

// EffectOutcome is what came of an effect. Fields and Output are added to what is
// known of it.
type EffectOutcome struct {
	Status       string            `json:"status"`
	Output       string            `json:"output,omitempty"`
	Fields       map[string]string `json:"fields,omitempty"`
	Compensation *Compensation     `json:"compensation,omitempty"` // in place of the one it had
}

// SettleEffect says what came of an effect. One that is known to have failed is
// in nobody's way. With no status only what is known of it is added.
//
// It fails with *EffectError, *EffectInputError, and a
// *sideeffect.TransitionError when it had another outcome.
func (w *Workspace) SettleEffect(ctx context.Context, id int64, o EffectOutcome) (*Effect, error) {
	if !slices.Contains([]string{"", EffectSucceeded, EffectFailed, EffectUnknown}, o.Status) {
		return nil, &EffectInputError{Reason: fmt.Sprintf("status %q is none of succeeded, failed, unknown", o.Status)}
	}
	if o.Compensation != nil {
		if err := o.Compensation.Validate(); err != nil {
			return nil, &EffectInputError{Reason: err.Error()}
		}
	}
	clean := checkpoint.RedactEffect(redact.New(), sideeffect.Effect{Output: o.Output, Fields: o.Fields})
	add := func(e *sideeffect.Effect) {
		if clean.Output != "" {
			e.Output = clean.Output
		}
		for name, v := range clean.Fields {
			if e.Fields == nil {
				e.Fields = map[string]string{}
			}
			e.Fields[name] = v
		}
		if o.Compensation != nil {
			e.Compensation, e.Source = *o.Compensation, ""
		}
	}
	var out Effect
	err := w.update(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		var e ledger.Effect
		var err error
		if o.Status == "" {
			e, err = tx.Describe(id, add)
		} else {
			e, err = tx.Settle(id, sideeffect.Status(o.Status), add)
		}
		if err != nil {
			return err
		}
		if err := tx.Audit(w.opt.Actor, "effect.settle", fmt.Sprintf(`{"effect":%d,"status":%q}`, id, e.Status)); err != nil {
			return err
		}
		out, err = w.shownEffect(tx, e)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		err = &EffectError{ID: id}
	}
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// RetryEffect undoes one effect, outside of a move: one whose compensation has
// failed, or was cut short.
//
// It fails with *EffectError, *timeline.BlockedError when nothing can be called,
// and *timeline.CompensationError when it could not be undone.
func (w *Workspace) RetryEffect(ctx context.Context, id int64) (*Effect, error) {
	m, err := w.mover(ctx)
	if err != nil {
		return nil, err
	}
	_, err = m.Compensate(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		err = &EffectError{ID: id}
	}
	if err != nil {
		return nil, err
	}
	return w.Effect(ctx, id)
}

// Acked is what somebody has looked at.
type Acked struct {
	Run     string   `json:"run"`
	Reasons []string `json:"reasons"` // that were open; none when nothing was
}

// Ack takes the flag off a run: somebody has looked at it.
func (w *Workspace) Ack(ctx context.Context, run string) (*Acked, error) {
	out := &Acked{Reasons: []string{}}
	err := w.update(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		r, err := findRun(tx, row, run)
		if err != nil {
			return err
		}
		out.Run = runRef(r.ID)
		open, err := tx.Ack(r.ID, w.opt.Actor)
		for _, a := range open {
			out.Reasons = append(out.Reasons, a.Why)
		}
		return err
	})
	return out, err
}

// attention is what somebody has to look at in a run.
func attention(tx *ledger.Tx, run int64) ([]string, error) {
	open, err := tx.Attention(run)
	why := make([]string, len(open))
	for i, a := range open {
		why[i] = a.Why
	}
	return why, err
}
