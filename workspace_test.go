package retcon_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

func code(err error) string { return retcon.Explain(err).Code }

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	_, err := retcon.Open(ctx, retcon.Options{Dir: dir, Now: time.Now})
	require.ErrorIs(t, err, vcs.ErrNotWorkspace)
	assert.Equal(t, retcon.CodeNotFound, code(err))
	assert.Equal(t, []string{"retcon init"}, retcon.Explain(err).Hints)

	_, err = retcon.Open(ctx, retcon.Options{Dir: dir, Home: filepath.Join(dir, "home"), Now: time.Now, Create: true})
	assert.Equal(t, retcon.CodeRefused, code(err), "a folder that holds the home directory")

	_, err = retcon.Open(ctx, retcon.Options{Dir: dir, Now: time.Now, Create: true, Config: retcon.Config{MaxFile: -1}})
	var bad *retcon.ConfigError
	require.ErrorAs(t, err, &bad)
	assert.Equal(t, "max_file", bad.Key)
}

// Opening costs no ledger, and a folder below finds the workspace.
func TestOpenIsLazy(t *testing.T) {
	p := newFolder(t)
	_, err := os.Stat(filepath.Join(p.Folder(), "ledger.db"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	p.write("sub/dir/f", "x")
	below := openPlace(t, p.path("sub/dir"), retcon.Options{})
	assert.Equal(t, p.Root(), below.Root())
	p.checkpoint(retcon.CheckpointOptions{})
	below.write("f", "y")
	d, err := below.Diff(ctx, retcon.DiffOptions{Paths: []string{"f"}})
	require.NoError(t, err)
	assert.Equal(t, "~sub/dir/f", names(d.Changes))
}

func TestLoadedConfigIsInForce(t *testing.T) {
	folder := ""
	p := openPlace(t, filepath.Join(t.TempDir(), "work"), retcon.Options{Create: true, Load: func(f string) (retcon.Config, error) {
		folder = f
		return retcon.Config{MaxFile: 3}, nil
	}})
	assert.Equal(t, p.Folder(), folder)
	p.write("small", "123")
	p.write("large", "1234")
	c := p.checkpoint(retcon.CheckpointOptions{})
	assert.Equal(t, []retcon.Missing{{Path: "large", Reason: "size", Size: 4}}, c.NotCaptured)
	assert.True(t, c.Partial)
}

func TestCheckpoints(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	first := p.checkpoint(retcon.CheckpointOptions{Label: "start", Note: "n"})
	assert.Equal(t, "c1", first.Ref)
	assert.Equal(t, "refs/heads/main", first.Head.Ref)
	p.write("a", "2")
	second := p.checkpoint(retcon.CheckpointOptions{Pin: true})
	assert.Equal(t, 1, second.Changed)

	list, err := p.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	assert.Equal(t, []retcon.Checkpoint{*second, *first}, list)
	list, err = p.Snapshots(ctx, retcon.ListOptions{Before: 2})
	require.NoError(t, err)
	assert.Equal(t, []retcon.Checkpoint{*first}, list)

	_, err = p.Checkpoint(ctx, retcon.CheckpointOptions{Label: "start"})
	assert.Equal(t, retcon.CodeRefused, code(err))
	assert.Equal(t, []string{"retcon snapshots unlabel start"}, retcon.Explain(err).Hints)

	assert.Equal(t, retcon.CodeRefused, code(p.Label(ctx, "c2", "start", false)))
	require.NoError(t, p.Label(ctx, "c2", "start", true))
	assert.Equal(t, retcon.CodeUsage, code(p.Label(ctx, "c2", "c9", false)))
	got, err := p.Resolve(ctx, "start")
	require.NoError(t, err)
	assert.Equal(t, "c2", got.Ref)
	require.NoError(t, p.Unlabel(ctx, "start"))
	assert.Equal(t, retcon.CodeNotFound, code(p.Unlabel(ctx, "start")))

	err = p.Forget(ctx, []retcon.Ref{"c1", "c2"})
	assert.Equal(t, retcon.CodeRefused, code(err), "c2 is pinned")
	assert.Equal(t, []string{"retcon snapshots unpin c2"}, retcon.Explain(err).Hints)
	_, err = p.Resolve(ctx, "c1")
	require.NoError(t, err, "all are deleted, or none")
	require.NoError(t, p.Pin(ctx, "c2", false))
	require.NoError(t, p.Forget(ctx, []retcon.Ref{"c1", "c2", "c2"}))
	list, err = p.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, list)
	assert.Equal(t, "c3", p.checkpoint(retcon.CheckpointOptions{}).Ref, "a number is not given twice")
}

func TestDiff(t *testing.T) {
	p := newRepo(t)
	p.write(".gitignore", "built\n")
	p.write("a", "1\n2\n")
	p.write("gone/x", "1\n")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a", "1\nzwei\ndrei\n")
	p.write("built/big/o", strings.Repeat("o", 10))
	p.write("new/deep/f", "n\n")
	require.NoError(t, os.RemoveAll(p.path("gone")))
	d, err := p.Diff(ctx, retcon.DiffOptions{From: "c1"})
	require.NoError(t, err)
	assert.Equal(t, "c1 worktree", d.From+" "+d.To)
	assert.Equal(t, "~a -gone/x +new/deep/f", names(d.Changes))

	p.checkpoint(retcon.CheckpointOptions{})
	back, err := p.Diff(ctx, retcon.DiffOptions{From: "last", To: "-1", Paths: []string{"a", p.path("new")}})
	require.NoError(t, err)
	assert.Equal(t, "~a -new/deep/f", names(back.Changes))
	var patch strings.Builder
	require.NoError(t, p.Patch(ctx, &patch, d, retcon.PatchOptions{}))
	assert.Contains(t, patch.String(), "-2\n+zwei\n+drei\n")
	stat, err := p.Stat(ctx, d)
	require.NoError(t, err)
	assert.Equal(t, "a +2 -1", stat[0].Path+" +"+string(rune('0'+stat[0].Added))+" -"+string(rune('0'+stat[0].Removed)))

	same, err := p.Diff(ctx, retcon.DiffOptions{})
	require.NoError(t, err)
	assert.Empty(t, same.Changes)
	assert.NotNil(t, same.Changes)
	_, err = p.Diff(ctx, retcon.DiffOptions{Paths: []string{"/etc"}})
	assert.Equal(t, retcon.CodeUsage, code(err))
	list, err := p.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list, 2, "comparing records nothing")
}

