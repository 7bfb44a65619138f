package retcon_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon"
)

// What a restore must not destroy.

// runs is what Exec runs, from a function that always succeeds.
func runs(do func()) func(context.Context, []string) (int, error) {
	return func(context.Context, []string) (int, error) { do(); return 0, nil }
}

func TestP16WhatOthersMadeIsKept(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.agent("echo agent >a.txt")
	p.write("output/run1.jsonl", "an hour of work")
	p.agent("cat output/run1.jsonl >/dev/null")
	r := p.restore("r1@before")
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
	assert.Equal(t, "an hour of work", p.read("output/run1.jsonl"))
	assert.Contains(t, kept(r.Plan), "output/run1.jsonl")
}

// A checkpoint by hand is restored exactly; then what others made is in the
// safety checkpoint.
func TestP16ByHandIsExactAndUndone(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("output/run1.jsonl", "an hour of work")
	p.restore("c1")
	p.gone("output")
	p.undo()
	assert.Equal(t, "an hour of work", p.read("output/run1.jsonl"))
}

// A program that has its log open when a restore removes it writes on. What it
// wrote is kept before gc removes the file.
func TestP16WhoeverWritesOn(t *testing.T) {
	p := newRepo(t)
	p.write("a.txt", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("server.log", "started\n")
	log, err := os.OpenFile(p.path("server.log"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer log.Close()
	p.restore("c1")
	p.gone("server.log")
	_, err = log.WriteString("hours of it\n")
	require.NoError(t, err)
	got, err := p.Collect(ctx, retcon.CollectOptions{})
	require.NoError(t, err)
	assert.Empty(t, got.Rescues, "it is still open")
	require.NoError(t, log.Close())
	got, err = p.Collect(ctx, retcon.CollectOptions{DryRun: true})
	require.NoError(t, err)
	assert.Empty(t, got.Rescues)
	freed := got.FreedBytes
	got, err = p.Collect(ctx, retcon.CollectOptions{})
	require.NoError(t, err)
	require.Len(t, got.Rescues, 1)
	assert.Greater(t, got.FreedBytes, freed)
	assert.True(t, p.reachable()["started\nhours of it\n"])
	assert.Equal(t, "1", p.read("a.txt"))
	p.restore(retcon.Ref(got.Rescues[0]), "server.log")
	assert.Equal(t, "started\nhours of it\n", p.read("server.log"))
	got, err = p.Collect(ctx, retcon.CollectOptions{})
	require.NoError(t, err)
	assert.Empty(t, got.Rescues)
	p.healthy()
}

func TestP18StoreIsGone(t *testing.T) {
	for _, gone := range []string{"store.git", "store.git/objects", "store.git/objects/pack"} {
		t.Run(gone, func(t *testing.T) {
			p := newRepo(t)
			for i := range 30 {
				p.write(fmt.Sprintf("f%d", i), fmt.Sprint(i))
			}
			p.checkpoint(retcon.CheckpointOptions{})
			require.NoError(t, os.RemoveAll(filepath.Join(p.Folder(), gone)))
			p.shell("rm f3; echo x >f4; echo n >new")
			q := p.reopen()
			assert.Equal(t, retcon.CodeDamaged, q.refused(retcon.RestoreOptions{Ref: "c1"}))
			assert.Equal(t, retcon.CodeDamaged, q.refused(retcon.RestoreOptions{Ref: "c1", Exact: true}))

			// The next checkpoint is whole again.
			want := q.digest()
			c := q.checkpoint(retcon.CheckpointOptions{})
			q.shell("rm f*")
			q.restore(retcon.Ref(c.Ref))
			assert.Equal(t, want, q.digest())
			h, err := q.Doctor(ctx, retcon.DoctorOptions{Deep: true})
			require.NoError(t, err)
			assert.Contains(t, h.Unrestorable, "c1")
			assert.NotContains(t, h.Unrestorable, c.Ref)
		})
	}
}

func TestP43EmptyDirectoriesOfTheStore(t *testing.T) {
	p := newFolder(t)
	_, err := p.Recover(ctx) // what "retcon init" does
	require.NoError(t, err)
	for range 2 {
		out, err := exec.Command("find", p.Folder(), "-type", "d", "-empty", "-delete").CombinedOutput()
		require.NoError(t, err, string(out))
		p = p.reopen()
		p.write("a", "1")
		c := p.checkpoint(retcon.CheckpointOptions{})
		p.write("a", "2")
		p.restore(retcon.Ref(c.Ref))
		assert.Equal(t, "1", p.read("a"))
	}
	p.healthy()
}

func TestP20GitMaintenance(t *testing.T) {
	p := newCommitted(t)
	p.write("a.txt", "not committed")
	p.checkpoint(retcon.CheckpointOptions{})
	want := p.digest()
	p.shell(`git commit -qam second; git reset -q --hard HEAD~1; git commit -q --amend -m rewritten
		git reflog expire --expire=now --all; git gc -q --prune=now --aggressive; git prune`)
	p.restore("c1")
	assert.Equal(t, want, p.digest())
	git(t, p.dir, "fsck", "--strict")
	p.healthy()
}

func TestP21OwnEditsAreAConflict(t *testing.T) {
	p := newCommitted(t)
	p.agent("echo 2 >a.txt; echo 2 >b.txt")
	p.shell("echo mine >>a.txt")
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before"})
	assert.Equal(t, retcon.CodeConflict, code(err))
	assert.ErrorContains(t, err, "a.txt")
	assert.Equal(t, "2\nmine\n", p.read("a.txt"))
	assert.Equal(t, "2\n", p.read("b.txt"), "nothing was done by halves")
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before", Conflicts: "theirs"})
	require.NoError(t, err)
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
	p.undo()
	assert.Equal(t, "2\nmine\n", p.read("a.txt"))
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before", Conflicts: "mine"})
	require.NoError(t, err)
	assert.Equal(t, "2\nmine\n", p.read("a.txt"))
	assert.Equal(t, "b.txt\n", p.read("b.txt"))
}

func TestP22RestoreIsUndone(t *testing.T) {
	p := newCommitted(t, "gone", "run.sh", "to-link", "to-dir")
	target := p.digest()
	p.checkpoint(retcon.CheckpointOptions{})
	p.shell(`echo n >new; echo x >>a.txt; rm gone; chmod 755 run.sh; rm to-link; ln -s a.txt to-link
		rm to-dir; mkdir -p to-dir/x; echo f >to-dir/x/f; mkdir -m 700 empty; rm -r sub; echo file >sub`)
	before := p.digest()
	p.restore("c1")
	assert.Equal(t, target, p.digest())
	p.undo()
	assert.Equal(t, before, p.digest())
	_, err := p.Undo(ctx, retcon.MoveOptions{})
	require.Error(t, err, "there is nothing more to undo")
	assert.Contains(t, []string{retcon.CodeRefused, retcon.CodeNotFound}, code(err))
	assert.Equal(t, before, p.digest())
	p.redo()
	assert.Equal(t, target, p.digest())
	_, err = p.Redo(ctx, retcon.MoveOptions{})
	require.Error(t, err)
	assert.Equal(t, target, p.digest())
}

func TestP23NothingIsDoneUnasked(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "2")
	before := p.digest()
	for _, line := range []string{"restore c1", "undo", "redo"} {
		got := command(t, p.dir, "\n", line)
		assert.Contains(t, []int{3, 4}, got.code, line)
		assert.Equal(t, before, p.digest())
	}
	shown := 0
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Confirm: func(plan *retcon.Plan) (bool, error) {
		shown = len(plan.Changes)
		return false, nil
	}})
	assert.Equal(t, retcon.CodeRefused, code(err))
	assert.Equal(t, 1, shown)
	assert.Equal(t, before, p.digest())
}

