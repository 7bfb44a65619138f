package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
	"github.com/retcon-dev/retcon/scripts/bench/internal/ground"
)

// What is asked of npm, each version by itself: a newer one is another peer.
var langgraphPackages = []string{"@langchain/langgraph-checkpoint-sqlite@1.0.4", "@langchain/langgraph-checkpoint@1.2.2", "@langchain/core@1", "better-sqlite3@12"}

//go:embed langgraph.mjs
var langgraphScript []byte

// langgraph appends to its saver for SQLite: 1,000 channels, of which one or two
// change at each step.
func (f *frames) langgraph(ctx context.Context) error {
	const name, tasks = "append a frame, 1000 tasks, LangGraph", 1000
	goal := bench.Goal(1.0 / 3)
	if !f.Wants(name) {
		return nil
	}
	home, err := installed(ctx, f.Say)
	if err != nil {
		return f.Skip(name, langgraphName, goal, err.Error())
	}
	dir, err := f.Folder("langgraph")
	if err != nil {
		return err
	}
	p, err := startSaver(ctx, home, dir, tasks)
	if err != nil {
		return f.Skip(name, langgraphName, goal, err.Error())
	}
	defer p.stop()
	o, err := f.ours("langgraph-ours", tasks, 1, 1)
	if err != nil {
		return err
	}
	defer o.close()
	const n = 50
	return f.Play(ctx, ground.Race{Case: name, Goal: goal, Ours: appending("retcon", o, o.graph, n),
		Theirs: bench.Side{Name: langgraphName, Run: func(context.Context) (bench.Usage, error) { return p.append(n) }}})
}

// installed returns a folder with the packages, in the user's cache, and
// installs them there when it is the first time.
func installed(ctx context.Context, say func(string, ...any)) (string, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("there is no %s", tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "retcon-bench", "langgraph")
	done := filepath.Join(home, "installed")
	if _, err := os.Stat(done); err == nil {
		return home, nil
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", err
	}
	say("install %s", strings.Join(langgraphPackages, " "))
	cmd := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-fund", "--no-audit", "--prefix", home}, langgraphPackages...)...)
	cmd.Dir = home
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w: %s", err, lastLine(out))
	}
	return home, os.WriteFile(done, nil, 0o644)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// saver is a process that appends when it is told to.
type saver struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startSaver(ctx context.Context, home, dir string, channels int) (*saver, error) {
	script := filepath.Join(home, "langgraph.mjs") // beside its packages
	if err := os.WriteFile(script, langgraphScript, 0o644); err != nil {
		return nil, err
	}
	p := &saver{cmd: exec.CommandContext(ctx, "node", script, filepath.Join(dir, "peer.db"), strconv.Itoa(channels))}
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := p.append(1); err != nil {
		p.stop()
		return nil, fmt.Errorf("the saver does not work here: %s", lastLine([]byte(stderr.String())))
	}
	return p, nil
}

// append has n steps done and returns what one of them cost, as the process
// itself measures it.
func (p *saver) append(n int) (bench.Usage, error) {
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		return bench.Usage{}, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return bench.Usage{}, errors.New("the saver has ended")
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	return bench.Usage{Wall: time.Duration(ns) / time.Duration(n)}, err
}

func (p *saver) stop() {
	p.in.Close()
	_ = p.cmd.Wait() // it ends when there is nothing more to read
}
