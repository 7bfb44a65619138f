package retcon

import (
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/timeline"
)

// explainEffects knows what was done outside and is in the way.
func explainEffects(err error, e *Explained) bool {
	var (
		blocked *timeline.BlockedError
		stopped *timeline.CompensationError
		moved   *sideeffect.TransitionError
		input   *EffectInputError
		none    *EffectError
		failed  *timeline.RequestFailedError
	)
	switch {
	case errors.As(err, &blocked):
		e.is(CodeEffectBlocked)
		for _, s := range blocked.Effects {
			e.Hints = append(e.Hints, fmt.Sprintf("retcon effects show %d", s.ID))
		}
		if p := blocked.Plan; p != nil {
			e.Hints = append(e.Hints, commandOf(p)+" --dry-run")
		}
		return true
	case errors.As(err, &stopped):
		e.Message += "; worktree and record are as they were"
		return e.is(CodeNeedsAttention, fmt.Sprintf("retcon effects show %d", stopped.Effect.ID),
			fmt.Sprintf("retcon effects retry %d", stopped.Effect.ID), fmt.Sprintf("retcon ack r%d", stopped.Effect.RunID))
	case errors.As(err, &moved):
		return e.is(CodeRefused, "retcon effects list")
	case errors.As(err, &input):
		return e.is(CodeUsage, "retcon effects record --help")
	case errors.As(err, &none):
		return e.is(CodeNotFound, "retcon effects list")
	case errors.As(err, &failed):
		return e.is(CodeRefused, fmt.Sprintf("retcon op show %d", failed.Op))
	}
	return false
}
