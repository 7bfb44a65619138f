package retcon_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/cli"
)

// Bad input and bad places: one line, a hint where there is something to do, the
// documented exit code, and nothing changed.

// saysNo carries out a command line that must fail in the way told.
func saysNo(t *testing.T, env cli.Env, line string, code int, message, hint string) {
	t.Helper()
	before := digest(t, env.Dir)
	got := commandAt(t, env, "", line)
	assert.Equal(t, code, got.code, "%s: %s", line, got.err)
	lines := strings.Split(strings.TrimSuffix(got.err, "\n"), "\n")
	assert.Regexp(t, "^retcon: .*"+message, lines[0], line)
	for _, more := range lines[1:] {
		assert.True(t, strings.HasPrefix(more, "hint: "), "%s: %q is more than one line", line, got.err)
	}
	if hint != "" {
		assert.Contains(t, lines[1:], "hint: "+hint, line)
	}
	assert.Equal(t, before, digest(t, env.Dir), "%s changed something", line)
}

func envAt(dir string) cli.Env { return cli.Env{Dir: dir, Home: "/nonexistent", Now: time.Now} }

func TestInputNotAWorkspace(t *testing.T) {
	dir := t.TempDir()
	for _, line := range []string{"checkpoint", "restore c1 --yes", "undo --yes", "log", "diff", "snapshots", "doctor", "gc", "exec true"} {
		saysNo(t, envAt(dir), line, 3, "not a workspace", "retcon init")
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestInputUnknownReference(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "2")
	for _, ref := range []string{"c9", "nolabel", "r7", "r7@before", "~x", "-9", "abcdef", "c0", "c99999999999999999999", "r1@c1"} {
		saysNo(t, envAt(p.dir), "restore --yes -- "+ref, 3, "", "retcon snapshots")
		saysNo(t, envAt(p.dir), "diff -- "+ref, 3, "", "retcon snapshots")
	}
}

func TestInputAmbiguousPrefix(t *testing.T) {
	p := newFolder(t)
	prefixes := map[string]bool{}
	for i := range 2000 {
		p.write("a", fmt.Sprint(i))
		c := p.checkpoint(retcon.CheckpointOptions{})
		prefix := c.Commit[:4]
		if prefixes[prefix] && regexp.MustCompile(`[a-f]`).MatchString(prefix) {
			saysNo(t, envAt(p.dir), "restore --yes "+prefix, 3, prefix, "retcon snapshots")
			return
		}
		prefixes[prefix] = true
	}
	t.Fatal("no two commits begin alike")
}

func TestInputPathOutside(t *testing.T) {
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "2")
	for _, path := range []string{"/etc/passwd", "../x", "sub/../../x"} {
		saysNo(t, envAt(p.dir), "restore c1 --yes "+path, 64, "outside", "")
	}
	saysNo(t, envAt(p.path("sub")), "restore c1 --yes ../../x", 64, "outside", "")
}

func TestInputUnreadableFile(t *testing.T) {
	if asNobody(t) {
		return
	}
	p := newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "2")
	require.NoError(t, os.Chmod(p.path("a.txt"), 0))
	got := command(t, p.dir, "", "restore c1 --yes")
	assert.Equal(t, 4, got.code, got.err)
	assert.Contains(t, got.err, "a.txt")
	assert.EqualValues(t, 0, p.mode("a.txt").Perm())
	got = command(t, p.dir, "", "checkpoint")
	assert.Equal(t, 0, got.code, "all else is captured: %s", got.err)
	assert.Contains(t, got.out+got.err, "a.txt", "and it is said")
	require.NoError(t, os.Chmod(p.path("a.txt"), 0o644))
}

// tmpfs mounts a small file system, or skips the test.
func tmpfs(t *testing.T, size string) (dir string, remount func(flags uintptr)) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir, func(flags uintptr) { require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "")) }
}