func TestP24NothingOfAnEarlierCapture(t *testing.T) {
	p := newCommitted(t)
	for i := range 30 {
		p.write(fmt.Sprintf("w%d", i), "old")
	}
	p.checkpoint(retcon.CheckpointOptions{})
	for i := range 30 {
		p.write(fmt.Sprintf("w%d", i), "new")
	}
	git(t, p.dir, "add", "-A")
	git(t, p.dir, "commit", "-qm", "work")
	p.checkpoint(retcon.CheckpointOptions{})
	want := p.digest()
	p.shell("echo x >w3; rm w4")
	p.restore("c2")
	assert.Equal(t, want, p.digest())
}

func TestP25AnotherDirectoryOfAMonorepo(t *testing.T) {
	p := newCommitted(t, "app/x", "lib/x")
	app := openPlace(t, p.path("app"), retcon.Options{})
	app.exec("agent", func() { app.write("x", "agent") })
	p.write("lib/x", "user")
	app.restore("r1@before")
	assert.Equal(t, "user", p.read("lib/x"))
	assert.Equal(t, "app/x\n", p.read("app/x"))
	p.checkpoint(retcon.CheckpointOptions{})
	app.write("x", "2")
	p.write("lib/x", "2")
	app.restore("last", ".")
	assert.Equal(t, "2", p.read("lib/x"), "only what was named")
	assert.Equal(t, "app/x\n", p.read("app/x"))
}

