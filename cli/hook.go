package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon"
)

func (c *console) hookCommand() *cli.Command {
	return &cli.Command{
		Name:      "hook",
		Usage:     "record what a coding agent tells about itself; agents call it",
		Category:  "capture",
		ArgsUsage: "[<agent>] [<event>]",
		Description: `The payload is read from standard input. What is printed is for the agent, and
mostly nothing. The exit code is always 0, and errors are noted for retcon
doctor: recording must never be in an agent's way. With RETCON_DISABLE=1 in the
environment, or with the setting disabled, nothing is done. RETCON_DEBUG=1 shows
errors on stderr.

Which agents have hooks of their own, and how they are installed, tells retcon
agents list. Any other can call this one with the agent "generic".

Examples:
  echo '{"session": "s1", "prompt": "hello"}' | retcon hook generic prompt`,
		Action: func(ctx *cli.Context) error {
			o := retcon.HookOptions{Agent: ctx.Args().Get(0), Event: ctx.Args().Get(1)}
			answer, err := c.hook(context.WithoutCancel(ctx.Context), o)
			if err != nil && c.Getenv("RETCON_DEBUG") != "" {
				fmt.Fprintf(c.err, "retcon: %s\n", clean(err.Error()))
			}
			if len(answer) > 0 {
				_, _ = c.out.Write(answer) // the agent has gone: nobody to tell
			}
			return nil
		},
	}
}

// payloadMax is how much of a payload is read.
const payloadMax = 16 << 20

// hook records one event. Whatever happens, it returns.
func (c *console) hook(ctx context.Context, o retcon.HookOptions) (answer []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, fmt.Errorf("BUG: %v\n%s", p, debug.Stack())
		}
	}()
	if disabled(c.Getenv("RETCON_DISABLE")) {
		return nil, nil
	}
	if o.Payload, err = io.ReadAll(io.LimitReader(c.in, payloadMax)); err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, c.in) // so that the agent can write all of it
	dirs, idle := retcon.HookDirs(o)
	if idle {
		return nil, nil
	}
	o.Client = client(os.Getppid())
	for _, dir := range slices.Concat(dirs, []string{c.Getenv("CLAUDE_PROJECT_DIR"), c.Dir}) {
		if !filepath.IsAbs(dir) {
			continue
		}
		c.Dir = dir
		w, werr := c.open(ctx, retcon.Options{Actor: o.Agent})
		if werr != nil {
			err = werr
			continue
		}
		defer w.CloseFast()
		return w.Hook(ctx, o)
	}
	return nil, err
}

func disabled(value string) bool {
	return value != "" && value != "0"
}

// shells run a hook's command for the agent.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"}

// client is the process that called a hook: the one above the shells that it
// was called through. 0 when it can't be known.
func client(parent int) int {
	for range 4 {
		name, above, err := process(parent)
		if err != nil || !slices.Contains(shells, name) {
			break
		}
		parent = above
	}
	if parent <= 1 {
		return 0
	}
	return parent
}

// above are the processes from parent up to the first of all, as far as can be
// known.
func above(parent int) (pids []int) {
	for parent > 1 && len(pids) < 100 {
		pids = append(pids, parent)
		_, up, err := process(parent)
		if err != nil {
			break
		}
		parent = up
	}
	return pids
}

// process is the name of a process, and the number of the one above it.
func process(pid int) (name string, above int, err error) {
	// Without an os.File: that would be registered with the poller first, and an
	// agent waits for each of these.
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/stat", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", 0, err
	}
	defer unix.Close(fd)
	var line [1024]byte // it is some 300 long, and comes in one piece
	n, err := unix.Read(fd, line[:])
	if err != nil {
		return "", 0, err
	}
	text := line[:n]
	// The name, in parentheses, may hold anything: take it from the end.
	head, rest, _ := cutLast(string(text), ")")
	_, name, _ = strings.Cut(head, "(")
	words := strings.Fields(rest)
	if len(words) < 2 {
		return "", 0, fmt.Errorf("process %d: %q", pid, text)
	}
	above, err = strconv.Atoi(words[1])
	return name, above, err
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
