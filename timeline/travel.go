package timeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// Verbs of moves along a run.
const (
	VerbRewind     = "rewind"
	VerbTimeTravel = "timetravel"
	VerbRetry      = "retry-task"
	VerbRerun      = "rerun"
	VerbRevert     = "revert"
)

// Travel is a move along a run as asked for. The fields of Request that name a
// target are filled in.
type Travel struct {
	Request `json:"-"`

	Run     int64
	Frame   int64    // of a rewind
	Inside  int64    // of a rewind: the worktree goes to this checkpoint, taken after Frame and before the next; 0 for the frame's
	Task    string   // as named: see Matching
	Attempt int      // 0 for the newest
	Tasks   []string // of a rerun
	From    string   // of a rerun: this task and what comes after it in its scope
	Failed  bool     // of a rerun: what did not end well

	After      bool   // to where the attempt ended, not to where it began
	Before     bool   // of a revert: to where it began
	Only       bool   // of a revert: only what that attempt changed
	Cascade    bool   // what depends on the task runs again, too, whatever its digest
	KeepFiles  bool   // of a retry: the worktree stays as it is
	LedgerOnly bool   // only the record moves
	Reapply    string // ReapplyAll or ReapplyNone

	// Again, if set, says of which effects it is known that they would be made
	// again when tasks run again from the newest frame, and which may be. It is
	// asked for a retry and a rerun, outside of any transaction.
	Again func(ctx context.Context, tasks []string) (will, may []int64, err error) `json:"-"`
}

// aim is what a move along a run comes to, decided in one reading of the ledger.
type aim struct {
	history *History
	to      ledger.Checkpoint // ID 0: the worktree stays
	paths   []string          // only these; nil for all
	attempt ledger.Attempt    // of a revert
	only    *part             // of a revert: this alone is taken back
	effects []ledger.Effect   // that the move goes behind
	may     []ledger.Effect   // that may be made again when the run goes on
}

// Travel plans and carries out a move along a run.
func (m *Mover) Travel(ctx context.Context, t Travel) (*Result, error) {
	run, err := m.run(ctx, t.Run)
	if err != nil {
		return nil, err
	}
	aims := map[string]func(*ledger.Tx, ledger.Run, Travel) (aim, error){
		VerbRewind: rewindAim, VerbTimeTravel: timeTravelAim, VerbRetry: retryAim, VerbRerun: rerunAim, VerbRevert: m.revertAim,
	}
	find := aims[t.Verb]
	if find == nil {
		return nil, fmt.Errorf("BUG: %q is no verb of a run", t.Verb)
	}
	r := t.Request
	about, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	r.about = string(about)
	if r.Target == "" {
		r.Target = t.target(run)
	}
	again, err := m.again(ctx, run, t, find)
	if err != nil {
		return nil, err
	}
	r.aim = func(tx *ledger.Tx) (aim, error) {
		now, err := tx.Run(run.ID) // it may have been moved meanwhile
		if err != nil {
			return aim{}, err
		}
		a, err := find(tx, now, t)
		if err == nil {
			a.effects, err = guardedEffects(tx, now, t, a)
		}
		if err == nil {
			err = again.guard(tx, &a)
		}
		if t.LedgerOnly {
			a.to = ledger.Checkpoint{}
		} else if err == nil && a.to.ID == 0 && !t.KeepFiles {
			err = &NotRecordedError{Run: run.ID, Point: t.point(), Reason: "the worktree was not recorded there; --ledger-only moves the record alone"}
		}
		if a.history != nil && a.to.ID != 0 {
			a.history.Left = a.to.ID
		}
		a.to.RunID = run.ID // whose changes are to be taken back
		return a, err
	}
	return m.Move(ctx, r)
}

func (t *Travel) point() string {
	switch {
	case t.Verb == VerbRewind && t.Inside != 0:
		return fmt.Sprintf("c%d", t.Inside)
	case t.Verb == VerbRewind:
		return fmt.Sprint(t.Frame)
	case t.Attempt != 0:
		return fmt.Sprintf("%s#%d", t.Task, t.Attempt)
	case t.Verb == VerbRerun:
		named := t.Tasks
		if t.From != "" {
			named = append(named[:len(named):len(named)], "from "+t.From)
		}
		if t.Failed {
			named = append(named[:len(named):len(named)], "failed")
		}
		return strings.Join(named, ",")
	}
	return t.Task
}

func (t *Travel) target(run ledger.Run) string { return fmt.Sprintf("r%d@%s", run.ID, t.point()) }

// checkpointOr0 is a checkpoint, or none where there is no number.
func checkpointOr0(tx *ledger.Tx, id int64) (ledger.Checkpoint, error) {
	if id == 0 {
		return ledger.Checkpoint{}, nil
	}
	return tx.Checkpoint(id)
}

func rewindAim(tx *ledger.Tx, run ledger.Run, t Travel) (a aim, err error) {
	if a.history, err = cut(tx, run, t.Frame, t.Reapply); err != nil {
		return a, err
	}
	if t.Inside != 0 {
		a.to, err = insideCheckpoint(tx, run, t)
		return a, err
	}
	a.to, err = frameCheckpoint(tx, run, t.Frame)
	return a, err
}