// staged is a repository with everything a move could upset: a file staged in
// part, an intent to add, a stash, a tag.
func staged(t *testing.T) *place {
	p := newCommitted(t)
	p.shell(`echo stashed >b.txt; git stash -q; git tag v1
		echo one >>a.txt; git add a.txt; echo two >>a.txt; echo n >new; git add -N new; git rm -q --cached sub/c.txt`)
	return p
}

func TestP26NeitherHeadNorIndexMoves(t *testing.T) {
	p := staged(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("b.txt", "2")
	p.remove("new")
	before := gitState(t, p.dir)
	p.restore("c1")
	assert.Equal(t, before, gitState(t, p.dir))
	p.undo()
	p.redo()
	assert.Equal(t, before, gitState(t, p.dir))
}

func TestP27IndexOnlyWhenAsked(t *testing.T) {
	p := staged(t)
	want := gitState(t, p.dir)
	p.checkpoint(retcon.CheckpointOptions{})
	git(t, p.dir, "reset", "-q")
	git(t, p.dir, "add", "-A")
	now := gitState(t, p.dir)
	require.NotEqual(t, want, now)
	p.write("b.txt", "2")
	index, err := os.ReadFile(p.path(".git/index"))
	require.NoError(t, err)
	p.restore("c1")
	after, err := os.ReadFile(p.path(".git/index"))
	require.NoError(t, err)
	assert.Equal(t, index, after, "byte for byte")
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Index: true})
	require.NoError(t, err)
	assert.Equal(t, want, gitState(t, p.dir))
	p.undo()
	assert.Equal(t, now, gitState(t, p.dir))
}

func TestP28IgnoredFilesAreNotStaged(t *testing.T) {
	p := newCommitted(t)
	p.write(".gitignore", ".env\n")
	p.write(".env", "A=1\n")
	p.agent("echo A=2 >.env; echo x >a.txt")
	p.restore("r1@before")
	assert.Equal(t, "A=1\n", p.read(".env"))
	assert.Empty(t, git(t, p.dir, "diff", "--cached", "--name-only"))
}

