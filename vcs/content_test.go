package vcs

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asNobody is for tests of what a mode forbids, which mean nothing to root: for
// root it runs the test again in a child that is somebody else, and tells that
// it passed there.
func asNobody(t *testing.T) (passed bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	scratch, err := os.MkdirTemp("", "nobody")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(scratch) })
	require.NoError(t, os.Chmod(scratch, 0o777))
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Skip("no copy of the test binary to run as another user")
	}
	defer self.Close()
	exe := filepath.Join(scratch, "test")
	to, err := os.OpenFile(exe, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, self)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = scratch
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Skipf("cannot run as another user: %v", err)
	}
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: "+t.Name(), string(out))
	return true
}

func chmod(t testing.TB, mode os.FileMode, path ...string) {
	t.Helper()
	require.NoError(t, os.Chmod(filepath.Join(path...), mode))
}

func notCaptured(c *Capture) map[string]string {
	m := make(map[string]string)
	for _, n := range c.NotCaptured {
		m[n.Path] = n.Reason
	}
	return m
}

// TestRawBytes keeps bytes as they are whatever git would make of them.
//
// P64 Line endings.
func TestRawBytes(t *testing.T) {
	files := map[string]string{"lf": "a\nb\n", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\nc\r", "cr": "a\rb\r", "unfinished": "a\r\nb", "empty": "",
		"nul": "a\r\n\x00", "utf16": "\xff\xfea\x00\r\x00\n\x00", "ident": "$Id$\r\n", "bom": "\xef\xbb\xbfa\r\n"}
	for _, autocrlf := range []string{"true", "input", "false"} {
		for _, attributes := range []string{"", "* text=auto\n", "* text eol=crlf ident\n", "* text eol=lf working-tree-encoding=UTF-16\n"} {
			t.Run(autocrlf+" "+strings.TrimSpace(attributes), func(t *testing.T) {
				t.Parallel()
				dir := newRepo(t)
				git(t, dir, "config", "core.autocrlf", autocrlf)
				git(t, dir, "config", "core.safecrlf", "false")
				for name, data := range files {
					write(t, dir, "staged/"+name, data)
					write(t, dir, "untracked/"+name, data)
				}
				if attributes != "" {
					write(t, dir, ".gitattributes", attributes)
				}
				if !strings.Contains(attributes, "encoding") { // git refuses what is not UTF-16
					git(t, dir, "add", "staged")
					git(t, dir, "commit", "-qm", "one")
				}
				w := open(t, dir, Options{}) // the index knows the stamps of what it converted
				for range 2 {
					c := capture(t, w)
					for name, data := range files {
						assert.Equal(t, data, content(t, w, c.Commit, "staged/"+name))
						assert.Equal(t, data, content(t, w, c.Commit, "untracked/"+name))
						write(t, dir, "staged/"+name, data) // as an editor does
					}
				}
			})
		}
	}
}

// What converted a file when it was checked out may be gone since: the index
// knows its stamps, and a blob of another size.
//
// P64 Line endings.
func TestConvertedOnce(t *testing.T) {
	dir := newRepo(t)
	git(t, dir, "config", "core.autocrlf", "true")
	git(t, dir, "config", "core.safecrlf", "false")
	write(t, dir, "crlf", "a\r\nb\r\n")
	write(t, dir, "plain", "a")
	time.Sleep(20 * time.Millisecond) // so that the index vouches for them
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	git(t, dir, "config", "--unset", "core.autocrlf")
	require.Equal(t, "a\nb", git(t, dir, "cat-file", "blob", ":crlf"))
	w := open(t, dir, Options{})
	c := capture(t, w)
	assert.Equal(t, "a\r\nb\r\n", content(t, w, c.Commit, "crlf"))
	assert.Equal(t, 1, c.Stats.Seeded, "the other one")
}

