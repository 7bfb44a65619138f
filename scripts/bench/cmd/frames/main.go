// Command frames measures how frames are kept, against ways others keep the
// state of a run: all of it as JSON in each frame, a tree of hashed nodes, and
// LangGraph's SqliteSaver.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		if err := child(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(ground.Main("frames", os.Args[1:], run))
}

func run(ctx context.Context, g *ground.Ground) error {
	f := &frames{g}
	for _, part := range []func(context.Context) error{f.bytes, f.appends, f.langgraph, f.loads, f.lengths, f.travels, f.processes} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// frames are the rows of the bench.
type frames struct{ *ground.Ground }

// wants tells whether any of the cases was asked for: what they stand on is
// not made for nothing.
func (f *frames) wants(cases ...string) bool {
	for _, c := range cases {
		if f.Wants(c) {
			return true
		}
	}
	return false
}

// fill opens a store, fills it, and has it closed when it is full.
func fill(s store, states *graph, n int) error {
	err := s.append(states.all())
	for range n - 1 {
		if err == nil {
			err = s.append(states.step())
		}
	}
	if err == nil {
		return s.flush()
	}
	return errors.Join(err, s.close())
}
