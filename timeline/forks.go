package timeline

import (
	"fmt"
	"slices"

	"github.com/retcon-dev/retcon/ledger"
)

// CycleError says that a run is among those that it was forked from.
type CycleError struct{ Run int64 }

func (e *CycleError) Error() string { return fmt.Sprintf("r%d is a fork of itself", e.Run) }

// DepthError says that forks of forks go deeper than anyone can have meant.
type DepthError struct{ Run int64 }

func (e *DepthError) Error() string {
	return fmt.Sprintf("r%d is a fork of more than %d others, one of another", e.Run, maxDepth)
}

// forks adds the runs that begin at a tree's frames.
func (v *reading) forks(t *Tree, owners []ledger.Branch, above map[int64]bool) error {
	at := map[int64]int{}
	for i, f := range t.Frames {
		at[f.Seq] = i
	}
	hi := t.Branch.HeadSeq
	for _, b := range owners {
		if b.RunID != t.Run.ID {
			break // those are forks of its ancestors
		}
		children, err := v.tx.Children(b.ID)
		if err != nil {
			return err
		}
		for _, c := range children {
			i, shown := at[c.BaseSeq]
			if c.RunID == t.Run.ID || c.BaseSeq > hi || !shown {
				continue
			}
			child, err := v.fork(c, above)
			if err != nil {
				return err
			}
			if child != nil {
				t.Frames[i].Forks = append(t.Frames[i].Forks, child)
			}
		}
		hi = min(hi, b.BaseSeq)
	}
	return nil
}

// fork reads the run that a branch was made for. It is nil for the branches
// that moves have made in it since.
func (v *reading) fork(c ledger.Branch, above map[int64]bool) (*Tree, error) {
	run, err := v.tx.Run(c.RunID)
	if err != nil {
		return nil, err
	}
	all, err := v.tx.Branches(c.RunID)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[0].ID != c.ID {
		return nil, nil
	}
	head, err := v.tx.BranchByID(run.HeadBranch)
	if err != nil {
		return nil, err
	}
	return v.tree(run, head, above, false)
}

// archived adds what was cut off the run.
func (v *reading) archived(t *Tree, above map[int64]bool) error {
	all, err := v.tx.Branches(t.Run.ID)
	if err != nil {
		return err
	}
	for _, b := range slices.Backward(all) {
		if b.State != ledger.BranchArchived {
			continue
		}
		cut, err := v.tree(t.Run, b, above, false)
		if err != nil {
			return err
		}
		if len(cut.Frames) == 0 { // it was moved again before it went on
			continue
		}
		if b.ArchivedBy != 0 {
			op, err := v.tx.Op(b.ArchivedBy)
			if err != nil {
				return err
			}
			cut.CutVerb, cut.CutActor = op.Verb, op.Actor
		}
		t.Archived = append(t.Archived, cut)
	}
	return nil
}
