package retcon_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon"
)

// Details of file systems.

func TestP58NamesAreBytes(t *testing.T) {
	p := newCommitted(t)
	all := []string{"公共函数.cpp", "é-nfc", "e\u0301-nfd", "emoji-🙂", "latin-\xe9", "tab\tnew\nline", " lead", "-dash", `back\slash`, `"quoted"`, "sub dir/ü/ß"}
	for _, name := range all {
		p.write(name, name)
	}
	before := p.digest()
	r := p.exec("agent", func() {
		for i, name := range all {
			if i%2 == 0 {
				p.write(name, "changed")
			} else {
				p.remove(name)
			}
		}
	})
	assert.Len(t, r.Changes, len(all))
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
}

func TestP59ModesAreState(t *testing.T) {
	for _, edit := range []string{"", "echo x >>run.sh; "} {
		p := newCommitted(t)
		p.write("run.sh", "echo\n")
		require.NoError(t, os.Chmod(p.path("run.sh"), 0o755))
		p.write("secret", "s")
		require.NoError(t, os.Chmod(p.path("secret"), 0o600))
		before := p.digest()
		r := p.agent(edit + "chmod 644 run.sh secret; chmod 700 sub")
		assert.Len(t, r.Changes, 3)
		p.restore("r1@before")
		assert.Equal(t, before, p.digest())
	}
}

// Nothing outside the root is written, read or removed through a link.
func TestP60LinksAreNotFollowed(t *testing.T) {
	out := t.TempDir()
	secret := filepath.Join(out, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	outside := digest(t, out)
	p := newCommitted(t)
	before := p.digest()
	p.agent(fmt.Sprintf("rm a.txt; ln -s %s a.txt; rm -r sub; ln -s %s sub; ln -s %s new", secret, out, out))
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
	p.undo()
	to, err := os.Readlink(p.path("sub"))
	require.NoError(t, err)
	assert.Equal(t, out, to)
	p.redo()
	assert.Equal(t, before, p.digest())
	assert.Equal(t, outside, digest(t, out))
}

func TestP61AnotherDirectoryAtTheSamePath(t *testing.T) {
	top := t.TempDir()
	ws := filepath.Join(top, "ws")
	p := openPlace(t, ws, retcon.Options{Create: true})
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	require.NoError(t, p.Close())
	// The history stands at the path again, in another directory.
	require.NoError(t, os.Rename(ws, ws+".old"))
	require.NoError(t, os.Mkdir(ws, 0o755))
	require.NoError(t, os.CopyFS(filepath.Join(ws, ".retcon"), os.DirFS(filepath.Join(ws+".old", ".retcon"))))
	q := openPlace(t, ws, retcon.Options{})
	q.write("b", "2")
	assert.Equal(t, retcon.CodeRefused, q.refused(retcon.RestoreOptions{Ref: "c1"}))
	adopted := openPlace(t, ws, retcon.Options{Adopt: true})
	adopted.restore("c1")
	assert.Equal(t, "1", adopted.read("a"))
}

func TestP62UnreadablePaths(t *testing.T) {
	if asNobody(t) {
		return
	}
	p := newCommitted(t)
	p.write("s.key", "key")
	p.write("dir/f", "1")
	require.NoError(t, os.Chmod(p.path("s.key"), 0))
	require.NoError(t, os.Chmod(p.path("dir"), 0))
	t.Cleanup(func() { _ = os.Chmod(p.path("dir"), 0o755) }) // so that it can be removed
	c := p.checkpoint(retcon.CheckpointOptions{})
	assert.True(t, c.Partial)
	assert.Equal(t, []retcon.Missing{{Path: "dir", Reason: "unreadable"}, {Path: "s.key", Reason: "unreadable", Size: 3}}, c.NotCaptured)
	p.write("a.txt", "2")
	r := p.restore("c1")
	assert.Equal(t, []string{"a.txt"}, steps(r.Plan))
	assert.EqualValues(t, 0, p.mode("s.key").Perm())
	assert.EqualValues(t, 0, p.mode("dir").Perm())
	require.NoError(t, os.Chmod(p.path("s.key"), 0o600))
	require.NoError(t, os.Chmod(p.path("dir"), 0o755))
	p.write("dir-x", "between dir and what is in it")
	r = p.restore("c1")
	assert.Equal(t, "key", p.read("s.key"))
	assert.Equal(t, "1", p.read("dir/f"), "what could not be seen was not absent")
	assert.Len(t, r.Plan.NotRestorable, 2, "what was not captured is said again")
	p.gone("dir-x")
}

func TestP63SocketsAndPipes(t *testing.T) {
	p := newCommitted(t)
	require.NoError(t, unix.Mkfifo(p.path("pipe"), 0o644))
	short, err := os.MkdirTemp("", "s") // the path of a socket is short
	require.NoError(t, err)
	defer os.RemoveAll(short)
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Rename(filepath.Join(short, "s"), p.path("sock")))
	c := p.checkpoint(retcon.CheckpointOptions{})
	assert.Equal(t, []string{"pipe", "sock"}, c.Special)
	require.NoError(t, unix.Mkfifo(p.path("later"), 0o644))
	p.write("a.txt", "2")
	p.restore("c1")
	for _, name := range []string{"pipe", "sock", "later"} {
		assert.NotZero(t, p.mode(name)&(os.ModeNamedPipe|os.ModeSocket), name)
	}
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
}

