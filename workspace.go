package retcon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/vcs"
	"github.com/retcon-dev/retcon/workflow"
)

// Options of Open. Dir and Now are needed.
type Options struct {
	Dir string // absolute: where the command runs

	// Home, XDGConfigHome and SystemConfig are where git's configuration
	// outside the repository lies. Home is also what is too wide to capture.
	Home, XDGConfigHome, SystemConfig string

	Actor string // who records and moves: "user" when empty, or an agent's name

	// OwnRun is the run that the caller works in, "r7"; "" when it works in none.
	// While that run goes on, the caller can't move it, a run it came from, or the
	// worktree it works in: *SelfOperationError.
	OwnRun string

	// OwnSessions are the conversations that the caller's environment names. They
	// are runs the caller works in, too, and so is a run that a process of Above
	// carries out.
	OwnSessions []OwnSession

	// Above are the processes that the caller was started by, the nearest first.
	Above []int

	// Env is the environment of the commands that workflows run, whole; what is
	// meant for retcon itself is taken out.
	Env []string
	Now func() time.Time

	// Handlers are functions by name that undo what was done outside. Trusted
	// tells whether a compensation of a configuration with this digest may run;
	// nil is none.
	Handlers map[string]func(context.Context, sideeffect.Effect) error
	Trusted  func(source string) bool

	NoTape  bool  // record no operations of runs
	TapeMax int64 // bytes kept of an operation's output; 1 MiB when zero

	Create    bool // make a folder outside git a workspace
	AllowWide bool // capture a home directory
	Adopt     bool // go on with the history although another directory stands in the old one's place

	Config Config
	// Load, if set, is called with the store's folder, and its Config replaces
	// the field.
	Load func(folder string) (Config, error)

	// Parse reads the configuration that comes with a repository; nil passes it
	// over. What is wrong with it is a *ProjectError.
	Parse func(text []byte) (Config, error)

	// State is the folder of the user's own state, where it is noted which
	// configurations are trusted. "" is none, and nothing is.
	State string

	// Progress is told what is being done; total is 0 when it is not known. It
	// may be called from any goroutine, one call at a time.
	Progress func(stage string, done, total int)
}

// OwnSession is a conversation with an agent, as the agent names it.
type OwnSession struct{ Agent, Session string }

// User is the actor when nobody else is named.
const User = "user"

// Workspace is a directory tree being worked in, with its ledger and store. It
// is for one goroutine at a time; any number of processes may open the same.
type Workspace struct {
	opt  Options
	vcs  *vcs.Worktree
	db   *ledger.DB // nil until it is needed
	tell sync.Mutex // around opt.Progress

	// capture is how a hook captures the worktree while it is watched; nil: as
	// everybody does.
	capture vcs.CaptureFunc

	mine    Config            // the user's settings, without the repository's
	project *Project          // the repository's
	known   *sideeffect.Rules // made of both; nil until they are needed
}

