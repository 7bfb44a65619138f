// Command hook measures what the hooks of coding agents cost: each process, and
// a whole run of an agent.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
)

func main() {
	o, args, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "hook:", err)
		os.Exit(64)
	}
	if slices.ContainsFunc(args, func(a string) bool { return strings.TrimLeft(a, "-") == "help" || a == "-h" }) {
		fmt.Fprint(os.Stderr, about)
	}
	os.Exit(ground.Main("hook", args, func(ctx context.Context, g *ground.Ground) error { return run(ctx, g, o) }))
}

const about = `Measures what hooks cost agents, on a worktree of git:

  a hook process, PostToolUse of Claude Code as it was recorded, against
  git status and against an empty Go program; with retcon watch and without;

  a whole run of an agent with hooks against one without. By default the agent is
  a STAND-IN: it starts, waits for each answer as long as --latency says, runs
  --calls tools, a shell each, and a hook process before and after each and at
  both ends of the prompt. It is no model and no client; models mostly take
  longer. With --client it is a REAL client, as scripts/e2e-agents has installed
  it in $E2E_CACHE, against a scripted model on this machine, which takes
  --latency for each answer and asks for three tools.

  -calls n
    	tools that the stand-in runs (default 8)
  -client name
    	run claude, codex, opencode or gemini in the place of the stand-in
  -latency duration
    	how long each answer of the model takes (default 600ms)
`

// options are those that no other bench has.
type options struct {
	client  string
	calls   int
	latency time.Duration
}

// parse takes the options of this bench out of a command line.
func parse(args []string) (o options, rest []string, err error) {
	o = options{calls: 8, latency: 600 * time.Millisecond}
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		name = strings.TrimLeft(name, "-")
		if !strings.HasPrefix(args[i], "-") || !slices.Contains([]string{"client", "calls", "latency"}, name) {
			rest = append(rest, args[i])
			continue
		}
		if !given {
			if i++; i == len(args) {
				return o, nil, fmt.Errorf("--%s: a value is missing", name)
			}
			value = args[i]
		}
		switch name {
		case "client":
			o.client = value
			if _, ok := realClients[value]; !ok {
				return o, nil, fmt.Errorf("--client %s: claude, codex, opencode or gemini", value)
			}
		case "calls":
			if _, err := fmt.Sscan(value, &o.calls); err != nil || o.calls < 1 {
				return o, nil, fmt.Errorf("--calls %s: not a number of tools", value)
			}
		case "latency":
			if o.latency, err = time.ParseDuration(value); err != nil || o.latency < 0 {
				return o, nil, fmt.Errorf("--latency %s: not a duration", value)
			}
		}
	}
	return o, rest, nil
}

func run(ctx context.Context, g *ground.Ground, o options) error {
	return g.Fields(ctx, false, func(f *ground.Field) error {
		h, err := newHooks(ctx, g, f, o)
		if err != nil {
			return err
		}
		for _, part := range []func(context.Context) error{h.disabled, h.alone, h.watched, h.agent} {
			if err := part(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
