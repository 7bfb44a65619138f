package timeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// Place is a place in a run's history, found.
type Place struct {
	Run        ledger.Run
	Branch     int64 // the run's head branch; 0 for a run without frames
	Frame      int64 // -1 where there is none
	Task       string
	Attempt    *ledger.Attempt   // of Task; nil when that was not meant, or was never tried
	Checkpoint ledger.Checkpoint // the worktree there; ID 0 when it was not recorded
}

// NoPointError says that a run has no such point.
type NoPointError struct {
	Run    int64
	Point  string
	Reason string
	Near   []string // what there is instead
}

func (e *NoPointError) Error() string {
	s := fmt.Sprintf("r%d@%s: %s", e.Run, e.Point, e.Reason)
	if len(e.Near) > 0 {
		s += "; there is " + strings.Join(e.Near, ", ")
	}
	return s
}

// AmbiguousPointError says that a name fits several tasks of a run.
type AmbiguousPointError struct {
	Run        int64
	Point      string
	Candidates []string // ids, at most ten
	More       int      // others that are not listed
}

func (e *AmbiguousPointError) Error() string {
	s := fmt.Sprintf("r%d@%s is ambiguous: %s", e.Run, e.Point, strings.Join(e.Candidates, ", "))
	if e.More > 0 {
		s += fmt.Sprintf(" and %d more", e.More)
	}
	return s
}

// NotRecordedError says that a point is there, but not the worktree at it.
type NotRecordedError struct {
	Run    int64
	Point  string
	Reason string
}

func (e *NotRecordedError) Error() string { return fmt.Sprintf("r%d@%s: %s", e.Run, e.Point, e.Reason) }

// NoFramesError says that a run has no frames: a recorded command, or a run
// that died before its first.
type NoFramesError struct{ Run int64 }

func (e *NoFramesError) Error() string { return fmt.Sprintf("r%d has no frames", e.Run) }

// Locate finds a point of a run. The run has frames, or the point is of a task
// or a checkpoint; otherwise a *NoFramesError. Other errors are *NoPointError and
// *AmbiguousPointError.
func Locate(tx *ledger.Tx, run ledger.Run, p snapshot.Point) (Place, error) {
	l := locator{tx: tx, run: run, point: p}
	at := Place{Run: run, Branch: run.HeadBranch, Frame: -1}
	if run.HeadBranch != 0 {
		var err error
		if l.head, err = tx.LoadFrame(run.HeadBranch, ledger.Newest); err != nil {
			return at, err
		}
	}
	var err error
	switch p.Kind {
	case snapshot.AtTask:
		err = l.task(&at)
	case snapshot.AtCheckpoint:
		err = l.checkpoint(&at)
	default:
		err = l.frame(&at)
	}
	return at, err
}

// locator looks a point up.
type locator struct {
	tx    *ledger.Tx
	run   ledger.Run
	head  *ledger.Head // nil for a run without frames
	point snapshot.Point
}

func (l *locator) nothing(reason string, near ...string) error {
	return &NoPointError{Run: l.run.ID, Point: l.point.String(), Reason: reason, Near: near}
}

func (l *locator) frame(at *Place) error {
	if l.head == nil || l.head.Seq < 0 {
		return &NoFramesError{Run: l.run.ID}
	}
	seq := l.head.Seq
	switch l.point.Kind {
	case snapshot.AtFrame:
		seq = l.point.N
	case snapshot.AtBack:
		seq -= l.point.N
	case snapshot.AtStart:
		seq = 0
	case snapshot.AtLabel:
		return l.label(at)
	}
	return l.at(at, seq)
}

// at goes to a frame.
func (l *locator) at(at *Place, seq int64) error {
	if seq < 0 || seq > l.head.Seq {
		return l.nothing("there is no such frame", fmt.Sprintf("0 to %d", l.head.Seq))
	}
	f, err := l.tx.FrameAt(l.run.HeadBranch, seq, false)
	if err != nil {
		return err
	}
	at.Frame = seq
	return l.worktree(at, f.Checkpoint)
}

