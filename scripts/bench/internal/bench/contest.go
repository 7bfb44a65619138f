package bench

import (
	"context"
	"fmt"
	"time"
)

// Settle is waited for between a change of files and what is measured, by both
// sides: no tool need doubt what was written just now.
const Settle = 50 * time.Millisecond

// Rounds is how many a contest has at least.
const Rounds = 7

// Side is one of two contestants.
type Side struct {
	Name    string
	Prepare func(round int) error // not measured; may be nil
	Run     func(ctx context.Context) (Usage, error)
	Check   func() error // not measured: was it done? May be nil
}

// Contest is two sides doing the same thing in turns.
type Contest struct {
	Ours, Theirs Side
	Rounds       int
	Warm         bool // begin with a round that does not count
}

// Pair is what the same round cost each side.
type Pair struct{ Ours, Theirs Usage }

// Play plays all rounds: both sides prepare, then one runs and the other, and
// in the next round the other goes first.
func (c Contest) Play(ctx context.Context) ([]Pair, error) {
	first := 0
	if c.Warm {
		first = -1
	}
	var pairs []Pair
	for round := first; round < c.Rounds; round++ {
		p, err := c.round(ctx, round)
		if err != nil {
			return nil, err
		}
		if round >= 0 {
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}

func (c Contest) round(ctx context.Context, round int) (p Pair, err error) {
	turns := []struct {
		side  *Side
		usage *Usage
	}{{&c.Ours, &p.Ours}, {&c.Theirs, &p.Theirs}}
	if round&1 == 1 {
		turns[0], turns[1] = turns[1], turns[0]
	}
	for _, t := range turns {
		if t.side.Prepare == nil {
			continue
		}
		if err := t.side.Prepare(round + 1); err != nil { // the warm round's is 0
			return p, fmt.Errorf("prepare %s: %w", t.side.Name, err)
		}
	}
	Shrink()
	select {
	case <-ctx.Done():
		return p, ctx.Err()
	case <-time.After(Settle):
	}
	for _, t := range turns {
		if *t.usage, err = t.side.Run(ctx); err != nil {
			return p, fmt.Errorf("%s: %w", t.side.Name, err)
		}
	}
	for _, t := range turns {
		if t.side.Check == nil {
			continue
		}
		if err := t.side.Check(); err != nil {
			return p, fmt.Errorf("check %s: %w", t.side.Name, err)
		}
	}
	return p, nil
}
