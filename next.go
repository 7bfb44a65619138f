package retcon

import (
	"context"
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow"
)

// next are the commands that bring on the run that is shown; none at a frame
// before its newest, of one that goes on or has ended well, and of one that only
// a Go program resumes.
func (v *viewer) next(set *snapshot.Set) []string {
	d := v.out.Definition
	if d == nil || d.Program != "" || v.out.Frame != v.out.Newest {
		return []string{}
	}
	if len(v.out.Waits) > 0 {
		return answers(v.tx, v.run.ID, set)
	}
	stopped := []string{StatusFailed, StatusInterrupted, StatusCancelled}
	if v.out.Run.Dead || slices.Contains(stopped, v.out.Run.Status) {
		return []string{"retcon resume " + runRef(v.run.ID)}
	}
	return []string{}
}

// answers are the commands that answer what a run waits for at its newest frame.
func (w *Workspace) answers(run int64) (commands []string) {
	err := w.view(context.Background(), func(tx *ledger.Tx, _ ledger.Worktree) error {
		r, err := tx.Run(run)
		if err != nil {
			return err
		}
		head, err := tx.LoadFrame(r.HeadBranch, ledger.Newest)
		if err == nil {
			commands = answers(tx, run, head.Set)
		}
		return err
	})
	if err != nil {
		return []string{} // how the run ended is known, and is told without
	}
	return commands
}

// answers are the commands that answer what a state waits for, each with a value
// that fits.
func answers(tx *ledger.Tx, run int64, set *snapshot.Set) []string {
	var waiting []snapshot.Row
	all := map[string]string{}
	for r := range set.Rows() {
		if r.Kind == workflow.KindSignal && r.State == snapshot.Waiting {
			waiting, all[r.Key] = append(waiting, r), ""
		}
	}
	commands := []string{}
	for _, r := range waiting {
		commands = append(commands, answer(tx, run, waitName(r.Key, all), r))
	}
	slices.Sort(commands)
	return commands
}

func answer(tx *ledger.Tx, run int64, name string, r snapshot.Row) string {
	value := "JSON"
	if known, err := workflow.Answer(tx, r); err == nil && known != "" { // else what is asked for can't be shown, and is for the caller to know
		value = shellWord(known)
	}
	return fmt.Sprintf("retcon signal %s %s --value %s --resume", runRef(run), shellWord(name), value)
}
