package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

// events lists what has happened in a run.
func (c *console) events(ctx *cli.Context, run string, limit int) error {
	o := retcon.EventsOptions{Run: run, From: ctx.Int64("from"), Task: ctx.String("task"), Limit: limit}
	if !ctx.IsSet("limit") {
		o.Limit = 1000
	}
	if o.From < 0 {
		return misuse("--from is the number of a frame")
	}
	return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
		found, err := w.Events(ctx.Context, o)
		if err != nil {
			return err
		}
		l := eventList{Events: []happening{}}
		for _, e := range found {
			l.Events = append(l.Events, happening{Frame: e.Frame, Index: e.Index, At: e.At, Type: e.Type, Task: e.Task, Actor: e.Actor, Body: orNull(e.Body)})
		}
		return c.answer(l)
	})
}

// happening is an event of a run, on the way to a frame.
type happening struct {
	Frame int64           `json:"frame"`
	Index int             `json:"index"`
	At    time.Time       `json:"at"`
	Type  string          `json:"type"`
	Task  string          `json:"task"`
	Actor string          `json:"actor"`
	Body  json.RawMessage `json:"body"`
}

type eventList struct {
	Events []happening `json:"events"`
}

func (l eventList) Text(p *page) {
	if len(l.Events) == 0 {
		p.printf("no events\n")
	}
	var rows [][]string
	for _, e := range l.Events {
		body := ""
		if string(e.Body) != "null" {
			body = clip(clean(string(e.Body)))
		}
		rows = append(rows, []string{p.bold(fmt.Sprintf("%d.%d", e.Frame, e.Index)), p.dim(e.At.Format("15:04:05.000")), clean(e.Type), shortTask(e.Task), p.dim(body)})
	}
	p.table(rows)
}
