package retcon

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
)

// EventsOptions select a page of a run's events. Run is needed.
type EventsOptions struct {
	Run   string
	From  int64 // only of this frame and later
	Limit int   // 200 when zero
	Task  string
}

// Event is something that happened in a run, on the way to a frame.
type Event struct {
	Frame int64           `json:"frame"` // that it leads to
	Index int             `json:"index"` // in the frame
	At    time.Time       `json:"at"`
	Type  string          `json:"type"`
	Task  string          `json:"task,omitempty"`
	Actor string          `json:"actor,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// Events returns events of a run, oldest first.
func (w *Workspace) Events(ctx context.Context, o EventsOptions) ([]Event, error) {
	out := []Event{}
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		run, err := findRun(tx, row, o.Run)
		if err != nil {
			return err
		}
		if run.HeadBranch == 0 {
			return &timeline.NoFramesError{Run: run.ID}
		}
		q := ledger.EventQuery{From: o.From, Limit: o.Limit}
		if o.Task != "" {
			at, err := timeline.Locate(tx, run, snapshot.Point{Kind: snapshot.AtTask, Text: o.Task, Task: o.Task})
			if err != nil {
				return err
			}
			q.Task = at.Task
		}
		page, err := tx.Events(run.HeadBranch, q)
		if err != nil {
			return err
		}
		for _, ev := range page {
			body, err := tx.EventBody(ev)
			if err != nil {
				return fmt.Errorf("event %d.%d: %w", ev.Seq, ev.Idx, err)
			}
			out = append(out, Event{Frame: ev.Seq, Index: ev.Idx, At: ev.At.UTC(), Type: ev.Type, Task: ev.Task, Actor: ev.Actor, Body: body})
		}
		return nil
	})
	return out, err
}
