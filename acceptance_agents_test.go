package retcon_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/vcs"
)

// A home directory is no workspace, whoever asks: a hook there records nothing
// and is in nobody's way.
func TestP44HookInAHomeDirectory(t *testing.T) {
	home := t.TempDir()
	git(t, home, "init", "-q")
	k := &talker{place: &place{t: t, dir: home}, client: agent.Claude, session: "s1"}
	for _, at := range []string{home, filepath.Join(home, "sub")} { // sub is the home directory, the repository holds it
		env := envAt(home)
		env.Home = at
		for _, event := range []string{"SessionStart.startup", "UserPromptSubmit", "PreToolUse.Write", "PostToolUse.Write", "Stop"} {
			name, _, _ := strings.Cut(event, ".")
			got := commandAt(t, env, string(k.payload(event, nil)), "hook claude "+name)
			assert.Equal(t, said{}, got, event)
		}
		saysNo(t, env, "checkpoint", 4, "home directory", "retcon init --force")
	}
	assert.NoDirExists(t, filepath.Join(home, ".git", "retcon"))
	_, err := retcon.Open(ctx, retcon.Options{Dir: home, Home: home, Now: time.Now})
	var wide *vcs.WideRootError
	assert.True(t, errors.As(err, &wide))
}

// Files that are too large to be captured cost a hook nothing but their names,
// and the checkpoint says that it does not have them.
func TestP47LargeFilesBesideAHook(t *testing.T) {
	k := living(t, "s1")
	for _, name := range []string{"one.bin", "two.bin", "three.bin"} {
		require.NoError(t, os.WriteFile(k.path(name), nil, 0o600))
		require.NoError(t, os.Truncate(k.path(name), 1<<30)) // with nothing in it: the disk has to hold it
	}
	k.prompt("go")
	k.tool("Bash", "c1", func() { k.write("a", "2") })
	k.stop()
	list, err := k.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for _, c := range list {
		assert.True(t, c.Partial, c.Ref)
	}
}

// A hook starts no process, whether anything has changed or not. What it costs
// is measured by scripts/bench/hook.
func TestP52HookStartsNoProcess(t *testing.T) {
	faults := func() int64 { // of children that have ended and were waited for
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u))
		return u.Minflt
	}
	k := living(t, "s1")
	before := faults()
	k.prompt("go")
	k.tool("Bash", "c1", func() {})
	k.tool("Write", "c2", func() { k.write("a", "2") })
	k.tool("mcp__note__add_note", "c3", func() {})
	k.stop()
	assert.Equal(t, before, faults())
	require.NoError(t, exec.Command("true").Run())
	assert.Greater(t, faults(), before, "this is how one would be seen")
}

// The directory of an event may be anywhere below the root: the session's
// workspace, and what it captures, is the whole.
func TestP66SessionKeepsItsRoot(t *testing.T) {
	k := living(t, "s1")
	require.NoError(t, os.MkdirAll(k.path("sub/deep"), 0o755))
	env := envAt(k.dir)
	env.Now = func() time.Time { return time.Now() }
	hook := func(name string, change fields) {
		event, _, _ := strings.Cut(name, ".")
		env.Dir = filepath.Dir(k.dir) // where the hook's process is says nothing
		assert.Equal(t, said{}, commandAt(t, env, string(k.payload(name, change)), "hook claude "+event), name)
	}
	hook("SessionStart.startup", nil)
	hook("UserPromptSubmit", fields{"prompt_id": "t1", "cwd": k.path("sub/deep")})
	hook("PreToolUse.Bash", fields{"tool_use_id": "c1", "cwd": k.path("sub")})
	k.write("outside-of-sub", "1")
	hook("PostToolUse.Bash", fields{"tool_use_id": "c1", "cwd": k.path("sub")})
	hook("PreToolUse.Write", fields{"tool_use_id": "c2", "cwd": k.path("sub")})
	k.write("x", "1")
	hook("PostToolUse.Write", fields{"tool_use_id": "c2", "cwd": k.path("sub")})
	hook("Stop", fields{"prompt_id": "t1", "cwd": k.path("sub")})
	runs, err := k.Runs(ctx, 0)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	assert.Equal(t, []string{"prompt-1/Bash[c1] ok +outside-of-sub", "prompt-1/Write[c2] ok +x"}, k.windows())
}

// A session that goes on in another worktree is told so; what it did before is
// where it was done, and a rewind is about that.
func TestP72SessionResumedInAnotherWorktree(t *testing.T) {
	k := living(t, "s1")
	git(t, k.dir, "add", ".")
	git(t, k.dir, "commit", "-qm", "a")
	aside := filepath.Join(t.TempDir(), "aside")
	git(t, k.dir, "worktree", "add", "-q", aside)
	p := openPlace(t, aside, retcon.Options{})
	there := newTalker(p, agent.Claude, "s1")
	there.process = 0
	there.prompt("go")
	there.tool("Write", "c1", func() { p.write("of-the-session", "1") })
	there.stop()
	assert.Empty(t, there.hook("SessionStart.resume", nil), "where it was")

	told := k.hook("SessionStart.resume", nil)
	assert.Contains(t, told, `"additionalContext"`)
	assert.Contains(t, told, aside)
	assert.Contains(t, told, k.dir)
	before := k.read("a")
	_, err := p.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	assert.NoFileExists(t, p.path("of-the-session"))
	assert.Equal(t, before, k.read("a"))

	require.NoError(t, os.RemoveAll(aside))
	assert.Contains(t, k.hook("SessionStart.resume", nil), "not there any more")
}

// Each root of an editor's window is a workspace of its own. A session is
// recorded in the one that its events name first; moving it leaves the other
// alone.
func TestP76SeveralRoots(t *testing.T) {
	one, two := newRepo(t), newRepo(t)
	for _, p := range []*place{one, two} {
		p.write("a", "1")
	}
	env := envAt(t.TempDir())
	hook := func(name string, change fields) {
		k := &talker{place: one, client: agent.Cursor, session: "s1"}
		all := fields{"conversation_id": "s1", "workspace_roots": []string{filepath.Join(t.TempDir(), "no-workspace"), two.dir, one.dir}, "cwd": ""}
		for key, v := range change {
			all[key] = v
		}
		assert.Equal(t, said{}, commandAt(t, env, string(k.payload(name, all)), "hook cursor "+name), name)
	}
	hook("sessionStart", nil)
	hook("beforeSubmitPrompt", nil)
	hook("preToolUse", nil)
	two.write("a", "2")
	one.write("a", "2")
	hook("postToolUse", nil)
	hook("stop", nil)
	runs, err := one.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Empty(t, runs)
	runs, err = two.Runs(ctx, 0)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	_, err = two.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	assert.Equal(t, "1", two.read("a"))
	assert.Equal(t, "2", one.read("a"))
}