func TestExec(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	r := p.exec("edit", func() { p.write("a", "2"); p.write("b", "x") })
	assert.Equal(t, "r1", r.Run)
	assert.Equal(t, "~a +b", names(r.Changes))
	assert.Equal(t, "c1 before r1, c2 after r1", r.Before.Ref+" "+r.Before.Edge+" "+r.Before.Run+", "+r.After.Ref+" "+r.After.Edge+" "+r.After.Run)
	runs, err := p.Runs(ctx, 0)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	got := runs[0]
	assert.Equal(t, "edit ok c1 c2 do edit", strings.Join([]string{got.Name, got.Status, got.Before, got.After, got.Command}, " "))
	assert.Equal(t, 0, *got.Exit)

	failed, err := p.Exec(ctx, retcon.ExecOptions{Argv: []string{"false"}, Run: func(context.Context, []string) (int, error) { return 7, nil }})
	require.NoError(t, err)
	assert.Equal(t, 7, failed.Exit)
	missing := errors.New("no such program")
	_, err = p.Exec(ctx, retcon.ExecOptions{Argv: []string{"none"}, Run: func(context.Context, []string) (int, error) { return 0, missing }})
	require.ErrorIs(t, err, missing)
	runs, err = p.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Equal(t, "failed failed ok", runs[0].Status+" "+runs[1].Status+" "+runs[2].Status)
	assert.Nil(t, runs[0].Exit)
}