// worktree fills in a checkpoint; one that was forgotten is none.
func (l *locator) worktree(at *Place, id int64) error {
	if id == 0 {
		return nil
	}
	c, err := l.tx.Checkpoint(id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	at.Checkpoint = c
	return err
}

// label finds the newest frame with a label, else a checkpoint with it.
func (l *locator) label(at *Place) error {
	var near []string
	for before := l.head.Seq + 1; before > 0; {
		page, err := l.tx.Frames(l.run.HeadBranch, ledger.FrameQuery{Before: before, Limit: 1000})
		if err != nil {
			return err
		}
		for _, f := range page {
			if f.Note == l.point.Text {
				at.Frame = f.Seq
				return l.worktree(at, f.Checkpoint)
			}
			if f.Note != "" && len(near) < 10 {
				near = append(near, "~"+f.Note)
			}
		}
		if len(page) == 0 {
			break
		}
		before = page[len(page)-1].Seq
	}
	c, err := l.tx.CheckpointByLabel(l.run.WorktreeID, l.point.Text)
	if errors.Is(err, ledger.ErrNotFound) {
		return l.nothing("there is no such label", near...)
	}
	if err == nil && c.RunID != l.run.ID {
		return l.nothing(fmt.Sprintf("the label is on c%d, which is not of this run", c.ID))
	}
	at.Checkpoint = c
	return err
}

// checkpoint finds a checkpoint, which has to be of the run or of one it was
// forked from.
func (l *locator) checkpoint(at *Place) error {
	c, err := l.tx.Checkpoint(l.point.N)
	if errors.Is(err, ledger.ErrNotFound) {
		return l.nothing("there is no such checkpoint")
	}
	if err != nil {
		return err
	}
	lineage, err := l.tx.Lineage(l.run.ID)
	if err != nil {
		return err
	}
	if !slices.Contains(lineage, c.RunID) {
		return l.nothing("the checkpoint is not of this run")
	}
	at.Checkpoint = c
	if c.AttemptID != 0 {
		a, err := l.tx.Attempt(c.AttemptID)
		if err != nil {
			return err
		}
		at.Task, at.Attempt = a.Task, &a
	}
	return nil
}

// task finds an attempt of a task, and the frame that has its outcome.
func (l *locator) task(at *Place) error {
	if l.point.Task == "" { // r3@before: whatever its task
		all, err := l.tx.Attempts(l.run.ID)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return l.nothing("nothing was tried")
		}
		newest := all[len(all)-1]
		at.Task = newest.Task
		return l.attempt(at, []ledger.Attempt{newest})
	}
	ids, err := l.ids()
	if err != nil {
		return err
	}
	p := l.point.Settle(func(id string) bool { return len(Matching(ids, id)) > 0 })
	found := Matching(ids, p.Task)
	switch len(found) {
	case 0:
		return l.nothing("there is no such task", nearest(ids, p.Task)...)
	case 1:
	default:
		shown := found[:min(len(found), 10)]
		return &AmbiguousPointError{Run: l.run.ID, Point: p.String(), Candidates: shown, More: len(found) - len(shown)}
	}
	at.Task, l.point = found[0], p
	lineage, err := l.tx.Lineage(l.run.ID)
	if err != nil {
		return err
	}
	for _, run := range lineage {
		tried, err := l.tx.AttemptsOf(run, at.Task)
		if err != nil {
			return err
		}
		if len(tried) > 0 {
			return l.attempt(at, tried)
		}
	}
	if p.Attempt != 0 || p.Edge != snapshot.EdgeNone {
		return l.nothing("the task was never tried")
	}
	return l.settled(at, 0)
}

// ids are the tasks of the newest frame; without frames, those that were tried.
func (l *locator) ids() (ids []string, err error) {
	if l.head != nil {
		for r := range l.head.Set.Rows() {
			if !strings.HasPrefix(r.Key, "~") {
				ids = append(ids, r.Key)
			}
		}
		return ids, nil
	}
	all, err := l.tx.Attempts(l.run.ID)
	for _, a := range all {
		ids = append(ids, a.Task)
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// attempt chooses one of a task's attempts, and the edge of it.
func (l *locator) attempt(at *Place, tried []ledger.Attempt) error {
	a := tried[len(tried)-1]
	if l.point.Attempt != 0 {
		i := slices.IndexFunc(tried, func(a ledger.Attempt) bool { return a.Number == int(l.point.Attempt) })
		if i < 0 {
			return l.nothing(fmt.Sprintf("%s has no such attempt", at.Task), fmt.Sprintf("#1 to #%d", a.Number))
		}
		a = tried[i]
	}
	at.Attempt = &a
	switch l.point.Edge {
	case snapshot.EdgeBefore:
		return l.worktree(at, a.Before)
	case snapshot.EdgeAfter:
		return l.worktree(at, a.After)
	}
	if l.head != nil {
		if err := l.settled(at, a.Number); err != nil {
			return err
		}
	}
	for _, id := range []int64{a.After, a.Before} {
		if id != 0 {
			return l.worktree(at, id)
		}
	}
	return nil
}

// settled goes to the frame that a task has its outcome in, of one attempt or,
// with 0, the newest.
func (l *locator) settled(at *Place, attempt int) error {
	if l.head == nil {
		return nil
	}
	history, err := l.tx.TaskHistory(l.run.HeadBranch, at.Task, ledger.FrameQuery{Limit: 10000})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range history {
		now := f.Changed[0].New
		if now == nil || attempt != 0 && int(now.Attempt) != attempt && now.State.Settled() {
			continue
		}
		if now.State.Settled() || attempt == 0 {
			at.Frame = f.Seq
			return l.worktree(at, f.Checkpoint)
		}
	}
	return nil
}

// Matching returns the tasks that a name means: the one with that id; else
// those that are called so, with or without their scope; else those whose id, or
// the part of it behind the scope, begins so.
func Matching(ids []string, name string) []string {
	if name == "" {
		return nil
	}
	for _, fits := range []func(id string) bool{
		func(id string) bool { return id == name },
		func(id string) bool { return bare(id) == name || last(id) == name },
		func(id string) bool { return last(bare(id)) == name },
		func(id string) bool { return strings.HasPrefix(id, name) || strings.HasPrefix(last(id), name) },
	} {
		var found []string
		for _, id := range ids {
			if fits(id) {
				found = append(found, id)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// last is an id without its scope.
func last(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// bare is an id without digest, key and number.
func bare(id string) string {
	at := strings.LastIndexByte(id, '/') + 1
	if i := strings.IndexAny(id[at:], "~[#"); i > 0 {
		return id[:at+i]
	}
	return id
}

// nearest are some names to choose from: those that have something of the word,
// else the first.
func nearest(ids []string, word string) []string {
	seen := map[string]bool{}
	var like, all []string
	for _, id := range ids {
		n := bare(id)
		if seen[n] {
			continue
		}
		seen[n] = true
		all = append(all, n)
		if strings.Contains(n, word) || strings.Contains(word, last(n)) {
			like = append(like, n)
		}
	}
	if len(like) > 0 {
		all = like
	}
	return all[:min(len(all), 8)]
}
