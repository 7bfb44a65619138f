package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/retcon-dev/retcon"
)

// The exit codes. They stand in the help of every command and in docs/json.md.
const (
	exitDone        = 0
	exitFailed      = 1 // or a negative result: different, halted, diverged
	exitNotFound    = 3
	exitRefused     = 4
	exitLocked      = 5
	exitRateLimited = 6
	exitInterrupted = 7 // a move that was interrupted has to be settled first
	exitDamaged     = 8
	exitUsage       = 64
	exitStopped     = 130
)

const exitTable = `0 done · 1 failed, or a negative result · 3 not found · 4 refused by a guard · 5 locked · 6 rate limited · 7 interrupted move · 8 damaged · 64 usage · 130 interrupted`

// exits gives the exit code of each error code that is not plainly a failure.
var exits = map[string]int{
	"USAGE":                           exitUsage,
	"NOT_FOUND":                       exitNotFound,
	"NOT_RECORDED":                    exitNotFound,
	"REFUSED":                         exitRefused,
	"CONFIRMATION_NEEDED":             exitRefused,
	"CONFLICT":                        exitRefused,
	"STALE_PLAN":                      exitRefused,
	"REQUEST_KEY_REUSE":               exitRefused,
	"SELF_OPERATION_DENIED":           exitRefused,
	"TIME_TRAVEL_SIDE_EFFECT_BLOCKED": exitRefused,
	"LOCKED":                          exitLocked,
	"OP_IN_PROGRESS":                  exitLocked,
	"RATE_LIMITED":                    exitRateLimited,
	"INTERRUPTED_MOVE":                exitInterrupted,
	"DAMAGED":                         exitDamaged,
	"INTERRUPTED":                     exitStopped,
}

// failure is an error as it is told: a code that programs branch on, one line
// for people, and hints, each a command one can paste.
type failure struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Hints   []string `json:"hints"`

	Holder string     `json:"holder,omitempty"` // of what is locked
	Since  *time.Time `json:"since,omitempty"`

	Exit int `json:"-"` // 0: what exits says of Code
}

func (f *failure) Error() string { return f.Message }

func (f *failure) exit() int {
	if f.Exit != 0 {
		return f.Exit
	}
	if code, ok := exits[f.Code]; ok {
		return code
	}
	return exitFailed
}

// misuse is a command line that makes no sense; hint says how it is written.
func misuse(message string, hints ...string) error {
	return &failure{Code: "USAGE", Message: message, Hints: hints}
}

// answered is the error of a command that has printed all there is to say, and
// whose answer is a negative one: "diff" found a difference. Its value is the
// exit code.
type answered int

func (a answered) Error() string { return fmt.Sprintf("exit %d", int(a)) }

// report tells an error, once, and returns the exit code.
func (c *console) report(ctx context.Context, err error) int {
	var done answered
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &done):
		return int(done)
	}
	f := explain(err)
	if ctx.Err() != nil && f.exit() == exitFailed {
		f = explain(context.Canceled) // whatever it says, it says it because of the interrupt
	}
	f.write(c.err, c.json)
	return f.exit()
}

// explain chooses code, message and hints. Errors the front door knows are
// explained there, for all doors alike; here are those of the command line.
func explain(err error) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled):
		return &failure{Code: "INTERRUPTED", Message: "interrupted"}
	}
	e := retcon.Explain(err)
	return &failure{Code: e.Code, Message: e.Message, Hints: e.Hints, Holder: e.Holder, Since: e.Since}
}

// write prints an error: as lines, or as the one document that --json promises
// on stderr.
func (f *failure) write(w io.Writer, asJSON bool) {
	if asJSON {
		doc := *f
		if doc.Hints == nil {
			doc.Hints = []string{}
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(map[string]any{"error": doc}) // stderr is gone: nobody to tell
		return
	}
	fmt.Fprintf(w, "retcon: %s\n", clean(f.Message))
	for _, hint := range f.Hints {
		fmt.Fprintf(w, "hint: %s\n", clean(hint))
	}
}

// clean keeps a message from driving the terminal: what it quotes may come from
// a file name.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (r < 0x20 || r >= 0x7f && r < 0xa0) {
			return '?'
		}
		return r
	}, s)
}