func TestP29SafetyIsNotSkipped(t *testing.T) {
	p := newCommitted(t)
	p.write(".gitignore", "node_modules/\n")
	for i := range 3000 {
		p.write(fmt.Sprintf("node_modules/m%d/f%d", i%50, i), "x")
	}
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "2")
	r := p.restore("c1")
	assert.NotEmpty(t, r.Safety)
	assert.Equal(t, []string{"a.txt"}, steps(r.Plan))

	// And where it can't be made, nothing begins.
	p.write("a.txt", strings.Repeat("3", 4000))
	objects := filepath.Join(p.Folder(), "store.git", "objects")
	readonly := p.reopen()
	require.NoError(t, os.RemoveAll(filepath.Join(p.Folder(), "store.git", "objects.away")))
	require.NoError(t, os.Rename(objects, objects+".away"))
	require.NoError(t, os.Symlink("objects.away/none", objects))
	readonly.refused(retcon.RestoreOptions{Ref: "c1"})
	require.NoError(t, os.Remove(objects))
	require.NoError(t, os.Rename(objects+".away", objects))
	assert.Equal(t, strings.Repeat("3", 4000), p.read("a.txt"))
	p.restore("c1")
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
}

func TestP30WhatIsRemovedCanBeHadBack(t *testing.T) {
	p := newCommitted(t)
	p.agent("echo agent >made.txt")
	p.shell("seq 100 >>made.txt")
	full := p.read("made.txt")
	assert.Equal(t, retcon.CodeConflict, p.refused(retcon.RestoreOptions{Ref: "r1@before"}))
	r, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before", Conflicts: "theirs"})
	require.NoError(t, err)
	p.gone("made.txt")
	p.undo()
	assert.Equal(t, full, p.read("made.txt"))
	p.remove("made.txt")
	p.restore(retcon.Ref(r.Safety), "made.txt")
	assert.Equal(t, full, p.read("made.txt"), "it is in the history as well")
}

func TestP31CommitsStayOnTheBranch(t *testing.T) {
	p := newCommitted(t)
	p.write("a.txt", "2\n")
	p.checkpoint(retcon.CheckpointOptions{})
	want := p.digest()
	p.write("a.txt", "3\n")
	git(t, p.dir, "commit", "-qam", "later")
	r := p.restore("c1")
	assert.Equal(t, "later", git(t, p.dir, "log", "-1", "--format=%s"))
	assert.Equal(t, want, p.digest())
	assert.Equal(t, " M a.txt", git(t, p.dir, "status", "--porcelain"))
	require.NotNil(t, r.Plan.HeadMoved, "and the plan says so")
	assert.NotEqual(t, r.Plan.HeadMoved.From, r.Plan.HeadMoved.To)
}

// The tool that is most destructive of all, run by the agent.
func TestP57WholeTreeCommands(t *testing.T) {
	for _, script := range []string{
		"git reset -q --hard", "git clean -fdxq", "git checkout -q .", "git restore .", "git reset -q; git stash -q -u", "rm -rf * .gitignore",
	} {
		t.Run(script, func(t *testing.T) {
			p := staged(t)
			p.write(".gitignore", ".env\n")
			p.write(".env", "A=1\n")
			p.write("notes.md", "never committed")
			index := git(t, p.dir, "ls-files", "-s")
			before := p.digest()
			p.agent(script)
			_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before", Index: true})
			require.NoError(t, err)
			assert.Equal(t, before, p.digest())
			assert.Equal(t, index, git(t, p.dir, "ls-files", "-s"))
		})
	}
}

func TestP55SomebodyElseMoves(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a", "2")
	q := p.reopen()
	below := openPlace(t, filepath.Join(p.dir, "sub"), retcon.Options{})
	require.Equal(t, p.Root(), below.Root())
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Confirm: func(*retcon.Plan) (bool, error) {
		for _, other := range []*place{q, below} {
			_, err := other.Restore(ctx, retcon.RestoreOptions{Ref: "c1"})
			assert.Equal(t, retcon.CodeLocked, code(err))
			_, err = other.Undo(ctx, retcon.MoveOptions{})
			assert.Error(t, err)
		}
		return true, nil
	}})
	require.NoError(t, err)
	assert.Equal(t, "1", p.read("a"))
	q.restore("c1") // and it is free again
}

