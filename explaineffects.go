package retcon

import (
	"errors"
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/workflow"
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
		stands  *workflow.StandingError
	)
	switch {
	case errors.As(err, &stands):
		e.is(CodeEffectBlocked)
		for _, t := range stands.Tasks {
			for _, f := range t.Effects {
				e.Hints = append(e.Hints, fmt.Sprintf("retcon effects show %d", f.ID))
			}
		}
		e.Hints = append(e.Hints, fmt.Sprintf("retcon resume r%d --force", stands.Run))
		return true
	case errors.As(err, &blocked):
		e.is(CodeEffectBlocked)
		for _, s := range blocked.Effects {
			e.Hints = append(e.Hints, fmt.Sprintf("retcon effects show %d", s.ID))
		}
		if slices.ContainsFunc(blocked.Effects, func(s EffectStep) bool { return s.Reason == string(sideeffect.Untrusted) }) {
			e.Hints = append(e.Hints, "retcon trust")
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