// TestFilters captures what is on disk and starts no filter.
//
// P65 LFS and other filters.
func TestFilters(t *testing.T) {
	dir := newRepo(t)
	fired := filepath.Join(t.TempDir(), "fired")
	write(t, dir, "big.bin", "what is really there")
	git(t, dir, "config", "filter.lfs.clean", "sed s/.*/pointer/") // as if by LFS: the index holds something shorter
	git(t, dir, "config", "filter.rot.clean", "tr a-y b-z")        // and something of the same size
	write(t, dir, "same.rot", "hal")
	write(t, dir, ".gitattributes", "*.bin filter=lfs -text\n*.x filter=x\n*.rot filter=rot\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	assert.Equal(t, "pointer", git(t, dir, "show", ":big.bin"))
	assert.Equal(t, "ibm", git(t, dir, "show", ":same.rot"))
	settle(t, dir, ".gitattributes", "big.bin", "same.rot")
	for _, f := range []string{"lfs", "x", "rot"} {
		for _, verb := range []string{"clean", "smudge", "process"} {
			git(t, dir, "config", "filter."+f+"."+verb, "touch "+fired+"; false")
		}
		git(t, dir, "config", "filter."+f+".required", "true")
	}
	write(t, dir, "secret.x", "plain")
	w := open(t, dir, Options{})
	c := capture(t, w)
	assert.Equal(t, "what is really there", content(t, w, c.Commit, "big.bin"))
	assert.Equal(t, "hal", content(t, w, c.Commit, "same.rot"))
	assert.Equal(t, "plain", content(t, w, c.Commit, "secret.x"))
	_, err := os.Lstat(fired)
	assert.ErrorIs(t, err, os.ErrNotExist, "a filter ran")
}

// settle makes the stamps of tracked files old, and the index sure of them.
func settle(t testing.TB, dir string, paths ...string) {
	t.Helper()
	old, later := time.Now().Add(-time.Hour), time.Now().Add(2*time.Second)
	for _, p := range paths {
		require.NoError(t, os.Chtimes(filepath.Join(dir, p), old, old))
	}
	git(t, dir, "update-index", "-q", "--refresh")
	require.NoError(t, os.Chtimes(filepath.Join(dir, ".git/index"), later, later))
}

// TestSeededFromTheIndex hashes nothing in a clean checkout, and trusts nothing
// that the index cannot vouch for.
func TestSeededFromTheIndex(t *testing.T) {
	all := []string{"a", "d/b", "d/e/c", "other/f", ".gitignore"}
	t.Run("clean checkout", func(t *testing.T) {
		dir := committed(t)
		settle(t, dir, all...)
		w := open(t, dir, Options{})
		c := capture(t, w)
		assert.Equal(t, len(all), c.Stats.Seeded)
		assert.Zero(t, c.Stats.Hashed)
		assert.Equal(t, gitTree(t, dir), c.Tree)
		readable(t, w, c.Commit)
	})
	t.Run("index not younger than its files", func(t *testing.T) {
		dir := committed(t)
		settle(t, dir, all...)
		old := time.Now().Add(-2 * time.Hour)
		require.NoError(t, os.Chtimes(filepath.Join(dir, ".git/index"), old, old))
		c := capture(t, open(t, dir, Options{}))
		assert.Zero(t, c.Stats.Seeded)
		assert.Equal(t, gitTree(t, dir), c.Tree)
	})
}

// TestRacyStamps hashes again what may have changed within one tick of the
// clock, and nothing else.
func TestRacyStamps(t *testing.T) {
	dir := committed(t)
	write(t, dir, "racy", "1")
	time.Sleep(20 * time.Millisecond)
	future := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "racy"), future, future))
	w := open(t, dir, Options{})
	time.Sleep(20 * time.Millisecond)
	capture(t, w)
	for range 3 {
		assert.Equal(t, 1, capture(t, w).Stats.Hashed)
	}
}

// TestHiddenEdit sees an edit that keeps size and modification time.
//
// P24 No entry of an earlier capture.
func TestHiddenEdit(t *testing.T) {
	t.Run("time set back", func(t *testing.T) {
		dir := committed(t)
		path := filepath.Join(dir, "a")
		old := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path, old, old))
		w := open(t, dir, Options{})
		time.Sleep(20 * time.Millisecond) // not racy: only the change time tells
		capture(t, w)
		capture(t, w)
		write(t, dir, "a", "2\n")
		require.NoError(t, os.Chtimes(path, old, old))
		assert.Equal(t, "2\n", content(t, w, capture(t, w).Commit, "a"))
	})
	t.Run("within one tick of the clock", func(t *testing.T) {
		dir := committed(t)
		w := open(t, dir, Options{})
		for i := range 100 {
			want := fmt.Sprintf("%03d", i)
			write(t, dir, "a", want)
			require.Equal(t, want, content(t, w, capture(t, w).Commit, "a"))
		}
	})
	t.Run("another file moved into its place", func(t *testing.T) {
		dir := committed(t)
		write(t, dir, "twin", "9\n")
		old := time.Now().Add(-time.Hour)
		for _, f := range []string{"a", "twin"} {
			require.NoError(t, os.Chtimes(filepath.Join(dir, f), old, old))
		}
		time.Sleep(20 * time.Millisecond)
		w := open(t, dir, Options{})
		capture(t, w)
		require.NoError(t, os.Rename(filepath.Join(dir, "twin"), filepath.Join(dir, "a")))
		assert.Equal(t, "9\n", content(t, w, capture(t, w).Commit, "a"))
	})
}

