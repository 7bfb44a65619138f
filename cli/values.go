package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon"
)

// completions are the values the shells ask for, by the placeholders of the
// help. Whatever goes wrong they are silent, and they make nothing: somebody is
// typing.
func (c *console) completions() map[string]func(context.Context) []candidate {
	return map[string]func(context.Context) []candidate{
		"checkpoint": c.checkpointValues,
		"run":        c.runValues,
		"wait":       c.waitValues,
		"place":      c.placeValues,
		"task":       c.taskValues,
		"label":      c.labelValues,
		"operation":  c.operationValues,
		"effect":     c.effectValues,
		"status":     choices(retcon.EffectSucceeded, retcon.EffectFailed, retcon.EffectUnknown),
		"tier":       choices(tiers...),
		"side":       choices("theirs", "mine"),
		"key":        choices(settingKeys()...),
	}
}

func choices(values ...string) func(context.Context) []candidate {
	return func(context.Context) (found []candidate) {
		for _, v := range values {
			found = append(found, candidate{Value: v})
		}
		return found
	}
}

// offered is how many values a list of completions holds at most.
const offered = 200

// look opens the workspace for a completion, if there is one already.
func (c *console) look(ctx context.Context, do func(*retcon.Workspace) error) {
	if c.hasStore() {
		_ = c.use(ctx, retcon.Options{}, do) // no candidates, then
	}
}

func (c *console) checkpointValues(ctx context.Context) (found []candidate) {
	c.look(ctx, func(w *retcon.Workspace) error {
		all, err := w.Snapshots(ctx, retcon.ListOptions{Limit: offered, All: true})
		var labels []candidate
		for i := range all {
			about := all[i].Tier + ", " + ago(c.Now(), all[i].Created)
			if all[i].Note != "" {
				about += ": " + all[i].Note
			}
			found = append(found, candidate{all[i].Ref, about})
			if all[i].Label != "" {
				labels = append(labels, candidate{all[i].Label, all[i].Ref + ", " + about})
			}
		}
		found = append(found, labels...)
		return err
	})
	return append(append(append(found, c.runValues(ctx)...), c.pointValues(ctx)...), candidate{"last", "the newest"})
}

// placeValues are the runs, and points of the newest ones.
func (c *console) placeValues(ctx context.Context) []candidate {
	return append(append(c.runValues(ctx), c.pointValues(ctx)...), candidate{"last", "the newest"})
}

// recent is of how many runs points and tasks are offered.
const recent = 3

// pointValues are the frames of the newest runs, and their tasks.
func (c *console) pointValues(ctx context.Context) (found []candidate) {
	c.recentRuns(ctx, func(w *retcon.Workspace, run retcon.Run) error {
		t, err := w.Timeline(ctx, retcon.TimelineOptions{Run: run.Ref, Limit: offered})
		if err != nil {
			return err
		}
		for _, f := range newFrames(t).Frames {
			at := fmt.Sprintf("%s@%d", run.Ref, f.Frame)
			found = append(found, candidate{at, f.what(c.page(nil))})
			if f.Label != "" {
				found = append(found, candidate{run.Ref + "@~" + f.Label, "frame " + fmt.Sprint(f.Frame)})
			}
		}
		return c.tasks(ctx, w, run, func(t retcon.Task) {
			found = append(found, candidate{run.Ref + "@" + t.Name, t.Kind + ", " + t.State})
		})
	})
	return found
}

// taskValues are the tasks of the newest runs.
func (c *console) taskValues(ctx context.Context) (found []candidate) {
	c.recentRuns(ctx, func(w *retcon.Workspace, run retcon.Run) error {
		return c.tasks(ctx, w, run, func(t retcon.Task) {
			found = append(found, candidate{t.Name, run.Ref + ", " + t.Kind + ", " + t.State})
		})
	})
	return found
}

func (c *console) tasks(ctx context.Context, w *retcon.Workspace, run retcon.Run, offer func(retcon.Task)) error {
	s, err := w.Show(ctx, retcon.ShowOptions{At: run.Ref})
	if err != nil {
		return err
	}
	for _, t := range s.Tasks {
		offer(t)
	}
	return nil
}

// recentRuns calls do with the newest runs that have frames.
func (c *console) recentRuns(ctx context.Context, do func(*retcon.Workspace, retcon.Run) error) {
	c.look(ctx, func(w *retcon.Workspace) error {
		all, err := w.Runs(ctx, offered)
		left := recent
		for i := range all {
			if all[i].Source != "workflow" || left == 0 {
				continue
			}
			left--
			if err := do(w, all[i]); err != nil {
				return err
			}
		}
		return err
	})
}

func (c *console) labelValues(ctx context.Context) (found []candidate) {
	c.look(ctx, func(w *retcon.Workspace) error {
		all, err := w.Snapshots(ctx, retcon.ListOptions{Limit: offered, All: true})
		for i := range all {
			if all[i].Label != "" {
				found = append(found, candidate{all[i].Label, all[i].Ref})
			}
		}
		return err
	})
	return found
}

// hasStore says whether something was kept here before, without making anything.
func (c *console) hasStore() bool {
	if c.Dir == "" {
		return false
	}
	is := func(path string) bool { info, err := os.Stat(path); return err == nil && info.IsDir() }
	for dir := c.Dir; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if is(filepath.Join(dir, ".retcon", "store.git")) || is(filepath.Join(git, "retcon")) {
			return true
		}
		if text, err := os.ReadFile(git); err == nil { // a linked worktree or a submodule: "gitdir: PATH"
			to := strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir:"))
			if !filepath.IsAbs(to) {
				to = filepath.Join(dir, to)
			}
			common, _, _ := strings.Cut(to, "/worktrees/")
			return is(filepath.Join(common, "retcon"))
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}
