package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

// travelFlags are those of every verb that moves along a run.
func travelFlags(more ...cli.Flag) []cli.Flag {
	return append(append(moveFlags(),
		&cli.BoolFlag{Name: "exact", Usage: "make the worktree as it was, whoever changed it since"},
		&cli.StringFlag{Name: "plan", Usage: "refuse any plan but the one with this `id`, which --dry-run shows"},
		&cli.BoolFlag{Name: "no-compensate", Usage: "undo nothing outside: what could be undone is in the way"},
		&cli.BoolFlag{Name: "force", Usage: "move past what can't be undone outside, and leave it there"},
	), more...)
}

func taskFlag() cli.Flag {
	return &cli.StringFlag{Name: "task", Aliases: []string{"n"}, Usage: "the `task`: its id, the beginning of it, or what it is called"}
}

func attemptFlag() cli.Flag {
	return &cli.IntFlag{Name: "attempt", Usage: "this `number` of its attempts, not the newest"}
}

// resumeFlags are of the verbs after which a run goes on.
func resumeFlags(usage string) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "resume", Usage: usage},
		&cli.StringFlag{Name: "file", Usage: "go on with this edited `file`"},
		&cli.BoolFlag{Name: "wait", Usage: "while going on, stay while only a signal is waited for"},
		&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Value: 8, Usage: "while going on, run at most `count` tasks at the same time"},
		&cli.BoolFlag{Name: "events", Usage: "while going on, write a JSON line for each thing that happens to stderr"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "while going on, show what commands print"},
	}
}

// travelOptions reads the flags that the verbs have in common.
func (c *console) travelOptions(ctx *cli.Context) (o retcon.TravelOptions, err error) {
	o = retcon.TravelOptions{Run: ctx.Args().First(), Task: ctx.String("task"), Attempt: ctx.Int("attempt"),
		After: ctx.Bool("after"), Before: ctx.Bool("before"), Only: ctx.Bool("only"), Cascade: ctx.Bool("cascade"),
		KeepFiles: ctx.Bool("keep-files"), LedgerOnly: ctx.Bool("ledger-only"), Exact: ctx.Bool("exact"), Head: ctx.Bool("head"),
		DryRun: ctx.Bool("dry-run"), Steal: ctx.Bool("steal"), NoCompensate: ctx.Bool("no-compensate"), Force: ctx.Bool("force"), PlanID: ctx.String("plan"), RequestID: ctx.String("request-id"), Reason: ctx.String("reason"),
		Confirm: c.ask(ctx.Bool("yes"))}
	if o.Conflicts, err = policy(ctx); err != nil {
		return o, err
	}
	switch r := ctx.String("reapply"); r {
	case "", "all":
	case timeline.ReapplyNone:
		o.Reapply = r
	default:
		return o, misuse(fmt.Sprintf("--reapply is all or none, not %s", name(r)))
	}
	return o, nil
}

// traveller is what the verbs that move along a run have in common: the move,
// and the run that goes on after it where that is asked for.
func (c *console) traveller(ctx *cli.Context, o retcon.TravelOptions, goOn bool, move func(*retcon.Workspace, context.Context, retcon.TravelOptions) (*retcon.Result, error)) error {
	var done *retcon.Result
	err := c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) (err error) {
		c.unread(w)
		c.untrusted(w)
		done, err = move(w, ctx.Context, o)
		return err
	})
	if err != nil || !goOn || done.DryRun {
		return c.finish(done, err)
	}
	m := newMoved(done)
	c.remark("op %d  %s %s: %s", m.Op, m.verb(), m.what(), m.sum())
	ro := retcon.ResumeOptions{Run: o.Run, File: ctx.String("file")}
	if ro.RunOptions, err = c.runOptions(ctx); err != nil {
		return err
	}
	ro.Force = o.Force
	return c.resume(ctx, ro, true)
}

