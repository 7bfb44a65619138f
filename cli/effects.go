package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) effectsCommand() *cli.Command {
	return &cli.Command{
		Name:     "effects",
		Usage:    "list, record and settle what runs did outside their worktrees",
		Category: "history",
		Description: `Examples:
  retcon effects list
  retcon effects list greet --json`,
		Subcommands: []*cli.Command{
			c.effectsListCommand(), c.effectsShowCommand(), c.effectsRecordCommand(), c.effectsSettleCommand(), c.effectsRetryCommand(),
		},
	}
}

func (c *console) effectsListCommand() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list effects, newest first", ArgsUsage: "[<run>]",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 50, Usage: "at most `count`"},
			&cli.Int64Flag{Name: "before", Usage: "only those older than `effect`"},
		},
		Description: "Examples:\n  retcon effects list\n  retcon effects list greet",
		Action: func(ctx *cli.Context) error {
			limit, err := atLeastOne(ctx, "limit")
			if err != nil {
				return err
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Effects(ctx.Context, retcon.EffectsOptions{Run: ctx.Args().First(), Before: ctx.Int64("before"), Limit: limit})
				if err != nil {
					return err
				}
				l := effectList{Effects: []effect{}}
				for i := range found {
					l.Effects = append(l.Effects, newEffect(&found[i]))
				}
				return c.answer(l)
			})
		},
	}
}

func (c *console) effectsShowCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show all that is known of an effect", ArgsUsage: "<effect>",
		Description: "Examples:\n  retcon effects show 1",
		Action: func(ctx *cli.Context) error {
			return c.oneEffect(ctx, (*retcon.Workspace).Effect)
		},
	}
}

func (c *console) effectsRetryCommand() *cli.Command {
	return &cli.Command{
		Name: "retry", Usage: "undo an effect, or try once more to", ArgsUsage: "<effect>",
		Description: `It is undone as a move would, and nothing else is done.

Examples:
  retcon effects retry 1`,
		Action: func(ctx *cli.Context) error {
			return c.oneEffect(ctx, (*retcon.Workspace).RetryEffect)
		},
	}
}

func (c *console) effectsRecordCommand() *cli.Command {
	return &cli.Command{
		Name: "record", Usage: "record an effect, best before it is made", ArgsUsage: "<run>",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "effect", Usage: "all of it, as `json`: tool, task, call, command, args, fields, compensation; @file, or - for stdin"},
			&cli.StringFlag{Name: "tool", Usage: "`what` makes it"},
			&cli.StringFlag{Name: "task", Aliases: []string{"n"}, Usage: "the `task` that it is a part of"},
			&cli.StringFlag{Name: "call", Usage: "a `name` for the call: recorded again under it, it is the same effect with the same key"},
			&cli.StringFlag{Name: "status", Usage: "`intended`, succeeded, failed or unknown"},
			&cli.StringFlag{Name: "undo", Usage: "how it is undone, as `json`: {\"command\": […]}, {\"http\": {…}}, {\"not_needed\": \"why\"}"},
		},
		Description: `The answer has the effect's key: give it to whoever makes the effect, who then
makes it once, however often he is asked to. Say afterwards what came of it, with
retcon effects settle.

Examples:
  retcon effects record flaky --tool mailer --call welcome --undo '{"command": ["mailer", "recall", "{{.id}}"]}'`,
		Action: func(ctx *cli.Context) error {
			var r retcon.EffectRecord
			if err := c.decode(ctx, "effect", &r); err != nil {
				return err
			}
			r.Run = ctx.Args().First()
			for flag, to := range map[string]*string{"tool": &r.Tool, "task": &r.Task, "call": &r.Call, "status": &r.Status} {
				if ctx.IsSet(flag) {
					*to = ctx.String(flag)
				}
			}
			if err := c.decode(ctx, "undo", &r.Compensation); err != nil {
				return err
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.RecordEffect(ctx.Context, r)
				if err != nil {
					return err
				}
				return c.answer(newEffect(found))
			})
		},
	}
}

