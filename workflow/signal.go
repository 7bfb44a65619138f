package workflow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// instant is a time of day in one spelling.
func instant(s string) (value.V, error) {
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return nil, &BodyError{Message: fmt.Sprintf("until: %q is no time", s), Hint: `until("2030-01-31T12:00:00Z")`}
	}
	return at.UTC().Format(time.RFC3339Nano), nil
}

// signal settles a wait with what was sent to it, if it was sent in answer to
// what is asked now.
func (e *engine) signal(ctx context.Context, t *task, input snapshot.Hash) (*outcome, error) {
	var body []byte
	err := e.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		sent, err := tx.PendingSignals(e.run.ID)
		if err != nil {
			return err
		}
		for _, s := range sent {
			if s.Name == t.id && s.Digest == input {
				body, err = tx.SignalValue(s)
				e.took = append(e.took, s.ID)
				return err
			}
		}
		return nil
	})
	if err != nil || body == nil {
		return nil, err
	}
	return decodeOutcome(snapshot.Done, body)
}

// Sent is a signal that was put into a run's mailbox.
type Sent struct {
	Run      int64
	Wait     string // id of the task it answers
	Repeated bool   // the same request was made before
}

// WaitError says that nobody waits for a signal.
type WaitError struct {
	Run     int64
	Name    string
	Settled bool     // it was waited for, and is not any more
	Waiting []string // what is waited for
	Answers []string // of each, a value that fits as JSON; "" where any does, or none is known
}

func (e *WaitError) Error() string {
	switch {
	case e.Settled:
		return fmt.Sprintf("r%d does not wait for %s any more", e.Run, e.Name)
	case len(e.Waiting) == 0:
		return fmt.Sprintf("r%d waits for no signal", e.Run)
	}
	return fmt.Sprintf("r%d does not wait for %s, but for %s", e.Run, e.Name, strings.Join(e.Waiting, ", "))
}

// AmbiguousWaitError says that several waits have the name.
type AmbiguousWaitError struct {
	Name string
	IDs  []string
}

func (e *AmbiguousWaitError) Error() string {
	return fmt.Sprintf("several waits are called %s: %s", e.Name, strings.Join(e.IDs, ", "))
}

// Send answers a wait of a run, which need not be running. The value is JSON
// and has to be what the wait's schema asks for. It is bound to what the wait
// is about: when that changes before the run takes it, it is not taken.
//
// It fails with *WaitError, *AmbiguousWaitError, *InputError or, when the
// request key was used for something else, *ledger.SignalReuseError.
func Send(ctx context.Context, o Options, run int64, name string, body []byte, request string) (Sent, error) {
	v, err := value.FromJSON(body)
	if err != nil {
		return Sent{}, &InputError{What: "signal " + name, Value: "not JSON", Origin: "--value", Reason: err.Error()}
	}
	b := value.Encode(v)
	hash := hashOf(b)
	sent := Sent{Run: run}
	err = o.Ledger.Update(ctx, func(tx *ledger.Tx) error {
		r, err := tx.Run(run)
		if err != nil {
			return err
		}
		if r.Kind != Source {
			return &NotWorkflowError{Run: run, Source: r.Source}
		}
		digest := hashOf([]byte(name + "\x00" + hash.String())).String()
		if request != "" {
			past, err := tx.Signals(run)
			if err != nil {
				return err
			}
			for _, s := range past {
				if s.RequestKey == request && s.RequestDigest == digest {
					sent.Wait, sent.Repeated = s.Name, true
					return nil
				}
			}
		}
		row, err := findWait(tx, r, name)
		if err != nil {
			return err
		}
		if err := checkAnswer(tx, row, v); err != nil {
			return err
		}
		s, err := tx.PutSignal(ledger.Signal{RunID: run, Name: row.Key, Hash: hash, Value: b, RequestKey: request, RequestDigest: digest,
			Digest: row.Input, Actor: o.Actor})
		sent.Wait, sent.Repeated = s.Name, s.Repeated
		return err
	})
	return sent, err
}

// findWait finds the wait that a name means: by its id, or by what it is called.
func findWait(tx *ledger.Tx, r ledger.Run, name string) (snapshot.Row, error) {
	head, err := tx.LoadFrame(r.HeadBranch, ledger.Newest)
	if err != nil {
		return snapshot.Row{}, err
	}
	var found []snapshot.Row
	no := &WaitError{Run: r.ID, Name: name}
	for row := range head.Set.Rows() {
		if row.Kind != KindSignal {
			continue
		}
		called := signalName(row.Key)
		if row.State == snapshot.Waiting {
			answer := ""
			if s, _, err := asked(tx, row); err == nil && s != nil { // what can't be read can't be shown
				answer = exampleOf(s)
			}
			no.Waiting, no.Answers = append(no.Waiting, called), append(no.Answers, answer)
		}
		if row.Key != name && called != name {
			continue
		}
		if row.State.Settled() {
			no.Settled = true
			continue
		}
		if row.State == snapshot.Waiting {
			found = append(found, row)
		}
	}
	switch len(found) {
	case 0:
		return snapshot.Row{}, no
	case 1:
		return found[0], nil
	}
	var ids []string
	for _, row := range found {
		ids = append(ids, row.Key)
	}
	return snapshot.Row{}, &AmbiguousWaitError{Name: name, IDs: ids}
}

// signalName is what a wait is called in the body.
func signalName(id string) string {
	id = id[strings.LastIndex(id, "/")+1:]
	if i := strings.IndexAny(id, "~["); i > 0 {
		return id[:i]
	}
	return id
}

// checkAnswer holds a value to the schema of the wait it answers.
func checkAnswer(tx *ledger.Tx, row snapshot.Row, v value.V) error {
	s, name, err := asked(tx, row)
	if err != nil || s == nil {
		return err
	}
	for _, bad := range s.Check(v) {
		return &InputError{What: "signal " + name, Field: bad.Field, Value: string(bad.Value), Origin: "--value", Reason: bad.Problem}
	}
	return nil
}

// asked is the schema of a wait, nil when any answer will do, and what the wait
// is called.
func asked(tx *ledger.Tx, row snapshot.Row) (*value.Schema, string, error) {
	b, err := tx.Content(row.Decl)
	if err != nil {
		return nil, "", fmt.Errorf("what %s asks for: %w", row.Key, err)
	}
	d, err := decodeDeclared(b)
	if err != nil {
		return nil, "", fmt.Errorf("what %s asks for: %w", row.Key, err)
	}
	schema, ok := d.Args.Get("schema")
	if !ok {
		return nil, d.Name, nil
	}
	s, err := value.CompileSchema(schema)
	return s, d.Name, err
}

// Answer is a value that a wait takes, as JSON, to show what is asked for: true
// where any will do, "" where none that fits its schema is found.
func Answer(tx *ledger.Tx, row snapshot.Row) (string, error) {
	s, _, err := asked(tx, row)
	switch {
	case err != nil:
		return "", err
	case s == nil:
		return "true", nil
	}
	return exampleOf(s), nil
}

// exampleOf is a value that fits a schema, as JSON; "" where none is found.
func exampleOf(s *value.Schema) string {
	v, ok := s.Example()
	if !ok {
		return ""
	}
	return string(value.JSON(v))
}
