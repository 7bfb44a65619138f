package retcon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
)

// The user's repository stays healthy, whatever its shape; and what it costs.

func TestP32NothingUnderGitIsTouched(t *testing.T) {
	p := staged(t)
	p.checkpoint(retcon.CheckpointOptions{}) // makes the store
	before := digest(t, p.path(".git"))
	p.agent("rm a.txt; echo x >b.txt; mkdir d; mv sub d")
	p.restore("r1@before")
	p.undo()
	p.redo()
	_, err := p.Collect(ctx, retcon.CollectOptions{Full: true})
	require.NoError(t, err)
	after := digest(t, p.path(".git"))
	for _, all := range []map[string]string{before, after} {
		for name := range all {
			if strings.HasPrefix(name, "retcon/") {
				delete(all, name)
			}
		}
	}
	assert.Equal(t, before, after)
	git(t, p.dir, "fsck", "--strict")
}

// A thousand checkpoints, fifty restores with undo and redo between them, and
// the user's repository is what it was to the byte; and what git then does to
// itself takes nothing from us.
func TestP32AThousandCheckpoints(t *testing.T) {
	checkpoints, restores := 1000, 50
	if testing.Short() {
		checkpoints, restores = 60, 6
	}
	p := staged(t)
	git(t, p.dir, "branch", "side")
	git(t, p.dir, "worktree", "add", "-q", filepath.Join(t.TempDir(), "linked"), "side")
	p.checkpoint(retcon.CheckpointOptions{}) // makes the store
	clean := func() map[string]string {
		t.Helper()
		all := digest(t, p.path(".git"))
		for name := range all {
			if name == "retcon" || strings.HasPrefix(name, "retcon/") {
				delete(all, name)
			}
		}
		return all
	}
	before := clean()
	want := map[string]map[string]string{}
	for i := range checkpoints {
		p.write(fmt.Sprintf("work/d%d/f%d", i%3, i%17), fmt.Sprint(i))
		if i%29 == 0 {
			p.remove(fmt.Sprintf("work/d%d", i%3))
		}
		c, err := p.Checkpoint(ctx, retcon.CheckpointOptions{})
		require.NoError(t, err)
		if i%(checkpoints/restores) == 0 {
			want[c.Ref] = p.digest()
		}
	}
	require.GreaterOrEqual(t, len(want), restores)
	n := 0
	for ref, state := range want {
		was := p.digest()
		p.restore(retcon.Ref(ref))
		require.Equal(t, state, p.digest(), ref)
		if n++; n%5 == 0 {
			p.undo()
			require.Equal(t, was, p.digest(), "undo of "+ref)
			p.redo()
			require.Equal(t, state, p.digest(), "redo of "+ref)
		}
	}
	assert.Equal(t, before, clean())
	for _, args := range []string{"add -A", "commit -qm later", "rebase -q --root --force-rebase", "reflog expire --expire=now --all",
		"stash clear", "worktree prune", "repack -adq", "gc -q --prune=now"} {
		git(t, p.dir, strings.Fields(args)...)
	}
	for ref, state := range want {
		p.restore(retcon.Ref(ref))
		require.Equal(t, state, p.digest(), ref)
	}
	git(t, p.dir, "fsck", "--strict")
	git(t, filepath.Join(p.Folder(), "store.git"), "fsck", "--strict", "--no-dangling")
}

// The files of a submodule are files like any other, from outside as from
// within, where it is a workspace of its own. Its repository is left alone.
func TestP33Submodule(t *testing.T) {
	lib := newCommitted(t)
	p := newCommitted(t)
	git(t, p.dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "vendor/m")
	git(t, p.dir, "commit", "-qm", "with a submodule")
	status := func() string {
		return git(t, p.dir, "submodule", "status") + git(t, p.path("vendor/m"), "status", "--porcelain=v2", "--branch")
	}
	clean := status()
	m := openPlace(t, p.path("vendor/m"), retcon.Options{})
	assert.Equal(t, "submodule", m.Kind())
	before := m.digest()
	m.agent("echo x >a.txt; rm b.txt; echo n >new")
	m.restore("r1@before")
	assert.Equal(t, before, m.digest())
	assert.Equal(t, clean, status())

	p.checkpoint(retcon.CheckpointOptions{})
	p.write("vendor/m/a.txt", "edited inside")
	p.write("a.txt", "edited outside")
	modules := digest(t, p.path(".git/modules"))
	r := p.restore("c1")
	assert.Equal(t, []string{"a.txt", "vendor/m/a.txt"}, steps(r.Plan))
	assert.Equal(t, "a.txt\n", p.read("vendor/m/a.txt"))
	assert.Equal(t, modules, digest(t, p.path(".git/modules")))
	assert.Equal(t, clean, status())
	git(t, p.dir, "fsck")
	git(t, p.path("vendor/m"), "fsck")
}

