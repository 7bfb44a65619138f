package workflow

import (
	"errors"
	"fmt"
	"strings"

	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

var (
	// ErrInterrupted: the run was stopped from outside. It can be resumed.
	ErrInterrupted = errors.New("interrupted")

	// errSuspended ends a line of a render where an outcome is missing.
	errSuspended = errors.New("suspended: the outcome is not known yet")

	// errParked ends the lines of a run that has nothing to do before somebody
	// sends a signal.
	errParked = errors.New("waits for a signal")

	// errLost cancels a runner that lost its race.
	errLost = errors.New("another one won the race")
)

// suspends tells that a line ended because it could not go on yet.
func suspends(err error) bool {
	return errors.Is(err, errSuspended) || errors.Is(err, errParked) || errors.Is(err, errStanding) || errors.Is(err, ErrInterrupted)
}

// HaltError says that a body could not go on without the outcome of a task that
// did not end well.
type HaltError struct {
	Task    string
	At      string // place in the body
	Failure value.Failure
	State   snapshot.State
}

func (e *HaltError) Error() string {
	word := "failed"
	if e.State == snapshot.Cancelled {
		word = "was cancelled"
	}
	s := e.Task + " " + word
	if e.Failure.Message != "" {
		s += ": " + e.Failure.Message
	}
	return s
}

// UndoError says that what failed in a saga was not all undone: the function that
// says how failed itself, and there is no task that shows it.
type UndoError struct {
	Cause error // why the saga was undone
	Task  string
	Err   error // why Task could not be
}

func (e *UndoError) Error() string {
	return fmt.Sprintf("%v; %s was not undone: %v", e.Cause, e.Task, e.Err)
}

func (e *UndoError) Unwrap() error { return e.Cause }

// BodyError is a fault of the body: it can't be loaded, or does what a body
// must not. Nothing was dispatched because of it.
type BodyError struct {
	At      string // "build.star:12:5"
	Message string
	Hint    string // what to write instead; "" for none
}

func (e *BodyError) Error() string {
	if e.At == "" {
		return e.Message
	}
	return e.At + ": " + e.Message
}

// DuplicateKeyError says that two tasks of one scope have the same key.
type DuplicateKeyError struct {
	ID string
	At string
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("%s: a second task %s in the same scope", e.At, e.ID)
}

// DivergedError says that a render did not give the frame that was recorded.
type DivergedError struct {
	Code  string // DIVERGED_CHANGED, DIVERGED_EXTRA, DIVERGED_MISSING
	Frame int64
	Task  string
	At    string // place in the body, where there is one
	Path  string // of the argument that differs
	Old   string // JSON
	New   string
}

// Codes of a DivergedError.
const (
	DivergedChanged = "DIVERGED_CHANGED" // the same place, another declaration or outcome
	DivergedExtra   = "DIVERGED_EXTRA"   // declared, and not recorded
	DivergedMissing = "DIVERGED_MISSING" // recorded, and not declared again
)

func (e *DivergedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the body does not give frame %d again: %s", e.Frame, e.Task)
	switch e.Code {
	case DivergedExtra:
		b.WriteString(" was not recorded")
	case DivergedMissing:
		b.WriteString(" is not declared any more")
	default:
		b.WriteString(" differs")
		if e.Path != "" {
			fmt.Fprintf(&b, " at %s: %s was recorded, now %s", e.Path, e.Old, e.New)
		}
	}
	return b.String()
}

// FinishedError says that a run has ended well: there is nothing to resume.
type FinishedError struct{ Run int64 }

func (e *FinishedError) Error() string { return fmt.Sprintf("r%d has finished", e.Run) }

// LiveError says that a process is running the run.
type LiveError struct {
	Run int64
	Err error
}

func (e *LiveError) Error() string { return fmt.Sprintf("r%d is being run: %v", e.Run, e.Err) }
func (e *LiveError) Unwrap() error { return e.Err }

// InputError says that an input or a signal is not what the body's schema asks
// for.
type InputError struct {
	What   string // "input", "signal approve"
	Field  string
	Value  string // JSON
	Origin string // where it came from: "-i", "default", "--value"
	Reason string
}

func (e *InputError) Error() string {
	field := e.Field
	if field == "" {
		field = "the whole"
	}
	return fmt.Sprintf("%s: %s is %s (from %s): %s", e.What, field, e.Value, e.Origin, e.Reason)
}