func TestP64LineEndings(t *testing.T) {
	for _, setting := range []string{"true", "input", "false"} {
		for _, attributes := range []string{"", "* text=auto\n", "* text eol=crlf\n"} {
			p := newRepo(t)
			git(t, p.dir, "config", "core.autocrlf", setting)
			git(t, p.dir, "config", "core.safecrlf", "false")
			p.write(".gitattributes", attributes)
			for name, text := range map[string]string{"crlf": "a\r\nb\r\n", "lf": "a\nb\n", "mixed": "a\r\nb\n", "cr": "a\rb\r", "none": "a", "bom": "\ufeffa\r\n"} {
				p.write(name, text)
			}
			git(t, p.dir, "add", "-A")
			git(t, p.dir, "commit", "-qm", "x")
			before := p.digest()
			p.agent("for f in crlf lf mixed cr none bom; do echo more >>$f; done; rm cr")
			p.restore("r1@before")
			assert.Equal(t, before, p.digest(), "%s %q", setting, attributes)
		}
	}
}

func TestP65FiltersAreNotRun(t *testing.T) {
	p := newRepo(t)
	for key, value := range map[string]string{"filter.x.clean": "false", "filter.x.smudge": "false", "filter.x.required": "true"} {
		git(t, p.dir, "config", key, value)
	}
	p.write(".gitattributes", "*.bin filter=x\n*.txt ident\n")
	p.write("a.bin", "\x00\x01real bytes")
	p.write("a.txt", "$Id$\n")
	before := p.digest()
	p.agent("echo x >a.bin; echo y >>a.txt")
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
}

func TestT140ModesLinksDeletionsRenames(t *testing.T) {
	p := newCommitted(t, "run.sh", "gone", "old")
	require.NoError(t, os.Chmod(p.path("run.sh"), 0o755))
	require.NoError(t, os.Symlink("a.txt", p.path("link")))
	before := p.digest()
	p.agent("chmod 644 run.sh; rm gone; mv old new; rm link; ln -s b.txt link; rm a.txt; ln -s b.txt a.txt")
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
}

func TestT141BigNewFile(t *testing.T) {
	p := newCommitted(t)
	p.write("big", noise(7, 5<<20))
	before := p.digest()
	p.agent("rm big; echo x >a.txt")
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
}

func TestT142EmptyDirectories(t *testing.T) {
	p := newCommitted(t)
	p.shell("mkdir -p empty/within; mkdir -m 700 private")
	before := p.digest()
	r := p.agent("rm -r empty private; mkdir other")
	assert.NotEmpty(t, r.Changes)
	p.restore("r1@before")
	assert.Equal(t, before, p.digest())
}

// Of what is ignored: the small that a run changed comes back, the rest is left
// alone; a pattern of include makes it a file like any other.
func TestT143IgnoredFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo")
	git(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
	p := openPlace(t, dir, retcon.Options{Config: retcon.Config{IgnoredMax: 1000, Include: []string{"wanted.*"}}})
	p.write(".gitignore", ".env\nlarge.db\nwanted.*\nbuild/\n")
	p.write(".env", "A=1\n")
	p.write("large.db", strings.Repeat("x", 5000))
	p.write("wanted.db", strings.Repeat("x", 5000))
	p.write("build/out", "1")
	p.agent("echo 2 >.env; echo 2 >large.db; echo 2 >wanted.db; echo 2 >build/out; touch build/new")
	r := p.restore("r1@before")
	assert.Equal(t, "A=1\n", p.read(".env"))
	assert.Equal(t, "2\n", p.read("large.db"))
	assert.Equal(t, strings.Repeat("x", 5000), p.read("wanted.db"))
	assert.Equal(t, "2\n", p.read("build/out"))
	assert.Equal(t, []string{".env", "wanted.db"}, steps(r.Plan))
}