func (c *console) rewindCommand() *cli.Command {
	return &cli.Command{
		Name:      "rewind",
		Usage:     "take a run, and the worktree with it, back to a frame",
		Category:  "moves",
		ArgsUsage: "<run> [<point>]",
		Flags: travelFlags(append(resumeFlags("go on from there at once"), append(sessionFlags(),
			&cli.IntFlag{Name: "frame", Aliases: []string{"f"}, Usage: "the frame's `number`, as an argument does"},
			&cli.BoolFlag{Name: "ledger-only", Usage: "leave the worktree as it is"},
			&cli.BoolFlag{Name: "head", Usage: "put back where HEAD and its branch were, too"},
			&cli.StringFlag{Name: "reapply", Usage: "signals that were answered since: all of them again where the question is the same, or `none`"})...)...),
		Description: `The frames after it are cut off, and kept: retcon undo brings them back together
with the files. What you changed yourself stays. Where the run goes on, what was
done before and is given the same is taken over, not done again.

The point is a frame, as in retcon timeline, or what else names a place of the
run: a task, a label, or a checkpoint. At a checkpoint that was taken between two
frames, as those around a tool call are, the files are those of the checkpoint and
the record is that of the frame before it.

In the session of an agent, frame 3 is what the third prompt left. With
--continue the command is printed with which the agent goes on from there, not
knowing of what was said since; --conversation-only does that and leaves the
files, --files-only leaves the record and the conversation.

Examples:
  retcon rewind greet 0 --dry-run
  retcon rewind greet@start --dry-run
  retcon rewind greet 1 --yes`,
		Action: func(ctx *cli.Context) error {
			o, err := c.travelOptions(ctx)
			if err != nil {
				return err
			}
			text := ctx.Args().Get(1)
			if run, point, ok := strings.Cut(o.Run, "@"); ok && text == "" {
				o.Run, text = run, point
			}
			if text == "" {
				if !ctx.IsSet("frame") {
					return misuse("retcon rewind: <point> is missing", "retcon timeline "+o.Run+" --tree")
				}
				text = strconv.Itoa(ctx.Int("frame"))
			}
			if o.Frame, err = strconv.ParseInt(text, 10, 64); err != nil {
				if err := c.point(ctx.Context, &o, text); err != nil {
					return err
				}
			}
			return c.rewind(ctx, o)
		},
	}
}

// point finds the place that a rewind goes to where that is no number.
func (c *console) point(ctx context.Context, o *retcon.TravelOptions, text string) error {
	err := c.use(ctx, retcon.Options{}, func(w *retcon.Workspace) (err error) {
		o.Frame, o.Inside, err = w.Point(ctx, o.Run, text)
		return err
	})
	var none *timeline.NoPointError
	if errors.As(err, &none) {
		return misuse(fmt.Sprintf("%s is not the number of a frame, nor another point: %s", name(text), none.Reason), "retcon timeline "+o.Run+" --tree")
	}
	return err
}

func (c *console) timetravelCommand() *cli.Command {
	return &cli.Command{
		Name:      "timetravel",
		Usage:     "take a run, and the worktree with it, back to where a task began",
		Category:  "moves",
		ArgsUsage: "<run>",
		Flags: travelFlags(append(resumeFlags("go on from there at once"), taskFlag(), attemptFlag(),
			&cli.BoolFlag{Name: "after", Usage: "to where the attempt ended; the task keeps its outcome"},
			&cli.BoolFlag{Name: "cascade", Usage: "what depends on the task runs again too, whatever it is given"},
			&cli.BoolFlag{Name: "ledger-only", Usage: "leave the worktree as it is"},
			&cli.BoolFlag{Name: "head", Usage: "put back where HEAD and its branch were, too"},
			&cli.StringFlag{Name: "reapply", Usage: "signals that were answered since: all of them again where the question is the same, or `none`"})...),
		Description: `The task runs again when the run goes on. Of the others, those run again that are
given something else than before.

Examples:
  retcon timetravel greet -n hello --dry-run
  retcon timetravel greet -n hello --yes --resume`,
		Action: func(ctx *cli.Context) error {
			o, err := c.taskOptions(ctx)
			if err != nil {
				return err
			}
			return c.traveller(ctx, o, ctx.Bool("resume"), (*retcon.Workspace).TimeTravel)
		},
	}
}

// taskOptions is travelOptions for a verb that needs a task.
func (c *console) taskOptions(ctx *cli.Context) (o retcon.TravelOptions, err error) {
	if ctx.String("task") == "" {
		return o, misuse("retcon "+ctx.Command.Name+": which task? give it with -n", "retcon show "+ctx.Args().First())
	}
	return c.travelOptions(ctx)
}

func (c *console) revertCommand() *cli.Command {
	return &cli.Command{
		Name:      "revert",
		Usage:     "put the worktree to what an attempt of a task left; the record stays",
		Category:  "moves",
		ArgsUsage: "<run>",
		Flags: travelFlags(taskFlag(), attemptFlag(),
			&cli.BoolFlag{Name: "before", Usage: "to where the attempt began"},
			&cli.BoolFlag{Name: "only", Usage: "take back only what that attempt changed"}),
		Description: `The run does not agree with its files afterwards: retcon undo puts them back, and
resuming the run begins with the files as they are.

With --only what came after the attempt stays, line by line, and so does what you
changed; where the same lines were changed again, it is asked which side to take.
In the session of an agent a task is a prompt: prompt-2 is the second, and what it
changed is what its tool calls did.

Examples:
  retcon revert greet -n hello --dry-run
  retcon revert greet -n hello --yes`,
		Action: func(ctx *cli.Context) error {
			o, err := c.taskOptions(ctx)
			if err != nil {
				return err
			}
			return c.traveller(ctx, o, false, (*retcon.Workspace).Revert)
		},
	}
}