// insideCheckpoint is the checkpoint between two frames that a rewind goes to.
func insideCheckpoint(tx *ledger.Tx, run ledger.Run, t Travel) (ledger.Checkpoint, error) {
	at, err := Locate(tx, run, snapshot.Point{Kind: snapshot.AtCheckpoint, N: t.Inside})
	switch {
	case err != nil:
		return at.Checkpoint, err
	case at.Checkpoint.WorktreeID != run.WorktreeID:
		return at.Checkpoint, &NotRecordedError{Run: run.ID, Point: t.point(), Reason: "it is of another worktree; rewind to a frame instead"}
	}
	frame, err := Enclosing(tx, run, at.Checkpoint)
	if err == nil && frame != t.Frame {
		err = &StaleHistoryError{Run: run.ID}
	}
	return at.Checkpoint, err
}

// Enclosing is the newest frame, on the line that a run goes on with, that was
// recorded when a checkpoint was taken: where the record stands while the files
// are those of the checkpoint.
func Enclosing(tx *ledger.Tx, run ledger.Run, c ledger.Checkpoint) (int64, error) {
	if run.HeadBranch == 0 {
		return 0, &NoFramesError{Run: run.ID}
	}
	for before := int64(0); ; {
		page, err := tx.Frames(run.HeadBranch, ledger.FrameQuery{Before: before, Limit: 1000})
		if err != nil {
			return 0, err
		}
		for _, f := range page {
			if f.Checkpoint != 0 && f.Checkpoint <= c.ID {
				return f.Seq, nil
			}
			before = f.Seq
		}
		if len(page) == 0 || before == 0 {
			return 0, &NoPointError{Run: run.ID, Point: fmt.Sprintf("c%d", c.ID), Reason: "it was taken before the first frame"}
		}
	}
}

func frameCheckpoint(tx *ledger.Tx, run ledger.Run, frame int64) (ledger.Checkpoint, error) {
	f, err := tx.FrameAt(run.HeadBranch, frame, false)
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	return checkpointOr0(tx, f.Checkpoint)
}

func timeTravelAim(tx *ledger.Tx, run ledger.Run, t Travel) (aim, error) {
	task, try, set, err := attemptOf(tx, run, t.Task, t.Attempt)
	if err != nil {
		return aim{}, err
	}
	frame, edge := try.StartSeq, try.Before
	if t.After {
		frame, edge = try.EndSeq, try.After
	}
	h, err := cut(tx, run, frame, t.Reapply)
	if err != nil {
		return aim{}, err
	}
	if !t.After {
		tasks := []string{task}
		if t.Cascade {
			tasks = append(tasks, dependents(set, tasks)...)
		}
		if err := h.force(tx, tasks); err != nil {
			return aim{}, err
		}
	}
	a := aim{history: h}
	if try.Worktree != 0 || fileless(try) { // a branch's own worktree is made again
		a.to, err = frameCheckpoint(tx, run, frame)
		return a, err
	}
	a.to, err = checkpointOr0(tx, edge)
	return a, err
}

// fileless tells that an attempt has ended and had nothing to do with files: those
// around it are what the frame has.
func fileless(a ledger.Attempt) bool {
	return a.Before == 0 && a.After == 0 && (a.Outcome == ledger.OutcomeOK || a.Outcome == ledger.OutcomeFailed)
}

// attemptOf finds an attempt of a task on the branch that a run goes on with,
// and the state of the newest frame.
func attemptOf(tx *ledger.Tx, run ledger.Run, name string, number int) (task string, a ledger.Attempt, set *snapshot.Set, err error) {
	head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest)
	if err != nil {
		return "", a, nil, err
	}
	var ids []string
	for r := range head.Set.Rows() {
		if r.Key[0] != '~' {
			ids = append(ids, r.Key)
		}
	}
	found := Matching(ids, name)
	switch len(found) {
	case 0:
		return "", a, nil, &NoPointError{Run: run.ID, Point: name, Reason: "there is no such task", Near: nearest(ids, name)}
	case 1:
		task = found[0]
	default:
		shown := found[:min(len(found), 10)]
		return "", a, nil, &AmbiguousPointError{Run: run.ID, Point: name, Candidates: shown, More: len(found) - len(shown)}
	}
	tried, err := visible(tx, run, task)
	if err != nil {
		return task, a, nil, err
	}
	i := slices.IndexFunc(tried, func(a ledger.Attempt) bool { return a.Number == number })
	switch {
	case len(tried) == 0:
		reason := "it was never tried"
		if row, _ := head.Set.Get(task); row.Carried {
			reason = "its outcome was carried: it did not run here"
		}
		return task, a, nil, &NotRecordedError{Run: run.ID, Point: name, Reason: reason}
	case number == 0:
		i = len(tried) - 1
	case i < 0:
		return task, a, nil, &NoPointError{Run: run.ID, Point: fmt.Sprintf("%s#%d", name, number), Reason: "there is no such attempt",
			Near: []string{fmt.Sprintf("#%d to #%d", tried[0].Number, tried[len(tried)-1].Number)}}
	}
	return task, tried[i], head.Set, nil
}