// TestModeOnly sees a change of permission bits alone.
//
// P59 Executable bit.
func TestModeOnly(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	for _, step := range []struct {
		path string
		mode os.FileMode
	}{{"a", 0o755}, {"a", 0o644}, {"a", 0o600}, {"a", 0o640}, {"a", 0o744}, {"d", 0o700}, {"d", 0o755}, {"a", 0o444}} {
		before := capture(t, w)
		chmod(t, step.mode, dir, step.path)
		c := capture(t, w)
		changes, err := w.Diff(context.Background(), before.Commit, c.Commit)
		require.NoError(t, err)
		require.Len(t, changes, 1, "%s %o: %+v", step.path, step.mode, changes)
		assert.Equal(t, step.path, changes[0].Path)
		assert.EqualValues(t, step.mode, changes[0].New.Mode)
		assert.Equal(t, gitTree(t, dir), c.Tree)
	}
}

// TestSpecialFiles notes sockets and FIFOs and opens none: opening either would
// hang or fail.
//
// P63 Sockets and FIFOs.
func TestSpecialFiles(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	git(t, dir, "init", "-q")
	write(t, dir, "f", "1")
	w := open(t, dir, Options{})
	before := capture(t, w)
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := w.Capture(ctx, CaptureOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"pipe", "sock"}, c.Special)
	assert.Equal(t, before.Tree, c.Tree)
	s := states(t, w, c.Commit)
	assert.Equal(t, KindSpecial, s["pipe"].Kind)
	assert.EqualValues(t, unix.S_IFSOCK, s["sock"].Mode&unix.S_IFMT)
	assert.Equal(t, c.Commit, capture(t, w).Commit)

	write(t, dir, "g", "a file that becomes a pipe")
	capture(t, w)
	require.NoError(t, os.Remove(filepath.Join(dir, "g")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "g"), 0o644))
	assert.Equal(t, []string{"g", "pipe", "sock"}, capture(t, w).Special)
}

// TestUnreadable records what may not be read, captures all else, and sees it
// again when it may be read.
//
// P62 One unreadable path does not cost the capture.
func TestUnreadable(t *testing.T) {
	if asNobody(t) {
		return
	}
	dir := committed(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	w := open(t, dir, Options{})
	open := capture(t, w)
	for _, tt := range []struct {
		name, path string
		mode       os.FileMode
	}{
		{"file", "a", 0},
		{"directory", "d", 0},
		{"directory that cannot be listed", "d", 0o311},
		{"directory that cannot be searched", "d", 0o644},
		{"empty directory", "empty", 0},
	} {
		for _, how := range []string{"incremental", "fresh"} {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				fi, err := os.Lstat(filepath.Join(dir, tt.path))
				require.NoError(t, err)
				t.Cleanup(func() { chmod(t, fi.Mode().Perm(), dir, tt.path) })
				chmod(t, tt.mode, dir, tt.path)
				if how == "fresh" {
					require.NoError(t, os.Remove(w.cachePath()))
				}
				c := capture(t, w)
				assert.Equal(t, map[string]string{tt.path: "unreadable"}, notCaptured(c))
				s := states(t, w, c.Commit)
				assert.Equal(t, KindUnknown, s[tt.path].Kind)
				assert.EqualValues(t, tt.mode, s[tt.path].Mode)
				assert.Equal(t, "4\n", content(t, w, c.Commit, "other/f"))
				assert.Equal(t, c.Commit, capture(t, w).Commit)
				chmod(t, fi.Mode().Perm(), dir, tt.path)
				assert.Equal(t, open.Commit, capture(t, w).Commit)
			})
		}
	}
	t.Run("ignore file", func(t *testing.T) {
		chmod(t, 0, dir, ".gitignore")
		t.Cleanup(func() { chmod(t, 0o644, dir, ".gitignore") })
		for range 2 {
			c, err := w.Capture(context.Background(), CaptureOptions{})
			var rules *IgnoreError
			require.ErrorAs(t, err, &rules)
			assert.Equal(t, ".gitignore", rules.Path)
			assert.Nil(t, c)
			require.NoError(t, os.RemoveAll(w.cachePath()))
		}
		chmod(t, 0o644, dir, ".gitignore")
		assert.Equal(t, open.Commit, capture(t, w).Commit)
	})
}

