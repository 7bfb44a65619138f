package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show a run, its graph at a frame, or one of its tasks",
		Category:  "history",
		ArgsUsage: "<place>",
		Flags:     []cli.Flag{&cli.StringFlag{Name: "task", Usage: "all that is known of `task`: what it was given, what came of it, each attempt"}},
		Description: `A place is a run, or a point of one behind an @: a frame (r1@3, r1@-1), a task
(r1@test, r1@test#2 its second attempt), a label (r1@~ready), r1@start. A task can
be named by what it is called in the file, or by the beginning of its id.

Examples:
  retcon show greet
  retcon show greet@0
  retcon show greet@-1 --json
  retcon show greet --task hello
  retcon show greet@hello`,
		Action: func(ctx *cli.Context) error {
			o := retcon.ShowOptions{At: ctx.Args().First(), Task: ctx.String("task")}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Show(ctx.Context, o)
				if err != nil {
					return err
				}
				return c.answer(newRunShown(found))
			})
		},
	}
}

// runShown is a run at a place in its history.
type runShown struct {
	ran
	Live       bool            `json:"live"`
	ForkedFrom string          `json:"forked_from"`
	Frame      int64           `json:"frame"`
	Newest     int64           `json:"newest_frame"`
	At         *time.Time      `json:"at"`
	Label      string          `json:"label"`
	Root       string          `json:"root"`
	Checkpoint string          `json:"checkpoint"`
	Commit     string          `json:"commit"`
	Restorable bool            `json:"restorable"`
	Input      json.RawMessage `json:"input"`
	Value      json.RawMessage `json:"value"`
	Definition *definition     `json:"definition"`
	Waits      []string        `json:"waits"`
	Resume     []string        `json:"resume"`
	Loops      []loop          `json:"loops"`
	Tasks      []task          `json:"tasks"`
	Task       *taskShown      `json:"task"`
}

// definition is what a run executes.
type definition struct {
	Hash    string   `json:"hash"`
	Main    string   `json:"main"`
	Files   []string `json:"files"`
	Program string   `json:"program"`
}

// loop is how far a loop is.
type loop struct {
	Name       string `json:"name"`
	Iterations int    `json:"iterations"`
	State      string `json:"state"`
}

// taskShown is one task with all that is known of it.
type taskShown struct {
	task
	Declared json.RawMessage `json:"declared"`
	Digest   string          `json:"digest"`
	Output   json.RawMessage `json:"output"`
	Attempts []attempt       `json:"attempts"`
	Calls    []call          `json:"calls"`
}

// call is a call of a tool by an agent.
type call struct {
	Task string `json:"task"`
	attempt
}

// cell is an operation as the tape has it.
type cell struct {
	Number    int64           `json:"cell"`
	Op        string          `json:"op"`
	Args      json.RawMessage `json:"args"`
	Exit      *int            `json:"exit"`
	Output    string          `json:"output"`
	Bytes     int64           `json:"bytes"`
	TreeIn    string          `json:"tree_in"`
	TreeOut   string          `json:"tree_out"`
	Failed    bool            `json:"failed"`
	Denied    bool            `json:"denied"`
	Truncated bool            `json:"truncated"`
	Hole      string          `json:"hole"`
}

// attempt is one try of a task.
type attempt struct {
	Run         string     `json:"run"`
	Number      int        `json:"number"`
	Outcome     string     `json:"outcome"`
	Exit        *int       `json:"exit"`
	Before      string     `json:"before"`
	After       string     `json:"after"`
	Started     time.Time  `json:"started"`
	Ended       *time.Time `json:"ended"`
	AtLeastOnce bool       `json:"at_least_once"`
	Cells       []cell     `json:"cells"`
}

