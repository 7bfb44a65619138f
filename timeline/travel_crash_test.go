package timeline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

// travels are the moves along a run that are killed at each of their points.
var travels = map[string]timeline.Travel{
	"rewind":     {Request: timeline.Request{Verb: timeline.VerbRewind}, Run: 1, Frame: 1},
	"timetravel": {Request: timeline.Request{Verb: timeline.VerbTimeTravel}, Run: 1, Task: "b"},
	"retry-task": {Request: timeline.Request{Verb: timeline.VerbRetry}, Run: 1, Task: "b"},
	"rerun":      {Request: timeline.Request{Verb: timeline.VerbRerun}, Run: 1, From: "a"},
	"revert":     {Request: timeline.Request{Verb: timeline.VerbRevert}, Run: 1, Task: "a"},
}

// travelChild carries a travel out in a process that may die.
func travelChild(p *place, verb string) error {
	_, err := p.m.Travel(context.Background(), travels[verb])
	return err
}

// standing is where a run and its worktree stand.
type standing struct {
	Commit vcs.Commit
	Head   int64
	Root   string
	Forced bool
	Status string
}

func (p *place) standing() (s standing) {
	p.t.Helper()
	s.Commit = p.capture().Commit
	require.NoError(p.t, p.db.View(context.Background(), func(tx *ledger.Tx) error {
		run, err := tx.Run(1)
		if err != nil {
			return err
		}
		b, err := tx.RunHead(1)
		if err != nil {
			return err
		}
		s.Head, s.Root, s.Status = b.HeadSeq, b.HeadRoot.String(), run.Status
		events, err := tx.Events(b.ID, ledger.EventQuery{Types: []string{timeline.EventForced}})
		s.Forced = len(events) > 0
		if b.Op != 0 {
			err = fmt.Errorf("branch %d is closed by op %d", b.ID, b.Op)
		}
		return err
	}))
	return s
}

// runScene is a worktree with a run of two tasks that has ended, at the moment
// before verb: "rewind", or "undo rewind", "redo rewind".
func runScene(t *testing.T, verb string) (root string) {
	t.Helper()
	root = t.TempDir()
	p := openPlace(t, root)
	r := &checkpoint.Recorder{Ledger: p.db, Worktree: p.w, Host: "test"}
	ctx := context.Background()
	var head *ledger.Head
	p.write("keep", "1")
	p.write("change", "0")
	p.update(func(tx *ledger.Tx) error {
		run, err := tx.CreateRun(ledger.Run{Source: "test", WorktreeID: p.m.WorktreeID})
		if err != nil {
			return err
		}
		head, err = tx.CreateBranch(run.ID)
		return err
	})
	start, err := r.Record(ctx, checkpoint.What{Tier: ledger.TierTool, Run: 1})
	require.NoError(t, err)
	frame := func(id int64, rows ...snapshot.Row) {
		p.update(func(tx *ledger.Tx) error {
			_, err := tx.AppendFrame(head, ledger.NewFrame{Put: rows, Kind: "outcome", Checkpoint: id})
			return err
		})
	}
	frame(start.Checkpoint.ID, snapshot.Row{Key: "a", Kind: "sh"})
	task := func(name, after string, do func()) {
		var a ledger.Attempt
		p.update(func(tx *ledger.Tx) (err error) {
			a, err = tx.StartAttempt(ledger.Attempt{RunID: 1, Branch: head.Branch, Task: name, StartSeq: head.Seq, Owner: p.m.Owner})
			return err
		})
		edge := func(edge string) int64 {
			c, err := r.Record(ctx, checkpoint.What{Tier: ledger.TierTool, Run: 1, Attempt: a.ID, Edge: edge})
			require.NoError(t, err)
			return c.Checkpoint.ID
		}
		before := edge(ledger.EdgeBefore)
		do()
		left := edge(ledger.EdgeAfter)
		p.update(func(tx *ledger.Tx) error {
			if err := tx.SetAttemptBefore(a.ID, before); err != nil {
				return err
			}
			return tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeOK, After: left, Output: []byte(name), EndSeq: head.Seq + 1})
		})
		rows := []snapshot.Row{{Key: name, Kind: "sh", State: snapshot.Done, Attempt: 1, After: after}}
		if name == "a" {
			rows = append(rows, snapshot.Row{Key: "b", Kind: "sh", After: "a"})
		}
		frame(left, rows...)
	}
	task("a", "", func() { p.write("change", "1"); p.write("made/by/a", "1") })
	task("b", "a", func() { p.write("change", "2"); p.remove("made"); p.write("b", "2") })
	p.update(func(tx *ledger.Tx) error { return tx.SetRunStatus(1, ledger.OutcomeOK) })
	p.write("mine", "by hand")
	words := strings.Fields(verb)
	if len(words) == 2 {
		require.NoError(t, travelChild(p, words[1]))
	}
	if words[0] == "redo" {
		p.undo()
	}
	return root
}

// Killed at every point of every move along a run, of its undo and its redo, and
// recovered: run and worktree stand where they stood or where they were to go,
// both of them.
func TestCrashTravel(t *testing.T) {
	for _, verb := range []string{"rewind", "timetravel", "retry-task", "rerun", "revert", "undo rewind", "redo rewind", "undo retry-task"} {
		t.Run(verb, func(t *testing.T) {
			root := runScene(t, verb)
			p := openPlace(t, root)
			before := p.standing()
			log := filepath.Join(t.TempDir(), "points")
			if child(t, root, verb, "", log) {
				t.Fatal("killed without a point")
			}
			after := openPlace(t, root).standing()
			require.NotEqual(t, before, after)
			all := points(t, log)
			for i, at := range all {
				if testing.Short() && i%9 != 0 || !*long && i%3 != 0 && !strings.HasPrefix(at, "move.") && !strings.HasPrefix(at, "ledger.") {
					continue
				}
				t.Run(strings.ReplaceAll(at, "#", "-"), func(t *testing.T) {
					t.Parallel()
					root := runScene(t, verb)
					if !child(t, root, verb, at, "") {
						t.Fatalf("did not reach %s", at)
					}
					if *long || i%7 == 0 {
						child(t, root, "recover", "ledger.commit#1", "")
					}
					child(t, root, "recover", "", "")
					p := openPlace(t, root)
					now := p.standing()
					if now != before && now != after {
						t.Fatalf("neither before nor after:\n%+v\n%+v\nbut %+v", before, after, now)
					}
					_, err := os.Stat(filepath.Join(root, "mine"))
					require.NoError(t, err, "what somebody else made stays")
				})
			}
		})
	}
}
