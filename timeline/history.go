package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// StatusRewound is what a run is that was moved and not yet resumed.
const StatusRewound = "rewound"

// EventForced is the type of the event that says which tasks run again whatever
// their digest; EventMoved that of the one that says why the branch begins.
const (
	EventForced = "forced"
	EventMoved  = "moved"
)

// What becomes of the signals that were taken after the frame a run goes back
// to.
const (
	ReapplyAll  = ""     // they are sent again, to waits that ask the same
	ReapplyNone = "none" // they are asked for again
)

// History is what a move does to the record of a run. Nothing is deleted: the
// frames that are cut off stay as a branch of their own, which undo brings back.
type History struct {
	Run     int64       `json:"run"`
	Branch  int64       `json:"branch"` // it goes on with now
	Head    int64       `json:"head"`   // its newest frame
	Root    string      `json:"root"`   // of that frame
	Frame   int64       `json:"frame"`  // from which the run goes on
	Cut     int64       `json:"cut"`    // frames that are cut off
	Tasks   []TaskReset `json:"tasks,omitempty"`
	Forced  []TaskReset `json:"forced,omitempty"`  // they run again whatever their digest
	Signals []int64     `json:"signals,omitempty"` // that were taken since, and are sent again
	Taken   []int64     `json:"taken,omitempty"`   // the frame that had taken each of them; -1: it waited
	Put     []int64     `json:"put,omitempty"`     // of an undo: the frame that each is taken by again; -1: it waits
	Status  string      `json:"status"`            // of the run, before
	Becomes string      `json:"becomes"`
	Rerun   bool        `json:"rerun,omitempty"`  // as a new generation
	Had     int64       `json:"had,omitempty"`    // checkpoint of what the run had made of its worktree
	Left    int64       `json:"left,omitempty"`   // and of what this makes of it
	Undoes  int64       `json:"undoes,omitempty"` // an operation whose cut is taken back
}

// TaskReset is a task that loses its outcome.
type TaskReset struct {
	Task    string `json:"task"`
	State   string `json:"state"`
	Attempt int    `json:"attempt"` // the newest
}

// nothing tells that the record stays as it is.
func (h *History) nothing() bool {
	return h == nil || h.Undoes == 0 && h.Cut == 0 && len(h.Forced) == 0 && !h.Rerun
}

// StaleHistoryError refuses a plan because the run has gone on since it was
// made. Make a new one.
type StaleHistoryError struct{ Run int64 }

func (e *StaleHistoryError) Error() string {
	return fmt.Sprintf("r%d has gone on since the plan was made", e.Run)
}

// cut says what going back to a frame does to a run.
func cut(tx *ledger.Tx, run ledger.Run, frame int64, reapply string) (*History, error) {
	head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest)
	if err != nil {
		return nil, err
	}
	if frame < 0 || frame > head.Seq {
		return nil, &NoPointError{Run: run.ID, Point: fmt.Sprint(frame), Reason: "there is no such frame",
			Near: []string{fmt.Sprintf("0 to %d", head.Seq)}}
	}
	h := &History{Run: run.ID, Branch: head.Branch, Head: head.Seq, Root: head.Set.Root().String(), Frame: frame,
		Cut: head.Seq - frame, Status: run.Status, Becomes: StatusRewound}
	had, err := checkpoint.Left(tx, run)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return nil, err
	}
	h.Had, h.Left = had.ID, had.ID
	if h.Cut == 0 {
		h.Becomes = run.Status
		return h, nil
	}
	target, err := tx.LoadFrame(run.HeadBranch, frame)
	if err != nil {
		return nil, err
	}
	for _, c := range snapshot.Diff(target.Set, head.Set) {
		if c.New == nil || c.Key[0] == '~' || !c.New.State.Settled() {
			continue
		}
		h.Tasks = append(h.Tasks, TaskReset{Task: c.Key, State: c.New.State.String(), Attempt: int(c.New.Attempt)})
	}
	if reapply == ReapplyNone {
		return h, nil
	}
	sent, err := tx.Signals(run.ID)
	for _, s := range sent {
		if s.Delivered > frame {
			h.Signals, h.Taken = append(h.Signals, s.ID), append(h.Taken, s.Delivered)
		}
	}
	return h, err
}

// force adds tasks that run again, with the newest attempt of each.
func (h *History) force(tx *ledger.Tx, tasks []string) error {
	slices.Sort(tasks)
	for _, t := range slices.Compact(tasks) {
		tried, err := tx.AttemptsOf(h.Run, t)
		if err != nil {
			return err
		}
		r := TaskReset{Task: t}
		if len(tried) > 0 {
			r.Attempt, r.State = tried[len(tried)-1].Number, tried[len(tried)-1].Outcome
		}
		h.Forced = append(h.Forced, r)
	}
	h.Becomes = StatusRewound
	return nil
}

