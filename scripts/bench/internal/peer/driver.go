package peer

import (
	"bufio"
	"context"
	"encoding/json"
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
)

// Captured is what the driver prints about a capture.
type Captured struct {
	Commit string
	Tree   string
	Hashed int
	Bytes  int64
	Files  int
}

// Grown is what the driver prints about a session: every tree that it passed,
// and the size of the store.
type Grown struct {
	Trees  []string
	Before int64 // of the first tree, collected
	Loose  int64 // of all trees, not yet collected
	After  int64 // collected
}

// Driver is retcon's side: a program that does one thing with the library and
// ends, as git does. The programs lie in one folder.
type Driver struct {
	Bins string
	Env  []string
}

// Beside returns the driver that lies where the running program does.
func Beside(home string) (Driver, error) {
	self, err := os.Executable()
	return Driver{Bins: filepath.Dir(self), Env: Env(home)}, err
}

func (d Driver) command(program string, args ...string) bench.Command {
	return bench.Command{Env: d.Env, Args: append([]string{filepath.Join(d.Bins, program)}, args...)}
}

// Capture captures the worktree at dir. Flags are the driver's.
func (d Driver) Capture(ctx context.Context, dir string, flags ...string) (c Captured, u bench.Usage, err error) {
	out, u, err := d.command("driver", append(append([]string{"capture"}, flags...), dir)...).Run(ctx)
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	return c, u, err
}

// Restore puts the worktree at dir back.
func (d Driver) Restore(ctx context.Context, dir, commit string) (bench.Usage, error) {
	_, u, err := d.command("driver", "restore", dir, commit).Run(ctx)
	return u, err
}

// Session captures the worktree at dir, and again after every step of a session.
func (d Driver) Session(ctx context.Context, dir string, steps int, list string) (g Grown, err error) {
	out, _, err := d.command("driver", "session", dir, strconv.Itoa(steps), list).Run(ctx)
	if err == nil {
		err = json.Unmarshal(out, &g)
	}
	return g, err
}

// GoGitStatus asks go-git what has changed.
func (d Driver) GoGitStatus(ctx context.Context, dir string) (bench.Usage, error) {
	_, u, err := d.command("gogitstatus", dir).Run(ctx)
	return u, err
}

// Retcon runs the whole command, as a user does.
func (d Driver) Retcon(ctx context.Context, args ...string) (string, bench.Usage, error) {
	out, u, err := d.command("retcon", args...).Run(ctx)
	return string(out), u, err
}

// Verb tells why the command lacks a verb, "" when it has it.
func (d Driver) Verb(ctx context.Context, verb string) string {
	if _, err := os.Stat(filepath.Join(d.Bins, "retcon")); err != nil {
		return "the command does not build"
	}
	if _, _, err := d.Retcon(ctx, "help", verb); err != nil {
		return "no verb " + verb + " yet"
	}
	return ""
}

// Watcher is a driver that keeps a worktree watched, and captures when told to.
type Watcher struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Watch starts one, and returns when it watches.
func (d Driver) Watch(ctx context.Context, dir string) (*Watcher, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(d.Bins, "driver"), "watched", dir)
	cmd.Env, cmd.Stderr = d.Env, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &Watcher{cmd, in, bufio.NewReader(out)}
	if _, err := w.Capture(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Capture has it capture. The time is what the capture took, in its process.
func (w *Watcher) Capture() (u bench.Usage, err error) {
	if _, err := fmt.Fprintln(w.in, "capture"); err != nil {
		return u, err
	}
	line, err := w.out.ReadString('\n')
	if err != nil {
		return u, fmt.Errorf("the watching driver has ended: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	u.Wall = time.Duration(n)
	return u, err
}

// Close ends it.
func (w *Watcher) Close() error { return errors.Join(w.in.Close(), w.cmd.Wait()) }
