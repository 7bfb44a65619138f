// Command driver does one thing with the library and ends, so that a capture or
// a restore can be measured as git's commands are: as a whole process.
//
//	driver capture [--create] [--no-caps] DIR
//	driver restore DIR COMMIT
//	driver session DIR STEPS LIST
//	driver watched DIR
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/scripts/bench/internal/peer"
	"github.com/retcon-dev/retcon/scripts/bench/internal/tree"
	"github.com/retcon-dev/retcon/vcs"
)

func main() {
	debug.SetGCPercent(400) // as the retcon command does
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: driver {capture | restore | session | watched} …")
	}
	switch verb, args := args[0], args[1:]; verb {
	case "capture":
		return capture(ctx, args)
	case "restore":
		return restore(ctx, args[0], vcs.Commit(args[1]))
	case "session":
		steps, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return session(ctx, args[0], steps, args[2])
	case "watched":
		return watched(ctx, args[0])
	default:
		return fmt.Errorf("no verb %s", verb)
	}
}

func capture(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("capture", flag.ContinueOnError)
	create := f.Bool("create", false, "make the store of a plain folder")
	noCaps := f.Bool("no-caps", false, "capture files of any size")
	if err := f.Parse(args); err != nil {
		return err
	}
	w, err := vcs.Open(f.Arg(0), vcs.Options{Create: *create})
	if err != nil {
		return err
	}
	defer w.Close()
	c, err := w.Capture(ctx, vcs.CaptureOptions{NoCaps: *noCaps})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(peer.Captured{Commit: string(c.Commit), Tree: c.Tree, Hashed: c.Stats.Hashed, Bytes: c.Stats.Bytes, Files: c.Stats.Files})
}

func restore(ctx context.Context, dir string, commit vcs.Commit) error {
	w, err := vcs.Open(dir, vcs.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	_, _, err = w.Restore(ctx, commit)
	return err
}

// session captures after each of a number of steps. The files to change stand
// in list, one a line.
func session(ctx context.Context, dir string, steps int, list string) error {
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	w, err := vcs.Open(dir, vcs.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	store := filepath.Join(w.Folder(), "store.git")
	var g peer.Grown
	var keep []vcs.Commit
	take := func() error {
		c, err := w.Capture(ctx, vcs.CaptureOptions{})
		if err == nil {
			keep, g.Trees = append(keep, c.Commit), append(g.Trees, c.Tree)
		}
		return err
	}
	if err := take(); err != nil {
		return err
	}
	if err := collect(ctx, w, keep); err != nil {
		return err
	}
	if g.Before, err = tree.Bytes(store); err != nil {
		return err
	}
	for _, step := range tree.Session(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), steps) {
		if err := tree.Edit(dir, step.Paths, step.Version); err != nil {
			return err
		}
		if err := take(); err != nil {
			return err
		}
	}
	if g.Loose, err = tree.Bytes(store); err != nil {
		return err
	}
	if err := collect(ctx, w, keep); err != nil {
		return err
	}
	if g.After, err = tree.Bytes(store); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(g)
}

// collect leaves nothing in the store but what the commits need.
func collect(ctx context.Context, w *vcs.Worktree, keep []vcs.Commit) error {
	_, err := w.Collect(ctx, vcs.CollectOptions{Full: true, Roots: func(yield func(vcs.Commit) error) error {
		for _, c := range slices.Backward(keep) {
			if err := yield(c); err != nil {
				return err
			}
		}
		return nil
	}})
	return err
}

// watched keeps the worktree watched, captures at every line it reads, and says
// how many nanoseconds that took.
func watched(ctx context.Context, dir string) error {
	w, err := vcs.Open(dir, vcs.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	wt, err := vcs.NewWatcher(w)
	if err != nil {
		return err
	}
	defer wt.Close()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		began := time.Now()
		if _, err := wt.Capture(ctx, vcs.CaptureOptions{}); err != nil {
			return err
		}
		fmt.Println(time.Since(began).Nanoseconds())
	}
	return in.Err()
}
