package workflow

import (
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// outcome is how a task ended: with a value or with a failure. Both are
// content, and are hashed.
type outcome struct {
	state   snapshot.State // Done, Failed, Cancelled or Skipped
	value   value.V        // of Done
	failure *value.Failure // of the others; an empty one of Done
	hash    snapshot.Hash

	bytes  []byte // canonical, of one that was made
	stored string // likewise, of one that was read
}

// encoded is the canonical form.
func (o *outcome) encoded() []byte {
	if o.bytes == nil {
		o.bytes = []byte(o.stored)
	}
	return o.bytes
}

// noFailure is the failure of what has not failed.
var noFailure value.Failure

func succeeded(v value.V) *outcome {
	b := value.Encode(v)
	return &outcome{state: snapshot.Done, value: v, failure: &noFailure, bytes: b, hash: hashOf(b)}
}

func failed(f value.Failure) *outcome { return ended(snapshot.Failed, f) }

func ended(state snapshot.State, f value.Failure) *outcome {
	b := value.Encode(f.V())
	return &outcome{state: state, failure: &f, bytes: b, hash: hashOf(b)}
}

// decodeOutcome reads what was stored.
func decodeOutcome(state snapshot.State, stored []byte) (*outcome, error) {
	return hashedOutcome(state, string(stored), hashOf(stored))
}

// hashedOutcome reads what was stored and has been hashed.
func hashedOutcome(state snapshot.State, stored string, hash snapshot.Hash) (*outcome, error) {
	v, err := value.DecodeString(stored)
	if err != nil {
		return nil, err
	}
	o := &outcome{state: state, failure: &noFailure, stored: stored, hash: hash}
	if state == snapshot.Done {
		o.value = v
		return o, nil
	}
	f, err := value.FailureOf(v)
	if err != nil {
		return nil, err
	}
	o.failure = f
	return o, nil
}

func (o *outcome) ok() bool { return o.state == snapshot.Done }