func newRunShown(s *retcon.Shown) runShown {
	told := runShown{ran: newRun(&s.Run), Live: s.Live, ForkedFrom: s.Parent, Frame: s.Frame, Newest: s.Newest, Label: s.Label,
		Root: s.Root, Checkpoint: s.Checkpoint, Commit: s.Commit, Restorable: s.Restorable, Input: orNull(s.Input), Value: orNull(s.Value),
		Waits: s.Waits, Resume: s.Resume, Loops: []loop{}, Tasks: newTasks(s.Tasks)}
	if !s.At.IsZero() {
		told.At = &s.At
	}
	if d := s.Definition; d != nil {
		told.Definition = &definition{Hash: d.Hash, Main: d.Main, Files: d.Files, Program: d.Program}
	}
	for _, l := range s.Loops {
		told.Loops = append(told.Loops, loop{l.Name, l.Iterations, l.State})
	}
	if s.Task != nil {
		told.Task = newTaskShown(s.Task)
	}
	return told
}

func newTaskShown(t *retcon.ShownTask) *taskShown {
	told := &taskShown{task: newTask(t.Task), Declared: orNull(t.Declared), Digest: t.Input, Output: orNull(t.Output), Attempts: []attempt{}, Calls: []call{}}
	for _, a := range t.Attempts {
		told.Attempts = append(told.Attempts, newAttempt(a))
	}
	for _, one := range t.Calls {
		told.Calls = append(told.Calls, call{one.Task, newAttempt(one.Attempt)})
	}
	return told
}

func newAttempt(a retcon.Attempt) attempt {
	told := attempt{Run: a.Run, Number: a.Number, Outcome: a.Outcome, Exit: a.Exit, Before: a.Before,
		After: a.After, Started: a.Started, Ended: a.Ended, AtLeastOnce: a.AtLeastOnce, Cells: []cell{}}
	for _, c := range a.Cells {
		told.Cells = append(told.Cells, cell{Number: c.Number, Op: c.Op, Args: orNull(c.Args), Exit: c.Exit, Output: c.Output, Bytes: c.Bytes,
			TreeIn: c.TreeIn, TreeOut: c.TreeOut, Failed: c.Failed, Denied: c.Denied, Truncated: c.Truncated, Hole: c.Hole})
	}
	return told
}

func (s runShown) Text(p *page) {
	if s.Task != nil {
		s.Task.text(p, s.Ref)
		return
	}
	title := []string{p.bold(s.Ref)}
	status := s.Status
	if s.Dead {
		status = "interrupted"
	}
	for _, word := range []string{clean(s.Name), p.status(status), short(s.Command)} {
		if word != "" {
			title = append(title, word)
		}
	}
	p.printf("%s\n", strings.Join(title, "  "))
	rows := [][]string{{"begun", p.ago(s.Created)}}
	add := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{what, text})
		}
	}
	add("forked from", s.ForkedFrom)
	for _, e := range s.Edges {
		about := e.text()
		if e.From == "" {
			about += fmt.Sprintf(", after frame %d", e.Frame)
		}
		add("session", about)
	}
	if s.Frame >= 0 {
		frame := fmt.Sprint(s.Frame)
		if s.Frame == s.Newest {
			frame += ", the newest"
		} else {
			frame += fmt.Sprintf(" of %d", s.Newest)
		}
		if s.Label != "" {
			frame += ", ~" + clean(s.Label)
		}
		add("frame", frame)
	}
	worktree := s.Checkpoint
	if worktree != "" && !s.Restorable {
		worktree += p.red(", which can't be restored: something is missing")
	}
	add("worktree", worktree)
	add("input", clip(oneLine(valueLine(emptyIsNull(s.Input)))))
	switch {
	case s.Definition == nil:
	case s.Definition.Program != "":
		add("definition", fmt.Sprintf("%.12s  the Go program %s, which alone resumes it", s.Definition.Hash, clean(s.Definition.Program)))
	default:
		add("definition", fmt.Sprintf("%.12s  %s", s.Definition.Hash, clean(strings.Join(s.Definition.Files, ", "))))
	}
	for _, l := range s.Loops {
		add("loop", fmt.Sprintf("%s: %s", clean(l.Name), count(l.Iterations, "iteration")))
	}
	add("value", clip(oneLine(valueLine(s.Value))))
	for _, why := range s.NeedsAttention {
		rows = append(rows, []string{"attention", p.yellow(clean(why))})
	}
	p.table(rows)
	if len(s.Tasks) > 0 {
		p.printf("\n")
		p.tree(s.Tasks)
	}
	for _, command := range s.Resume {
		p.printf("hint: %s\n", command)
	}
}