func TestExecInterrupted(t *testing.T) {
	p := newFolder(t)
	stop, cancel := context.WithCancel(ctx)
	r, err := p.Exec(stop, retcon.ExecOptions{Argv: []string{"x"}, Run: func(context.Context, []string) (int, error) {
		p.write("half", "written")
		cancel()
		return 130, nil
	}})
	require.NoError(t, err)
	assert.Equal(t, "+half", names(r.Changes))
	runs, err := p.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Equal(t, ledger.OutcomeInterrupted, runs[0].Status)
	assert.Equal(t, r.After.Ref, runs[0].After)
}

func TestExecRunsNothingItCannotRecord(t *testing.T) {
	p := newRepo(t)
	require.NoError(t, os.WriteFile(p.path(".gitignore"), nil, 0o644))
	require.NoError(t, os.Remove(p.path(".gitignore")))
	require.NoError(t, os.Mkdir(p.path(".gitignore"), 0o755)) // git ignores this one, and so do we
	stop, cancel := context.WithCancel(ctx)
	cancel()
	ran := false
	_, err := p.Exec(stop, retcon.ExecOptions{Argv: []string{"x"}, Run: func(context.Context, []string) (int, error) { ran = true; return 0, nil }})
	require.Error(t, err)
	assert.Equal(t, retcon.CodeInterrupted, code(err))
	assert.False(t, ran)
}

// An attempt whose process died is settled by the next verb that writes.
func TestDeadAttemptIsInterrupted(t *testing.T) {
	p := newFolder(t)
	p.exec("one", func() {})
	db, err := ledger.Open(filepath.Join(p.Folder(), "ledger.db"), ledger.Options{})
	require.NoError(t, err)
	dead := checkpoint.Self("dead")
	dead.Start++
	require.NoError(t, db.Update(ctx, func(tx *ledger.Tx) error {
		r, err := tx.CreateRun(ledger.Run{Source: "exec", WorktreeID: 1})
		if err != nil {
			return err
		}
		_, err = tx.StartAttempt(ledger.Attempt{RunID: r.ID, Task: "exec", Owner: dead})
		return err
	}))
	require.NoError(t, db.Close())
	s, err := p.Status(ctx)
	require.NoError(t, err)
	require.Len(t, s.OpenRuns, 1)
	assert.True(t, s.OpenRuns[0].Dead)
	assert.Equal(t, []string{"r2 was interrupted"}, s.Warnings)
	h, err := p.Doctor(ctx, retcon.DoctorOptions{})
	require.NoError(t, err)
	assert.False(t, h.OK)

	p.checkpoint(retcon.CheckpointOptions{})
	runs, err := p.Runs(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, "r2 interrupted", runs[0].Ref+" "+runs[0].Status)
}

func TestMoves(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{Label: "one"})
	p.write("a", "2")
	p.checkpoint(retcon.CheckpointOptions{})
	r, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "one"})
	require.NoError(t, err)
	assert.Equal(t, "1", p.read("a"))
	last, err := p.Resolve(ctx, "last")
	require.NoError(t, err)
	assert.Equal(t, "c2", last.Ref, "the safety checkpoint of the move is not what one means")

	s, err := p.Status(ctx)
	require.NoError(t, err)
	assert.Equal(t, "c1", s.At)
	assert.True(t, s.CanUndo)
	assert.Contains(t, s.Next, "retcon undo")

	ops, err := p.Ops(ctx, 0, 0)
	require.NoError(t, err)
	require.Len(t, ops, 1)
	assert.Equal(t, r.Safety, ops[0].Safety)
	assert.Equal(t, "restore c1 ok 1", ops[0].Verb+" "+ops[0].Target+" "+ops[0].Result+" "+string(rune('0'+ops[0].Paths)))
	op, err := p.Op(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, "a", op.Plan.Changes[0].Path)
	_, err = p.Op(ctx, 9)
	assert.Equal(t, retcon.CodeNotFound, code(err))

	_, err = p.Undo(ctx, retcon.MoveOptions{Op: 9})
	assert.Equal(t, retcon.CodeNotFound, code(err))
	_, err = p.Undo(ctx, retcon.MoveOptions{Op: 1})
	require.NoError(t, err)
	assert.Equal(t, "2", p.read("a"))
	_, err = p.Redo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "1", p.read("a"))
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "c2", Confirm: func(*retcon.Plan) (bool, error) { return false, nil }})
	assert.Equal(t, retcon.CodeRefused, code(err))
	done, err := p.Recover(ctx)
	require.NoError(t, err)
	assert.Empty(t, done)
}

