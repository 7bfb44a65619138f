package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) watchCommand() *cli.Command {
	return &cli.Command{
		Name:     "watch",
		Usage:    "take a checkpoint whenever the worktree has changed, until interrupted",
		Category: "capture",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "debounce", Usage: "wait until nothing has changed for `duration`"},
			&cli.DurationFlag{Name: "max-delay", Usage: "but capture after `duration` at the latest"},
			&cli.DurationFlag{Name: "for", Usage: "end after `duration`"},
		},
		Description: `Each checkpoint is a line as soon as it is taken; with --json each is a document
on a line of its own. An interrupt is the way to end it, and not a failure.

While it runs, hooks of coding agents in this worktree hand it what they have to
record, and take less time.

Examples:
  retcon watch
  retcon watch --debounce 200ms --for 1s`,
		Action: func(ctx *cli.Context) error {
			o := retcon.WatchOptions{Debounce: ctx.Duration("debounce"), MaxDelay: ctx.Duration("max-delay")}
			if o.Debounce < 0 || o.MaxDelay < 0 || ctx.Duration("for") < 0 {
				return misuse("a duration is not negative")
			}
			watching := ctx.Context
			if d := ctx.Duration("for"); d > 0 {
				var stop context.CancelFunc
				watching, stop = context.WithTimeout(watching, d)
				defer stop()
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				c.unread(w)
				n, began := 0, c.Now()
				var unwritten error
				stopping, stop := context.WithCancel(watching)
				defer stop()
				o.On = func(p *retcon.Checkpoint) {
					n++
					if unwritten = c.told(newTaken(p)); unwritten != nil {
						stop() // nobody reads what we say
					}
				}
				var last func()
				o.Hooks, last = c.takeHooks(stopping, w)
				defer last()
				c.remark("watching; interrupt to end")
				err := w.Watch(stopping, o)
				switch {
				case unwritten != nil:
					return unwritten
				case err != nil && (watching.Err() == nil || !errors.Is(err, watching.Err())):
					return err
				}
				c.remark("%s in %s", count(n, "checkpoint"), c.Now().Sub(began).Round(time.Second))
				return nil
			})
		},
	}
}

// told writes one checkpoint of many, as a line.
func (c *console) told(t taken) error {
	if c.json {
		b, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
		_, err = c.out.Write(append(b, '\n'))
		return err
	}
	return c.answer(list{Checkpoints: []taken{t}})
}