// emptyIsNull hides an input that says nothing.
func emptyIsNull(v json.RawMessage) json.RawMessage {
	if string(v) == "{}" {
		return nil
	}
	return v
}

func (t taskShown) text(p *page, run string) {
	p.printf("%s %s  %s  %s\n", t.mark(p), p.bold(clean(t.path())), t.Kind, p.status(t.State))
	rows := [][]string{{"id", clean(t.ID)}}
	add := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{what, text})
		}
	}
	add("line", clean(t.Line))
	var declared struct {
		Args map[string]json.RawMessage `json:"args"`
		Fx   string                     `json:"fx"`
	}
	_ = json.Unmarshal(t.Declared, &declared) // null: it was not kept, and there is nothing to show
	add("fx", declared.Fx)
	for _, name := range sortedKeys(declared.Args) {
		add(clean(name), clip(oneLine(valueLine(declared.Args[name]))))
	}
	add("given", clean(strings.Join(t.Deps, ", ")))
	add("after", clean(t.After))
	add("digest", fmt.Sprintf("%.12s", t.Digest))
	if t.Carried {
		add("carried", "the outcome is another attempt's")
	}
	p.table(rows)
	if len(t.Attempts) > 0 {
		p.printf("\n")
		var tried [][]string
		for _, a := range t.Attempts {
			tried = append(tried, a.row(p))
		}
		p.table(tried)
	}
	var tape [][]string
	for _, a := range t.Attempts {
		for _, c := range a.Cells {
			tape = append(tape, c.row(p))
		}
	}
	for _, one := range t.Calls {
		row := one.row(p)
		row[0] = p.bold(clean(one.Task))
		tape = append(tape, row)
		for _, c := range one.Cells {
			tape = append(tape, c.row(p))
		}
	}
	if len(tape) > 0 {
		p.printf("\n")
		p.table(tape)
	}
	if out := t.output(); out != "" {
		p.printf("\n%s\n", out)
	}
}

// output is the value for people: text as it stands, anything else as JSON.
func (t taskShown) output() string {
	var text string
	if json.Unmarshal(t.Output, &text) == nil {
		return clean(text)
	}
	if string(t.Output) == "null" {
		return ""
	}
	return clean(string(t.Output))
}

func (a attempt) row(p *page) []string {
	outcome := p.status(a.Outcome)
	switch {
	case a.Outcome == "":
		outcome = p.yellow("open")
	case a.Exit != nil && *a.Exit != 0:
		outcome += fmt.Sprintf(", exit %d", *a.Exit)
	}
	took := ""
	if a.Ended != nil {
		took = lasted(a.Ended.Sub(a.Started))
	}
	where := a.Before
	if a.After != "" {
		where += " to " + a.After
	}
	return []string{fmt.Sprintf("attempt %d", a.Number), outcome, took, where, p.ago(a.Started)}
}

func (c cell) row(p *page) []string {
	what := fmt.Sprintf("%d bytes", c.Bytes)
	switch {
	case c.Hole != "":
		return []string{fmt.Sprintf("  cell %d", c.Number), clean(c.Op), "", p.yellow("a hole: " + clean(c.Hole))}
	case c.Truncated:
		what += ", its end is not kept"
	}
	if c.Exit != nil {
		what = fmt.Sprintf("exit %d, ", *c.Exit) + what
	}
	return []string{fmt.Sprintf("  cell %d", c.Number), clean(c.Op), "", clip(oneLine(clean(string(c.Args)))), what}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
