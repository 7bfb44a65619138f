package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

func (c *console) timelineCommand() *cli.Command {
	return &cli.Command{
		Name:      "timeline",
		Usage:     "list the frames of a run, newest first: what happened, and where one can go back to",
		Category:  "history",
		ArgsUsage: "<run>",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "tree", Usage: "with the forks on their frames"},
			&cli.BoolFlag{Name: "all", Usage: "with what moves have cut off"},
			&cli.StringFlag{Name: "task", Usage: "only the frames that changed `task`"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 200, Usage: "at most `count` frames"},
			&cli.Int64Flag{Name: "before", Usage: "only the frames before `number`"},
		},
		Description: `A frame is the state of a run after an outcome, with the worktree as it was then.
The number in front names it: r1@3. Behind each stand how long the attempt took,
how many files it added, changed and removed, and the checkpoint.

In the session of an agent it is also told where the conversation was resumed,
summed up or rewound inside the agent's own client, and which session it came from
or leads to. Events that could not be recorded are told of once.

Examples:
  retcon timeline greet
  retcon timeline greet --tree --all
  retcon timeline greet --task hello --json`,
		Action: func(ctx *cli.Context) error {
			limit, err := atLeastOne(ctx, "limit")
			if err != nil {
				return err
			}
			o := retcon.TimelineOptions{Run: ctx.Args().First(), Before: ctx.Int64("before"), Limit: limit,
				Tree: ctx.Bool("tree"), All: ctx.Bool("all"), Task: ctx.String("task")}
			if o.Before < 0 {
				return misuse("--before is the number of a frame")
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Timeline(ctx.Context, o)
				if err != nil {
					return err
				}
				return c.answer(newFrames(found))
			})
		},
	}
}

