// Package ground is what a bench stands on: a scratch folder, the contestants
// as far as they are installed, and the trees they work on.
package ground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/peer"
)

// Ground is what a bench stands on.
type Ground struct {
	bench.Options
	Report bench.Report
	Git    peer.Git
	JJ     peer.JJ
	NoJJ   error // why there is no jj
	Driver peer.Driver

	scratch  string
	progress io.Writer
}

// Main runs a bench from its command line, and returns the exit code: 0 done,
// 1 a goal was missed or the bench failed, 64 usage, 130 interrupted.
func Main(name string, args []string, run func(context.Context, *Ground) error) int {
	opt, err := bench.Parse(name, args, os.Stderr)
	switch {
	case bench.Helped(err):
		return 0
	case err != nil:
		return 64
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := measure(ctx, name, opt, run)
	switch {
	case ctx.Err() != nil:
		return 130
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	case missed > 0 && opt.Check:
		fmt.Fprintf(os.Stderr, "%s: goals missed: %d\n", name, missed)
		return 1
	}
	return 0
}

func measure(ctx context.Context, name string, opt bench.Options, run func(context.Context, *Ground) error) (missed int, err error) {
	g, err := prepare(name, opt)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(g.scratch)
	g.Say("%s, %d rounds", g.Git.Version(ctx), opt.Rounds)
	if err := run(ctx, g); err != nil {
		return 0, err
	}
	return g.Report.Close()
}

func prepare(name string, opt bench.Options) (*Ground, error) {
	scratch, err := os.MkdirTemp(opt.Scratch, "retcon-bench-")
	if err != nil {
		return nil, err
	}
	if scratch, err = filepath.EvalSymlinks(scratch); err != nil {
		return nil, err
	}
	home := filepath.Join(scratch, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	g := &Ground{Options: opt, scratch: scratch, progress: os.Stderr, Report: bench.Report{Bench: name, JSON: opt.JSON, Out: os.Stdout}}
	if g.Git, err = peer.FindGit(home); err != nil {
		return nil, err
	}
	if g.Driver, err = peer.Beside(home); err != nil {
		return nil, err
	}
	g.JJ, g.NoJJ = peer.FindJJ(opt.JJ, home)
	return g, nil
}

// Fields makes the trees that were asked for, one after the other, and removes
// each when play has returned.
func (g *Ground) Fields(ctx context.Context, clean bool, play func(*Field) error) error {
	for _, n := range g.Files {
		if err := g.field(ctx, play, func(f *Field) error { return f.generate(ctx, n) }); err != nil {
			return err
		}
	}
	if g.Repo == "" {
		return nil
	}
	return g.field(ctx, play, func(f *Field) error { return f.adopt(ctx, g.Repo, clean) })
}

func (g *Ground) field(ctx context.Context, play, fill func(*Field) error) error {
	dir, err := os.MkdirTemp(g.scratch, "field-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := &Field{dir: dir, git: g.Git, Base: filepath.Join(dir, "base")}
	if err := fill(f); err != nil {
		return fmt.Errorf("make a tree: %w", err)
	}
	return play(f)
}

// Race plays a contest and reports it as a row of time, and as a row of memory
// where there is a name for it.
type Race struct {
	Case    string
	Goal    *float64
	Memory  string // "": time alone
	MemGoal *float64
	Ours    bench.Side
	Theirs  bench.Side
	Cold    bool // no round before the first that counts
}

// Play plays a race. What breaks in it breaks its rows and not the bench.
func (g *Ground) Play(ctx context.Context, r Race) error {
	if !g.Wants(r.Case) && (r.Memory == "" || !g.Wants(r.Memory)) {
		return nil
	}
	g.Say("%s, against %s", r.Case, r.Theirs.Name)
	time, memory := g.Report.Row(r.Case, r.Theirs.Name, r.Goal), g.Report.Row(r.Memory, r.Theirs.Name, r.MemGoal)
	pairs, err := bench.Contest{Ours: r.Ours, Theirs: r.Theirs, Rounds: g.Rounds, Warm: !r.Cold}.Play(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		time, memory = time.Fail(err), memory.Fail(err)
	default:
		time = time.Measure(pairs, bench.Wall)
		memory = bench.Peak(memory, pairs)
	}
	err = g.Report.Add(time)
	if r.Memory != "" {
		err = errors.Join(err, g.Report.Add(memory))
	}
	return err
}

// Skip reports a row that cannot be measured.
func (g *Ground) Skip(name, rival string, goal *float64, why string) error {
	if !g.Wants(name) {
		return nil
	}
	return g.Report.Add(g.Report.Row(name, rival, goal).Skip(why))
}

// Say tells whoever waits what is going on.
func (g *Ground) Say(format string, args ...any) {
	fmt.Fprintf(g.progress, g.Report.Bench+": "+format+"\n", args...)
}

// Folder makes an empty folder in the scratch folder.
func (g *Ground) Folder(name string) (string, error) {
	dir := filepath.Join(g.scratch, name)
	return dir, os.Mkdir(dir, 0o755)
}
