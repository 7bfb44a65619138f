package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	_ "github.com/mattn/go-sqlite3" // to see that what was to be recorded is

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
	"github.com/retcon-dev/retcon/scripts/bench/internal/payload"
	"github.com/retcon-dev/retcon/scripts/bench/internal/tree"
)

const (
	statusName = "git status"
	emptyName  = "an empty Go program"
)

// hooks are the rows of one field.
type hooks struct {
	*ground.Ground
	options
	f *ground.Field

	bins         string // where the programs lie
	env          []string
	ours, theirs string // copies of the tree
	calls        int    // made so far
	version      int    // of the file changed last
}

func newHooks(ctx context.Context, g *ground.Ground, f *ground.Field, o options) (h *hooks, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h = &hooks{Ground: g, options: o, f: f, bins: filepath.Dir(self), env: g.Git.Env}
	if h.ours, err = f.Copy(ctx, "ours"); err != nil {
		return nil, err
	}
	if h.theirs, err = f.Copy(ctx, "theirs"); err != nil {
		return nil, err
	}
	// The first event of a session captures everything; it is not what is measured.
	_, _, err = h.hook(ctx, h.ours, "UserPromptSubmit", "UserPromptSubmit", nil)
	return h, err
}

func (h *hooks) bin(name string) string { return filepath.Join(h.bins, "installed", name) }

// hook runs the process of a hook.
func (h *hooks) hook(ctx context.Context, dir, event, recorded string, change payload.Change, env ...string) ([]byte, bench.Usage, error) {
	return h.call(ctx, "retcon-hook", dir, event, recorded, change, env...)
}

func (h *hooks) call(ctx context.Context, program, dir, event, recorded string, change payload.Change, env ...string) ([]byte, bench.Usage, error) {
	text, err := payload.Recorded(filepath.Join(h.bins, "payloads", recorded+".json"), dir, "bench", change)
	if err != nil {
		return nil, bench.Usage{}, err
	}
	out, u, err := bench.Command{Dir: dir, Env: append(h.env[:len(h.env):len(h.env)], env...), In: text,
		Args: []string{h.bin(program), "hook", "claude", event}}.Run(ctx)
	if err == nil && len(out) > 0 {
		err = fmt.Errorf("the agent was told %q", out)
	}
	return out, u, err
}

// side is the hook after a tool that has changed k files; before it everything
// that comes before such a hook is done.
func (h *hooks) side(program string, k int) bench.Side {
	var id payload.Change
	return bench.Side{Name: program,
		Prepare: func(int) error {
			h.calls++
			id = payload.Change{"tool_use_id": fmt.Sprintf("call-%d", h.calls)}
			if _, _, err := h.hook(context.Background(), h.ours, "PreToolUse", "PreToolUse.Bash", id); err != nil {
				return err
			}
			h.version++
			return tree.Edit(h.ours, h.f.Paths[:k], h.version)
		},
		Run: func(ctx context.Context) (bench.Usage, error) {
			_, u, err := h.call(ctx, program, h.ours, "PostToolUse", "PostToolUse.Bash", id)
			return u, err
		},
		Check: func() error { return h.recorded(id["tool_use_id"].(string), k) }}
}

// recorded checks that a call was recorded, with what it changed.
func (h *hooks) recorded(call string, changed int) error {
	folder := filepath.Join(h.ours, ".git", "retcon")
	if text, err := os.ReadFile(filepath.Join(folder, "log", "missed")); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("missed: %s", text)
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(folder, "ledger.db")+"?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	var outcome string
	var before, after int64
	err = db.QueryRow(`SELECT outcome, before_id, after_id FROM attempt WHERE call = ?`, call).Scan(&outcome, &before, &after)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not recorded: %w", call, err)
	case outcome != "ok" || (before != after) != (changed > 0):
		return fmt.Errorf("%s is recorded as %s, from c%d to c%d", call, outcome, before, after)
	}
	return nil
}

// status is git status, in a copy that nobody else touches.
func (h *hooks) status(k int) bench.Side {
	git := h.Git.In(h.theirs)
	return bench.Side{Name: statusName,
		Prepare: func(int) error { return tree.Edit(h.theirs, h.f.Paths[:k], h.version) },
		Run: func(ctx context.Context) (bench.Usage, error) {
			_, u, err := git.Run(ctx, "status")
			return u, err
		}}
}

// empty is a program that does nothing, given what the hook is given.
func (h *hooks) empty() bench.Side {
	return bench.Side{Name: emptyName, Run: func(ctx context.Context) (bench.Usage, error) {
		_, u, err := bench.Command{Dir: h.theirs, Env: h.env, Args: []string{filepath.Join(h.bins, "empty")}}.Run(ctx)
		return u, err
	}}
}

