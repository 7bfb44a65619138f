package vcs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

type stepKind uint8

const (
	stepMkdir stepKind = iota
	stepWrite
	stepRemove
	stepRmdir
	stepChmod
)

// step is one change of the worktree that can be taken back.
type step struct {
	kind      stepKind
	change    *FileChange
	name      string  // of the file in the stage
	at        *folder // of the stage
	mode      uint32  // for stepChmod: the bits it had, or will have had
	id        object.ID
	done      bool
	was       bool      // something was displaced to the stage
	odd       bool      // and it is not known to be what the plan saw
	displaced fileStat  // of the file that was displaced, right after
	rescued   object.ID // what it held, where Rescue has kept that
}

// plan orders the steps: what stands in the way, directories, files, then what
// goes, the deepest first, then permission bits of directories.
func (s *Staged) plan(changes []FileChange) error {
	dirKind := func(k string) bool { return k == KindDir || k == KindRepo || k == KindGitlink }
	var clear, mkdir, write, remove, rmdir, clearDirs, chmod []step
	var swapped []string // directories that become something else
	for i := range changes {
		c := &changes[i]
		if dirKind(c.Old.Kind) && (c.New.Kind == KindFile || c.New.Kind == KindLink) {
			swapped = append(swapped, c.Path+"/")
		}
	}
	below := func(path string) bool {
		for _, p := range swapped {
			if strings.HasPrefix(path, p) {
				return true
			}
		}
		return false
	}
	for i := range changes {
		c := &changes[i]
		if err := checkPath(c.Path); err != nil {
			return err
		}
		st := step{change: c}
		switch {
		case c.New.Kind == KindFile || c.New.Kind == KindLink:
			id, err := object.ParseID(c.New.ID)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Path, ErrMissing)
			}
			st.id = id
			if c.New.Kind == KindFile && c.Old.Kind == KindFile && c.Old.ID == c.New.ID {
				st.kind, st.mode = stepChmod, c.Old.Mode
				write = append(write, st)
				break
			}
			if dirKind(c.Old.Kind) {
				clearDirs = append(clearDirs, step{change: c, kind: stepRmdir})
			}
			st.kind = stepWrite
			write = append(write, st)
		case dirKind(c.New.Kind):
			if !dirKind(c.Old.Kind) {
				if c.Old.Kind != KindAbsent {
					clear = append(clear, step{change: c, kind: stepRemove})
				}
				st.kind = stepMkdir
				mkdir = append(mkdir, st)
			}
			if c.New.Kind != KindGitlink {
				chmod = append(chmod, step{change: c, kind: stepChmod, mode: c.Old.Mode})
			}
		case c.New.Kind == KindAbsent:
			st.kind = stepRemove
			if dirKind(c.Old.Kind) {
				st.kind = stepRmdir
			}
			switch {
			case below(c.Path) && st.kind == stepRmdir:
				clearDirs = append(clearDirs, st)
			case below(c.Path):
				clear = append(clear, st)
			case st.kind == stepRmdir:
				rmdir = append(rmdir, st)
			default:
				remove = append(remove, st)
			}
		default:
			return fmt.Errorf("BUG: cannot restore %s to %s", c.Path, c.New.Kind)
		}
	}
	up := func(a, b step) int { return strings.Compare(a.change.Path, b.change.Path) }
	down := func(a, b step) int { return strings.Compare(b.change.Path, a.change.Path) }
	slices.SortStableFunc(clearDirs, down)
	slices.SortStableFunc(mkdir, up)
	slices.SortStableFunc(write, up)
	slices.SortStableFunc(remove, up)
	slices.SortStableFunc(rmdir, down)
	slices.SortStableFunc(chmod, down)
	s.steps = slices.Concat(clear, clearDirs, mkdir, write, remove, rmdir, chmod)
	for i := range s.steps {
		s.steps[i].name = strconv.Itoa(i)
		if len(s.steps) >= crowd {
			s.steps[i].name = drawers[i/handful%len(drawers)] + "/" + s.steps[i].name
		}
	}
	return nil
}

// checkPath refuses a path that leads out of the root or into a git directory.
func checkPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if err := checkName(part); err != nil {
			return err
		}
	}
	return nil
}