// Open opens the workspace that o.Dir lies in: the nearest git worktree, or
// folder that was made a workspace. Nothing of the ledger is opened before a
// verb needs it.
//
// It fails with vcs.ErrNotWorkspace, vcs.ErrBare, *vcs.WideRootError or
// *ConfigError.
func Open(_ context.Context, o Options) (*Workspace, error) {
	if o.Now == nil {
		return nil, errors.New("BUG: Options.Now is not set")
	}
	if o.Actor == "" {
		o.Actor = User
	}
	w := &Workspace{opt: o}
	if err := w.open(); err != nil {
		return nil, err
	}
	w.mine = o.Config
	if o.Load != nil {
		var err error
		if w.mine, err = o.Load(w.Folder()); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	w.project = readProject(w.Root(), o)
	c := w.mine
	if w.project.Err == nil {
		c = c.over(w.project.config)
	}
	if c.limits(vcs.Options{}).same(w.opt.Config) {
		w.opt.Config = c
		return w, nil
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	w.opt.Config = c
	if err := w.open(); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Workspace) open() (err error) {
	o := &w.opt
	if err := o.Config.Validate(); err != nil {
		return err
	}
	w.vcs, err = vcs.Open(o.Dir, vcs.Options(o.Config.limits(vcs.Options{Home: o.Home, XDGConfigHome: o.XDGConfigHome,
		SystemConfig: o.SystemConfig, Create: o.Create, AllowWide: o.AllowWide})))
	return err
}

// Close gives back what Open took.
func (w *Workspace) Close() error {
	var err error
	if w.db != nil {
		err = w.db.Close()
		w.db = nil
	}
	return errors.Join(err, w.vcs.Close())
}

// Root is the top of the worktree, an absolute path without symbolic links.
func (w *Workspace) Root() string { return w.vcs.Root() }

// Folder is where the ledger, the store and config.toml lie.
func (w *Workspace) Folder() string { return w.vcs.Folder() }

// Kind is "git", "linked", "submodule" or "plain".
func (w *Workspace) Kind() string { return string(w.vcs.Kind()) }

// Config is what is in force.
func (w *Workspace) Config() Config { return w.opt.Config }

func (w *Workspace) ledgerPath() string { return filepath.Join(w.Folder(), "ledger.db") }

// ledger opens the ledger on the first use.
func (w *Workspace) ledger() (*ledger.DB, error) {
	if w.db != nil {
		return w.db, nil
	}
	db, err := ledger.Open(w.ledgerPath(), ledger.Options{Now: w.opt.Now})
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	w.db = db
	return db, nil
}

// view reads the ledger, as it is for this worktree: the row has no number when
// nothing was recorded here.
func (w *Workspace) view(ctx context.Context, do func(tx *ledger.Tx, row ledger.Worktree) error) error {
	db, err := w.ledger()
	if err != nil {
		return err
	}
	r := w.recorder(db)
	return db.View(ctx, func(tx *ledger.Tx) error {
		row, err := r.Row(tx)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		return do(tx, row)
	})
}

// update changes the ledger, after what a dead process left has been settled.
func (w *Workspace) update(ctx context.Context, do func(tx *ledger.Tx, row ledger.Worktree) error) error {
	db, err := w.settled(ctx)
	if err != nil {
		return err
	}
	r := w.recorder(db)
	return db.Update(ctx, func(tx *ledger.Tx) error {
		row, err := r.Ensure(tx)
		if err != nil {
			return err
		}
		return do(tx, row)
	})
}

func (w *Workspace) recorder(db *ledger.DB) *checkpoint.Recorder {
	return &checkpoint.Recorder{Ledger: db, Worktree: w.vcs, Host: w.owner().Host, Adopt: w.opt.Adopt}
}

// owner is this process.
func (w *Workspace) owner() ledger.Owner { return checkpoint.Self(w.opt.Actor) }

// settled opens the ledger and finishes what processes that died have left
// open: moves, and attempts, which count as interrupted.
func (w *Workspace) settled(ctx context.Context) (*ledger.DB, error) {
	return w.settledBut(ctx, func(ledger.Attempt) bool { return false })
}

// settledBut is settled, and leaves the attempts open that the caller ends.
func (w *Workspace) settledBut(ctx context.Context, own func(ledger.Attempt) bool) (*ledger.DB, error) {
	db, err := w.ledger()
	if err != nil {
		return nil, err
	}
	var open bool
	var dead []ledger.Attempt
	var gone []int64
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		if row.ID == 0 {
			return nil
		}
		ops, err := tx.OpenOps()
		if err != nil {
			return err
		}
		for _, op := range ops {
			for _, at := range op.Worktrees {
				open = open || at.WorktreeID == row.ID
			}
		}
		if gone, err = deadRuns(tx, row.ID); err != nil {
			return err
		}
		dead, err = deadAttempts(tx, row.ID)
		dead = slices.DeleteFunc(dead, own)
		return err
	})
	if err != nil {
		return nil, err
	}
	if open {
		if _, err := w.Recover(ctx); err != nil {
			return nil, &InterruptedMoveError{Err: err}
		}
	}
	if len(dead)+len(gone) == 0 {
		return db, nil
	}
	found, err := w.left(ctx, db, dead)
	if err != nil {
		return nil, err
	}
	return db, db.Update(ctx, func(tx *ledger.Tx) error {
		if err := interrupt(tx, dead, found); err != nil {
			return err
		}
		for _, run := range gone {
			if err := tx.SetRunStatus(run, ledger.OutcomeInterrupted); err != nil {
				return err
			}
		}
		return nil
	})
}

