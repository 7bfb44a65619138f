package mcp

import (
	"fmt"
	"sync"
	"time"
)

// turn keeps the writing calls of one server apart. Other processes are kept out
// by the locks of the workspace; those do not tell two callers of one process
// from each other.
type turn struct {
	mu   sync.Mutex
	held *BusyError
	over chan struct{} // closed when who holds it is done
}

// BusyError says that another call to the same server is writing. Try again
// when it is done.
type BusyError struct {
	Who   string
	Tool  string
	Since time.Time
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the workspace is locked by %s, whose %s goes on since %s", e.Who, e.Tool, e.Since.Format("15:04:05"))
}

// take gives the turn to a call until it calls done, or fails with a *BusyError.
func (t *turn) take(who, tool string, now time.Time) (done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held != nil {
		return nil, t.held
	}
	t.held, t.over = &BusyError{Who: who, Tool: tool, Since: now}, make(chan struct{})
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.held = nil
		close(t.over)
	}, nil
}

// wait returns when nobody holds the turn.
func (t *turn) wait() {
	t.mu.Lock()
	held, over := t.held, t.over
	t.mu.Unlock()
	if held != nil {
		<-over
	}
}
