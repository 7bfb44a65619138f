package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) resumeCommand() *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "go on with a run that failed, was interrupted, or waits",
		Category:  "workflows",
		ArgsUsage: "<run>",
		Flags: append(runFlags(),
			&cli.StringFlag{Name: "file", Usage: "go on with this edited `file`; what its tasks are given decides what is kept"},
			&cli.BoolFlag{Name: "dry-run", Usage: "show what would be kept and what would run, and do nothing"},
			&cli.BoolFlag{Name: "keep-files", Usage: "begin the task that failed with the files as they are"},
			&cli.StringSliceFlag{Name: "value", Usage: "answer a signal first, as `name=json`"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask when results would be given up"},
			&cli.BoolFlag{Name: "force", Usage: "let tasks do again what they have done outside, and leave that there"},
		),
		Description: `What has succeeded is kept; what stopped the run is tried again, with the files
as they were when it began. With an edited file the tasks that are as they were,
and are given what they were given, are kept, wherever they stand in the file.

Before a task that would do again what it has done outside, the run stops: undo
that, say that it did not happen, or use --force. A call that was cut short is made
again under the key it had.

Examples:
  retcon resume flaky --dry-run
  retcon resume flaky
  retcon resume gate --file gate.star --dry-run
  retcon resume gate --file gate.star --yes --value approve=true`,
		Action: func(ctx *cli.Context) error {
			o := retcon.ResumeOptions{Run: ctx.Args().First(), File: ctx.String("file")}
			var err error
			if o.RunOptions, err = c.runOptions(ctx); err != nil {
				return err
			}
			o.KeepFiles, o.Force = ctx.Bool("keep-files"), ctx.Bool("force")
			for _, text := range ctx.StringSlice("value") {
				a, err := c.answerTo(text)
				if err != nil {
					return err
				}
				o.Values = append(o.Values, a)
			}
			if ctx.Bool("dry-run") {
				return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
					p, err := w.Preview(ctx.Context, o)
					if err != nil {
						return err
					}
					return c.answer(newPreview(p))
				})
			}
			return c.resume(ctx, o, ctx.Bool("yes"))
		},
	}
}

func (c *console) resume(ctx *cli.Context, o retcon.ResumeOptions, yes bool) error {
	return c.conduct(ctx, func(w *retcon.Workspace, live *live) (*retcon.RunResult, error) {
		o.On = live.on
		if !yes {
			o.Confirm = c.askToGiveUp
		}
		return w.ResumeWorkflow(ctx.Context, o)
	})
}

// answerTo reads NAME=JSON.
func (c *console) answerTo(text string) (retcon.Answer, error) {
	wait, value, ok := strings.Cut(text, "=")
	if !ok || wait == "" {
		return retcon.Answer{}, misuse(fmt.Sprintf("--value: %s is not NAME=JSON", name(text)))
	}
	b, _, err := c.document("--value "+wait, value)
	return retcon.Answer{Name: wait, Value: b}, err
}

// askToGiveUp shows what an edited file would give up, and asks.
func (c *console) askToGiveUp(p *retcon.Preview) (bool, error) {
	told := newPreview(p)
	if !c.json && !c.quiet {
		var text strings.Builder
		page := c.page(&text)
		_, terminal := c.Terminal(c.err)
		page.colour = c.colour && terminal
		told.Text(page)
		fmt.Fprint(c.err, text.String())
	}
	question := fmt.Sprintf("give up what %s had?", count(len(p.GivenUp()), "task"))
	if err := c.confirm(question, c.again("--yes")); err != nil {
		return false, err
	}
	return true, nil
}

// preview is what resuming a run would do.
type preview struct {
	Run    string        `json:"run"`
	File   string        `json:"file"`
	Tasks  []previewTask `json:"tasks"`
	Totals fates         `json:"totals"`
}

type previewTask struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Scope string `json:"scope"`
	Kind  string `json:"kind"`
	What  string `json:"what"`
	Line  string `json:"line"`
	Was   string `json:"was"`
	Reset bool   `json:"reset"`

	Effects []int64 `json:"effects"` // that it has made, and would or may make again
}

// fates counts tasks by what becomes of them.
type fates struct {
	Kept  int `json:"kept"`
	Run   int `json:"run"`
	May   int `json:"may_run"`
	Gone  int `json:"gone"`
	Waits int `json:"waits"`
}

func newPreview(p *retcon.Preview) preview {
	told := preview{Run: p.Run, File: p.File, Tasks: []previewTask{}}
	for _, t := range p.Tasks {
		told.Tasks = append(told.Tasks, previewTask{ID: t.ID, Name: t.Name, Scope: t.Scope, Kind: t.Kind,
			What: strings.ReplaceAll(t.What, " ", "_"), Line: t.Line, Was: t.Was, Reset: t.Reset,
			Effects: append([]int64{}, t.Effects...)})
		switch t.What {
		case retcon.WillKeep:
			told.Totals.Kept++
		case retcon.MayRun:
			told.Totals.May++
		case retcon.WillBeGone:
			told.Totals.Gone++
		case retcon.WillWait:
			told.Totals.Waits++
		default:
			told.Totals.Run++
		}
	}
	return told
}

func (v preview) Text(p *page) {
	var rows [][]string
	for _, t := range v.Tasks {
		sign, word := p.dim("="), p.dim("kept")
		switch t.What {
		case "kept":
			if t.Was == "" {
				word = p.dim("kept, from another place")
			}
		case "changed":
			sign, word = p.yellow("~"), "changed, will run"
		case "new":
			sign, word = p.green("+"), "new, will run"
		case "gone":
			sign, word = p.red("-"), "gone"
		case "may_run":
			sign, word = p.dim("?"), "may run"
		case "waits":
			sign, word = p.yellow("⏸"), "waits for a signal"
		default:
			sign, word = p.yellow("▸"), "will run"
			if t.Reset {
				word = "will run again"
			}
		}
		path := t.Name
		if t.Scope != "" {
			path = t.Scope + "/" + t.Name
		}
		rows = append(rows, []string{sign + " " + clean(path), t.Kind, word, p.dim(t.Line)})
	}
	p.table(rows)
	for _, t := range v.Tasks {
		for _, id := range t.Effects {
			p.printf("%s effect %d, which %s has made, is still there\n", p.yellow("in the way:"), id, clean(t.Name))
		}
	}
	p.printf("%s: %s\n", p.bold(v.Run), v.Totals)
}

func (f fates) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{f.Kept, "kept"}, {f.Run, "will run"}, {f.May, "may run"}, {f.Waits, "waits"}, {f.Gone, "gone"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if parts == nil {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}