// Repositories below the workspace are captured as content, whether their .git
// is a folder or a file, and what is theirs is left alone. Those in an ignored
// folder are not entered; a link to one is a link.
func TestP35NestedRepositories(t *testing.T) {
	outside := newCommitted(t)
	p := newCommitted(t)
	p.write(".gitignore", "node_modules/\n")
	for _, name := range []string{"be", "fe", "node_modules/x"} {
		p.write(name+"/f", "1\n")
		git(t, p.path(name), "init", "-q", "-b", "main")
		git(t, p.path(name), "add", "-A")
		git(t, p.path(name), "commit", "-qm", "x")
	}
	git(t, p.path("be"), "worktree", "add", "-q", p.path("linked"))
	require.NoError(t, os.Symlink(outside.dir, p.path("link")))
	c := p.checkpoint(retcon.CheckpointOptions{})
	assert.False(t, c.Partial)
	theirs := func() map[string]string {
		all := digest(t, p.dir)
		for name := range all {
			if !strings.Contains(name, ".git/") && !strings.HasPrefix(name, "node_modules/") {
				delete(all, name)
			}
		}
		return all
	}
	p.write("be/f", "2\n")
	p.write("linked/f", "2\n")
	p.write("linked/new", "n\n")
	p.write("node_modules/x/f", "2\n")
	p.write("a.txt", "2\n")
	p.remove("link")
	before := theirs()
	r := p.restore("c1")
	assert.Equal(t, []string{"a.txt", "be/f", "link", "linked/f", "linked/new"}, steps(r.Plan))
	assert.Equal(t, "1\n", p.read("be/f"))
	assert.Equal(t, before, theirs())
	to, err := os.Readlink(p.path("link"))
	require.NoError(t, err)
	assert.Equal(t, outside.dir, to)
}

// A repository that came later is not taken away, whatever stands beside it.
func TestP34RepositoryThatCameLater(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("pkg/f", "1\n")
	p.write("pkg-x", "between pkg and what is in it")
	git(t, p.path("pkg"), "init", "-q", "-b", "main")
	git(t, p.path("pkg"), "add", "-A")
	git(t, p.path("pkg"), "commit", "-qm", "x")
	before := digest(t, p.path("pkg/.git"))
	r := p.restore("c1")
	assert.Equal(t, []string{"pkg-x"}, steps(r.Plan))
	assert.Contains(t, kept(r.Plan), "pkg")
	assert.Equal(t, "1\n", p.read("pkg/f"))
	assert.Equal(t, before, digest(t, p.path("pkg/.git")))
}

// A folder with repositories and none around them is one workspace.
func TestP36FolderOfRepositories(t *testing.T) {
	p := newFolder(t)
	for _, name := range []string{"be", "fe"} {
		p.write(name+"/f", "1\n")
		git(t, p.path(name), "init", "-q", "-b", "main")
	}
	p.write("notes", "1\n")
	before := p.digest()
	p.agent("echo 2 >be/f; echo 2 >fe/f; echo n >fe/new; echo 2 >notes")
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
	for _, name := range []string{"be", "fe"} {
		git(t, p.path(name), "fsck")
	}
}

func TestP37GitIsAFile(t *testing.T) {
	main := newCommitted(t)
	linked := filepath.Join(t.TempDir(), "wt")
	git(t, main.dir, "worktree", "add", "-q", linked)
	separate := filepath.Join(t.TempDir(), "sep")
	git(t, t.TempDir(), "init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(t.TempDir(), "elsewhere"), separate)
	for dir, kind := range map[string]string{linked: "linked", separate: "git"} {
		t.Run(kind, func(t *testing.T) {
			p := openPlace(t, dir, retcon.Options{})
			assert.Equal(t, kind, p.Kind())
			p.write("f", "1")
			before := p.digest()
			p.agent("echo 2 >f; mkdir d; echo n >d/new")
			p.restore("r1@before")
			assert.Equal(t, before, p.digest())
			git(t, dir, "fsck")
		})
	}
	list, err := main.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, list, "each worktree has a history of its own")
}

func TestP38GitEnvironment(t *testing.T) {
	p := newCommitted(t)
	other := newCommitted(t)
	theirs := digest(t, other.path(".git"))
	want := p.digest()
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "2")
	func() {
		for _, name := range strings.Fields("GIT_DIR GIT_COMMON_DIR") {
			old, was := os.LookupEnv(name)
			require.NoError(t, os.Setenv(name, other.path(".git")))
			defer func() {
				if was {
					os.Setenv(name, old)
				} else {
					os.Unsetenv(name)
				}
			}()
		}
		t.Setenv("GIT_WORK_TREE", other.dir)
		t.Setenv("GIT_INDEX_FILE", other.path(".git/index"))
		t.Setenv("GIT_OBJECT_DIRECTORY", "/nonexistent")
		got := command(t, p.dir, "", "restore c1 --yes")
		assert.Equal(t, 0, got.code, got.err)
	}()
	assert.Equal(t, want, p.digest())
	assert.Equal(t, theirs, digest(t, other.path(".git")))
	git(t, p.dir, "fsck")
}