func (c *console) effectsSettleCommand() *cli.Command {
	return &cli.Command{
		Name: "settle", Usage: "say what came of an effect, or what is known of it", ArgsUsage: "<effect> [<status>]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "fields", Usage: "values that undoing it needs, as a `json` object; @file, or - for stdin"},
			&cli.StringFlag{Name: "output", Usage: "what was `answered`"},
			&cli.StringFlag{Name: "undo", Usage: "how it is undone, as `json`, in place of what was recorded"},
		},
		Description: `The status is succeeded, failed (it did not happen, and is in nobody's way) or
unknown.

Examples:
  retcon effects settle 1 succeeded --fields '{"id": "42"}'`,
		Action: func(ctx *cli.Context) error {
			o := retcon.EffectOutcome{Status: ctx.Args().Get(1), Output: ctx.String("output")}
			values := map[string]any{}
			if err := c.decode(ctx, "fields", &values); err != nil {
				return err
			}
			o.Fields = map[string]string{}
			for name, v := range values {
				o.Fields[name] = plainText(v)
			}
			if ctx.IsSet("undo") {
				o.Compensation = &retcon.Compensation{}
				if err := c.decode(ctx, "undo", o.Compensation); err != nil {
					return err
				}
			}
			return c.oneEffect(ctx, func(w *retcon.Workspace, ctx context.Context, id int64) (*retcon.Effect, error) {
				return w.SettleEffect(ctx, id, o)
			})
		},
	}
}

// decode reads a flag that is a JSON document, if it is given.
func (c *console) decode(ctx *cli.Context, flag string, to any) error {
	if !ctx.IsSet(flag) {
		return nil
	}
	b, _, err := c.document("--"+flag, ctx.String(flag))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, to); err != nil {
		return misuse(fmt.Sprintf("--%s: %s", flag, oneLine(err.Error())), "retcon "+ctx.Command.HelpName+" --help")
	}
	return nil
}

// plainText is a JSON value as text.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error()) // it was JSON
	}
	return string(b)
}

func (c *console) oneEffect(ctx *cli.Context, do func(*retcon.Workspace, context.Context, int64) (*retcon.Effect, error)) error {
	text := ctx.Args().First()
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return misuse(fmt.Sprintf("%s is not the number of an effect", name(text)), "retcon effects list")
	}
	return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
		c.untrusted(w)
		found, err := do(w, ctx.Context, id)
		if err != nil {
			return err
		}
		return c.answer(newEffect(found))
	})
}

type effectList struct {
	Effects []effect `json:"effects"`
}

// effect is something a run did outside.
type effect struct {
	ID           int64             `json:"id"`
	Run          string            `json:"run"`
	Frame        int64             `json:"frame"`
	Task         string            `json:"task"`
	Attempt      int               `json:"attempt"`
	Key          string            `json:"key"`
	Tool         string            `json:"tool"`
	Rule         string            `json:"rule"`
	Command      string            `json:"command"`
	Args         json.RawMessage   `json:"args"`
	Output       string            `json:"output"`
	Fields       map[string]string `json:"fields"`
	Class        string            `json:"class"`
	Status       string            `json:"status"`
	Compensation json.RawMessage   `json:"compensation"`
	State        string            `json:"state"`
	Detail       string            `json:"detail"`
	Op           int64             `json:"op"`
	Late         bool              `json:"late"`
	How          string            `json:"how"`
	Why          string            `json:"why"`
	Created      time.Time         `json:"created"`
	Updated      time.Time         `json:"updated"`
}

func newEffect(e *retcon.Effect) effect {
	told := effect{ID: e.ID, Run: e.Run, Frame: e.Frame, Task: e.Task, Attempt: e.Attempt, Key: e.Key, Tool: e.Tool, Rule: e.Rule,
		Command: e.Command, Args: orNull(e.Args), Output: e.Output, Fields: e.Fields, Class: e.Class, Status: e.Status, State: e.State,
		Detail: e.Detail, Op: e.Op, Late: e.Late, How: e.How, Why: e.Why, Created: e.Created, Updated: e.Updated}
	told.Compensation = orNull(nil)
	if !e.Compensation.IsZero() {
		b, err := json.Marshal(e.Compensation)
		if err != nil {
			panic("BUG: " + err.Error()) // it was read from JSON
		}
		told.Compensation = b
	}
	return told
}

// what says what the effect is.
func (e effect) what() string {
	for _, s := range []string{e.Command, e.Rule} {
		if s != "" {
			return short(s)
		}
	}
	return clean(e.Tool)
}

