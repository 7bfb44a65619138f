package retcon

import (
	"context"
	"errors"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/vcs"
)

// WatchOptions say how eagerly changes are captured; zero is what the Config
// says.
type WatchOptions struct {
	Debounce time.Duration     // how long it must have been quiet
	MaxDelay time.Duration     // and how long a change waits at most
	On       func(*Checkpoint) // told of each checkpoint; may be nil
}

// Watch records a checkpoint whenever the worktree has changed, until ctx ends;
// that is no error. A capture that can't be made is noted for Doctor, and the
// next one tried. Another directory in the worktree's place ends it.
func (w *Workspace) Watch(ctx context.Context, o WatchOptions) error {
	db, err := w.settled(ctx)
	if err != nil {
		return err
	}
	c := w.opt.Config
	if o.Debounce > 0 {
		c.Debounce = o.Debounce
	}
	if o.MaxDelay > 0 {
		c.MaxDelay = o.MaxDelay
	}
	c = c.or(Defaults())
	r := w.recorder(db)
	err = w.vcs.Watch(ctx, vcs.WatchOptions{Debounce: c.Debounce, MaxDelay: c.MaxDelay},
		func(ctx context.Context, capture func(context.Context, vcs.CaptureOptions) (*vcs.Capture, error)) error {
			got, err := r.Record(ctx, checkpoint.What{Tier: TierWatch, Actor: w.opt.Actor, OnlyChanges: true, Capture: capture})
			if err != nil {
				return w.goOn(ctx, err)
			}
			if got.Checkpoint.ID != 0 && o.On != nil {
				o.On(withFacts(got.Checkpoint, got.Facts))
			}
			return nil
		})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// goOn decides whether a watcher can go on after a capture that failed.
func (w *Workspace) goOn(ctx context.Context, err error) error {
	switch Explain(err).Code {
	case CodeDamaged, CodeRefused:
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	w.missed("watch", err)
	return nil
}
