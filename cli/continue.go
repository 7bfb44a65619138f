package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// sessionFlags say what of a session goes back to a prompt.
func sessionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "continue", Usage: "print the command with which the agent goes on from there"},
		&cli.BoolFlag{Name: "conversation-only", Usage: "leave the worktree as it is, and print that command"},
		&cli.BoolFlag{Name: "files-only", Usage: "leave the record as it is"},
	}
}

// rewind takes a run back, with the conversation where that is asked for.
func (c *console) rewind(ctx *cli.Context, o retcon.TravelOptions) error {
	only, files := ctx.Bool("conversation-only"), ctx.Bool("files-only")
	goOn := only || ctx.Bool("continue")
	if files && (only || goOn || o.LedgerOnly) {
		return misuse("--files-only excludes what moves the record")
	}
	if files {
		return c.restoreFrame(ctx, o)
	}
	o.LedgerOnly = o.LedgerOnly || only
	if goOn && !o.DryRun {
		if err := c.isSession(ctx.Context, o); err != nil {
			return err
		}
	}
	if err := c.traveller(ctx, o, ctx.Bool("resume"), (*retcon.Workspace).Rewind); err != nil || !goOn || o.DryRun {
		return err
	}
	return c.goOn(ctx.Context, o)
}

// restoreFrame puts the files of a frame back, and leaves the record.
func (c *console) restoreFrame(ctx *cli.Context, o retcon.TravelOptions) error {
	var done *retcon.Result
	err := c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) (err error) {
		done, err = w.Restore(ctx.Context, retcon.RestoreOptions{Ref: retcon.Ref(o.Run + "@" + pointOf(o)), Exact: o.Exact,
			Conflicts: o.Conflicts, Head: o.Head, DryRun: o.DryRun, Steal: o.Steal, PlanID: o.PlanID, RequestID: o.RequestID, Reason: o.Reason, Confirm: o.Confirm})
		return err
	})
	return c.finish(done, err)
}

// pointOf is the point that a rewind goes to, as one types it.
func pointOf(o retcon.TravelOptions) string {
	if o.Inside != 0 {
		return fmt.Sprintf("c%d", o.Inside)
	}
	return fmt.Sprint(o.Frame)
}

// isSession finds out before anything moves that there is a conversation that
// can go on.
func (c *console) isSession(ctx context.Context, o retcon.TravelOptions) error {
	_, err := c.continuation(ctx, o)
	return err
}

func (c *console) continuation(ctx context.Context, o retcon.TravelOptions) (k *retcon.Continuation, err error) {
	err = c.use(ctx, retcon.Options{}, func(w *retcon.Workspace) error {
		k, err = w.Continuation(ctx, retcon.ContinueOptions{Run: o.Run, Frame: o.Frame, Inside: o.Inside, Export: c.export})
		return err
	})
	var none *retcon.NotSessionError
	switch {
	case errors.As(err, &none):
		return nil, &failure{Code: "NOT_FOUND", Message: err.Error(), Hints: []string{"retcon runs"}}
	case errors.Is(err, agent.ErrUnsupported), errors.Is(err, agent.ErrSource):
		return nil, &failure{Code: "NOT_RECORDED", Message: err.Error(), Hints: []string{fmt.Sprintf("retcon rewind %s %s", o.Run, pointOf(o))}}
	}
	return k, err
}

// export has a client print its conversation.
func (c *console) export(ctx context.Context, argv []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.Environ()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %v: %w", strings.Join(argv, " "), err, agent.ErrSource)
	}
	return out, nil
}

// goOn prepares the conversation that goes on, and says how.
func (c *console) goOn(ctx context.Context, o retcon.TravelOptions) error {
	k, err := c.continuation(ctx, o)
	if err != nil {
		return err
	}
	err = c.use(ctx, retcon.Options{}, func(w *retcon.Workspace) error { return w.Prepare(ctx, k) })
	if err != nil {
		return err
	}
	if k.Note != "" {
		c.remark("%s", k.Note)
	}
	for _, argv := range append(k.Before, k.Argv) {
		c.remark("go on with: %s", commandLine(argv))
	}
	return nil
}

func commandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = quoted(a)
	}
	return strings.Join(words, " ")
}