func (c *console) retryTaskCommand() *cli.Command {
	return &cli.Command{
		Name:      "retry-task",
		Usage:     "let a task run again with the files it began with, and go on",
		Category:  "moves",
		ArgsUsage: "<run>",
		Flags: travelFlags(append(resumeFlags("go on at once, which is the default"), taskFlag(), attemptFlag(),
			&cli.BoolFlag{Name: "no-resume", Usage: "do not go on"},
			&cli.BoolFlag{Name: "cascade", Usage: "what depends on the task runs again too, whatever it is given"},
			&cli.BoolFlag{Name: "keep-files", Usage: "begin with the files as they are"})...),
		Description: `Nothing is cut off: the task gets a new attempt. What comes after it runs again
where it is given something else than before.

Examples:
  retcon retry-task greet -n hello --dry-run
  retcon retry-task greet -n hello --yes`,
		Action: func(ctx *cli.Context) error {
			o, err := c.taskOptions(ctx)
			if err != nil {
				return err
			}
			return c.traveller(ctx, o, !ctx.Bool("no-resume"), (*retcon.Workspace).RetryTask)
		},
	}
}

func (c *console) rerunCommand() *cli.Command {
	return &cli.Command{
		Name:      "rerun",
		Usage:     "run some tasks of a run again, as a new generation, and go on",
		Category:  "moves",
		ArgsUsage: "<run>",
		Flags: travelFlags(append(resumeFlags("go on at once, which is the default"),
			&cli.StringSliceFlag{Name: "task", Aliases: []string{"n"}, Usage: "this `task`; may be given more than once"},
			&cli.StringFlag{Name: "from", Usage: "this `task` and all that depends on it"},
			&cli.BoolFlag{Name: "failed", Usage: "all that did not end well"},
			&cli.BoolFlag{Name: "no-resume", Usage: "do not go on"},
			&cli.BoolFlag{Name: "cascade", Usage: "what depends on them runs again too, whatever it is given"})...),
		Description: `The others are taken over as they were; one that failed stays failed.

Examples:
  retcon rerun greet -n hello --dry-run
  retcon rerun greet --from hello --yes`,
		Action: func(ctx *cli.Context) error {
			o, err := c.travelOptions(ctx)
			if err != nil {
				return err
			}
			o.Task, o.Tasks, o.From, o.Failed = "", ctx.StringSlice("task"), ctx.String("from"), ctx.Bool("failed")
			if len(o.Tasks) == 0 && o.From == "" && !o.Failed {
				return misuse("retcon rerun: which tasks? give them with -n, --from or --failed", "retcon show "+o.Run)
			}
			return c.traveller(ctx, o, !ctx.Bool("no-resume"), (*retcon.Workspace).Rerun)
		},
	}
}

// history says what becomes of the run's record.
func (m moved) history(p *page) {
	h := m.History
	if h == nil {
		return
	}
	run := p.bold(fmt.Sprintf("r%d", h.Run))
	switch {
	case h.Undoes != 0:
		p.printf("run: %s is as it was, %s\n", run, h.Becomes)
	case h.Cut > 0:
		p.printf("run: %s goes on from frame %d; %s cut off\n", run, h.Frame, count(h.Cut, "frame is", "frames are"))
	}
	forced := map[string]bool{}
	var again, others []string
	for _, t := range h.Forced {
		forced[t.Task] = true
		again = append(again, called(t.Task))
	}
	for _, t := range h.Tasks {
		if !forced[t.Task] {
			others = append(others, called(t.Task))
		}
	}
	if len(again) > 0 {
		p.printf("runs again: %s\n", few(again))
	}
	if len(others) > 0 && h.Undoes == 0 {
		p.printf("decided anew: %s\n", few(others))
	}
	if n := len(h.Signals); n > 0 {
		p.printf("signals: %s sent again\n", count(n, "is", "are"))
	}
}

// called is a task as a person calls it, without the digest that tells it from
// others of its name.
func called(id string) string {
	at := strings.LastIndexByte(id, '~')
	if at < 0 || strings.IndexByte(id[at:], '/') >= 0 {
		return name(id)
	}
	occurrence := ""
	if i := strings.IndexByte(id[at:], '#'); i > 0 {
		occurrence = id[at+i:]
	}
	return name(id[:at] + occurrence)
}

// few names some of many.
func few(all []string) string {
	const most = 8
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