// And a run that is going on is not moved under.
func TestP55RunIsGoingOn(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	q := p.reopen()
	p.exec("agent", func() {
		q.write("a", "2")
		assert.Equal(t, retcon.CodeLocked, q.refused(retcon.RestoreOptions{Ref: "r1@before"}))
	})
	q.restore("r1@before")
	assert.Equal(t, "1", p.read("a"))
}

// A folder that may not be written to, but belongs to the user, is no obstacle.
func TestP73ReadOnlyFolder(t *testing.T) {
	if asNobody(t) {
		return
	}
	p := newCommitted(t, "z/f")
	require.NoError(t, os.Chmod(p.path("sub"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(p.path("sub"), 0o755) }) // so that it can be removed
	target := p.digest()
	p.checkpoint(retcon.CheckpointOptions{})
	require.NoError(t, os.Chmod(p.path("sub"), 0o755))
	p.shell("echo 2 >a.txt; rm sub/c.txt; echo n >sub/new; echo 2 >z/f; chmod 555 sub")
	before := p.digest()
	p.restore("c1")
	assert.Equal(t, target, p.digest())
	p.undo()
	assert.Equal(t, before, p.digest())
}

// One path cannot be written at all: nothing is put back, and the log says so.
func TestP73UnwritableTarget(t *testing.T) {
	p := newCommitted(t, "z/f")
	require.NoError(t, os.Mkdir(p.path("mnt"), 0o755))
	if err := unix.Mount("tmpfs", p.path("mnt"), "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	defer func() { require.NoError(t, unix.Unmount(p.path("mnt"), unix.MNT_DETACH)) }()
	p.write("mnt/f", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.shell("echo 2 >a.txt; echo 2 >mnt/f; echo 2 >z/f; rm b.txt; mkdir new; echo n >new/n")
	require.NoError(t, unix.Mount("", p.path("mnt"), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	before := p.digest()
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1"})
	require.ErrorContains(t, err, "mnt")
	assert.Equal(t, before, p.digest())
	ops, err := p.Ops(ctx, 0, 1)
	require.NoError(t, err)
	require.Len(t, ops, 1)
	assert.NotContains(t, []string{"ok", ""}, ops[0].Result)
	require.NoError(t, unix.Mount("", p.path("mnt"), "", unix.MS_REMOUNT, ""))
	p.restore("c1", "a.txt", "b.txt", "new", "z")
	assert.Equal(t, "2\n", p.read("mnt/f"))
	p.gone("new")
	assert.Equal(t, "b.txt\n", p.read("b.txt"), "the rest can be had")
	t.Run("another file system below the root", func(t *testing.T) {
		p.restore("c1")
		assert.Equal(t, "1", p.read("mnt/f"))
	})
}

func TestP77DeletedAndNeverInGit(t *testing.T) {
	p := newCommitted(t)
	p.write("notes.md", "mine")
	p.agent("rm notes.md")
	p.restore("r1@before")
	assert.Equal(t, "mine", p.read("notes.md"))
}

func TestP78EnvironmentAndBuildOutput(t *testing.T) {
	p := newCommitted(t)
	p.write(".gitignore", ".env\nnode_modules/\n")
	p.write(".env", "A=1\n")
	for i := range 500 {
		p.write(fmt.Sprintf("node_modules/m%d", i), "x")
	}
	p.agent("echo A=2 >.env; echo changed >node_modules/m3; rm node_modules/m4; echo n >node_modules/new")
	want := digest(t, p.path("node_modules"))
	r := p.restore("r1@before")
	assert.Equal(t, "A=1\n", p.read(".env"))
	assert.Equal(t, want, digest(t, p.path("node_modules")))
	assert.Equal(t, []string{".env"}, steps(r.Plan))
}