// visible are the attempts of a task that lie on the branch a run goes on with.
func visible(tx *ledger.Tx, run ledger.Run, task string) ([]ledger.Attempt, error) {
	upTo := map[int64]int64{}
	b, err := tx.BranchByID(run.HeadBranch)
	for to := int64(1<<63 - 1); err == nil; b, err = tx.BranchByID(b.Parent) {
		upTo[b.ID] = to
		to = b.BaseSeq
		if b.Parent == 0 {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	all, err := tx.AttemptsOf(run.ID, task)
	return slices.DeleteFunc(all, func(a ledger.Attempt) bool {
		to, ok := upTo[a.Branch]
		return !ok || a.StartSeq >= to
	}), err
}

// retryAim lets a task run again where it ran: nothing is cut off.
func retryAim(tx *ledger.Tx, run ledger.Run, t Travel) (aim, error) {
	task, try, set, err := attemptOf(tx, run, t.Task, t.Attempt)
	if err != nil {
		return aim{}, err
	}
	h, err := again(tx, run, set, []string{task}, t.Cascade)
	if err != nil || t.KeepFiles {
		return aim{history: h}, err
	}
	a := aim{history: h}
	if try.Worktree == 0 && !fileless(try) {
		a.to, err = checkpointOr0(tx, try.Before)
		return a, err
	}
	a.to, err = frameCheckpoint(tx, run, try.StartSeq)
	return a, err
}

// again says that tasks run again, from the newest frame.
func again(tx *ledger.Tx, run ledger.Run, set *snapshot.Set, tasks []string, cascade bool) (*History, error) {
	head, err := tx.RunHead(run.ID)
	if err != nil {
		return nil, err
	}
	h, err := cut(tx, run, head.HeadSeq, ReapplyAll)
	if err != nil {
		return nil, err
	}
	if cascade {
		tasks = append(tasks, dependents(set, tasks)...)
	}
	return h, h.force(tx, tasks)
}

// rerunAim opens a new generation, in which the named tasks run again.
func rerunAim(tx *ledger.Tx, run ledger.Run, t Travel) (aim, error) {
	head, err := tx.LoadFrame(run.HeadBranch, ledger.Newest)
	if err != nil {
		return aim{}, err
	}
	var tasks []string
	for _, name := range t.Tasks {
		task, _, _, err := attemptOf(tx, run, name, 0)
		if err != nil {
			return aim{}, err
		}
		tasks = append(tasks, task)
	}
	if t.From != "" {
		task, _, _, err := attemptOf(tx, run, t.From, 0)
		if err != nil {
			return aim{}, err
		}
		tasks = append(append(tasks, task), dependents(head.Set, []string{task})...)
	}
	if t.Failed {
		for r := range head.Set.Rows() {
			if r.Key[0] != '~' && r.State.Settled() && r.State != snapshot.Done {
				tasks = append(tasks, r.Key)
			}
		}
	}
	if len(tasks) == 0 {
		return aim{}, &NoPointError{Run: run.ID, Point: t.point(), Reason: "no task is to run again"}
	}
	h, err := again(tx, run, head.Set, tasks, t.Cascade)
	if err != nil {
		return aim{}, err
	}
	h.Rerun = true
	first, err := firstBegun(tx, run, tasks)
	if err != nil || first.ID == 0 {
		t.KeepFiles = true
		to, ferr := frameCheckpoint(tx, run, head.Seq)
		return aim{history: h, to: to}, firstErr(err, ferr)
	}
	to, err := checkpointOr0(tx, first.Before)
	return aim{history: h, to: to}, err
}

func firstErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// firstBegun is the earliest of the newest attempts of tasks, in the run's own
// worktree.
func firstBegun(tx *ledger.Tx, run ledger.Run, tasks []string) (first ledger.Attempt, err error) {
	for _, t := range tasks {
		tried, err := visible(tx, run, t)
		if err != nil {
			return first, err
		}
		if len(tried) == 0 {
			continue
		}
		a := tried[len(tried)-1]
		if a.Worktree == 0 && a.Before != 0 && (first.ID == 0 || a.Before < first.Before) {
			first = a
		}
	}
	return first, nil
}

// revertAim touches the files alone.
func (m *Mover) revertAim(tx *ledger.Tx, run ledger.Run, t Travel) (a aim, err error) {
	_, try, _, err := attemptOf(tx, run, t.Task, t.Attempt)
	if err != nil {
		return a, err
	}
	a.attempt = try
	if try.Worktree != 0 {
		return a, &NotRecordedError{Run: run.ID, Point: t.point(), Reason: "it ran in a worktree of its branch's own; rewind to a frame instead"}
	}
	before, after, err := edges(tx, run, try)
	a.to = after
	if t.Before || t.Only {
		a.to = before
	}
	if err != nil || !t.Only || a.to.ID == 0 {
		return a, err
	}
	if after.ID == 0 {
		return a, &NotRecordedError{Run: run.ID, Point: t.point(), Reason: "nobody saw where it ended"}
	}
	a.only, err = m.partOf(tx, run, try)
	return a, err
}
