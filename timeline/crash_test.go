package timeline_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

// The crash test finds its own points: a move is run once with a hook that
// notes each point it passes, then once more per point by a process that kills
// itself there, then recovered, and the recovery is killed at each of its own
// points as well. Whatever the point, what is left is the old state or the new
// one, files and ledger agreeing.

var long = flag.Bool("timeline.long", false, "kill the recovery after every point of every verb")

func TestMain(m *testing.M) {
	if verb := os.Getenv("CRASH_VERB"); verb != "" {
		os.Exit(crashChild(verb))
	}
	os.Exit(m.Run())
}

// childT is what openPlace needs of a testing.TB in a process that is no test.
type childT struct{ testing.TB }

func (childT) Helper()                   {}
func (childT) Cleanup(func())            {}
func (childT) Fatal(args ...any)         { fmt.Fprintln(os.Stderr, args...); os.Exit(3) }
func (childT) Errorf(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) }

func crashChild(verb string) int {
	p := openPlace(childT{}, os.Getenv("CRASH_ROOT"))
	p.m.Alive = func(ledger.Owner) bool { return false }
	passed := make(map[string]int)
	at, log := os.Getenv("CRASH_AT"), os.Getenv("CRASH_LOG")
	crash.Hook = func(name string) {
		passed[name]++
		point := fmt.Sprintf("%s#%d", name, passed[name])
		if log != "" {
			f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				fmt.Fprintln(f, point)
				f.Close()
			}
		}
		if point == os.Getenv("CRASH_WRITE") {
			for _, path := range []string{"change", "new/deep/b", "gone/deep/a"} {
				p.write(path, "written meanwhile: "+path)
			}
		}
		if point == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	ctx := context.Background()
	var err error
	if text := os.Getenv("CRASH_TIMEOUT"); text != "" {
		if p.m.Handlers.Timeout, err = time.ParseDuration(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	switch verb {
	case "restore":
		var to ledger.Checkpoint
		err = p.db.View(ctx, func(tx *ledger.Tx) (err error) {
			to, err = tx.Checkpoint(1)
			return err
		})
		if err == nil {
			_, err = p.m.Move(ctx, timeline.Request{To: to, Target: "c1"})
		}
	case "undo":
		_, err = p.m.Undo(ctx, timeline.Request{})
	case "redo":
		_, err = p.m.Redo(ctx, timeline.Request{})
	case "gc":
		if _, _, err = p.m.SweepDisplaced(ctx); err != nil {
			break
		}
		// As if all were older than what is kept, and others recorded since.
		if _, err = checkpoint.Prune(ctx, p.db, checkpoint.Policy{KeepTools: time.Nanosecond, Actor: "user"}); err == nil {
			_, err = p.w.Collect(ctx, vcs.CollectOptions{Full: true, Roots: checkpoint.Live(ctx, p.db)})
		}
	case "recover":
		_, err = p.m.Recover(ctx)
	case "sequence":
		err = sequenceChild(p)
	case "undo rewind", "undo retry-task":
		_, err = p.m.Undo(ctx, timeline.Request{})
	case "redo rewind":
		_, err = p.m.Redo(ctx, timeline.Request{})
	default:
		err = travelChild(p, verb)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child runs verb in a process of its own and tells whether it was killed.
func child(t *testing.T, root, verb, at, log string, env ...string) (killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), "CRASH_VERB="+verb, "CRASH_ROOT="+root, "CRASH_AT="+at, "CRASH_LOG="+log), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", verb, err, out.String())
	}
	return false
}

func points(t *testing.T, log string) []string {
	t.Helper()
	f, err := os.Open(log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		out = append(out, sc.Text())
	}
	return out
}

// crashScene is a worktree in which every kind of step is needed, at the moment
// before verb. It returns the commit before and after.
func crashScene(t *testing.T, verb string) (root string, before, after vcs.Commit) {
	t.Helper()
	root = t.TempDir()
	p := openPlace(t, root)
	p.write("keep", "1")
	p.write("change", "1")
	p.write("gone/deep/a", "1")
	p.write("file-to-dir", "1")
	p.write("dir-to-file/x", "1")
	p.write("mode", "1")
	os.Symlink("keep", filepath.Join(root, "link"))
	one := p.checkpoint()
	if one.ID != 1 {
		t.Fatal("the first checkpoint is not c1")
	}
	p.write("change", "2")
	p.remove("gone")
	p.remove("file-to-dir")
	p.write("file-to-dir/y", "2")
	p.remove("dir-to-file")
	p.write("dir-to-file", "2")
	p.write("new/deep/b", "2")
	os.Chmod(filepath.Join(root, "mode"), 0o755)
	p.remove("link")
	os.Symlink("change", filepath.Join(root, "link"))
	before, after = p.capture().Commit, vcs.Commit(one.Commit)
	if verb == "undo" || verb == "redo" {
		p.restore(timeline.Request{To: one})
		before, after = after, before
	}
	if verb == "redo" {
		p.undo()
		before, after = after, before
	}
	return root, before, after
}

// settled checks what a crash and its recovery have left.
func settled(t *testing.T, root, verb string, before, after vcs.Commit) {
	t.Helper()
	p := openPlace(t, root)
	now := p.capture().Commit
	if now != before && now != after {
		d, _ := p.w.Diff(context.Background(), before, now)
		e, _ := p.w.Diff(context.Background(), now, after)
		t.Fatalf("neither the old state nor the new\nsince the old: %+v\nto the new: %+v", d, e)
	}
	var newest ledger.Op
	err := p.db.View(context.Background(), func(tx *ledger.Tx) error {
		if open, err := tx.OpenOps(); err != nil || len(open) > 0 {
			return fmt.Errorf("open moves: %v %v", open, err)
		}
		if leases, err := tx.Leases(); err != nil || len(leases) > 0 {
			return fmt.Errorf("leases: %v %v", leases, err)
		}
		ops, err := tx.Ops(ledger.OpQuery{Limit: 1})
		if len(ops) > 0 {
			newest = ops[0]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(newest.Worktrees) > 0 && newest.Worktrees[0].Safety == string(before) && newest.Worktrees[0].Target == string(after) {
		if (newest.Result == ledger.ResultOK) != (now == after) {
			t.Errorf("op %d ended %q with the worktree at %s", newest.ID, newest.Result, now)
		}
	} else if now != before {
		t.Error("the worktree moved and no operation says so")
	}
	stages, _ := filepath.Glob(filepath.Join(p.w.Folder(), "worktrees", "*stage*"))
	if len(stages) > 0 {
		t.Errorf("left behind: %v", stages)
	}
	if now == after {
		back, forth := p.undo, p.redo
		if verb == "undo" {
			back, forth = forth, back
		}
		back()
		if got := p.capture().Commit; got != before {
			t.Error("the old state does not come back after the recovery")
		}
		forth()
		if got := p.capture().Commit; got != after {
			t.Error("the new state does not come back after the recovery")
		}
	}
}

func TestCrash(t *testing.T) {
	for _, verb := range []string{"restore", "undo", "redo"} {
		t.Run(verb, func(t *testing.T) {
			root, _, _ := crashScene(t, verb)
			log := filepath.Join(t.TempDir(), "points")
			if child(t, root, verb, "", log) {
				t.Fatal("killed without a point")
			}
			all := points(t, log)
			if len(all) < 20 {
				t.Fatalf("only %d points: %v", len(all), all)
			}
			for i, at := range all {
				if testing.Short() && i%5 != 0 {
					continue
				}
				t.Run(strings.ReplaceAll(at, "#", "-"), func(t *testing.T) {
					t.Parallel()
					crashAt(t, verb, at, !testing.Short() && (*long || verb == "restore" && i%4 == 0))
				})
			}
		})
	}
}

func crashAt(t *testing.T, verb, at string, again bool) {
	root, before, after := crashScene(t, verb)
	if !child(t, root, verb, at, "") {
		t.Fatalf("did not reach %s", at)
	}
	log := filepath.Join(t.TempDir(), "points")
	child(t, root, "recover", "", log)
	settled(t, root, verb, before, after)
	if !again {
		return
	}
	seen := make(map[string]bool)
	for _, second := range points(t, log) {
		name, _, _ := strings.Cut(second, "#")
		if seen[name] {
			continue
		}
		seen[name] = true
		root, before, after := crashScene(t, verb)
		child(t, root, verb, at, "")
		if !child(t, root, "recover", second, "") {
			t.Fatalf("recovery did not reach %s", second)
		}
		child(t, root, "recover", "", "")
		settled(t, root, verb, before, after)
		if t.Failed() {
			t.Fatalf("after %s and then %s", at, second)
		}
	}
}

// Bytes that somebody writes while the move is going on are kept wherever it
// dies: in the worktree, or in a rescue checkpoint.
func TestCrashWriter(t *testing.T) {
	const write = "CRASH_WRITE=move.restoring#1"
	root, _, _ := crashScene(t, "restore")
	log := filepath.Join(t.TempDir(), "points")
	child(t, root, "restore", "", log, write)
	all := points(t, log)
	from := slices.Index(all, "move.restoring#1")
	for i, at := range all[from+1:] {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(strings.ReplaceAll(at, "#", "-"), func(t *testing.T) {
			t.Parallel()
			root, _, _ := crashScene(t, "restore")
			if !child(t, root, "restore", at, "", write) {
				t.Fatalf("did not reach %s", at)
			}
			child(t, root, "recover", "", "")
			p := openPlace(t, root)
			kept := make(map[string]bool)
			err := p.db.View(context.Background(), func(tx *ledger.Tx) error {
				rows, err := tx.Checkpoints(ledger.CheckpointQuery{Worktree: p.m.WorktreeID, Tier: ledger.TierRescue})
				for _, row := range rows {
					files, err := p.w.Files(context.Background(), vcs.Commit(row.Commit))
					if err != nil {
						return err
					}
					for _, f := range files {
						if f.New.Kind == vcs.KindFile {
							b, err := p.w.Content(f.New)
							if err != nil {
								return err
							}
							kept[string(b)] = true
						}
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"change", "new/deep/b", "gone/deep/a"} {
				want := "written meanwhile: " + path
				b, _ := os.ReadFile(filepath.Join(root, path))
				if string(b) != want && !kept[want] {
					t.Errorf("what was written to %s is lost", path)
				}
			}
		})
	}
}

// gcScene is a workspace with history that a gc gives up, history that it must
// not, a move to undo, and a file which that displaced and somebody wrote to since.
func gcScene(t *testing.T) (root string, kept []string) {
	t.Helper()
	root = t.TempDir()
	p := openPlace(t, root)
	p.write("a", "manual")
	one := p.checkpoint()
	for i := range 8 {
		p.write("a", fmt.Sprint("watched ", i))
		p.write(fmt.Sprintf("d/f%d", i), strings.Repeat(fmt.Sprint(i), 3000))
		p.mark(ledger.Checkpoint{Tier: ledger.TierWatch})
	}
	p.run(func() { p.write("b", "by a run") })
	p.restore(timeline.Request{To: one})
	displaced, err := filepath.Glob(filepath.Join(p.w.Folder(), "displaced", "*", "*", "*"))
	if err != nil || len(displaced) == 0 {
		t.Fatalf("nothing was displaced, %v", err)
	}
	for _, path := range displaced {
		if b, err := os.ReadFile(path); err == nil && string(b) == "watched 7" {
			if err := os.WriteFile(path, []byte(writtenLate), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.checkpoint()
	err = p.db.View(context.Background(), func(tx *ledger.Tx) error {
		rows, err := tx.Checkpoints(ledger.CheckpointQuery{Worktree: p.m.WorktreeID})
		for _, c := range rows {
			if c.Tier != ledger.TierWatch {
				kept = append(kept, c.Commit)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root, kept
}

const writtenLate = "watched 7, and what was written when it had no name any more"

// A gc that dies anywhere, twice, has given up nothing that the ledger lists,
// and the next one finishes the work.
func TestCrashCollect(t *testing.T) {
	root, _ := gcScene(t)
	log := filepath.Join(t.TempDir(), "points")
	child(t, root, "gc", "", log)
	all := points(t, log)
	if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "collect.") }) {
		t.Fatalf("no point of the store's among %v", all)
	}
	for i, at := range all {
		if testing.Short() && i%5 != 0 {
			continue
		}
		t.Run(strings.ReplaceAll(at, "#", "-"), func(t *testing.T) {
			t.Parallel()
			root, kept := gcScene(t)
			if !child(t, root, "gc", at, "") {
				t.Fatalf("did not reach %s", at)
			}
			whole(t, root, kept)
			child(t, root, "gc", at, "") // and there again, if it gets there
			whole(t, root, kept)
			child(t, root, "gc", "", "")
			p := whole(t, root, kept)
			p.holds(writtenLate)
			if p.w.HasDisplaced() {
				t.Error("what was displaced is there")
			}
			if _, _, packs, err := p.w.StoreSize(); err != nil || packs != 1 {
				t.Errorf("%d packs, %v", packs, err)
			}
			p.undo()
			p.is("b", "by a run")
			p.is("a", "watched 7")
		})
	}
}

// whole fails unless every commit the ledger lists can be put back in full, and
// those of kept are among them.
func whole(t *testing.T, root string, kept []string) *place {
	t.Helper()
	p := openPlace(t, root)
	ctx := context.Background()
	listed := make(map[string]bool)
	err := checkpoint.Live(ctx, p.db)(func(c vcs.Commit) error {
		listed[string(c)] = true
		files, err := p.w.Files(ctx, c)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.New.Kind == vcs.KindFile {
				if _, err := p.w.Content(f.New); err != nil {
					return fmt.Errorf("%s: %w", f.Path, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, c := range kept {
		if !listed[c] {
			t.Errorf("%s is not listed any more", c)
		}
	}
	if err := p.w.Complete(ctx, p.capture().Commit); err != nil {
		t.Errorf("a capture after it: %v", err)
	}
	return p
}

// holds fails unless a commit that the ledger lists has a file of this content.
func (p *place) holds(content string) {
	p.t.Helper()
	found := false
	err := checkpoint.Live(context.Background(), p.db)(func(c vcs.Commit) error {
		files, err := p.w.Files(context.Background(), c)
		for _, f := range files {
			if b, err := p.w.Content(f.New); err == nil && f.New.Kind == vcs.KindFile && string(b) == content {
				found = true
			}
		}
		return err
	})
	if err != nil || !found {
		p.t.Errorf("%q is lost, %v", content, err)
	}
}