// stands says what has become of it.
func (e effect) stands(p *page) string {
	text := e.Status
	switch {
	case e.State == "failed":
		text = p.red("could not be undone")
	case e.State == "compensated":
		text = "undone"
	case e.State == "crossed":
		text = p.yellow("left behind")
	case e.State != "":
		text = p.yellow("being undone")
	case e.Status == "unknown" || e.Status == "intended":
		text = p.yellow(text)
	}
	if e.Late {
		text += p.yellow(", late")
	}
	return text
}

func (l effectList) Text(p *page) {
	if len(l.Effects) == 0 {
		p.printf("nothing was done outside, as far as is known\n")
	}
	var rows [][]string
	for _, e := range l.Effects {
		rows = append(rows, []string{p.bold(fmt.Sprint(e.ID)), e.Run, shortTask(e.Task), e.stands(p), p.ago(e.Created), e.what()})
	}
	p.table(rows)
}

func (e effect) Text(p *page) {
	p.printf("%s  %s  %s\n", p.bold(fmt.Sprintf("effect %d", e.ID)), e.stands(p), e.what())
	rows := [][]string{{"run", fmt.Sprintf("%s, before frame %d", e.Run, e.Frame)}}
	add := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{what, clip(oneLine(clean(text)))})
		}
	}
	add("task", e.Task)
	add("tool", e.Tool)
	add("class", e.Class)
	add("key", e.Key)
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		if v := e.Fields[name]; v != "" {
			fields = append(fields, name+"="+v)
		}
	}
	add("known", strings.Join(fields, ", "))
	if e.Op != 0 {
		add("by", fmt.Sprintf("op %d", e.Op))
	}
	add("failed", e.Detail)
	add("undone by", e.How)
	add("in the way", e.Why)
	rows = append(rows, []string{"made", p.ago(e.Created)})
	p.table(rows)
	if e.State == "failed" {
		p.printf("hint: retcon effects retry %d\n", e.ID)
	}
}

// effectValues are the effects that can be named.
func (c *console) effectValues(ctx context.Context) (found []candidate) {
	c.look(ctx, func(w *retcon.Workspace) error {
		all, err := w.Effects(ctx, retcon.EffectsOptions{Limit: offered})
		for i := range all {
			e := newEffect(&all[i])
			found = append(found, candidate{fmt.Sprint(e.ID), e.Run + ", " + e.Status + ": " + e.what()})
		}
		return err
	})
	return found
}

// effectStep is what a move does about an effect.
type effectStep struct {
	ID      int64  `json:"id"`
	Run     string `json:"run"`
	Task    string `json:"task"`
	Tool    string `json:"tool"`
	Summary string `json:"summary"`
	Status  string `json:"status"`
	What    string `json:"what"`
	How     string `json:"how"`
	Why     string `json:"why"`
	Unblock string `json:"unblock"`
	Reason  string `json:"reason"`
}

func newEffectSteps(all []retcon.EffectStep) []effectStep {
	told := make([]effectStep, 0, len(all))
	for _, s := range all {
		told = append(told, effectStep{ID: s.ID, Run: fmt.Sprintf("r%d", s.Run), Task: s.Task, Tool: s.Tool, Summary: s.Summary,
			Status: s.Status, What: s.What, How: s.How, Why: s.Why, Unblock: s.Unblock, Reason: s.Reason})
	}
	return told
}

// acts tells that something outside is undone, or left there.
func (m moved) acts() bool {
	return slices.ContainsFunc(m.Effects, func(s effectStep) bool { return s.What != "listed" })
}

// effects says what a move does about what was done outside.
func (m moved) effects(p *page) {
	for _, s := range m.Effects {
		title, why := "outside:", s.Why
		switch s.What {
		case "compensate":
			title, why = "undone outside:", s.How
			if m.DryRun {
				title = "to be undone outside:"
			}
		case "blocked":
			title, why = p.red("in the way:"), s.Why+"; "+s.Unblock
		case "crossed":
			title = p.yellow("left outside:")
		}
		p.printf("%s effect %d of %s, %s: %s\n", title, s.ID, s.Run, short(s.Summary), clean(why))
	}
	for _, s := range m.Effects {
		if s.What == "crossed" && !m.DryRun {
			p.printf("hint: retcon ack %s\n", s.Run)
			return
		}
	}
}
