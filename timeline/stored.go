package timeline

import (
	"encoding/json"
	"fmt"

	"github.com/retcon-dev/retcon/ledger"
)

// stored is the part of a result that the operation's row keeps.
type stored struct {
	Safety   string   `json:"safety,omitempty"`
	Rescue   string   `json:"rescue,omitempty"`
	Rescued  []string `json:"rescued,omitempty"`
	Left     []string `json:"left,omitempty"`
	Verified int      `json:"verified"`
}

func decodePlan(text string) (*Plan, error) {
	var p Plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("stored plan: %w", err)
	}
	return &p, nil
}

func decodeResult(op ledger.Op) (*Result, error) {
	p, err := decodePlan(op.Plan)
	if err != nil {
		return nil, err
	}
	var s stored
	if err := json.Unmarshal([]byte(op.Detail), &s); err != nil {
		return nil, fmt.Errorf("stored result: %w", err)
	}
	return &Result{Op: op.ID, Verb: op.Verb, Plan: p, Safety: s.Safety, Rescue: s.Rescue, Rescued: s.Rescued, Left: s.Left, Verified: s.Verified}, nil
}
