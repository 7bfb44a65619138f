package retcon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// DoctorOptions say how closely a workspace is looked at.
type DoctorOptions struct {
	Deep bool // read all of the store, and every object of every checkpoint
}

// Health is what a look at a workspace found.
type Health struct {
	OK     bool    `json:"ok"` // every check is
	Checks []Check `json:"checks"`

	// Unrestorable are checkpoints that can't be put back whole.
	Unrestorable []string `json:"unrestorable"`
}

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"` // a command one can paste
}

// Doctor looks at everything a restore depends on, and repairs nothing. What is
// wrong is in the Health; the error says that it could not be looked for.
func (w *Workspace) Doctor(ctx context.Context, o DoctorOptions) (*Health, error) {
	h := &Health{Unrestorable: []string{}}
	checks := []struct {
		name string
		do   func(context.Context, *Health) Check
	}{
		{"versions", w.checkVersions},
		{"disk", w.checkDisk},
		{"ledger", w.checkLedger},
		{"moves", w.checkMoves},
		{"owners", w.checkOwners},
		{"configuration", w.checkProject},
		{"checkpoints", func(ctx context.Context, h *Health) Check { return w.checkCheckpoints(ctx, h, o.Deep) }},
		{"round trip", w.checkRoundTrip},
		{"missed captures", w.checkMissed},
		{"transcripts", w.checkTranscripts},
	}
	if o.Deep {
		checks = append(checks, struct {
			name string
			do   func(context.Context, *Health) Check
		}{"store", w.checkStore})
	}
	h.OK = true
	for i, c := range checks {
		if err := ctx.Err(); err != nil {
			return h, err
		}
		w.progress("doctor: "+c.name, i, len(checks))
		got := c.do(ctx, h)
		got.Name = c.name
		h.Checks, h.OK = append(h.Checks, got), h.OK && got.OK
	}
	return h, ctx.Err()
}

func well(format string, args ...any) Check {
	return Check{OK: true, Detail: fmt.Sprintf(format, args...)}
}

func ill(hint, format string, args ...any) Check {
	return Check{Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// unwell is a check that an error ended.
func unwell(err error) Check {
	e := Explain(err)
	c := Check{Detail: e.Message}
	if len(e.Hints) > 0 && !strings.HasPrefix(e.Hints[0], "retcon doctor") {
		c.Hint = e.Hints[0]
	}
	return c
}

func (w *Workspace) checkVersions(context.Context, *Health) Check {
	what := fmt.Sprintf("%s/%s, %s worktree at %s", runtime.GOOS, runtime.GOARCH, w.Kind(), w.Root())
	if why := w.vcs.FilesOnly(); why != "" && w.vcs.Kind() != vcs.Plain && w.vcs.Kind() != vcs.Owned {
		what += "; files only: " + why
	}
	return well("%s", what)
}

// leastRoom is how little space on the disk is worth a warning.
const leastRoom = 256 << 20

func (w *Workspace) checkDisk(context.Context, *Health) Check {
	kind, free, err := fileSystem(w.Folder())
	if err != nil {
		return unwell(err)
	}
	own, shared, packs, err := w.vcs.StoreSize()
	if err != nil {
		return unwell(err)
	}
	detail := fmt.Sprintf("%s, %d MiB free; the store takes %d KiB and shares %d KiB, in %d packs",
		kind, free>>20, own>>10, shared>>10, packs)
	if free < leastRoom {
		return ill("retcon gc", "%s", detail)
	}
	return well("%s", detail)
}

func (w *Workspace) checkLedger(ctx context.Context, _ *Health) Check {
	db, err := w.ledger()
	if err != nil {
		return unwell(err)
	}
	problems, err := db.Check(ctx)
	if err != nil {
		return unwell(err)
	}
	var bad []string
	for _, p := range problems {
		if p.Kind != ledger.ProblemOpenMove { // has a check of its own
			bad = append(bad, p.String())
		}
	}
	if len(bad) > 0 {
		return ill("", "%s", some(bad))
	}
	if err := db.ReadOnly(); err != nil {
		return ill("", "can be read only: %v", err)
	}
	return well("whole, journal %s", db.Journal())
}

// some names the first few of many.
func some(all []string) string {
	const few = 5
	if len(all) <= few {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:few], "; "), len(all)-few)
}

func (w *Workspace) checkMoves(ctx context.Context, _ *Health) Check {
	var open []string
	var dead bool
	err := w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		ops, err := tx.OpenOps()
		for _, o := range ops {
			going := checkpoint.Alive(o.Owner)
			dead = dead || !going
			open = append(open, fmt.Sprintf("op %d (%s), alive: %v", o.ID, o.Verb, going))
		}
		return err
	})
	switch {
	case err != nil:
		return unwell(err)
	case dead:
		return ill("retcon recover", "interrupted: %s", some(open))
	case len(open) > 0:
		return well("going on: %s", some(open))
	}
	return well("none is open")
}

// checkOwners looks for what processes that died still hold.
func (w *Workspace) checkOwners(ctx context.Context, _ *Health) Check {
	var stale []string
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		leases, err := tx.Leases()
		if err != nil {
			return err
		}
		for _, l := range leases {
			if !checkpoint.Alive(l.Owner) {
				stale = append(stale, fmt.Sprintf("%s held by %s", l.Resource, l.Owner))
			}
		}
		if row.ID == 0 {
			return nil
		}
		dead, err := deadAttempts(tx, row.ID)
		for _, a := range dead {
			stale = append(stale, fmt.Sprintf("attempt %d of r%d begun by %s", a.Number, a.RunID, a.Owner))
		}
		return err
	})
	if err != nil {
		return unwell(err)
	}
	if len(stale) > 0 {
		return ill("retcon recover", "left by processes that died: %s", some(stale))
	}
	return well("nothing is held by a process that died")
}

