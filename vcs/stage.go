package vcs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/internal/crash"
)

// Putting files back has two halves. Stage reads every object that will be
// needed, verifies it and writes it to a folder of its own: whatever can go
// wrong with the store goes wrong here, with the worktree untouched. Swap then
// only renames. What a rename displaces stays in the stage until the end, so
// that each step can be taken back, and so that bytes which somebody wrote
// after we looked are in hand, not lost.

// Hold takes the worktree for a move: no other process captures it or moves it
// until release is called. Captures through this Worktree go on.
func (w *Worktree) Hold(ctx context.Context) (release func(), err error) {
	if w.held != nil {
		return nil, &LockedError{What: "the worktree"}
	}
	lk, err := lockFile(ctx, w.lockPath("capture"))
	if err != nil {
		return nil, err
	}
	w.held = lk
	return func() {
		w.held = nil
		w.forgetLast()
		lk.unlock()
	}, nil
}

func (w *Worktree) forgetLast() {
	if w.last != nil {
		w.last.close()
		w.last = nil
	}
}

// Staged is a restore that has been prepared.
type Staged struct {
	w       *Worktree
	dir     string    // of the root's own mount: the manifest's place
	folders []*folder // one for each mount
	steps   []step
	dirs    map[string]int    // open parents
	opened  map[string]uint32 // directories made writable, and the bits they had
	kept    []string
	byPath  map[string]*dirRec
	settled bool          // the stage holds nothing that is needed
	heap    *heap         // as which what was displaced will stay; nil: it will not
	early   chan struct{} // closed when what was staged is on disk; nil: nobody writes it yet
}

// Stage prepares changes: from Old, which is what the newest capture saw, to
// New. The worktree must be held, and is not touched. id names the folder, so
// that after a crash OpenStage finds it.
//
// It fails with ErrMissing or ErrDamaged when the store cannot give what was
// captured.
func (w *Worktree) Stage(ctx context.Context, id string, changes []FileChange) (*Staged, error) {
	if w.held == nil {
		return nil, errors.New("BUG: Stage without Hold")
	}
	s := &Staged{w: w, dir: w.stageDir(id), dirs: make(map[string]int), opened: make(map[string]uint32)}
	if err := s.plan(changes); err != nil {
		return nil, err
	}
	err := s.place(id)
	if err == nil {
		crash.Point("restore.stage")
		err = s.manifest()
	}
	if err == nil {
		err = s.fill(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Discard())
	}
	// Not waited for, but for the manifest: what a power cut takes of the stage is
	// still in the store, and recovery sees by the content which files it took.
	s.syncEarly()
	crash.Point("restore.staged")
	return s, nil
}

// manifest writes which path each file of the stage belongs to, and which
// contents are expected there: any other is somebody's work. It is on disk
// before anything is displaced.
func (s *Staged) manifest() error {
	var b strings.Builder
	for i := range s.steps {
		if k := s.steps[i].kind; k == stepWrite || k == stepRemove || k == stepMkdir {
			c := s.steps[i].change
			fmt.Fprintf(&b, "%s %q %q %q %q\n", s.steps[i].name, c.Old.ID, c.New.ID, c.Path, s.steps[i].at.mount)
		}
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "manifest"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteString(b.String()); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

type fdWriter int

func (f fdWriter) Write(b []byte) (int, error) { return len(b), writeAll(int(f), b) }

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		var n int
		if err := retry(func() (err error) { n, err = unix.Write(fd, b); return err }); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Count is how many paths the restore touches.
func (s *Staged) Count() int { return len(s.steps) }

// Kept lists directories that could not be removed because something that is
// not ours to delete lies in them.
func (s *Staged) Kept() []string { return s.kept }

// Odd lists paths whose displaced content was not what the plan saw: somebody
// wrote them meanwhile. Rescue keeps it.
func (s *Staged) Odd() []string {
	var out []string
	for i := range s.steps {
		if s.steps[i].odd {
			out = append(out, s.steps[i].change.Path)
		}
	}
	return out
}

// Discard removes the stage. After Swap it gives up what was displaced, unless
// Settle has decided that it stays for a while.
func (s *Staged) Discard() error {
	s.awaitEarly()
	s.closeDirs()
	if s.heap != nil && s.keepDisplaced() == nil {
		s.folders[0].close()
		return nil
	}
	if !s.settled || s.heap != nil {
		s.empty()
	}
	var errs []error
	for _, f := range s.folders {
		if f.mount != "" { // those first: only the manifest knows of them
			errs = append(errs, s.w.discard(f))
		}
	}
	for _, f := range s.folders {
		if f.mount == "" {
			errs = append(errs, s.w.discard(f))
		}
	}
	return errors.Join(errs...)
}

func (s *Staged) closeDirs() {
	for path, fd := range s.dirs {
		unix.Close(fd)
		delete(s.dirs, path)
	}
}