// fresh refuses a run that has gone on, and closes its branch to all but the
// operation.
func (h *History) close(tx *ledger.Tx, op int64) error {
	if h.nothing() {
		return nil
	}
	b, err := tx.RunHead(h.Run)
	if err != nil {
		return err
	}
	if b.ID != h.Branch || b.HeadSeq != h.Head || b.HeadRoot.String() != h.Root {
		return &StaleHistoryError{Run: h.Run}
	}
	return tx.Gate(b.ID, op)
}

// carryOut changes the record, in the transaction that is the move's commit
// point. The operation's gate is opened with its end.
func (h *History) carryOut(tx *ledger.Tx, op ledger.Op) error {
	if h.nothing() {
		return nil
	}
	crash.Point("move.history")
	if h.Undoes != 0 {
		if _, err := tx.Unrewind(h.Undoes, op.ID); err != nil {
			return err
		}
		if err := h.putSignals(tx); err != nil {
			return err
		}
		return tx.SetRunStatus(h.Run, h.Becomes)
	}
	b, err := tx.Rewind(h.Run, h.Frame, op.ID)
	if err != nil {
		return err
	}
	if err := h.putSignals(tx); err != nil {
		return err
	}
	if h.Rerun {
		if _, err := tx.NextGeneration(h.Run); err != nil {
			return err
		}
	}
	events := []ledger.Event{{Type: EventMoved, Actor: op.Actor, Body: mustJSON(map[string]any{"op": op.ID, "verb": op.Verb})}}
	if len(h.Forced) > 0 {
		tasks := map[string]int{}
		for _, t := range h.Forced {
			tasks[t.Task] = t.Attempt
		}
		events = append(events, ledger.Event{Type: EventForced, Actor: op.Actor, Body: mustJSON(map[string]any{"tasks": tasks})})
	}
	if err := tx.AppendEvents(b.ID, events); err != nil {
		return err
	}
	return tx.SetRunStatus(h.Run, h.Becomes)
}

// putSignals takes the signals from the frames that had taken them, and gives
// them to those that have them again.
func (h *History) putSignals(tx *ledger.Tx) error {
	for i, id := range h.Signals {
		err := tx.MarkSignal(id, -1)
		if err == nil && i < len(h.Put) && h.Put[i] >= 0 {
			err = tx.MarkSignal(id, h.Put[i])
		}
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
	}
	return nil
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// dependents are the tasks of a frame that got something of the named ones,
// directly or not: an outcome, or files that they wrote.
func dependents(set *snapshot.Set, of []string) []string {
	after := map[string][]string{}
	for r := range set.Rows() {
		for _, d := range r.Deps {
			after[d] = append(after[d], r.Key)
		}
		if r.After != "" && r.Key[0] != '~' {
			after[r.After] = append(after[r.After], r.Key)
		}
	}
	seen := map[string]bool{}
	var all []string
	for len(of) > 0 {
		t := of[0]
		of = of[1:]
		for _, d := range after[t] {
			if !seen[d] {
				seen[d] = true
				all, of = append(all, d), append(of, d)
			}
		}
	}
	return all
}

// head reads the run a move is about.
func (m *Mover) run(ctx context.Context, id int64) (run ledger.Run, err error) {
	err = m.DB.View(ctx, func(tx *ledger.Tx) error {
		run, err = tx.Run(id)
		if err == nil && run.HeadBranch == 0 {
			err = &NoFramesError{Run: id}
		}
		return err
	})
	return run, err
}

// backAim takes back what a move did to a run.
func backAim(tx *ledger.Tx, op int64, did *History, to ledger.Checkpoint) (aim, error) {
	run, err := tx.Run(did.Run)
	if err != nil {
		return aim{}, err
	}
	h, err := cut(tx, run, 0, ReapplyNone)
	if err != nil {
		return aim{}, err
	}
	h.Frame, h.Cut, h.Tasks, h.Undoes, h.Becomes = h.Head, 0, nil, op, did.Status
	h.Left = did.Had
	if len(did.Taken) != len(did.Signals) {
		return aim{history: h, to: to}, nil // made before it was noted where they were
	}
	sent, err := tx.Signals(run.ID)
	for _, s := range sent {
		if i := slices.Index(did.Signals, s.ID); i >= 0 {
			h.Signals, h.Taken, h.Put = append(h.Signals, s.ID), append(h.Taken, s.Delivered), append(h.Put, did.Taken[i])
		}
	}
	return aim{history: h, to: to}, err
}