// InterruptedMoveError says that a move whose process died could not be
// settled. Nothing else is done before it is.
type InterruptedMoveError struct{ Err error }

func (e *InterruptedMoveError) Error() string { return "a move was interrupted: " + e.Err.Error() }
func (e *InterruptedMoveError) Unwrap() error { return e.Err }

// deadAttempts are those without an outcome whose process is gone.
func deadAttempts(tx *ledger.Tx, worktree int64) (dead []ledger.Attempt, err error) {
	open, err := tx.OpenAttempts(worktree)
	for _, a := range open {
		if !checkpoint.Alive(a.Owner) {
			dead = append(dead, a)
		}
	}
	return dead, err
}

// left records what attempts have left whose processes died, by run: what has
// changed up to now since they began is theirs. A workflow does that itself when
// it goes on.
func (w *Workspace) left(ctx context.Context, db *ledger.DB, dead []ledger.Attempt) (map[int64]int64, error) {
	runs := map[int64]ledger.Run{}
	err := w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		for _, a := range dead {
			r, err := tx.Run(a.RunID)
			if err != nil {
				return err
			}
			if r.Kind != workflow.Source && a.Before != 0 && a.Worktree == 0 {
				runs[r.ID] = r
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	found := map[int64]int64{}
	for id, r := range runs {
		done, err := w.recorder(db).Record(ctx, checkpoint.What{Tier: ledger.TierTool, Run: id, Actor: r.Source, Note: "found when its process had died"})
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			w.missed("capture", err) // that they have ended is known all the same
			continue
		}
		found[id] = done.Checkpoint.ID
	}
	return found, nil
}

// settleDead is settled for a move, which settles other moves itself: it ends
// the attempts of processes that died, so that what is changed from now on is
// not taken for theirs.
func (w *Workspace) settleDead(ctx context.Context, db *ledger.DB) error {
	var dead []ledger.Attempt
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) (err error) {
		if row.ID != 0 {
			dead, err = deadAttempts(tx, row.ID)
		}
		return err
	})
	if err != nil || len(dead) == 0 {
		return err
	}
	found, err := w.left(ctx, db, dead)
	if err != nil {
		return err
	}
	dead = slices.DeleteFunc(dead, func(a ledger.Attempt) bool { return found[a.RunID] == 0 })
	return db.Update(ctx, func(tx *ledger.Tx) error { return interrupt(tx, dead, found) })
}

// interrupt ends attempts, at the checkpoint that was found of their run, and the
// runs that have no other.
func interrupt(tx *ledger.Tx, dead []ledger.Attempt, found map[int64]int64) error {
	for _, a := range dead {
		f := ledger.Finish{Outcome: ledger.OutcomeInterrupted}
		if a.Before != 0 && a.Worktree == 0 {
			f.After = found[a.RunID]
		}
		err := tx.FinishAttempt(a.ID, f)
		if errors.Is(err, ledger.ErrFinished) {
			continue // somebody else has settled it
		}
		if err != nil {
			return err
		}
		going, err := tx.Open(a.RunID)
		if err != nil {
			return err
		}
		if going {
			continue
		}
		if err := tx.SetRunStatus(a.RunID, ledger.OutcomeInterrupted); err != nil {
			return err
		}
	}
	return nil
}

// progress tells what is being done.
func (w *Workspace) progress(stage string, done, total int) {
	if w.opt.Progress == nil {
		return
	}
	w.tell.Lock()
	defer w.tell.Unlock()
	w.opt.Progress(stage, done, total)
}

// rel turns the paths of a command line into paths below the root; nil when
// there are none.
func (w *Workspace) rel(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		r, err := w.vcs.Rel(w.opt.Dir, p)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// missed notes a capture that could not be made and that nobody waits for, so
// that Doctor can tell.
func (w *Workspace) missed(what string, err error) {
	f, ferr := os.OpenFile(w.missedPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if ferr != nil {
		return // the folder is in a worse state than a note could say
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s: %q\n", w.opt.Now().UTC().Format(time.RFC3339), what, err.Error())
}

func (w *Workspace) missedPath() string { return filepath.Join(w.Folder(), "log", "missed") }