// TestUnreadableRules refuses to guess: every source of ignore rules that is
// there and cannot be read fails the capture, whether or not there is a cache.
//
// P14 Ignored files do not leak.
func TestUnreadableRules(t *testing.T) {
	if asNobody(t) {
		return
	}
	dir := committed(t)
	write(t, dir, "d/.gitignore", "secret\n")
	write(t, dir, "d/secret", "s")
	write(t, dir, ".git/info/exclude", "*.info\n")
	home := t.TempDir()
	write(t, home, ".config/git/ignore", "*.xdg\n")
	w := open(t, dir, Options{Home: home})
	want := capture(t, w).Commit
	for _, path := range []string{dir + "/.gitignore", dir + "/d/.gitignore", dir + "/.git/info/exclude", home + "/.config/git/ignore"} {
		chmod(t, 0, path)
		v, err := Open(dir, Options{Home: home})
		if err == nil {
			_, err = v.Capture(context.Background(), CaptureOptions{})
			v.Close()
		}
		chmod(t, 0o644, path)
		var rules *IgnoreError
		assert.ErrorAs(t, err, &rules, path)
	}
	assert.Equal(t, want, capture(t, w).Commit)
}

// TestMaxFile lists what is too large and captures it when it no longer is.
//
// P09 Nothing is left out silently, P47 Large files.
func TestMaxFile(t *testing.T) {
	dir := committed(t)
	write(t, dir, "large", strings.Repeat("x", 1001))
	write(t, dir, "fits", strings.Repeat("x", 1000))
	w := open(t, dir, Options{MaxFile: 1000})
	c := capture(t, w)
	assert.Equal(t, []Missing{{Path: "large", Reason: "size", Size: 1001}}, c.NotCaptured)
	s := states(t, w, c.Commit)
	assert.Equal(t, State{Kind: KindUnknown, Mode: 0o644, Reason: "size", Size: 1001}, s["large"])
	assert.Equal(t, KindFile, s["fits"].Kind)
	assert.Equal(t, c.NotCaptured, capture(t, w).NotCaptured, "the second time, too")

	full, err := w.Capture(context.Background(), CaptureOptions{NoCaps: true})
	require.NoError(t, err)
	assert.Empty(t, full.NotCaptured)
	assert.Equal(t, gitTree(t, dir), full.Tree)

	wide := open(t, dir, Options{MaxFile: 2000})
	assert.Empty(t, capture(t, wide).NotCaptured, "another limit")
	assert.Empty(t, capture(t, w).NotCaptured, "what is in the store stays in while it is the same")
	write(t, dir, "large", strings.Repeat("y", 1001))
	assert.Equal(t, c.NotCaptured, capture(t, w).NotCaptured)

	require.NoError(t, os.Truncate(filepath.Join(dir, "large"), 10))
	assert.Equal(t, gitTree(t, dir), capture(t, w).Tree)
}