func TestLog(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})                   // c1
	p.exec("e", func() { p.write("a", "2") })                  // r1: c2 c3
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1"}) // op 1, safety c4
	require.NoError(t, err)
	p.clock = p.clock.Add(-time.Hour)        // clocks step
	p.checkpoint(retcon.CheckpointOptions{}) // c5

	show := func(all []retcon.LogEntry) string {
		var out []string
		for _, e := range all {
			switch e.Kind {
			case retcon.LogCheckpoint:
				out = append(out, e.Checkpoint.Ref)
			case retcon.LogRun:
				out = append(out, e.Run.Ref)
			case retcon.LogOp:
				out = append(out, "op")
			}
		}
		return strings.Join(out, " ")
	}
	all, err := p.Log(ctx, 0, 0)
	require.NoError(t, err)
	assert.Equal(t, "c5 op c4 c3 c2 r1 c1", show(all))
	var pages []string
	for before := int64(0); ; {
		page, err := p.Log(ctx, 2, before)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		pages, before = append(pages, show(page)), page[len(page)-1].Seq
	}
	assert.Equal(t, []string{"c5 op c4", "c3 c2 r1", "c1"}, pages)
}

func TestCollect(t *testing.T) {
	p := newFolder(t)
	p.write("a", strings.Repeat("1", 5000))
	c := p.checkpoint(retcon.CheckpointOptions{})
	p.write("a", strings.Repeat("2", 5000))
	p.checkpoint(retcon.CheckpointOptions{})
	require.NoError(t, p.Forget(ctx, []retcon.Ref{"c2"}))
	p.write("a", strings.Repeat("3", 5000))
	p.checkpoint(retcon.CheckpointOptions{})
	dry, err := p.Collect(ctx, retcon.CollectOptions{DryRun: true})
	require.NoError(t, err)
	assert.Zero(t, dry.FreedBytes)
	got, err := p.Collect(ctx, retcon.CollectOptions{Budget: 1})
	require.NoError(t, err)
	assert.True(t, got.OverBudget, "what was made by hand stays")
	assert.Equal(t, 2, got.Kept)
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: retcon.Ref(c.Ref)})
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("1", 5000), p.read("a"))
	h, err := p.Doctor(ctx, retcon.DoctorOptions{Deep: true})
	require.NoError(t, err)
	assert.True(t, h.OK, "%+v", h.Checks)
}

func TestDoctor(t *testing.T) {
	p := newRepo(t)
	h, err := p.Doctor(ctx, retcon.DoctorOptions{})
	require.NoError(t, err)
	assert.True(t, h.OK, "before anything was recorded: %+v", h.Checks)
	p.write("a", "content")
	p.checkpoint(retcon.CheckpointOptions{})
	packs := func() map[string]bool {
		all, err := filepath.Glob(filepath.Join(p.Folder(), "store.git", "objects", "pack", "*.pack"))
		require.NoError(t, err)
		set := map[string]bool{}
		for _, name := range all {
			set[name] = true
		}
		return set
	}
	first := packs()
	p.write("a", "other")
	p.checkpoint(retcon.CheckpointOptions{})
	h, err = p.Doctor(ctx, retcon.DoctorOptions{Deep: true})
	require.NoError(t, err)
	assert.True(t, h.OK, "%+v", h.Checks)
	left, err := os.ReadDir(filepath.Join(p.Folder(), "worktrees"))
	require.NoError(t, err)
	assert.Empty(t, left)

	// What c2 added goes.
	for pack := range packs() {
		if !first[pack] {
			require.NoError(t, os.Remove(pack))
			require.NoError(t, os.Remove(strings.TrimSuffix(pack, "pack")+"idx"))
		}
	}
	q := openPlace(t, p.dir, retcon.Options{})
	for _, deep := range []bool{false, true} {
		h, err = q.Doctor(ctx, retcon.DoctorOptions{Deep: deep})
		require.NoError(t, err)
		assert.False(t, h.OK)
		assert.Equal(t, []string{"c2"}, h.Unrestorable)
	}
	q.write("a", "third")
	_, err = q.Restore(ctx, retcon.RestoreOptions{Ref: "c2"})
	assert.Equal(t, retcon.CodeDamaged, code(err))
	assert.Equal(t, "third", q.read("a"), "nothing is touched")
	_, err = q.Restore(ctx, retcon.RestoreOptions{Ref: "c1"})
	require.NoError(t, err)
	assert.Equal(t, "content", q.read("a"))
}

