// Command engine measures what a step of a workflow costs the engine, beside
// DBOS on SQLite: to carry it out, to find it carried out, and on disk.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
)

func main() {
	if len(os.Args) == 5 && os.Args[1] == childArg {
		if err := child(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	n, args, err := cutSteps(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(64)
	}
	os.Exit(ground.Main("engine", args, func(ctx context.Context, g *ground.Ground) error { return run(ctx, g, n) }))
}

const (
	stepsFlag    = "--steps"
	defaultSteps = 1000
)

// cutSteps takes --steps out of a command line: no other bench has it.
func cutSteps(args []string) (n int, rest []string, err error) {
	n = defaultSteps
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		if name != stepsFlag && name != stepsFlag[1:] {
			rest = append(rest, args[i])
			continue
		}
		if !given && i+1 < len(args) {
			i++
			value = args[i]
		}
		if n, err = strconv.Atoi(value); err != nil || n < 100 {
			return 0, nil, fmt.Errorf("--steps %s: not a number of steps, 100 at least", value)
		}
	}
	return n, rest, nil
}

func run(ctx context.Context, g *ground.Ground, n int) error {
	e, err := newEngine(g, n)
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{e.carryOut, e.replay} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

const peerName = "DBOS"

// newEngine finds both contestants: this program, and the one beside it.
func newEngine(g *ground.Ground, n int) (*engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	e := &engine{Ground: g, n: n, ours: contestant{name: "retcon", args: []string{self, childArg}, file: filepath.Join(".retcon", ledgerFile)}}
	peer := filepath.Join(filepath.Dir(self), "engine-dbos")
	e.theirs = contestant{name: peerName, args: []string{peer}, file: "dbos.db"}
	if _, err := os.Stat(peer); err != nil {
		e.none = errors.New("it could not be built")
		if log, err := os.ReadFile(peer + ".log"); err == nil && len(log) > 0 {
			e.none = fmt.Errorf("it could not be built: %s", strings.TrimSpace(string(log)))
		}
	}
	return e, nil
}

// cpu is the time of processors that a step takes.
var cpu = bench.Quantity{Unit: "s", Of: func(u bench.Usage) float64 { return u.CPU.Seconds() }}