// race plays a contest and reports it by time, and for information by the work
// of processors.
func (h *hooks) race(ctx context.Context, name string, goal *float64, ours, theirs bench.Side) ([]bench.Pair, error) {
	if !h.Wants(name) {
		return nil, nil
	}
	h.Say("%s, against %s", name, theirs.Name)
	pairs, err := bench.Contest{Ours: ours, Theirs: theirs, Rounds: h.Rounds, Warm: true}.Play(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	took, spent := h.Report.Row(name, theirs.Name, goal), h.Report.Row("CPU, "+name, theirs.Name, nil)
	if err != nil {
		return nil, h.Report.Add(took.Fail(err))
	}
	return pairs, errors.Join(h.Report.Add(took.Measure(pairs, bench.Wall)), h.Report.Add(spent.Measure(pairs, bench.CPU)))
}

// alone are hooks that nobody helps.
func (h *hooks) alone(ctx context.Context) error {
	_, err := h.race(ctx, h.f.Case("unchanged"), h.f.Goal(1.5, 20000), h.side("retcon-hook", 0), h.status(0))
	if err == nil {
		_, err = h.race(ctx, h.f.Case("1 changed"), nil, h.side("retcon-hook", 1), h.status(1))
	}
	if err == nil {
		_, err = h.race(ctx, h.f.Case("unchanged, by retcon itself"), nil, h.side("retcon", 0), h.status(0))
	}
	return err
}

// watched are hooks in a worktree that is watched.
func (h *hooks) watched(ctx context.Context) error {
	names := []string{h.f.Case("unchanged, watched"), h.f.Case("1 changed, watched")}
	if !h.Wants(names[0]) && !h.Wants(names[1]) {
		return nil
	}
	stop, err := h.watch(ctx)
	if err != nil {
		return h.Report.Add(h.Report.Row(names[0], emptyName, h.f.Goal(3, 20000)).Fail(err))
	}
	_, err = h.race(ctx, names[0], h.f.Goal(3, 20000), h.side("retcon-hook", 0), h.empty())
	if err == nil {
		_, err = h.race(ctx, names[1], nil, h.side("retcon-hook", 1), h.status(1))
	}
	return errors.Join(err, stop())
}

// watch runs retcon watch until the function is called, which fails if it has
// ended before.
func (h *hooks) watch(ctx context.Context) (stop func() error, err error) {
	w := exec.CommandContext(ctx, h.bin("retcon"), "watch")
	w.Dir, w.Env = h.ours, h.env
	if err := w.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		if err := w.Process.Signal(os.Interrupt); err != nil {
			return fmt.Errorf("retcon watch: %w", err)
		}
		return w.Wait()
	}
	for range 300 {
		if found, _ := filepath.Glob(filepath.Join(h.ours, ".git", "retcon", "watch", "*.sock")); len(found) > 0 {
			// It answers when it has looked at everything.
			_, _, err := h.hook(ctx, h.ours, "PreToolUse", "PreToolUse.Bash", payload.Change{"tool_use_id": "warm"})
			if err == nil {
				_, _, err = h.hook(ctx, h.ours, "PostToolUse", "PostToolUse.Bash", payload.Change{"tool_use_id": "warm"})
			}
			time.Sleep(time.Second)
			return stop, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, errors.Join(errors.New("retcon watch does not take hooks"), stop())
}

// disabled are hooks that have nothing to do.
func (h *hooks) disabled(ctx context.Context) error {
	side := func(dir string, env ...string) bench.Side {
		return bench.Side{Name: "retcon-hook", Run: func(ctx context.Context) (bench.Usage, error) {
			_, u, err := h.hook(ctx, dir, "PostToolUse", "PostToolUse.Bash", nil, env...)
			return u, err
		}}
	}
	pairs, err := h.race(ctx, "disabled by RETCON_DISABLE", bench.Goal(1.5), side(h.ours, "RETCON_DISABLE=1"), h.empty())
	if err != nil || pairs == nil {
		return err
	}
	for i := range pairs {
		pairs[i].Theirs.Wall = 10 * time.Millisecond
	}
	if err := h.Report.Add(h.Report.Row("disabled by RETCON_DISABLE", "10 ms", nil).Measure(pairs, bench.Wall)); err != nil {
		return err
	}
	dir, err := h.Folder("disabled")
	if err != nil {
		return err
	}
	if err := h.Git.In(dir).Do(ctx, "init -q"); err != nil {
		return err
	}
	for _, args := range [][]string{{"checkpoint"}, {"config", "set", "disabled", "true"}} {
		if _, _, err := (bench.Command{Dir: dir, Env: h.env, Args: append([]string{h.bin("retcon")}, args...)}).Run(ctx); err != nil {
			return err
		}
	}
	_, err = h.race(ctx, "disabled workspace", bench.Goal(1.5), side(dir), h.empty())
	return err
}
