package retcon

import (
	"context"
	"errors"
	"fmt"
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

	// Hooks are calls of agents' hooks that somebody else was made for, and that
	// are recorded here, where it costs less. May be nil.
	Hooks <-chan HookCall
}

// HookCall is a call of a hook, for the process that watches.
type HookCall struct {
	HookOptions

	// Take is called before anything is done: false leaves the call to whoever
	// made it.
	Take func() bool

	// Done is called in the end. The answer is for the agent if the call was
	// taken; one that was not is still to be recorded.
	Done func(answer []byte, taken bool)
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
	asks, stop := w.asks(o.Hooks)
	defer stop()
	err = w.vcs.Watch(ctx, vcs.WatchOptions{Debounce: c.Debounce, MaxDelay: c.MaxDelay, Asks: asks},
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

// asks turns calls of hooks into what a watcher carries out.
func (w *Workspace) asks(calls <-chan HookCall) (asks chan func(context.Context, vcs.CaptureFunc), stop func()) {
	if calls == nil {
		return nil, func() {}
	}
	asks = make(chan func(context.Context, vcs.CaptureFunc))
	over := make(chan struct{})
	go func() {
		for {
			select {
			case call := <-calls:
				select {
				case asks <- func(ctx context.Context, capture vcs.CaptureFunc) { w.hookHere(ctx, call, capture) }:
				case <-over:
					call.Done(nil, false)
					return
				}
			case <-over:
				return
			}
		}
	}()
	return asks, func() { close(over) }
}

// hookHere records a call of a hook with the watcher's way to capture. One that
// is about another worktree is not taken.
func (w *Workspace) hookHere(ctx context.Context, call HookCall, capture vcs.CaptureFunc) {
	dirs, idle := HookDirs(call.HookOptions)
	taken := (idle || w.isHere(dirs)) && call.Take()
	var answer []byte
	defer func() {
		if p := recover(); p != nil {
			w.missed("hook", fmt.Errorf("BUG: %v", p)) // as far as it got; those who watch go on
		}
		call.Done(answer, taken)
	}()
	if !taken || idle {
		return
	}
	actor := w.opt.Actor
	w.capture, w.opt.Actor = capture, call.Agent
	defer func() { w.capture, w.opt.Actor = nil, actor }()
	answer, _ = w.Hook(context.WithoutCancel(ctx), call.HookOptions) // it has noted its error for Doctor
}

// isHere tells whether the first of some directories lies in this worktree.
func (w *Workspace) isHere(dirs []string) bool {
	if len(dirs) == 0 {
		return false
	}
	if dirs[0] == w.Root() { // mostly so, and then there is nothing to find
		return true
	}
	root, err := vcs.RootOf(dirs[0], vcs.Options{Home: w.opt.Home, XDGConfigHome: w.opt.XDGConfigHome, SystemConfig: w.opt.SystemConfig})
	return err == nil && root == w.Root()
}