// checkProject looks at the configuration that comes with the repository. Not to
// trust it is nothing that is wrong.
func (w *Workspace) checkProject(context.Context, *Health) Check {
	p := w.project
	switch {
	case p.Err != nil:
		return unwell(p.Err)
	case p.File == "":
		return well("the repository brings none")
	case p.Trusted:
		return well("%s is trusted", ProjectFile)
	case p.Waits():
		c := well("%s", p.Waiting())
		c.Hint = "retcon trust"
		return c
	}
	return well("%s runs nothing", ProjectFile)
}

// checkCheckpoints reads the commit of every checkpoint; when deep, it looks for
// every object that putting it back needs.
func (w *Workspace) checkCheckpoints(ctx context.Context, h *Health, deep bool) Check {
	type at struct {
		ref    string
		commit vcs.Commit
	}
	var all []at
	err := w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		rows, err := tx.Worktrees()
		if err != nil {
			return err
		}
		for _, row := range rows {
			err := tx.CheckpointsAfter(row.ID, 0, func(c ledger.Checkpoint) error {
				all = append(all, at{checkpointRef(c.ID), vcs.Commit(c.Commit)})
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return unwell(err)
	}
	known := map[vcs.Commit]error{}
	var bad []string
	for i, c := range all {
		err, seen := known[c.commit]
		if !seen {
			if deep {
				err = w.vcs.Complete(ctx, c.commit)
			} else {
				_, _, err = w.vcs.Describe(c.commit)
			}
			known[c.commit] = err
		}
		if ctx.Err() != nil {
			return unwell(ctx.Err())
		}
		if err != nil {
			h.Unrestorable, bad = append(h.Unrestorable, c.ref), append(bad, fmt.Sprintf("%s: %v", c.ref, err))
		}
		if deep {
			w.progress("checkpoints", i+1, len(all))
		}
	}
	if len(bad) > 0 {
		return ill("retcon snapshots forget "+strings.Join(h.Unrestorable[:min(5, len(bad))], " "), "can't be put back: %s", some(bad))
	}
	return well("%d, of %d different states", len(all), len(known))
}

func (w *Workspace) checkStore(ctx context.Context, _ *Health) Check {
	problems, err := w.vcs.Verify(ctx, func(done, total int) { w.progress("verify", done, total) })
	if err != nil {
		return unwell(err)
	}
	var bad []string
	for _, p := range problems {
		bad = append(bad, p.String())
	}
	if len(bad) > 0 {
		return ill("", "%s", some(bad))
	}
	return well("every object is what was written")
}

// checkRoundTrip captures a folder beside the store, changes it and puts it
// back: what a move does, on this disk.
func (w *Workspace) checkRoundTrip(ctx context.Context, _ *Health) Check {
	if err := w.Scratch(func(dir string) error { return roundTrip(ctx, dir) }); err != nil {
		return unwell(fmt.Errorf("capture and restore: %w", err))
	}
	return well("captured and restored a folder of its own")
}

func roundTrip(ctx context.Context, dir string) (err error) {
	file, other := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("as it was\n"), 0o640); err != nil {
		return err
	}
	if err := os.Symlink("file", other); err != nil {
		return err
	}
	v, err := vcs.Open(dir, vcs.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if v.Root() != dir {
		if real, rerr := filepath.EvalSymlinks(dir); rerr != nil || v.Root() != real {
			return fmt.Errorf("the folder of the check is taken for %s", v.Root())
		}
	}
	before, err := v.Capture(ctx, vcs.CaptureOptions{Sync: true})
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(file, []byte("changed\n"), 0o600), os.Remove(other)); err != nil {
		return err
	}
	if _, _, err := v.Restore(ctx, before.Commit); err != nil {
		return err
	}
	after, err := v.Capture(ctx, vcs.CaptureOptions{Rescan: true})
	if err != nil {
		return err
	}
	if after.Commit != before.Commit {
		return fmt.Errorf("restored %s and found %s", before.Commit, after.Commit)
	}
	return nil
}

// checkMissed tells of captures that nobody waited for and that failed.
func (w *Workspace) checkMissed(context.Context, *Health) Check {
	f, err := os.Open(w.missedPath())
	if errors.Is(err, os.ErrNotExist) {
		return well("none")
	}
	if err != nil {
		return unwell(err)
	}
	defer f.Close()
	n, last := 0, ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		n, last = n+1, lines.Text()
	}
	if err := lines.Err(); err != nil {
		return unwell(err)
	}
	if n == 0 {
		return well("none")
	}
	return ill("rm "+shellWord(w.missedPath()), "%d, the last: %s", n, last)
}

// checkTranscripts tells which conversations are only in our copy any more: a
// client has deleted its file, or written it anew.
func (w *Workspace) checkTranscripts(ctx context.Context, _ *Health) Check {
	type key struct {
		run  int64
		path string
	}
	newest := map[key]ledger.Transcript{}
	err := w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		return tx.AllTranscripts(func(t ledger.Transcript) error {
			newest[key{t.RunID, t.Path}] = t
			return nil
		})
	})
	if err != nil {
		return unwell(err)
	}
	var ours []string
	for k, t := range newest {
		info, err := os.Stat(k.path)
		if err != nil || info.Size() < t.Size {
			ours = append(ours, fmt.Sprintf("%s %s", runRef(k.run), k.path))
		}
	}
	slices.Sort(ours)
	if len(ours) > 0 {
		return well("%d copied; only here: %s", len(newest), some(ours))
	}
	return well("%d copied", len(newest))
}
