package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) runsCommand() *cli.Command {
	return &cli.Command{
		Name:     "runs",
		Usage:    "list what was run here, newest first",
		Category: "history",
		Flags:    []cli.Flag{&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 50, Usage: "at most `count`"}},
		Description: `r3 is the newest checkpoint of run 3, r3@before and r3@after are where it began
and ended.

Examples:
  retcon runs
  retcon runs --limit 5 --json`,
		Action: func(ctx *cli.Context) error {
			limit, err := atLeastOne(ctx, "limit")
			if err != nil {
				return err
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Runs(ctx.Context, limit)
				if err != nil {
					return err
				}
				return c.answer(runList{newRuns(found)})
			})
		},
	}
}

// ran is a run as it is told.
type ran struct {
	Ref      string    `json:"ref"`
	UID      string    `json:"uid"`
	Source   string    `json:"source"`
	Name     string    `json:"name"`
	Status   string    `json:"status"`
	Dead     bool      `json:"dead"`
	Command  string    `json:"command"`
	Parent   string    `json:"parent"`
	Before   string    `json:"before"`
	After    string    `json:"after"`
	Exit     *int      `json:"exit"`
	Attempts int       `json:"attempts"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`

	NeedsAttention []string `json:"needs_attention"`
	Edges          []edge   `json:"edges"`
}

func newRun(r *retcon.Run) ran {
	why := r.NeedsAttention
	if why == nil {
		why = []string{}
	}
	return ran{
		NeedsAttention: why, Edges: newEdges(r.Edges),

		Ref: r.Ref, UID: r.UID, Source: r.Source, Name: r.Name, Status: r.Status, Dead: r.Dead, Command: r.Command,
		Parent: r.Parent, Before: r.Before, After: r.After, Exit: r.Exit, Attempts: r.Attempts,
		Created: r.Created, Updated: r.Updated,
	}
}

func newRuns(all []retcon.Run) []ran {
	told := make([]ran, 0, len(all))
	for i := range all {
		told = append(told, newRun(&all[i]))
	}
	return told
}

// row is a run as a line of a list.
func (r ran) row(p *page) []string {
	status := r.Status
	switch {
	case r.Dead:
		status = p.yellow("interrupted")
	case r.Exit != nil && *r.Exit != 0 && r.Source != "workflow":
		status = p.red(fmt.Sprintf("exit %d", *r.Exit))
	default:
		status = p.status(r.Status)
	}
	if len(r.NeedsAttention) > 0 {
		status += p.red(", needs attention")
	}
	where := r.Before
	if r.After != "" {
		where += " to " + r.After
	}
	what := short(r.Command)
	if r.Name != "" {
		what = p.bold(clean(r.Name)) + "  " + what
	}
	for _, e := range r.Edges {
		if e.From != "" {
			what += "  " + p.dim(e.text())
		}
	}
	return []string{p.bold(r.Ref), p.ago(r.Created), r.Source, status, where, what}
}

// short keeps a text to one line that fits.
func short(text string) string { return clip(name(text)) }

// clip is the beginning of a line.
func clip(line string) string {
	const longest = 60
	runes := []rune(line)
	if len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return line
}

type runList struct {
	Runs []ran `json:"runs"`
}

func (l runList) Text(p *page) {
	if len(l.Runs) == 0 {
		p.printf("no runs\n")
	}
	var rows [][]string
	for _, r := range l.Runs {
		rows = append(rows, r.row(p))
	}
	p.table(rows)
}

func (c *console) runValues(ctx context.Context) (found []candidate) {
	var named []candidate
	c.look(ctx, func(w *retcon.Workspace) error {
		all, err := w.Runs(ctx, offered)
		for i := range all {
			about := all[i].Status + ", " + ago(c.Now(), all[i].Created) + ": " + all[i].Command
			found = append(found, candidate{all[i].Ref, about})
			if all[i].Name != "" {
				named = append(named, candidate{all[i].Name, all[i].Ref + ", " + about})
			}
		}
		return err
	})
	return append(found, named...)
}
