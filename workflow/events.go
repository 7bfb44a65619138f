package workflow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/vcs"
)

// Types of events in the log of a workflow's run.
const (
	EventStarted  = "started"  // an attempt has begun
	EventRetry    = "retry"    // an attempt failed, another is to follow
	EventSettled  = "settled"  // a task has its outcome
	EventTimer    = "timer"    // a deadline was set
	EventOutside  = "outside"  // files were changed by somebody who is not of the run
	EventSwitched = "switched" // a worktree is put to another content
	EventSession  = "session"  // an agent's conversation
	EventFallback = "fallback" // every attempt failed, and the fallback counts
	EventReset    = "reset"    // tasks have lost their outcome, to run again
	EventForced   = "forced"   // tasks are to run again, whatever their digest
	EventHalted   = "halted"   // the run can't go on
	EventResumed  = "resumed"
	EventUpgraded = "upgraded" // a task declared to read has written

	EventCrossed = "SideEffectBoundaryCrossed" // a task runs again although what it did outside stands
)

func event(kind, task string, body any) ledger.Event {
	b, err := json.Marshal(body)
	if err != nil {
		panic("BUG: an event that is not JSON: " + err.Error())
	}
	return ledger.Event{Type: kind, Task: task, Body: b}
}

// settledNote is the body of EventSettled. Out is set when no attempt holds
// the outcome, and it is small.
type settledNote struct {
	State   string `json:"state"`
	Attempt uint32 `json:"attempt,omitempty"`
	Carried int64  `json:"carried_from,omitempty"` // attempt
	Out     []byte `json:"out,omitempty"`
}

type sessionNote struct {
	Session string `json:"session"`
	Attempt int    `json:"attempt"`
}

type startedNote struct {
	Attempt int    `json:"attempt"`
	At      string `json:"at,omitempty"`
}

// retryNote is the body of EventRetry.
type retryNote struct {
	Attempt int       `json:"attempt"` // that failed
	Due     time.Time `json:"due"`     // of the next
	Failure string    `json:"failure"`
}

type timerNote struct {
	Due time.Time `json:"due"`
}

func timerEvent(task string, due time.Time) ledger.Event {
	return event(EventTimer, task, timerNote{Due: due.UTC()})
}

// outsideNote is the body of EventOutside.
type outsideNote struct {
	Base   string `json:"base"` // tree
	Tree   string `json:"tree"`
	Commit string `json:"commit"`
	ID     int64  `json:"checkpoint"`
}

func outsideEvent(o outside) ledger.Event {
	return event(EventOutside, o.task, outsideNote{Base: o.base, Tree: o.now.tree, Commit: string(o.now.commit), ID: o.now.id})
}

func outsideRow(o outside) snapshot.Row {
	return snapshot.Row{Key: "~outside/" + o.task, Kind: "outside", State: snapshot.Done, Tree: o.now.tree, After: o.base}
}

// switchedNote is the body of EventSwitched: a directory goes from one commit
// to another, and may be found anywhere in between.
type switchedNote struct {
	Place    string `json:"place,omitempty"`
	From, To string // commits
}

type haltedNote struct {
	Tasks []string `json:"tasks"` // whose failure stopped the run
	Error string   `json:"error"`
}

// resetNote is the body of EventReset: tasks, and the newest attempt of each.
type resetNote struct {
	Tasks map[string]int `json:"tasks"`
}

// read adds an event to what is known of the past.
func (p *past) read(ev ledger.Event) error {
	var err error
	switch ev.Type {
	case EventSettled:
		var n settledNote
		if err = json.Unmarshal(ev.Body, &n); err == nil && n.Out != nil {
			p.outs[hashOf(n.Out)] = string(n.Out)
		}
	case EventTimer:
		var n timerNote
		err = json.Unmarshal(ev.Body, &n)
		p.timers[ev.Task] = n.Due
	case EventSession:
		var n sessionNote
		err = json.Unmarshal(ev.Body, &n)
		p.sessions[ev.Task] = n.Session
	case EventRetry:
		var n retryNote
		err = json.Unmarshal(ev.Body, &n)
		p.retries[ev.Task] = n
	case EventReset:
		var n resetNote
		err = json.Unmarshal(ev.Body, &n)
		for t, number := range n.Tasks {
			delete(p.timers, t)
			delete(p.retries, t)
			p.resets[t] = number
		}
	case EventForced:
		var n resetNote
		err = json.Unmarshal(ev.Body, &n)
		for t, number := range n.Tasks {
			p.forced[t] = number
		}
	case EventHalted:
		var n haltedNote
		err = json.Unmarshal(ev.Body, &n)
		p.halted = n.Tasks
	case EventResumed:
		p.halted = nil
	case EventOutside:
		var n outsideNote
		err = json.Unmarshal(ev.Body, &n)
		p.outside[ev.Task] = outside{task: ev.Task, base: n.Base, now: files{commit: vcs.Commit(n.Commit), tree: n.Tree, id: n.ID}}
	case EventSwitched:
		var n switchedNote
		if err = json.Unmarshal(ev.Body, &n); err == nil && n.Place == "" {
			p.switched = &n
		}
	}
	if err != nil {
		return fmt.Errorf("event %d.%d %s of %s: %w", ev.Seq, ev.Idx, ev.Type, ev.Task, err)
	}
	return nil
}