func TestWatch(t *testing.T) {
	p := newFolder(t)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	got := make(chan *retcon.Checkpoint, 100)
	ended := make(chan error)
	go func() {
		ended <- p.Watch(stop, retcon.WatchOptions{Debounce: 5 * time.Millisecond, MaxDelay: 50 * time.Millisecond,
			On: func(c *retcon.Checkpoint) { got <- c }})
	}()
	<-got // the worktree as it was
	p.write("a", "1")
	c := <-got
	assert.Equal(t, retcon.TierWatch, c.Tier)
	cancel()
	require.NoError(t, <-ended)
	list, err := p.Snapshots(ctx, retcon.ListOptions{Tier: retcon.TierWatch})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(list), 2)
	h, err := p.Doctor(ctx, retcon.DoctorOptions{})
	require.NoError(t, err)
	assert.True(t, h.OK, "%+v", h.Checks)
}

// The user's git sees nothing of any of it.
func TestGitIsLeftAlone(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	git(t, p.dir, "add", "a")
	git(t, p.dir, "commit", "-qm", "one")
	state := func() map[string]string {
		all := map[string]string{}
		require.NoError(t, filepath.WalkDir(p.path(".git"), func(path string, d fs.DirEntry, err error) error {
			if path == p.Folder() {
				return fs.SkipDir
			}
			if err == nil && d.Type().IsRegular() {
				all[path] = p.read(strings.TrimPrefix(path, p.dir+"/"))
			}
			return err
		}))
		return all
	}
	before := state()
	p.write("a", "2")
	p.checkpoint(retcon.CheckpointOptions{})
	p.exec("e", func() { p.write("b", "x") })
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1"})
	require.NoError(t, err)
	_, err = p.Collect(ctx, retcon.CollectOptions{Full: true})
	require.NoError(t, err)
	_, err = p.Doctor(ctx, retcon.DoctorOptions{Deep: true})
	require.NoError(t, err)
	assert.Equal(t, before, state())
}

// A linked worktree has a history of its own in the ledger it shares.
func TestLinkedWorktree(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	git(t, p.dir, "add", "a")
	git(t, p.dir, "commit", "-qm", "one")
	p.checkpoint(retcon.CheckpointOptions{Label: "l"})
	at := p.dir + "-linked"
	git(t, p.dir, "worktree", "add", "-q", at)
	q := openPlace(t, at, retcon.Options{})
	assert.Equal(t, p.Folder(), q.Folder())
	assert.Equal(t, "linked", q.Kind())
	c := q.checkpoint(retcon.CheckpointOptions{Label: "l"})
	assert.Equal(t, "c2", c.Ref, "numbers are given once for all worktrees")
	assert.Equal(t, -1, c.Changed)
	list, err := q.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list, 1)
	got, err := p.Resolve(ctx, "last")
	require.NoError(t, err)
	assert.Equal(t, "c1", got.Ref)

	moved := at + "-moved"
	git(t, p.dir, "worktree", "move", at, moved)
	r := openPlace(t, moved, retcon.Options{})
	assert.True(t, r.checkpoint(retcon.CheckpointOptions{}).Unchanged, "a moved worktree keeps its history")
	got, err = r.Resolve(ctx, "l")
	require.NoError(t, err)
	assert.Equal(t, "c2", got.Ref)
}