// TestGrowingFile captures a file that is written all the time: either it is in
// the commit as it was at some moment, or the commit says that it is not.
func TestGrowingFile(t *testing.T) {
	dir := committed(t)
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	require.NoError(t, err)
	defer f.Close()
	line := strings.Repeat("0123456789abcdef", 64) + "\n"
	var stop atomic.Bool
	done := make(chan error)
	go func() {
		for n := 0; !stop.Load() && n < 16<<20; n += len(line) {
			if _, err := io.WriteString(f, line); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	w := open(t, dir, Options{})
	for range 10 {
		c := capture(t, w)
		s := states(t, w, c.Commit)["log"]
		if s.Kind == KindUnknown {
			assert.Equal(t, "changing", s.Reason)
			assert.Equal(t, "changing", notCaptured(c)["log"])
			continue
		}
		b, err := w.Content(s)
		require.NoError(t, err)
		n := len(b) / len(line) * len(line)
		require.Equal(t, strings.Repeat(line, len(b)/len(line)), string(b[:n]), "a prefix of what was written")
	}
	stop.Store(true)
	require.NoError(t, <-done)
	want, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	c := capture(t, w)
	assert.Empty(t, c.NotCaptured)
	assert.Equal(t, len(want), len(content(t, w, c.Commit, "log")))
}

// TestLargeFile streams: memory does not go with the size of a file.
//
// P47 Large binaries.
func TestLargeFile(t *testing.T) {
	if testing.Short() {
		t.Skip("200 MB")
	}
	dir := committed(t)
	path := filepath.Join(dir, "large.bin")
	require.NoError(t, os.WriteFile(path, []byte("start"), 0o644))
	require.NoError(t, os.Truncate(path, 200<<20)) // sparse: quick to make and to pack
	w := open(t, dir, Options{MaxFile: 1 << 30})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := capture(t, w)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "allocated in all")
	assert.EqualValues(t, 200<<20, w.Size(states(t, w, c.Commit)["large.bin"]))
	assert.Equal(t, git(t, dir, "hash-object", "large.bin"), states(t, w, c.Commit)["large.bin"].ID)
}

// TestIgnoredFiles captures small ignored files beside the tree, leaves bulk
// alone, and captures like any other what a pattern asks for.
//
// P78 Bulk is not the user's data, .env is. P29 Ignored folders do not count.
func TestIgnoredFiles(t *testing.T) {
	dir := newRepo(t)
	write(t, dir, ".gitignore", ".env*\nnode_modules/\n*.db\nmany/*\n")
	write(t, dir, ".env", "TOKEN=1\n")
	write(t, dir, "app.db", strings.Repeat("d", 2000))
	write(t, dir, "node_modules/x/index.js", "js")
	for i := range 40 {
		write(t, dir, fmt.Sprintf("many/%d", i), "m")
	}
	require.NoError(t, os.Symlink(".env", filepath.Join(dir, ".env.link")))
	w := open(t, dir, Options{IgnoredMax: 1000})
	c := capture(t, w)
	assert.Equal(t, gitTree(t, dir), c.Tree)
	s := states(t, w, c.Commit)
	assert.Equal(t, State{Kind: KindFile, Mode: 0o644, ID: s[".env"].ID, Ignored: true}, s[".env"])
	for _, bulk := range []string{"app.db", "node_modules", "many/0", "many/39", ".env.link"} {
		assert.Equal(t, State{Kind: KindIgnored, Ignored: true}, s[bulk], bulk)
	}
	assert.NotContains(t, s, "node_modules/x")
	assert.Empty(t, c.NotCaptured)

	write(t, dir, ".env", "TOKEN=2\n")
	write(t, dir, "node_modules/x/index.js", "other")
	two := capture(t, w)
	assert.Equal(t, "TOKEN=1\n", content(t, w, c.Commit, ".env"))
	assert.Equal(t, "TOKEN=2\n", content(t, w, two.Commit, ".env"))
	changes, err := w.Diff(context.Background(), c.Commit, two.Commit)
	require.NoError(t, err)
	assert.Len(t, changes, 1)

	inc := open(t, dir, Options{IgnoredMax: 1000, Include: []string{"node_modules/x/", "*.db"}})
	three := capture(t, inc)
	assert.Equal(t, "other", content(t, inc, three.Commit, "node_modules/x/index.js"))
	assert.Equal(t, strings.Repeat("d", 2000), content(t, inc, three.Commit, "app.db"))
	assert.False(t, states(t, inc, three.Commit)["app.db"].Ignored)
	assert.Equal(t, two.Commit, capture(t, w).Commit, "without the patterns, as before")
}

// TestIgnoredLater sees an ignore rule that comes and goes.
//
// P15 Ignored later.
func TestIgnoredLater(t *testing.T) {
	dir := committed(t)
	write(t, dir, "d/e/.env", "1")
	w := open(t, dir, Options{})
	one := capture(t, w)
	assert.False(t, states(t, w, one.Commit)["d/e/.env"].Ignored)
	write(t, dir, ".gitignore", ".env\n")
	two := capture(t, w)
	assert.True(t, states(t, w, two.Commit)["d/e/.env"].Ignored)
	assert.Equal(t, gitTree(t, dir), two.Tree)
	write(t, dir, "d/.gitignore", "!.env\n")
	assert.Equal(t, gitTree(t, dir), capture(t, w).Tree)
	require.NoError(t, os.Remove(filepath.Join(dir, "d/.gitignore")))
	assert.Equal(t, two.Commit, capture(t, w).Commit)
	write(t, dir, ".git/info/exclude", "c\n")
	git(t, dir, "rm", "-q", "--cached", "d/e/c")
	three := capture(t, w)
	assert.Equal(t, gitTree(t, dir), three.Tree)
	assert.True(t, states(t, w, three.Commit)["d/e/c"].Ignored)
}

// TestReservedNames leaves out every spelling of .git, which no tree may hold.
func TestReservedNames(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	before := capture(t, w)
	names := []string{".GIT", ".Git", "git~1", "GIT~1", ".git ", ".git.", ".git. .", ".git::$INDEX_ALLOCATION", ".g\u200cit", ".git\u200d", "\u200e.git", ".git\ufeff"}
	for _, n := range names {
		write(t, dir, n+"/config", "[core]\n\tfsmonitor = evil\n")
	}
	write(t, dir, "d/.GiT", "a file")
	c := capture(t, w)
	assert.Equal(t, before.Tree, c.Tree)
	missing := notCaptured(c)
	for _, n := range append(names, "d/.GiT") {
		assert.Equal(t, "reserved", missing[n], "%q", n)
	}
	for _, n := range []string{".gitx", "git~2", ".gi\u200ct2", ".git-x", "x.git", "git"} {
		write(t, dir, n, "allowed")
		assert.Contains(t, states(t, w, capture(t, w).Commit), n)
	}
	git(t, filepath.Join(w.Folder(), "store.git"), "fsck", "--strict", "--no-dangling")
}

// TestNames keeps names as bytes, in files, directories, links and beside the
// tree.
//
// P58 Non-ASCII names.
func TestNames(t *testing.T) {
	names := []string{"\u516c\u5171\u51fd\u6570.cpp", "\u00e9", "e\u0301", "\U0001f600", "\xff\xfe\x80", "n\nl", "tab\t", "cr\r", "q\"uo'te", "back\\slash", " lead", "trail ",
		"-dash", "*", "?", "[x]", "#hash", "!bang", ":colon", "%20", "a\x01\x1f\x7f", strings.Repeat("n", 255)}
	dir := newRepo(t)
	write(t, dir, ".gitignore", "*.ign\n")
	for _, n := range names {
		write(t, dir, "d/"+n+"/f", n)
		write(t, dir, "f/"+n, n)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "e", n), 0o700))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "l"), 0o755))
		require.NoError(t, os.Symlink(n, filepath.Join(dir, "l", n)))
		if len(n) < 250 {
			write(t, dir, "i/"+n+".ign", n)
		}
		require.NoError(t, unix.Mkfifo(filepath.Join(dir, "e", n, "p"), 0o600))
	}
	w := open(t, dir, Options{IgnoredPerDir: 100})
	c := capture(t, w)
	assert.Equal(t, gitTree(t, dir), c.Tree)
	for range 2 {
		s := states(t, w, c.Commit)
		for _, n := range names {
			for _, p := range []string{"d/" + n + "/f", "f/" + n, "l/" + n} {
				b, err := w.Content(s[p])
				require.NoError(t, err, "%q", p)
				assert.Equal(t, n, string(b))
			}
			assert.Equal(t, KindDir, s["e/"+n].Kind, "%q", n)
			assert.EqualValues(t, 0o700, s["e/"+n].Mode)
			assert.Equal(t, KindSpecial, s["e/"+n+"/p"].Kind)
			if len(n) < 250 {
				assert.True(t, s["i/"+n+".ign"].Ignored, "%q", n)
			}
		}
		require.NoError(t, os.RemoveAll(w.cachePath()))
		c = capture(t, w)
	}
	write(t, dir, "f/\xff\xfe\x80", "changed")
	write(t, dir, "f/e\u0301", "changed")
	d := capture(t, w)
	changes, err := w.Diff(context.Background(), c.Commit, d.Commit)
	require.NoError(t, err)
	require.Len(t, changes, 2)
	assert.Equal(t, []string{"f/e\u0301", "f/\xff\xfe\x80"}, []string{changes[0].Path, changes[1].Path})
	for _, ch := range changes {
		js, err := ch.MarshalJSON()
		require.NoError(t, err)
		var back FileChange
		require.NoError(t, back.UnmarshalJSON(js))
		assert.Equal(t, ch, back)
	}
}

