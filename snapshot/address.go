package snapshot

import (
	"fmt"
	"strconv"
	"strings"
)

// Address is a place in history, as a person writes it: RUN@POINT.
//
//	r7              run 7 at its newest frame
//	r7@5            at frame 5; r7@-1 one frame back
//	r7@plan         at the newest attempt of the task plan; r7@plan#2 at the second
//	r7@plan.before  where that attempt began; r7@plan.after where it ended
//	r7@before       where the run's newest attempt began, whatever its task
//	r7@c17          at checkpoint 17
//	r7@~label       at the point with this label
//	r7@start        at frame 0
//
// What stands for the run, an id, a prefix, a name or "last", is not looked
// into.
type Address struct {
	Run   string
	Point Point
}

// PointKind is what a Point is counted by.
type PointKind uint8

const (
	AtNewest     PointKind = iota // the newest frame
	AtFrame                       // the frame N
	AtBack                        // N frames before the newest
	AtTask                        // an attempt of Task, or of any task when it is empty
	AtCheckpoint                  // the checkpoint N
	AtLabel                       // the label Text
	AtStart                       // frame 0
)

// Edge is a side of an attempt.
type Edge string

const (
	EdgeNone   Edge = ""
	EdgeBefore Edge = "before"
	EdgeAfter  Edge = "after"
)

// Point is a place within a run.
type Point struct {
	Kind    PointKind
	N       int64  // of a frame, a checkpoint, or how far back
	Task    string // of AtTask
	Attempt uint32 // of AtTask; 0 for the newest
	Edge    Edge   // of AtTask
	Text    string // of AtLabel the label, of AtTask all that was written
}

// AddressError says why a text is no address.
type AddressError struct {
	Text, Reason string
}

func (e *AddressError) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.Reason) }

// ParseAddress reads an address. It fails with an *AddressError.
//
// A task's id may look like an id with a suffix, as "sh~1f#2" does; see
// [Point.Settle].
func ParseAddress(s string) (Address, error) {
	run, point, at := strings.Cut(s, "@")
	if run == "" {
		return Address{}, &AddressError{Text: s, Reason: "no run before the @"}
	}
	if !at {
		return Address{Run: run}, nil
	}
	p, reason := parsePoint(point)
	if reason != "" {
		return Address{}, &AddressError{Text: s, Reason: reason}
	}
	return Address{Run: run, Point: p}, nil
}

func parsePoint(s string) (p Point, reason string) {
	switch s {
	case "", "now":
		return p, "no point after the @"
	case "last":
		return p, ""
	case "start":
		return Point{Kind: AtStart}, ""
	case "before", "after":
		return Point{Kind: AtTask, Edge: Edge(s), Text: s}, ""
	}
	switch first, rest := s[0], s[1:]; first {
	case '~':
		if rest == "" {
			return p, "no label after the ~"
		}
		return Point{Kind: AtLabel, Text: rest}, ""
	case '-':
		n, ok := decimal(rest)
		if !ok {
			return p, "no such point"
		}
		if n == 0 {
			return p, ""
		}
		return Point{Kind: AtBack, N: n}, ""
	case 'c':
		if n, ok := decimal(rest); ok {
			return Point{Kind: AtCheckpoint, N: n}, ""
		}
	}
	if strings.Trim(s, "0123456789") == "" {
		n, ok := decimal(s)
		if !ok {
			return p, "no such frame"
		}
		return Point{Kind: AtFrame, N: n}, ""
	}
	return Point{Kind: AtTask, Text: s}.Settle(nil), ""
}

// decimal reads digits, and no more of them than needed.
func decimal(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

// Settle decides what of the text of an AtTask is the task's id, when is tells
// which ids there are: the longest that is one. With nil, or when none is, all
// that looks like a suffix is one.
func (p Point) Settle(is func(id string) bool) Point {
	if p.Kind != AtTask || p.Text == string(EdgeBefore) || p.Text == string(EdgeAfter) {
		return p
	}
	if is == nil {
		is = func(string) bool { return false }
	}
	p.Task, p.Attempt, p.Edge = p.Text, 0, EdgeNone
	if is(p.Task) {
		return p
	}
	for _, edge := range []Edge{EdgeBefore, EdgeAfter} {
		if id, ok := strings.CutSuffix(p.Task, "."+string(edge)); ok && id != "" {
			p.Task, p.Edge = id, edge
			break
		}
	}
	if is(p.Task) {
		return p
	}
	if i := strings.LastIndexByte(p.Task, '#'); i > 0 {
		if n, ok := decimal(p.Task[i+1:]); ok && n > 0 && n < 1<<32 {
			p.Task, p.Attempt = p.Task[:i], uint32(n)
		}
	}
	return p
}

// String writes the address as ParseAddress reads it.
func (a Address) String() string {
	if a.Point.Kind == AtNewest {
		return a.Run
	}
	return a.Run + "@" + a.Point.String()
}

// String writes the point as it stands after the @.
func (p Point) String() string {
	switch p.Kind {
	case AtFrame:
		return strconv.FormatInt(p.N, 10)
	case AtBack:
		return "-" + strconv.FormatInt(p.N, 10)
	case AtCheckpoint:
		return "c" + strconv.FormatInt(p.N, 10)
	case AtLabel:
		return "~" + p.Text
	case AtStart:
		return "start"
	case AtTask:
		return p.task()
	}
	return "last"
}

func (p Point) task() string {
	if p.Task == "" {
		return string(p.Edge)
	}
	s := p.Task
	if p.Attempt != 0 {
		s += "#" + strconv.FormatUint(uint64(p.Attempt), 10)
	}
	if p.Edge != EdgeNone {
		s += "." + string(p.Edge)
	}
	return s
}