// A folder that was ignored at the time, or is now, is not emptied or filled.
func TestT143RulesHaveChanged(t *testing.T) {
	p := newCommitted(t)
	p.write(".gitignore", "build/\n")
	p.write("build/out", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write(".gitignore", "")
	p.write("build/out", "2")
	p.write("build/new", "n")
	p.checkpoint(retcon.CheckpointOptions{})
	p.restore("c1")
	assert.Equal(t, "2", p.read("build/out"))
	assert.Equal(t, "n", p.read("build/new"))
	p.write("build/out", "3")
	p.restore("c2")
	assert.Equal(t, "3", p.read("build/out"))
}

func TestT144WhatTheUserMadeSince(t *testing.T) {
	p := newCommitted(t)
	p.agent("echo 2 >a.txt; echo r >by-run")
	p.write("by-me", "mine")
	p.restore("r1@before")
	assert.Equal(t, "mine", p.read("by-me"))
	p.gone("by-run")
}

func TestT145HeadBranchAndIndex(t *testing.T) {
	p := newCommitted(t)
	p.write("a.txt", "staged\n")
	git(t, p.dir, "add", "a.txt")
	c := p.checkpoint(retcon.CheckpointOptions{})
	assert.Equal(t, "refs/heads/main", c.Head.Ref)
	want := gitState(t, p.dir)
	p.agent("git checkout -q -b feature; git commit -qam agent; echo more >b.txt; git commit -qam two")
	after := git(t, p.dir, "rev-parse", "HEAD")
	log := git(t, p.dir, "log", "--format=%s")
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", Head: true})
	require.NoError(t, err)
	assert.Equal(t, "refs/heads/main", git(t, p.dir, "symbolic-ref", "HEAD"))
	assert.Equal(t, strings.Split(want, "\n--\n")[1], strings.Split(gitState(t, p.dir), "\n--\n")[1], "the index")
	assert.Equal(t, "M  a.txt", git(t, p.dir, "status", "--porcelain"))

	// The agent's commits are gone from the user's repository, and not from ours:
	// nothing is moved, and the message says how they are had back.
	git(t, p.dir, "branch", "-qD", "feature")
	p.shell("git reflog expire --expire=now --all; git gc -q --prune=now")
	to := retcon.RestoreOptions{Ref: "r1@after", Exact: true, Head: true}
	before := p.digest()
	_, err = p.Restore(ctx, to)
	require.Error(t, err)
	assert.Equal(t, before, p.digest())
	_, fetch, ok := strings.Cut(retcon.Explain(err).Message, "with: ")
	require.True(t, ok, err)
	p.shell(fetch)
	_, err = p.Restore(ctx, to)
	require.NoError(t, err)
	assert.Equal(t, after, git(t, p.dir, "rev-parse", "HEAD"))
	assert.Equal(t, log, git(t, p.dir, "log", "--format=%s"))
	git(t, p.dir, "fsck", "--strict")
}

func TestT146LargeTree(t *testing.T) {
	p := newFolder(t)
	n := 5000
	if *long {
		n = 50_000
	}
	for i := range n {
		p.write(fmt.Sprintf("d%d/e%d/f%d", i%50, i%7, i), "x")
	}
	p.checkpoint(retcon.CheckpointOptions{})
	before := len(p.packs())
	p.write("d3/e3/new", "n")
	c := p.checkpoint(retcon.CheckpointOptions{})
	assert.Equal(t, 1, c.Changed)
	assert.Equal(t, n+1, c.Files)
	var size int64
	for _, pack := range p.packs()[:] {
		fi, err := os.Stat(pack)
		require.NoError(t, err)
		if len(p.packs()) > before && fi.Size() < 100_000 {
			size += fi.Size()
		}
	}
	assert.Less(t, size, int64(100_000), "it costs what changed, not what there is")
	r := p.restore("c1")
	assert.Equal(t, []string{"d3/e3/new"}, steps(r.Plan))
}

// No identity, no network, objects that may not be written: none is needed. A
// worktree that is gone is said to be.
func TestT147NoIdentityNoObjectsNoWorktree(t *testing.T) {
	p := newCommitted(t)
	p.shell("find .git/objects -type d -exec chmod 555 {} +")
	t.Cleanup(func() { p.shell("find .git/objects -type d -exec chmod 755 {} +") })
	before := digest(t, p.path(".git/objects"))
	p.agent("echo 2 >a.txt")
	p.restore("r1@before")
	assert.Equal(t, "a.txt\n", p.read("a.txt"))
	assert.Equal(t, before, digest(t, p.path(".git/objects")))

	gone := filepath.Join(t.TempDir(), "gone")
	_, err := retcon.Open(ctx, retcon.Options{Dir: gone, Now: time.Now})
	require.Error(t, err)
	linked := filepath.Join(t.TempDir(), "wt")
	git(t, p.dir, "worktree", "add", "-q", linked)
	w, err := retcon.Open(ctx, retcon.Options{Dir: linked, Now: time.Now})
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, os.RemoveAll(linked))
	_, err = w.Checkpoint(ctx, retcon.CheckpointOptions{})
	require.Error(t, err)
	assert.NotContains(t, retcon.Explain(err).Message, "\n")
}

func TestT148RestoreIsVerified(t *testing.T) {
	p := newCommitted(t)
	c := p.checkpoint(retcon.CheckpointOptions{})
	p.shell("echo 2 >a.txt; rm b.txt; mkdir d; echo n >d/n")
	r := p.restore("c1")
	assert.Equal(t, len(r.Plan.Changes), r.Verified)
	again := p.checkpoint(retcon.CheckpointOptions{})
	assert.Equal(t, c.Tree, again.Tree)
}