// P61: nothing is read or written under the history of another directory.
func TestRootChanged(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	aside := p.dir + "-aside"
	require.NoError(t, os.Rename(p.dir, aside))
	require.NoError(t, os.Mkdir(p.dir, 0o755))
	require.NoError(t, os.Rename(filepath.Join(aside, ".retcon"), p.path(".retcon")))
	q := openPlace(t, p.dir, retcon.Options{})
	_, err := q.Checkpoint(ctx, retcon.CheckpointOptions{})
	assert.Equal(t, retcon.CodeRefused, code(err))
	_, err = q.Restore(ctx, retcon.RestoreOptions{Ref: "c1"})
	assert.Equal(t, retcon.CodeRefused, code(err))
	_, err = os.Stat(q.path("a"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	q = openPlace(t, p.dir, retcon.Options{Adopt: true})
	_, err = q.Restore(ctx, retcon.RestoreOptions{Ref: "c1"})
	require.NoError(t, err)
	assert.Equal(t, "1", q.read("a"))
	q = openPlace(t, p.dir, retcon.Options{})
	q.checkpoint(retcon.CheckpointOptions{})
}

func TestStatus(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	s, err := p.Status(ctx)
	require.NoError(t, err)
	assert.Nil(t, s.Newest)
	assert.Equal(t, []string{"retcon checkpoint"}, s.Next)
	p.checkpoint(retcon.CheckpointOptions{})
	s, err = p.Status(ctx)
	require.NoError(t, err)
	assert.Equal(t, "c1 c1", s.Newest.Ref+" "+s.At)
	assert.Empty(t, s.Changes)
	p.write("b", "1")
	s, err = p.Status(ctx)
	require.NoError(t, err)
	assert.Equal(t, "", s.At)
	assert.Equal(t, "+b", names(s.Changes))
	assert.Equal(t, []string{"retcon diff", "retcon checkpoint", "retcon restore c1", "retcon log"}, s.Next)
	list, err := p.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list, 1, "looking records nothing")
}

func TestConfigValidate(t *testing.T) {
	require.NoError(t, retcon.Config{}.Validate())
	require.NoError(t, retcon.Defaults().Validate())
	for key, c := range map[string]retcon.Config{
		"max_file":        {MaxFile: -1},
		"ignored_max":     {IgnoredMax: -1},
		"ignored_per_dir": {IgnoredPerDir: -1},
		"include":         {Include: []string{"a", ""}},
		"keep_tools":      {KeepTools: time.Minute},
		"budget":          {Budget: -1},
		"debounce":        {Debounce: -1},
		"max_delay":       {Debounce: time.Minute, MaxDelay: time.Second},
	} {
		var bad *retcon.ConfigError
		if assert.ErrorAs(t, c.Validate(), &bad, key) {
			assert.Equal(t, key, bad.Key)
		}
	}
}

func TestCommandsAreShownAsTyped(t *testing.T) {
	p := newFolder(t)
	_, err := p.Exec(ctx, retcon.ExecOptions{Argv: []string{"sh", "-c", "echo it's", "", "x=1", "$a"},
		Run: func(context.Context, []string) (int, error) { return 0, nil }})
	require.NoError(t, err)
	runs, err := p.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Equal(t, `sh -c 'echo it'\''s' '' x=1 '$a'`, runs[0].Command)
}

func TestForgetRun(t *testing.T) {
	p := newFolder(t)
	p.exec("one", func() { p.write("a", "1") })
	p.checkpoint(retcon.CheckpointOptions{})
	err := p.Forget(ctx, []retcon.Ref{"c3", "c1"})
	assert.Equal(t, retcon.CodeRefused, code(err), "an edge of an attempt goes with its run")
	assert.Equal(t, retcon.CodeNotFound, code(p.Forget(ctx, []retcon.Ref{"r1", "r2"})))
	require.NoError(t, p.Forget(ctx, []retcon.Ref{"r1"}))
	list, err := p.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "c3", list[0].Ref)
}