func TestInputFullDisk(t *testing.T) {
	dir, _ := tmpfs(t, "6m")
	p := openPlace(t, filepath.Join(dir, "work"), retcon.Options{Create: true})
	p.write("a", noise(1, 500_000))
	p.write("b", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a", noise(2, 1_000_000))
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	for _, line := range []string{"checkpoint", "restore c1 --yes", "exec touch x"} {
		saysNo(t, envAt(p.dir), line, 1, "", "retcon gc --dry-run")
	}
	// Room for the safety checkpoint, and none for what is put back.
	p.remove("a")
	require.NoError(t, os.Truncate(ballast, 0))
	var free unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &free))
	require.NoError(t, os.WriteFile(ballast, make([]byte, int64(free.Bavail)*free.Bsize-300_000), 0o600))
	saysNo(t, envAt(p.dir), "restore c1 --yes", 1, "no space left|disk", "retcon gc --dry-run")
	ops, err := p.Ops(ctx, 0, 1)
	require.NoError(t, err)
	require.Len(t, ops, 1)
	assert.Equal(t, "failed", ops[0].Result)
	require.NoError(t, os.Remove(ballast))
	p.restore("c1")
	assert.Equal(t, noise(1, 500_000), p.read("a"))
	h, err := p.Doctor(ctx, retcon.DoctorOptions{Deep: true})
	require.NoError(t, err)
	for _, c := range h.Checks {
		assert.True(t, c.OK || c.Name == "disk", "%+v", c)
	}
}

func TestInputReadOnlyStore(t *testing.T) {
	dir, remount := tmpfs(t, "16m")
	p := openPlace(t, filepath.Join(dir, "work"), retcon.Options{Create: true})
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a", "2")
	require.NoError(t, p.Close())
	remount(unix.MS_RDONLY)
	for _, line := range []string{"checkpoint", "restore c1 --yes", "exec touch x", "undo --yes"} {
		saysNo(t, envAt(p.dir), line, 1, "read-?only", "retcon doctor")
	}
	got := command(t, p.dir, "", "snapshots")
	assert.Equal(t, 0, got.code, "what was recorded can be looked at: %s", got.err)
	remount(0)
	p = p.reopen()
	p.restore("c1")
	assert.Equal(t, "1", p.read("a"))
}

// damaged is a workspace whose ledger can be written over, and is put back
// before it is checked.
func damaged(t *testing.T) (p *place, ledger string) {
	p = newCommitted(t)
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("a.txt", "2")
	require.NoError(t, p.Close())
	ledger = filepath.Join(p.Folder(), "ledger.db")
	good, err := os.ReadFile(ledger)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = os.Remove(ledger + "-wal") // there may be none
		_ = os.Remove(ledger + "-shm")
		require.NoError(t, os.WriteFile(ledger, good, 0o600))
	})
	_ = os.Remove(ledger + "-wal")
	_ = os.Remove(ledger + "-shm")
	return p, ledger
}

func TestInputDamagedLedger(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"noise":     func(b []byte) []byte { return []byte(noise(1, len(b))) },
		"cut":       func(b []byte) []byte { return b[:len(b)/3] },
		"text":      func([]byte) []byte { return []byte("hello\n") },
		"no header": func(b []byte) []byte { return append(make([]byte, 100), b[100:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			p, ledger := damaged(t)
			good, err := os.ReadFile(ledger)
			require.NoError(t, err)
			bad := damage(good)
			require.NoError(t, os.WriteFile(ledger, bad, 0o600))
			for _, line := range []string{"checkpoint", "restore c1 --yes", "log"} {
				saysNo(t, envAt(p.dir), line, 8, "", "retcon doctor")
			}
			got, err := os.ReadFile(ledger)
			require.NoError(t, err)
			assert.Equal(t, bad, got, "what is left is left for whoever can read it")
		})
	}
}

func TestInputNewerSchema(t *testing.T) {
	p, ledger := damaged(t)
	b, err := os.ReadFile(ledger)
	require.NoError(t, err)
	binary.BigEndian.PutUint32(b[60:], 9999) // where SQLite keeps user_version
	require.NoError(t, os.WriteFile(ledger, b, 0o600))
	for _, line := range []string{"checkpoint", "restore c1 --yes", "log"} {
		saysNo(t, envAt(p.dir), line, 1, "newer|9999", "retcon version")
	}
}

// P44 Home directory as workspace.
func TestInputHome(t *testing.T) {
	home := t.TempDir()
	git(t, home, "init", "-q")
	require.NoError(t, os.WriteFile(filepath.Join(home, "f"), nil, 0o600))
	for _, at := range []string{home, filepath.Join(home, "sub")} { // sub is the home directory, the repository holds it
		env := envAt(home)
		env.Home = at
		saysNo(t, env, "checkpoint", 4, "home directory", "retcon init --force")
		saysNo(t, env, "exec true", 4, "home directory", "retcon init --force")
	}
	assert.NoDirExists(t, filepath.Join(home, ".git", "retcon"))
	plain := t.TempDir()
	env := envAt(plain)
	env.Home = plain
	saysNo(t, env, "init", 4, "home directory", "retcon init --force")
	got := commandAt(t, env, "", "init --force")
	assert.Equal(t, 0, got.code, got.err)
}
