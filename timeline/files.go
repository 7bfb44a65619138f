package timeline

import (
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// restorable tells that a commit can be read. Whether all that it needs is
// there, [vcs.Worktree.Complete] finds out, at the cost of a walk through it.
func (v *reading) restorable(commit string) bool {
	ok, known := v.states[commit]
	if !known {
		ok = true
		if v.r.Worktree != nil {
			_, err := v.r.Worktree.TreeOf(vcs.Commit(commit))
			ok = err == nil
		}
		v.states[commit] = ok
	}
	return ok
}

// compare notes which two checkpoints the files of a frame are counted between.
func (v *reading) compare(f *Frame, page []ledger.Frame, i int) error {
	if f.Checkpoint == 0 || v.r.Worktree == nil {
		return nil
	}
	if f.Seq == 0 {
		return nil
	}
	before := int64(0)
	if i+1 < len(page) && page[i+1].Seq == f.Seq-1 {
		before = page[i+1].Checkpoint
	} else {
		earlier, err := v.tx.FrameAt(page[i].Branch, f.Seq-1, false)
		if err != nil {
			return err
		}
		before = earlier.Checkpoint
	}
	from, err := v.checkpoint(before)
	if err != nil || from.ID == 0 {
		return err
	}
	to := v.checkpoints[f.Checkpoint]
	if from.Tree == to.Tree {
		f.Files = &Files{}
		return nil
	}
	v.pairs = append(v.pairs, pair{f, from, to})
	return nil
}

// count counts the files of all frames that were read, outside of the
// transaction. What can't be compared is left unknown.
func (v *reading) count() error {
	known := map[[2]string]*Files{}
	for _, p := range v.pairs {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		trees := [2]string{p.from.Tree, p.to.Tree}
		files, ok := known[trees]
		if !ok {
			changes, err := v.r.Worktree.Diff(v.ctx, vcs.Commit(p.from.Commit), vcs.Commit(p.to.Commit))
			if err == nil {
				files = counted(checkpoint.Shown(changes))
			}
			known[trees] = files
		}
		p.frame.Files = files
	}
	return nil
}

func counted(changes []vcs.FileChange) *Files {
	var f Files
	for _, c := range changes {
		switch {
		case c.Old.Kind == vcs.KindAbsent:
			f.Added++
		case c.New.Kind == vcs.KindAbsent:
			f.Removed++
		default:
			f.Changed++
		}
	}
	return &f
}
