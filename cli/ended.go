package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon"
)

// ended is how far a run has come, as it is told when it stops.
type ended struct {
	Run     string          `json:"run"`
	Frame   int64           `json:"frame"`
	Status  string          `json:"status"`
	Value   json.RawMessage `json:"value"`
	Task    string          `json:"task"`
	Scope   string          `json:"scope"`
	Line    string          `json:"line"`
	Kind    string          `json:"kind"`
	Message string          `json:"message"`
	Waits   []string        `json:"waits"`
	Resume  []string        `json:"resume"`
	Tasks   []task          `json:"tasks"`
}

// task is a task of a run, as a frame has it.
type task struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Scope   string   `json:"scope"`
	Kind    string   `json:"kind"`
	State   string   `json:"state"`
	Attempt int      `json:"attempt"`
	Carried bool     `json:"carried"`
	Line    string   `json:"line"`
	Message string   `json:"message"`
	Deps    []string `json:"deps"`
	After   string   `json:"after"`
}

func newTask(t retcon.Task) task {
	told := task{ID: t.ID, Name: t.Name, Scope: t.Scope, Kind: t.Kind, State: t.State, Attempt: t.Attempt, Carried: t.Carried,
		Line: t.Line, Message: t.Message, Deps: t.Deps, After: t.After}
	if told.Deps == nil {
		told.Deps = []string{}
	}
	return told
}

func newTasks(all []retcon.Task) []task {
	told := make([]task, 0, len(all))
	for _, t := range all {
		told = append(told, newTask(t))
	}
	return told
}

func newEnded(r *retcon.RunResult) ended {
	return ended{Run: r.Run, Frame: r.Frame, Status: r.Status, Value: orNull(r.Value), Task: r.Task, Scope: r.Scope, Line: r.Line,
		Kind: r.Kind, Message: r.Message, Waits: r.Waits, Resume: r.Resume, Tasks: newTasks(r.Tasks)}
}

func orNull(v json.RawMessage) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

func (e ended) Text(p *page) {
	if e.Run == "" {
		p.printf("it loads, and the input is what it asks for\n")
		return
	}
	p.tree(e.Tasks)
	p.printf("%s %s at frame %d", p.bold(e.Run), p.status(e.Status), e.Frame)
	switch {
	case len(e.Waits) > 0:
		p.printf(" for %s", strings.Join(e.Waits, ", "))
	case e.Kind == "interrupted":
	case e.Task != "":
		p.printf(": %s: %s", clean(e.taskName()), oneLine(e.Message))
	case e.Message != "":
		p.printf(": %s", oneLine(e.Message))
	}
	if e.Line != "" {
		p.printf("  %s", p.dim("("+e.Line+")"))
	}
	p.printf("\n")
	if v := valueLine(e.Value); v != "" {
		p.printf("%s\n", v)
	}
	for _, hint := range e.Resume {
		p.printf("hint: %s\n", clean(hint))
	}
}

// taskName is what stopped the run, as the tree calls it.
func (e ended) taskName() string {
	for _, t := range e.Tasks {
		if t.ID == e.Task {
			return t.path()
		}
	}
	return e.Task
}

// path is a task's name with its scope.
func (t task) path() string {
	if t.Scope == "" {
		return t.Name
	}
	return t.Scope + "/" + t.Name
}

// valueLine is a value for people: text as it is, anything else as JSON on one
// line; "" for none.
func valueLine(v json.RawMessage) string {
	var text string
	switch {
	case len(v) == 0 || bytes.Equal(v, []byte("null")):
		return ""
	case json.Unmarshal(v, &text) == nil:
		return clean(text)
	}
	return clean(string(v))
}

// oneLine keeps a message from breaking the layout.
func oneLine(s string) string { return clean(strings.ReplaceAll(strings.TrimSpace(s), "\n", " / ")) }

// status is the word for how a run stands, in its colour.
func (p *page) status(s string) string {
	switch s {
	case retcon.StatusOK, "done":
		return p.green(s)
	case retcon.StatusFailed:
		return p.red(s)
	case retcon.StatusWaiting, retcon.StatusInterrupted, retcon.StatusCancelled, retcon.StatusRunning:
		return p.yellow(s)
	}
	return s
}

// mark is a task's state in one character: done, failed, not begun, carried,
// waiting.
func (t task) mark(p *page) string {
	switch {
	case t.State == "done" && t.Carried:
		return p.green("=")
	case t.State == "done":
		return p.green("✓")
	case t.State == "failed":
		return p.red("✗")
	case t.State == "cancelled", t.State == "skipped":
		return p.dim("-")
	case t.State == "waiting":
		return p.yellow("⏸")
	case t.State == "running":
		return p.yellow("▸")
	}
	return p.dim("·")
}

// tree writes tasks in their scopes, in the order they have. Branches that ran
// side by side are sorted: which one began first says nothing.
func (p *page) tree(tasks []task) {
	root := &scope{}
	for _, t := range tasks {
		at := root
		if t.Scope != "" {
			for part := range strings.SplitSeq(t.Scope, "/") {
				at = at.below(part)
			}
		}
		at.parts = append(at.parts, part{task: &t})
	}
	p.table(root.rows(p, 0))
}

// scope is a part of the body with tasks and scopes of its own.
type scope struct {
	name  string
	parts []part
}

// part is a task or a scope.
type part struct {
	task  *task
	scope *scope
}

func (s *scope) below(name string) *scope {
	for _, one := range s.parts {
		if one.scope != nil && one.scope.name == name {
			return one.scope
		}
	}
	made := &scope{name: name}
	at := len(s.parts)
	for at > 0 && s.parts[at-1].scope != nil && beside(s.parts[at-1].scope.name, name) && s.parts[at-1].scope.name > name {
		at--
	}
	s.parts = slices.Insert(s.parts, at, part{scope: made})
	return made
}

// beside tells that two scopes are branches of one call: e0[api] and e0[web],
// p1.lint and p1.test.
func beside(a, b string) bool {
	end := func(s string) string { return s[:max(0, strings.IndexAny(s, "[."))] }
	return end(a) != "" && end(a) == end(b)
}

func (s *scope) rows(p *page, depth int) (rows [][]string) {
	indent := strings.Repeat("  ", depth)
	for _, one := range s.parts {
		if one.task != nil {
			t := one.task
			rows = append(rows, []string{indent + t.mark(p) + " " + clean(t.Name), t.Kind, t.about(p)})
			continue
		}
		rows = append(rows, []string{indent + p.bold(clean(one.scope.name))})
		rows = append(rows, one.scope.rows(p, depth+1)...)
	}
	return rows
}

// about is what is worth saying of a task beside its state.
func (t task) about(p *page) string {
	var parts []string
	switch t.State {
	case "cancelled", "skipped":
		parts = append(parts, t.State)
	}
	if t.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", t.Attempt))
	}
	if t.Carried {
		parts = append(parts, "carried")
	}
	if t.Message != "" {
		parts = append(parts, oneLine(t.Message))
	}
	return p.dim(strings.Join(parts, ", "))
}
