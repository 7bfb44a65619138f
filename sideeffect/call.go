package sideeffect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Result says what came of a call.
type Result string

// The results of a call.
const (
	Done    Result = "done"
	Refused Result = "refused" // it said no, or was never reached: nothing was undone
	Unsure  Result = "unknown" // cut short: it may have been undone
)

// Outcome is the result of a call with what is known about it.
type Outcome struct {
	Result Result `json:"result"`
	Detail string `json:"detail,omitempty"` // one line
	Output string `json:"output,omitempty"` // what was answered, its beginning
}

func (o Outcome) String() string {
	if o.Detail == "" {
		return string(o.Result)
	}
	return string(o.Result) + ": " + o.Detail
}

// Errors by which a handler says more than that it failed.
var (
	// ErrUnsure: a Go handler can't tell whether it undid anything.
	ErrUnsure = errors.New("it may have been carried out")

	// ErrNotSent: an MCP call did not leave.
	ErrNotSent = errors.New("it was not sent")
)

// Call is a compensation with its values filled in. Made by [Resolve].
type Call struct {
	Effect Effect `json:"effect"`
	Shown  string `json:"shown"` // what will be done, in one line; without secrets

	timeout time.Duration
	run     func(context.Context) Outcome
}

// Run carries the compensation out and waits for it, at most as long as the
// handlers' timeout.
//
// It may be run again with the same key: whoever is called has to bear that. A
// second run of a process or a request is a second process or request.
func (c Call) Run(ctx context.Context) Outcome {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if ctx.Err() != nil {
		return Outcome{Result: Refused, Detail: "not begun: " + context.Cause(ctx).Error()}
	}
	return c.run(ctx)
}

type function struct {
	call   func(context.Context, Effect) error
	effect Effect
}

// run does not wait for a function that ignores its context: it is left behind.
func (f function) run(ctx context.Context) Outcome {
	return await(ctx, func() Outcome {
		err := f.call(ctx, f.effect)
		switch {
		case err == nil:
			return Outcome{Result: Done}
		case errors.Is(err, ErrUnsure) || ctx.Err() != nil:
			return Outcome{Result: Unsure, Detail: line(err.Error())}
		}
		return Outcome{Result: Refused, Detail: line(err.Error())}
	})
}

type toolUse struct {
	call func(context.Context, ToolUse, string) (ToolAnswer, error)
	use  ToolUse
	key  string
}

func (u toolUse) run(ctx context.Context) Outcome {
	return await(ctx, func() Outcome {
		answer, err := u.call(ctx, u.use, u.key)
		switch {
		case errors.Is(err, ErrNotSent):
			return Outcome{Result: Refused, Detail: line(err.Error())}
		case err != nil:
			return Outcome{Result: Unsure, Detail: line(err.Error())}
		case answer.Refused:
			return Outcome{Result: Refused, Detail: line(answer.Text), Output: head(answer.Text)}
		}
		return Outcome{Result: Done, Output: head(answer.Text)}
	})
}

// await gives up when the time is over, and outlives a function that panics.
func await(ctx context.Context, f func() Outcome) Outcome {
	done := make(chan Outcome, 1)
	go func() {
		defer func() {
			if broken := recover(); broken != nil {
				done <- Outcome{Result: Unsure, Detail: line(fmt.Sprint("handler panicked: ", broken))}
			}
		}()
		done <- f()
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		return Outcome{Result: Unsure, Detail: cut(ctx)}
	}
}

// cut says why a call was cut short.
func cut(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "no answer in time"
	}
	return "interrupted"
}

// outputCap is how much of an answer is kept.
const outputCap = 64 << 10

func head(s string) string {
	if len(s) > outputCap {
		s = s[:outputCap]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// line is the last line of s that says something, and not too much of it.
func line(s string) string {
	const most = 300
	lines := strings.Split(strings.TrimSpace(head(s)), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if len(last) > most {
		last = strings.ToValidUTF8(last[:most], "") + "…"
	}
	return last
}
