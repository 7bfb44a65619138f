package cassette

import (
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/ledger"
)

// ErrTapeOff: the run was not recorded, because it was asked not to be. It can
// be run again, not served.
var ErrTapeOff = errors.New("the tape was off")

// MaxSetting is the name of the setting that is [Tape.Max].
const MaxSetting = "RETCON_TAPE_MAX_BYTES"

type (
	// LostError: an operation was not recorded. Say so, once for each run:
	// First tells that nobody has yet. The operation itself is not to blame.
	LostError struct {
		Run   int64
		Op    string
		First bool
		Err   error // why
		Mark  error // why there is not even a hole on the tape; nil where there is
	}

	// MissError: the tape has no such operation left. Near is the first cell
	// that was not served with the same operation but other arguments, or nil.
	MissError struct {
		Run    int64
		Op     string
		View   string // of the arguments asked for, redacted
		Near   *ledger.Cell
		Secret bool // Near has the same arguments but for what is redacted in them
	}

	// TruncatedError: the output is not whole. Raise the setting and record
	// the run again.
	TruncatedError struct {
		Cell    ledger.Cell
		Setting string
	}

	// HoleError: an operation was not recorded, and what comes after it can't
	// be relied on.
	HoleError struct {
		Cell ledger.Cell
		Why  string // it was not recorded; "" where that is not known
	}
)

func (e *LostError) Error() string {
	s := fmt.Sprintf("%s of r%d was not recorded: %v", e.Op, e.Run, e.Err)
	if e.Mark != nil {
		s += fmt.Sprintf(" (nor marked: %v)", e.Mark)
	}
	return s
}

func (e *LostError) Unwrap() []error { return []error{e.Err, e.Mark} }

func (e *MissError) Error() string {
	switch {
	case e.Near == nil:
		return fmt.Sprintf("%s %s is not on the tape of r%d", e.Op, short(e.View), e.Run)
	case e.Secret:
		return fmt.Sprintf("%s %s differs from cell %d of r%d in what is redacted", e.Op, short(e.View), e.Near.Seq, e.Run)
	}
	return fmt.Sprintf("%s %s is not on the tape of r%d, where cell %d is next", e.Op, short(e.View), e.Run, e.Near.Seq)
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("cell %d of r%d (%s) was cut: its output has %d bytes, more than %s",
		e.Cell.Seq, e.Cell.RunID, e.Cell.Op, e.Cell.OutSize, e.Setting)
}

func (e *HoleError) Error() string {
	s := fmt.Sprintf("cell %d of r%d is a hole: %s was not recorded", e.Cell.Seq, e.Cell.RunID, e.Cell.Op)
	if e.Why != "" {
		s += ": " + e.Why
	}
	return s
}

// short is enough of a view for one line.
func short(view string) string {
	const enough = 80
	if len(view) <= enough {
		return view
	}
	return string(head([]byte(view), enough)) + "…"
}
