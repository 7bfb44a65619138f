package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

func (c *console) opCommand() *cli.Command {
	return &cli.Command{
		Name:        "op",
		Usage:       "list the moves, or show one",
		Category:    "moves",
		Description: "Examples:\n  retcon op log\n  retcon op show 1",
		Subcommands: []*cli.Command{
			{
				Name: "log", Usage: "list the moves, newest first",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 50, Usage: "at most `count`"},
					&cli.StringFlag{Name: "before", Usage: "only those older than `operation`"},
				},
				Description: "Examples:\n  retcon op log\n  retcon op log --limit 3 --json",
				Action: func(ctx *cli.Context) error {
					limit, err := atLeastOne(ctx, "limit")
					if err != nil {
						return err
					}
					before, err := operation(ctx.String("before"))
					if err != nil {
						return err
					}
					return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
						found, err := w.Ops(ctx.Context, before, limit)
						if err != nil {
							return err
						}
						l := opList{Ops: []op{}}
						for i := range found {
							l.Ops = append(l.Ops, newOp(&found[i]))
						}
						return c.answer(l)
					})
				},
			},
			{
				Name: "show", Usage: "show what a move changed", ArgsUsage: "<operation>",
				Description: "Examples:\n  retcon op show 1",
				Action: func(ctx *cli.Context) error {
					id, err := operation(ctx.Args().First())
					if err != nil {
						return err
					}
					return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
						found, err := w.Op(ctx.Context, id)
						if err != nil {
							return err
						}
						return c.answer(newOpShown(found))
					})
				},
			},
		},
	}
}

// operation reads the number of a move, 0 when there is none: 3, or op3.
func operation(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(text, "op"), 10, 64)
	if err != nil || n < 1 {
		return 0, misuse(fmt.Sprintf("%q is not the number of an operation", text), "retcon op log")
	}
	return n, nil
}

// op is a move in the log.
type op struct {
	ID        int64      `json:"op"`
	Verb      string     `json:"verb"`
	Actor     string     `json:"actor"`
	Target    string     `json:"target"`
	Result    string     `json:"result"`
	Started   time.Time  `json:"started"`
	Finished  *time.Time `json:"finished"`
	Safety    string     `json:"safety"`
	Rescue    string     `json:"rescue"`
	Undoes    int64      `json:"undoes"`
	UndoneBy  int64      `json:"undone_by"`
	Pruned    bool       `json:"pruned"`
	RequestID string     `json:"request_id"`
	Paths     int        `json:"paths"`
}

func newOp(o *retcon.Op) op {
	return op{
		ID: o.ID, Verb: o.Verb, Actor: o.Actor, Target: o.Target, Result: o.Result, Started: o.Started, Finished: o.Finished,
		Safety: o.Safety, Rescue: o.Rescue, Undoes: o.Undoes, UndoneBy: o.UndoneBy, Pruned: o.Pruned, RequestID: o.RequestID, Paths: o.Paths,
	}
}

// did is the move in words.
func (o op) did() string {
	if o.Undoes != 0 {
		return fmt.Sprintf("%s op %d", o.Verb, o.Undoes)
	}
	return o.Verb + " " + name(o.Target)
}

// row is a move as a line of a list.
func (o op) row(p *page) []string {
	result := resultText(o.Result)
	if o.Result != "ok" {
		result = p.yellow(result)
	}
	about := ""
	if o.Safety != "" {
		about = "before it: " + o.Safety
	}
	if o.UndoneBy != 0 {
		about += p.dim(fmt.Sprintf("  undone by op %d", o.UndoneBy))
	}
	return []string{p.bold(fmt.Sprintf("op %d", o.ID)), p.ago(o.Started), o.did(), result, strings.TrimSpace(about)}
}

type opList struct {
	Ops []op `json:"operations"`
}

func (l opList) Text(p *page) {
	if len(l.Ops) == 0 {
		p.printf("no moves\n")
	}
	var rows [][]string
	for _, o := range l.Ops {
		rows = append(rows, o.row(p))
	}
	p.table(rows)
}

// opShown is a move with all it did.
type opShown struct {
	op
	Plan moved `json:"plan"`
}

func newOpShown(o *retcon.Op) opShown {
	return opShown{op: newOp(o), Plan: newMoved(&timeline.Result{
		Op: o.ID, Verb: o.Verb, Plan: o.Plan, Safety: o.Safety, Rescue: o.Rescue,
	})}
}

func (s opShown) Text(p *page) {
	p.printf("%s  %s, %s by %s: %s\n", p.bold(fmt.Sprintf("op %d", s.ID)), s.did(), p.ago(s.Started), clean(s.Actor), resultText(s.Result))
	if s.Safety != "" {
		p.printf("before it: %s\n", s.Safety)
	}
	if s.Plan.Reason != "" {
		p.printf("reason:    %s\n", clean(s.Plan.Reason))
	}
	if s.Rescue != "" {
		p.printf("rescued:   %s\n", s.Rescue)
	}
	if s.UndoneBy != 0 {
		p.printf("undone by: op %d\n", s.UndoneBy)
	}
	if s.RequestID != "" {
		p.printf("request:   %s\n", name(s.RequestID))
	}
	s.Plan.plan(p, len(s.Plan.Changes))
}

func (c *console) operationValues(ctx context.Context) (found []candidate) {
	c.look(ctx, func(w *retcon.Workspace) error {
		all, err := w.Ops(ctx, 0, offered)
		for i := range all {
			found = append(found, candidate{strconv.FormatInt(all[i].ID, 10), newOp(&all[i]).did()})
		}
		return err
	})
	return found
}
