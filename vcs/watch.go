package vcs

import (
	"context"
	"time"
)

// Defaults of WatchOptions.
const (
	DefaultDebounce = 200 * time.Millisecond
	DefaultMaxDelay = 2 * time.Second
)

// blindPoll is how often a Watch that cannot see changes says there may be some.
const blindPoll = 5 * time.Second

// WatchOptions say when a burst of changes is over.
type WatchOptions struct {
	Debounce time.Duration // quiet for so long. DefaultDebounce
	MaxDelay time.Duration // or so long after its first change. DefaultMaxDelay

	// Asks are carried out between bursts, and within them, as soon as they come:
	// whoever sends one has the worktree captured at the cost of what changed.
	Asks <-chan func(ctx context.Context, capture CaptureFunc)
}

// CaptureFunc is how a worktree is captured.
type CaptureFunc = func(context.Context, CaptureOptions) (*Capture, error)

// Watch calls on once at the start and then after every burst of changes, until
// ctx is done or on fails, and returns why it ended. capture is what on uses to
// record the worktree; it costs what changed. A change of HEAD or the index
// alone is no burst, and on may be called although nothing changed.
func (w *Worktree) Watch(ctx context.Context, opt WatchOptions, on func(ctx context.Context, capture CaptureFunc) error) (err error) {
	if opt.Debounce == 0 {
		opt.Debounce = DefaultDebounce
	}
	if opt.MaxDelay == 0 {
		opt.MaxDelay = DefaultMaxDelay
	}
	wt, err := NewWatcher(w)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := wt.Close(); err == nil {
			err = cerr
		}
	}()
	for {
		if err := on(ctx, wt.Capture); err != nil {
			return err
		}
		if err := wt.burst(ctx, opt); err != nil {
			return err
		}
	}
}

// burst returns when a burst of changes is over.
func (wt *Watcher) burst(ctx context.Context, opt WatchOptions) error {
	var poll <-chan time.Time
	if wt.blind() {
		t := time.NewTimer(blindPoll)
		defer t.Stop()
		poll = t.C
	}
	for waiting := true; waiting; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ask := <-opt.Asks:
			ask(ctx, wt.Capture)
		case <-poll:
			return nil
		case <-wt.changed:
			waiting = false
		}
	}
	latest := time.NewTimer(opt.MaxDelay)
	defer latest.Stop()
	quiet := time.NewTimer(opt.Debounce)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ask := <-opt.Asks:
			ask(ctx, wt.Capture)
		case <-latest.C:
			return nil
		case <-quiet.C:
			return nil
		case <-wt.changed:
			quiet.Reset(opt.Debounce)
		}
	}
}
