package timeline

import (
	"errors"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/ledger"
)

// ErrDeclined: whoever was asked said no. Nothing was changed.
var ErrDeclined = errors.New("declined")

// ConflictError refuses a plan with conflicts. Choose a policy, or fewer paths.
type ConflictError struct{ Plan *Plan }

func (e *ConflictError) Error() string {
	c := e.Plan.Conflicts
	if len(c) == 1 {
		return fmt.Sprintf("%q: %s", c[0].Path, c[0].Why)
	}
	return fmt.Sprintf("%d conflicts, first %q: %s", len(c), c[0].Path, c[0].Why)
}

// BaseMovedError refuses a plan because the worktree is not what it was made
// for. Make a new one.
type BaseMovedError struct{ Plan *Plan }

func (e *BaseMovedError) Error() string { return "the worktree has changed since the plan was made" }

// LiveRunError refuses a move under a run that is still going on.
type LiveRunError struct {
	Run   int64
	Owner ledger.Owner
	Since time.Time
}

func (e *LiveRunError) Error() string {
	return fmt.Sprintf("run r%d is going on here, %v since %s", e.Run, e.Owner, e.Since.Format("15:04"))
}

// RateLimitError refuses an actor that has moved too often. People are not
// limited.
type RateLimitError struct {
	Actor string
	Retry time.Time
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("%s has moved this workspace too often; again at %s", e.Actor, e.Retry.Format("15:04:05"))
}

// RequestFailedError says that the same request was made before, and has failed.
// Make it again under another key.
type RequestFailedError struct {
	Key string
	Op  int64
}

func (e *RequestFailedError) Error() string {
	return fmt.Sprintf("request %q has failed as op %d; another request id makes it again", e.Key, e.Op)
}

// MovingError says that a move is going on.
type MovingError struct{ Holder string }

func (e *MovingError) Error() string { return "a move is going on here: " + e.Holder }