// TestDeepNesting captures paths longer than the kernel takes at once.
func TestDeepNesting(t *testing.T) {
	dir := newRepo(t)
	deep := strings.TrimSuffix(strings.Repeat("directory/", 150), "/")
	write(t, dir, deep+"/f", "1")
	w := open(t, dir, Options{})
	c := capture(t, w)
	assert.Equal(t, gitTree(t, dir), c.Tree)
	write(t, dir, deep+"/f", "2")
	assert.Equal(t, "2", content(t, w, capture(t, w).Commit, deep+"/f"))
	assert.Equal(t, "1", content(t, w, c.Commit, deep+"/f"))
}

// TestManyAtOnce captures from 16 worktrees' handles at once while somebody
// writes, deletes and makes: no error, and every commit is whole.
//
// P49 Overlapping captures, P54 Races and locks.
func TestManyAtOnce(t *testing.T) {
	dir := committed(t)
	for i := range 200 {
		write(t, dir, fmt.Sprintf("many/%d/f", i), fmt.Sprint(i))
	}
	var stop atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; !stop.Load(); i++ {
			d := filepath.Join(dir, "many", fmt.Sprint(i%200))
			_ = os.WriteFile(filepath.Join(d, "f"), fmt.Append(nil, i), 0o644) // gone just now
			_ = os.RemoveAll(filepath.Join(dir, "many", fmt.Sprint((i+7)%200)))
			_ = os.MkdirAll(filepath.Join(dir, "many", fmt.Sprint((i+3)%200), "sub"), 0o755)
			_ = os.WriteFile(filepath.Join(dir, "many", fmt.Sprint((i+5)%200)), []byte("a file where a directory was"), 0o644)
		}
	})
	var mu sync.Mutex
	commits := make(map[Commit]bool)
	var all sync.WaitGroup
	reused := 0
	for range 16 {
		all.Go(func() {
			for range 4 {
				w, err := Open(dir, Options{})
				if !assert.NoError(t, err) {
					return
				}
				c, err := w.Capture(context.Background(), CaptureOptions{})
				w.Close()
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				commits[c.Commit] = true
				if c.Stats.Reused {
					reused++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	stop.Store(true)
	writer.Wait()
	t.Logf("%d commits, %d answers shared", len(commits), reused)
	w := open(t, dir, Options{})
	for c := range commits {
		readable(t, w, c)
	}
	whole(t, w, slices.Collect(maps.Keys(commits)))
	assert.Equal(t, gitTree(t, dir), capture(t, w).Tree)
	git(t, filepath.Join(w.Folder(), "store.git"), "fsck", "--strict", "--no-dangling")
}

// TestCoalescing lets captures that were asked for while one ran share the
// answer of the next.
//
// P49 Overlapping captures.
func TestCoalescing(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	capture(t, w)
	lk, err := lockFile(context.Background(), w.lockPath("capture")) // one is running
	require.NoError(t, err)
	write(t, dir, "a", "seen by all who ask now")
	const n = 8
	got := make([]*Capture, n)
	var arrived, all sync.WaitGroup
	for i := range n {
		arrived.Add(1)
		v := open(t, dir, Options{})
		all.Go(func() {
			arrived.Done()
			c, err := v.Capture(context.Background(), CaptureOptions{})
			if assert.NoError(t, err) {
				got[i] = c
			}
		})
	}
	arrived.Wait()
	time.Sleep(100 * time.Millisecond) // until they wait; later ones would scan, which is right too
	lk.unlock()
	all.Wait()
	scans := 0
	for _, c := range got {
		require.NotNil(t, c)
		assert.Equal(t, got[0].Commit, c.Commit)
		if !c.Stats.Reused {
			scans++
		}
	}
	assert.LessOrEqual(t, scans, 3)
	assert.Equal(t, "seen by all who ask now", content(t, w, got[0].Commit, "a"))

	write(t, dir, "a", "later")
	c := capture(t, w)
	assert.False(t, c.Stats.Reused)
	assert.Equal(t, "later", content(t, w, c.Commit, "a"))
}

// TestLockGivenUp stops waiting when it is told to, and leaves the lock usable.
//
// P54 Waiting is bounded.
func TestLockGivenUp(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	lk, err := lockFile(context.Background(), w.lockPath("capture"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = w.Capture(ctx, CaptureOptions{})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	lk.unlock()
	assert.Equal(t, gitTree(t, dir), capture(t, w).Tree)
}

// TestStatCacheIsACache damages it in every way: the answer is the same.
//
// P17 Nothing incomplete is trusted.
func TestStatCacheIsACache(t *testing.T) {
	dir := committed(t)
	w := open(t, dir, Options{})
	want := capture(t, w).Commit
	good, err := os.ReadFile(w.cachePath())
	require.NoError(t, err)
	other := open(t, committed(t), Options{})
	capture(t, other)
	foreign, err := os.ReadFile(other.cachePath())
	require.NoError(t, err)
	flipped := func(at int) []byte {
		b := append([]byte(nil), good...)
		b[at] ^= 0x40
		return b
	}
	for name, b := range map[string][]byte{
		"empty": nil, "truncated": good[:len(good)/2], "one byte short": good[:len(good)-1],
		"header only": good[:40], "flipped in the header": flipped(9), "flipped in the facts": flipped(60), "flipped in the entries": flipped(len(good) - 20),
		"of another worktree": foreign, "no cache at all": []byte(strings.Repeat("x", 4096)),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(w.cachePath(), b, 0o600))
			c := capture(t, w)
			assert.Equal(t, want, c.Commit)
			assert.Positive(t, c.Stats.Listed, "all is looked at")
			assert.Zero(t, capture(t, w).Stats.Objects)
		})
	}
	t.Run("a directory in its place", func(t *testing.T) {
		require.NoError(t, os.Remove(w.cachePath()))
		require.NoError(t, os.Mkdir(w.cachePath(), 0o700))
		c, err := w.Capture(context.Background(), CaptureOptions{})
		if err == nil {
			assert.Equal(t, want, c.Commit)
		}
		require.NoError(t, os.Remove(w.cachePath()))
	})
	t.Run("another worktree in its place", func(t *testing.T) {
		moved := filepath.Join(filepath.Dir(dir), "moved")
		require.NoError(t, os.Rename(dir, moved))
		require.NoError(t, os.CopyFS(dir, os.DirFS(moved)))
		w := open(t, dir, Options{})
		assert.Equal(t, want, capture(t, w).Commit)
	})
}

// TestLostPack makes a commit whole again whose objects went away behind the
// cache's back, and says so of those it cannot help.
//
// P18 The store is gone.
func TestLostPack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plain")
	for i := range 40 { // enough for a pack of their own
		write(t, dir, fmt.Sprintf("d%d/f", i%5), fmt.Sprint(i))
		write(t, dir, fmt.Sprintf("g/%d", i), fmt.Sprint("g", i))
	}
	w := open(t, dir, Options{Create: true})
	one := capture(t, w)
	require.NoError(t, w.Close())
	packs, err := filepath.Glob(filepath.Join(w.packDir(), "pack-*"))
	require.NoError(t, err)
	require.NotEmpty(t, packs)
	for _, p := range packs {
		require.NoError(t, os.Remove(p))
	}
	w = open(t, dir, Options{})
	_, err = w.Files(context.Background(), one.Commit)
	require.ErrorIs(t, err, ErrMissing)
	write(t, dir, "g/0", "changed")
	two := capture(t, w)
	readable(t, w, two.Commit)
	git(t, filepath.Join(w.Folder(), "store.git"), "fsck", "--strict", "--no-dangling")
	write(t, dir, "g/0", "g0")
	three := capture(t, w)
	assert.Equal(t, one.Commit, three.Commit)
	readable(t, w, three.Commit)
}