// frames is a branch of a run, and what begins at its frames.
type frames struct {
	Run     string `json:"run"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Live    bool   `json:"live"`
	Command string `json:"command"`
	Label   string `json:"label"`
	Base    *base  `json:"base"`
	Branch  int64  `json:"branch"`
	State   string `json:"state"`
	CutBy   int64  `json:"cut_by"`
	More    bool   `json:"more"`

	CutVerb  string `json:"cut_verb"`
	CutActor string `json:"cut_actor"`

	NeedsAttention []string `json:"needs_attention"`
	Missed         []string `json:"missed"`
	Edges          []edge   `json:"edges"`

	Frames   []frame  `json:"frames"`
	Archived []frames `json:"archived"`

	created time.Time
}

// base is the frame that a branch begins at.
type base struct {
	Run   string `json:"run"`
	Frame int64  `json:"frame"`
}

// frame is a frame of a run.
type frame struct {
	Frame      int64        `json:"frame"`
	Run        string       `json:"run"`
	At         time.Time    `json:"at"`
	Kind       string       `json:"kind"`
	Label      string       `json:"label"`
	Settled    string       `json:"settled"`
	Duration   int64        `json:"duration_ms"`
	Files      *totals      `json:"files"`
	Checkpoint string       `json:"checkpoint"`
	Commit     string       `json:"commit"`
	Restorable bool         `json:"restorable"`
	Events     int          `json:"events"`
	Changes    []taskChange `json:"changes"`
	Forks      []frames     `json:"forks"`
}

// taskChange is what a frame has changed of a task.
type taskChange struct {
	Task    string `json:"task"`
	Kind    string `json:"kind"`
	Old     string `json:"old"`
	New     string `json:"new"`
	Attempt int    `json:"attempt"`
	Carried bool   `json:"carried"`
}

func newFrames(t *timeline.Tree) frames {
	told := frames{Run: fmt.Sprintf("r%d", t.Run.ID), Name: t.Run.Name, Status: t.Run.Status, Live: t.Live, Command: t.Run.Command,
		Label: t.Branch.Label, Branch: t.Branch.ID, State: t.Branch.State, CutBy: t.Branch.ArchivedBy, More: t.More,
		CutVerb: t.CutVerb, CutActor: t.CutActor, Frames: []frame{}, Archived: []frames{},
		NeedsAttention: append([]string{}, t.Attention...), Missed: append([]string{}, t.Missed...), Edges: newEdges(t.Edges), created: t.Run.Created}
	if told.Status == retcon.StatusRunning && !t.Live {
		told.Status = retcon.StatusInterrupted
	}
	if t.Base != nil {
		told.Base = &base{Run: fmt.Sprintf("r%d", t.Base.Run), Frame: t.Base.Frame}
	}
	for _, f := range t.Frames {
		told.Frames = append(told.Frames, newFrame(f))
	}
	for _, a := range t.Archived {
		told.Archived = append(told.Archived, newFrames(a))
	}
	return told
}

func newFrame(f timeline.Frame) frame {
	told := frame{Frame: f.Seq, Run: fmt.Sprintf("r%d", f.Run), At: f.At.UTC(), Kind: f.Kind, Label: f.Label, Settled: f.Settled,
		Duration: f.Took.Milliseconds(), Commit: f.Commit, Restorable: f.Restorable, Events: f.Events,
		Changes: []taskChange{}, Forks: []frames{}}
	if f.Checkpoint != 0 {
		told.Checkpoint = fmt.Sprintf("c%d", f.Checkpoint)
	}
	if f.Files != nil {
		told.Files = &totals{Added: f.Files.Added, Changed: f.Files.Changed, Removed: f.Files.Removed}
	}
	for _, c := range f.Changes {
		told.Changes = append(told.Changes, taskChange{Task: c.ID, Kind: c.Kind, Old: c.Old, New: c.New, Attempt: c.Attempt, Carried: c.Carried})
	}
	for _, fork := range f.Forks {
		told.Forks = append(told.Forks, newFrames(fork))
	}
	return told
}

func (t frames) Text(p *page) {
	p.printf("%s\n", t.title(p))
	var rows [][]string
	t.rows(p, &rows, "")
	p.table(rows)
	if t.More && len(t.Frames) > 0 {
		p.printf("hint: retcon timeline %s --before %d\n", t.Run, t.Frames[len(t.Frames)-1].Frame)
	}
	if n := len(t.Missed); n > 0 {
		p.printf("%s, the last: %s\nhint: retcon doctor\n", p.yellow(count(n, "event of the session was not recorded", "events of the session were not recorded")),
			clean(t.Missed[n-1]))
	}
}

// title is a run in one line.
func (t frames) title(p *page) string {
	words := []string{p.bold(t.Run)}
	for _, s := range []string{clean(t.Name), p.status(t.Status), p.ago(t.created), short(t.Command)} {
		if s != "" {
			words = append(words, s)
		}
	}
	if len(t.NeedsAttention) > 0 {
		words = append(words, p.red("needs attention"))
	}
	if t.Base != nil {
		words = append(words, p.dim(fmt.Sprintf("from %s@%d", t.Base.Run, t.Base.Frame)))
	}
	for _, e := range t.Edges {
		if e.From != "" {
			words = append(words, p.dim(e.text()))
		}
	}
	return strings.Join(words, "  ")
}

// rows adds the lines of a branch, and of what begins at its frames.
func (t frames) rows(p *page, rows *[][]string, indent string) {
	for _, f := range t.Frames {
		for _, fork := range f.Forks {
			*rows = append(*rows, []string{indent + "  " + p.yellow("┌") + " " + fork.title(p)})
			fork.rows(p, rows, indent+"  "+p.yellow("│")+" ")
		}
		for _, e := range slices.Backward(t.Edges) {
			if e.From == "" && e.Frame == f.Frame {
				*rows = append(*rows, []string{indent + "  " + p.dim(e.text())})
			}
		}
		*rows = append(*rows, f.row(p, indent, t.Run))
	}
	for _, cut := range t.Archived {
		by := "cut off"
		if cut.CutBy != 0 {
			by += fmt.Sprintf(" by op %d", cut.CutBy)
		}
		if cut.CutVerb == retcon.VerbNative {
			by += ", made inside " + clean(cut.CutActor)
		}
		if cut.Base != nil {
			by += fmt.Sprintf(", after frame %d", cut.Base.Frame)
		}
		*rows = append(*rows, []string{indent + p.dim(by+":")})
		cut.rows(p, rows, indent+"  ")
	}
}

func (f frame) row(p *page, indent, run string) []string {
	number := fmt.Sprint(f.Frame)
	if f.Run != run {
		number = p.dim(number)
	} else {
		number = p.bold(number)
	}
	took, files, place := "", "", f.Checkpoint
	if f.Duration > 0 {
		took = lasted(time.Duration(f.Duration) * time.Millisecond)
	}
	if f.Files != nil {
		files = f.Files.signs(p)
	}
	if place != "" && !f.Restorable {
		place = p.red(place + " is damaged")
	}
	if place == "" {
		place = p.dim("not restorable")
	}
	if f.Label != "" {
		place += "  " + p.bold("~"+clean(f.Label))
	}
	return []string{indent + number, f.what(p), p.dim(took), files, place}
}

// what says what has happened: the tasks that settled or wait now, else what the
// frame is for.
func (f frame) what(p *page) string {
	var told, waits, declared []string
	for _, c := range f.Changes {
		switch c.New {
		case "", "pending", "running":
			declared = append(declared, shortTask(c.Task))
			continue
		case "waiting":
			waits = append(waits, task{State: c.New}.mark(p)+" "+shortTask(c.Task))
			continue
		}
		t := task{State: c.New, Carried: c.Carried}
		one := t.mark(p) + " " + shortTask(c.Task)
		var about []string
		switch c.Old {
		case "", "pending", "running", "waiting", c.New:
		default:
			about = append(about, c.Old+" before")
		}
		if c.Attempt > 1 {
			about = append(about, fmt.Sprintf("attempt %d", c.Attempt))
		}
		if len(about) > 0 {
			one += p.dim(" (" + strings.Join(about, ", ") + ")")
		}
		told = append(told, one)
	}
	const most = 4
	told = append(told, waits...)
	if len(told) > most {
		told = append(told[:most], p.dim(fmt.Sprintf("and %d more", len(told)-most)))
	}
	switch {
	case len(told) > 0:
		return strings.Join(told, "  ")
	case f.Kind != "outcome":
		return p.dim(f.Kind)
	case len(declared) == 1:
		return p.dim("· " + declared[0] + " declared")
	case len(declared) > 1:
		return p.dim("· " + count(len(declared), "task") + " declared")
	}
	return p.dim("end")
}

// signs is how many files came, changed and went: +1 ~2 -1.
func (t totals) signs(p *page) string {
	var parts []string
	for _, part := range []struct {
		n    int
		sign string
		in   func(string) string
	}{{t.Added, "+", p.green}, {t.Changed, "~", p.yellow}, {t.Removed, "-", p.red}} {
		if part.n > 0 {
			parts = append(parts, part.in(fmt.Sprintf("%s%d", part.sign, part.n)))
		}
	}
	return strings.Join(parts, " ")
}
