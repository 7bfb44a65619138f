package cli

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) logCommand() *cli.Command {
	return &cli.Command{
		Name:      "log",
		Usage:     "list checkpoints, runs and moves together, newest first, or the events of a run",
		Category:  "history",
		ArgsUsage: "[<run>]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "events", Usage: "list the events of <run>, oldest first"},
			&cli.StringFlag{Name: "task", Usage: "only the events of `task`"},
			&cli.Int64Flag{Name: "from", Usage: "only the events from frame `number` on"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 30, Usage: "about `count`"},
			&cli.Int64Flag{Name: "before", Usage: "only what is older than the `number` of a checkpoint"},
		},
		Description: `Examples:
  retcon log
  retcon log --limit 5
  retcon log greet --events
  retcon log greet --events --task hello --json`,
		Action: func(ctx *cli.Context) error {
			limit, err := atLeastOne(ctx, "limit")
			if err != nil {
				return err
			}
			switch run := ctx.Args().First(); {
			case ctx.Bool("events") && run == "":
				return misuse("--events are those of a run", "retcon log last --events")
			case ctx.Bool("events"):
				return c.events(ctx, run, limit)
			case run != "":
				return misuse("of a run there are --events", c.again("--events"))
			case ctx.IsSet("task") || ctx.IsSet("from"):
				return misuse("--task and --from go with --events", "retcon log last --events")
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Log(ctx.Context, limit, ctx.Int64("before"))
				if err != nil {
					return err
				}
				h := history{Entries: []happened{}}
				for i := range found {
					h.Entries = append(h.Entries, newHappened(&found[i]))
				}
				return c.answer(h)
			})
		},
	}
}

// happened is one line of the log: one of the three is there.
type happened struct {
	Seq        int64     `json:"seq"`
	Kind       string    `json:"kind"`
	At         time.Time `json:"at"`
	Checkpoint *taken    `json:"checkpoint"`
	Run        *ran      `json:"run"`
	Op         *op       `json:"operation"`
}

func newHappened(e *retcon.LogEntry) happened {
	h := happened{Seq: e.Seq, Kind: e.Kind, At: e.At.UTC()}
	switch {
	case e.Checkpoint != nil:
		t := newTaken(e.Checkpoint)
		h.Checkpoint = &t
	case e.Run != nil:
		r := newRun(e.Run)
		h.Run = &r
	case e.Op != nil:
		o := newOp(e.Op)
		h.Op, h.Kind = &o, "operation"
	}
	return h
}

type history struct {
	Entries []happened `json:"entries"`
}

func (h history) Text(p *page) {
	if len(h.Entries) == 0 {
		p.printf("nothing has happened yet\n")
	}
	var rows [][]string
	for _, e := range h.Entries {
		switch {
		case e.Checkpoint != nil:
			rows = append(rows, e.Checkpoint.row(p))
		case e.Run != nil:
			r := e.Run.row(p)
			rows = append(rows, []string{r[0], r[1], r[2], r[3], r[5]})
		case e.Op != nil:
			rows = append(rows, e.Op.row(p))
		}
	}
	p.table(rows)
}
