package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
)

// agent is a whole run of an agent with hooks against one without.
func (h *hooks) agent(ctx context.Context) error {
	if h.client != "" {
		return h.realAgent(ctx)
	}
	goal := h.f.Goal(1.15, 20000)
	name := h.f.Case("agent run (stand-in)")
	runs := 0
	side := func(dir, hook string) bench.Side {
		return bench.Side{Name: "without hooks", Run: func(ctx context.Context) (bench.Usage, error) {
			runs++
			_, u, err := bench.Command{Dir: dir, Env: h.env, Args: []string{filepath.Join(h.bins, "standin"), "-hook", hook,
				"-session", fmt.Sprintf("run-%d", runs), "-payloads", filepath.Join(h.bins, "payloads"),
				"-calls", fmt.Sprint(h.options.calls), "-latency", h.latency.String()}}.Run(ctx)
			return u, err
		}}
	}
	_, err := h.race(ctx, name, goal, side(h.ours, h.bin("retcon-hook")), side(h.theirs, ""))
	return err
}