// Nothing is signed, no hook and no filter runs: nothing is started at all.
func TestP40NothingIsStarted(t *testing.T) {
	p := newCommitted(t)
	fired := filepath.Join(t.TempDir(), "fired")
	hooks := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho \"$0\" >>%s\n", fired)
	for _, name := range strings.Fields("pre-commit post-commit post-checkout post-index-change reference-transaction post-rewrite fsmonitor gpg clean") {
		require.NoError(t, os.WriteFile(filepath.Join(hooks, name), []byte(script), 0o755))
	}
	for key, value := range map[string]string{"core.hooksPath": hooks, "commit.gpgsign": "true", "gpg.program": hooks + "/gpg",
		"core.fsmonitor": hooks + "/fsmonitor", "filter.x.clean": hooks + "/clean", "filter.x.smudge": hooks + "/clean", "filter.x.required": "true"} {
		git(t, p.dir, "config", key, value)
	}
	p.write(".gitattributes", "*.txt filter=x\n")
	before := p.digest()
	p.exec("agent", func() { p.write("a.txt", "2"); p.write("new.txt", "n") })
	for _, o := range []retcon.RestoreOptions{{Ref: "r1@before"}, {Ref: "r1@after", Exact: true}, {Ref: "r1@before", Exact: true, Head: true}} {
		_, err := p.Restore(ctx, o)
		require.NoError(t, err)
	}
	assert.Equal(t, before, p.digest())
	p.undo()
	assert.NoFileExists(t, fired)
}

func TestP45StoreGrowsByWhatChanged(t *testing.T) {
	p := newRepo(t)
	for i := range 100 {
		p.write(fmt.Sprintf("d%d/f%d", i%10, i), noise(i, 40_000)) // 4 MB
	}
	p.checkpoint(retcon.CheckpointOptions{})
	size := func() int64 {
		c, err := p.Collect(ctx, retcon.CollectOptions{Full: true})
		require.NoError(t, err)
		return c.SizeBytes
	}
	before := size()
	n := 200
	if testing.Short() {
		n = 50
	}
	for i := range n {
		p.write("d3/changing", noise(1000+i, 1000))
		p.checkpoint(retcon.CheckpointOptions{})
	}
	grown := size() - before
	assert.Less(t, grown, int64(n)*(1000+2500), "%d bytes a checkpoint", grown/int64(n))
	p.noLitter()
}

// noise is text that does not compress, the same for the same seed.
func noise(seed, n int) string {
	var b strings.Builder
	x := uint64(seed)*2654435761 + 1
	for b.Len() < n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%c", rune(0x21+x%90))
	}
	return b.String()
}

func TestP50NothingChangedCostsNextToNothing(t *testing.T) {
	p := newFolder(t)
	for i := range 2000 {
		p.write(fmt.Sprintf("d%d/f%d", i%20, i), "x")
	}
	p.checkpoint(retcon.CheckpointOptions{})
	size := func() (n int64) {
		for _, name := range []string{"ledger.db", "ledger.db-wal"} {
			if fi, err := os.Stat(filepath.Join(p.Folder(), name)); err == nil {
				n += fi.Size()
			}
		}
		return n
	}
	require.NoError(t, p.Close())
	before := size()
	q := p.reopen()
	for range 200 {
		c := q.checkpoint(retcon.CheckpointOptions{Tier: retcon.TierTool})
		require.True(t, c.Unchanged)
	}
	require.NoError(t, q.Close())
	assert.Less(t, size()-before, int64(200_000))
	assert.Len(t, q.packs(), 1, "nothing was written to the store")
}

func TestP51ForgettingFreesSpace(t *testing.T) {
	p := newFolder(t)
	p.write("shared", noise(1, 300_000))
	p.write("first", noise(2, 500_000))
	p.checkpoint(retcon.CheckpointOptions{})
	p.remove("first")
	p.write("second", noise(3, 300_000))
	c := p.checkpoint(retcon.CheckpointOptions{})
	want := p.digest()
	size := func() int64 {
		got, err := p.Collect(ctx, retcon.CollectOptions{Full: true})
		require.NoError(t, err)
		return got.SizeBytes
	}
	before := size()
	require.NoError(t, p.Forget(ctx, []retcon.Ref{"c1"}))
	assert.Less(t, size(), before-350_000, "what only the forgotten one used is gone")
	p.shell("rm shared second")
	p.restore(retcon.Ref(c.Ref))
	assert.Equal(t, want, p.digest())
	p.healthy()
}

func TestP53SparseCheckout(t *testing.T) {
	p := newCommitted(t, "src/x", "src/deep/y", "docs/z", "other/w")
	git(t, p.dir, "sparse-checkout", "set", "--cone", "src")
	p.gone("docs")
	flags, before := git(t, p.dir, "ls-files", "-v"), p.digest()
	p.agent("echo 2 >src/x; rm src/deep/y; echo n >src/new")
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
	assert.Equal(t, flags, git(t, p.dir, "ls-files", "-v"))
	assert.Empty(t, git(t, p.dir, "status", "--porcelain"))
	p.gone("docs")
	p.gone("other")
}
