package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// What doors need to show a run, without knowing how the engine keeps it.

// ValueJSON writes a value as JSON; null when there is none.
func ValueJSON(v value.V) json.RawMessage { return value.JSON(v) }

// OutcomeJSON writes an outcome as JSON: the value of a task that is done, the
// failure of another.
func OutcomeJSON(state snapshot.State, b []byte) (json.RawMessage, error) {
	out, err := decodeOutcome(state, b)
	if err != nil {
		return nil, err
	}
	if out.ok() {
		return value.JSON(out.value), nil
	}
	return value.JSON(out.failure.V()), nil
}

// DeclarationJSON writes what a task was declared with as JSON: kind, name, key,
// fx, once and args.
func DeclarationJSON(b []byte) (json.RawMessage, error) {
	d, err := decodeDeclared(b)
	if err != nil {
		return nil, err
	}
	shown := map[string]value.V{"kind": d.Kind, "name": d.Name, "args": d.Args}
	for name, text := range map[string]string{"key": d.Key, "fx": d.Fx, "once": d.Once} {
		if text != "" {
			shown[name] = text
		}
	}
	return value.JSON(value.NewDict(shown)), nil
}

// InputJSON is what a run was given.
func InputJSON(tx *ledger.Tx, run ledger.Run) (json.RawMessage, error) {
	if run.Input.IsZero() {
		return json.RawMessage("null"), nil
	}
	b, err := tx.Content(run.Input)
	if err != nil {
		return nil, fmt.Errorf("the input of r%d: %w", run.ID, err)
	}
	return OutcomeJSON(snapshot.Done, b)
}

// PinnedDefinition is what a run executes, with the sources.
func PinnedDefinition(tx *ledger.Tx, run ledger.Run) (*Definition, error) {
	return storedDefinition(tx, run.Def)
}

// FrameOutcome is the outcome that a row of a frame names. It lies with an
// attempt of the lineage, in the log, or by itself. The frame is one of the
// branch. ledger.ErrNotFound when it is nowhere.
func FrameOutcome(tx *ledger.Tx, run ledger.Run, branch int64, row snapshot.Row) ([]byte, error) {
	if row.Out.IsZero() {
		return nil, ledger.ErrNotFound
	}
	lineage, err := tx.Lineage(run.ID)
	if err != nil {
		return nil, err
	}
	for _, id := range lineage {
		attempts, err := tx.AttemptsOf(id, row.Key)
		if err != nil {
			return nil, err
		}
		for _, a := range slices.Backward(attempts) {
			if a.Out == row.Out {
				return tx.AttemptOutput(a)
			}
		}
	}
	if b, err := loggedOutcome(tx, branch, row); b != nil || err != nil {
		return b, err
	}
	return tx.Content(row.Out)
}

// loggedOutcome is an outcome that an event holds, or an attempt that an event
// names. nil when it is another way.
func loggedOutcome(tx *ledger.Tx, branch int64, row snapshot.Row) ([]byte, error) {
	events, err := tx.Events(branch, ledger.EventQuery{Task: row.Key, Types: []string{EventSettled}, Limit: 10000})
	if err != nil {
		return nil, err
	}
	for _, ev := range slices.Backward(events) {
		var n settledNote
		body, err := tx.EventBody(ev)
		if err == nil {
			err = json.Unmarshal(body, &n)
		}
		if err != nil {
			return nil, fmt.Errorf("event %d.%d of %s: %w", ev.Seq, ev.Idx, row.Key, err)
		}
		if n.Out != nil && hashOf(n.Out) == row.Out {
			return n.Out, nil
		}
		if n.Carried == 0 {
			continue
		}
		a, err := tx.Attempt(n.Carried)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if a.Out == row.Out {
			return tx.AttemptOutput(a)
		}
	}
	return nil, nil
}

// CheckInput holds an input to the body's schema, as Start does: nil, or an
// *InputError.
func (p *Program) CheckInput(input []byte, origin string) error {
	_, err := p.checkInput(input, origin)
	return err
}

// TaskName is a task's id with its scope, without key, digest and number.
func TaskName(id string) string { return taskName(id) }
