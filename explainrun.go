package retcon

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/workflow"
)

// explainBody knows what is wrong with a workflow's file and with what it is
// given.
func explainBody(err error, e *Explained) bool {
	var (
		body     *workflow.BodyError
		twice    *workflow.DuplicateKeyError
		input    *workflow.InputError
		diverged *workflow.DivergedError
		file     *FileError
	)
	switch {
	case errors.As(err, &diverged):
		return e.is(diverged.Code)
	case errors.As(err, &body):
		if body.Hint != "" {
			return e.is(CodeBody, body.Hint)
		}
		return e.is(CodeBody)
	case errors.As(err, &twice):
		return e.is(CodeBody, `give each a key of its own: key="…"`)
	case errors.As(err, &input):
		return e.is(CodeUsage)
	case errors.As(err, &file):
		if errors.Is(err, fs.ErrNotExist) {
			return e.is(CodeNotFound)
		}
		return e.is(CodeFailed)
	}
	return false
}

// explainRun knows what stands in the way of going on with a run.
func explainRun(err error, e *Explained) bool {
	var (
		finished *workflow.FinishedError
		live     *workflow.LiveError
		other    *workflow.NotWorkflowError
		program  *workflow.GoProgramError
		nothing  *workflow.NothingBegunError
		wait     *workflow.WaitError
		several  *workflow.AmbiguousWaitError
		reuse    *ledger.SignalReuseError
		noRun    *RunError
		away     *ElsewhereError
		task     *TaskCancelError
		still    *StillRunningError
		locked   *ledger.LockedError
	)
	switch {
	case errors.As(err, &finished):
		return e.is(CodeRefused, fmt.Sprintf("retcon show r%d", finished.Run), fmt.Sprintf("retcon resume r%d --file FILE", finished.Run))
	case errors.As(err, &live):
		e.Message = fmt.Sprintf("r%d is being run", live.Run)
		if errors.As(live.Err, &locked) && locked.Resource != runRef(live.Run) {
			e.Message = "another run goes on in this worktree"
		}
		if locked != nil && locked.Owner.PID != 0 {
			e.Message += fmt.Sprintf(" by pid %d", locked.Owner.PID)
			if !locked.Since.IsZero() {
				e.Message += " since " + locked.Since.Format("15:04")
			}
		}
		hints := []string{"retcon runs", fmt.Sprintf("retcon cancel r%d", live.Run)}
		if locked == nil {
			return e.is(CodeLocked, hints...)
		}
		return e.heldBy(CodeLocked, locked.Owner, locked.Since, hints...)
	case errors.As(err, &locked) && locked.Owner.PID != 0:
		e.Message = fmt.Sprintf("another run goes on in this worktree, by pid %d since %s", locked.Owner.PID, locked.Since.Format("15:04"))
		return e.heldBy(CodeLocked, locked.Owner, locked.Since, "retcon runs")
	case errors.As(err, &other):
		return e.is(CodeUsage, "retcon runs")
	case errors.As(err, &program):
		return e.is(CodeRefused, fmt.Sprintf("retcon show r%d", program.Run))
	case errors.As(err, &nothing):
		return e.is(CodeFailed, "retcon runs")
	case errors.As(err, &wait):
		e.is(CodeNotFound)
		for i, name := range wait.Waiting {
			hint := fmt.Sprintf("retcon signal r%d %s", wait.Run, shellWord(name))
			if i < len(wait.Answers) && wait.Answers[i] != "" {
				hint += " --value " + shellWord(wait.Answers[i])
			}
			e.Hints = append(e.Hints, hint)
		}
		if len(wait.Waiting) == 0 {
			e.Hints = append(e.Hints, fmt.Sprintf("retcon show r%d", wait.Run))
		}
		return true
	case errors.As(err, &several):
		return e.is(CodeNotFound, several.IDs...)
	case errors.As(err, &reuse):
		return e.is(CodeRequestKeyReuse)
	case errors.As(err, &noRun):
		return e.is(CodeNotFound, "retcon runs")
	case errors.As(err, &away):
		return e.is(CodeRefused)
	case errors.As(err, &task):
		return e.is(CodeRefused, "retcon cancel "+task.Run)
	case errors.As(err, &still):
		return e.is(CodeLocked, "retcon runs")
	}
	return explainPoint(err, e)
}

// explainPoint knows what a place in a run's history can't be.
func explainPoint(err error, e *Explained) bool {
	var (
		none     *timeline.NoPointError
		several  *timeline.AmbiguousPointError
		missing  *timeline.NotRecordedError
		noFrames *timeline.NoFramesError
		deep     *timeline.DepthError
		cycle    *timeline.CycleError
		address  *snapshot.AddressError
	)
	switch {
	case errors.As(err, &address):
		return e.is(CodeUsage, "retcon runs")
	case errors.As(err, &several):
		e.is(CodeNotFound)
		for _, c := range several.Candidates {
			e.Hints = append(e.Hints, fmt.Sprintf("retcon show r%d --task %s", several.Run, shellWord(c)))
		}
		return true
	case errors.As(err, &none):
		return e.is(CodeNotFound, fmt.Sprintf("retcon show r%d", none.Run), fmt.Sprintf("retcon timeline r%d", none.Run))
	case errors.As(err, &missing):
		return e.is(CodeNotRecorded, fmt.Sprintf("retcon timeline r%d", missing.Run))
	case errors.As(err, &noFrames):
		return e.is(CodeNotFound, fmt.Sprintf("retcon snapshots --run r%d", noFrames.Run))
	case errors.As(err, &deep), errors.As(err, &cycle):
		return e.is(CodeDamaged, "retcon doctor")
	}
	return false
}
