package retcon

import (
	"context"
	"encoding/json"
	"time"

	"github.com/retcon-dev/retcon/ledger"
)

// auditPatience is how long a refusal waits for those who write to the ledger.
const auditPatience = 250 * time.Millisecond

// rejection is what the audit holds of a move that was refused.
type rejection struct {
	Verb    string `json:"verb"`
	Target  string `json:"target,omitempty"`
	Run     string `json:"run,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// rejected returns err, after writing it to the audit when it is a guard's
// refusal of what r says was asked for. What is in the way of effects is written
// where it is found, and what a plan says, a conflict for example, is an answer.
//
// That the row can't be written, or not soon, changes nothing about the refusal:
// who is refused for a lock is not to wait for one.
func (w *Workspace) rejected(ctx context.Context, r rejection, err error) error {
	if err == nil {
		return nil
	}
	why := Explain(err)
	switch why.Code {
	case CodeLocked, CodeOpInProgress, CodeRateLimited, CodeSelfOperation:
	default:
		return err
	}
	db, lerr := w.ledger()
	if lerr != nil {
		return err
	}
	r.Code, r.Message = why.Code, why.Message
	detail, jerr := json.Marshal(r)
	if jerr != nil {
		panic("BUG: a rejection has no JSON: " + jerr.Error())
	}
	ctx = context.WithoutCancel(ctx)
	actor, aerr := w.actor(ctx)
	if aerr != nil {
		actor = w.opt.Actor
	}
	_ = db.TryUpdate(ctx, auditPatience, func(tx *ledger.Tx) error { // see above
		return tx.Audit(actor, "op.rejected", string(detail))
	})
	return err
}
