package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// installed builds both programs beside each other.
func installed(t *testing.T) (bin string) {
	t.Helper()
	if testing.Short() {
		t.Skip("building both programs takes longer than a short run may")
	}
	bin = t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "../retcon", ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return bin
}

// workplace is a repository in which an agent works.
type workplace struct {
	*testing.T
	bin, dir, home string
}

func (p *workplace) command(name string, in []byte, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(p.bin, name), args...)
	c.Dir, c.Env, c.Stdin = p.dir, []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH")}, bytes.NewReader(in)
	return c
}

func (p *workplace) retcon(args ...string) string {
	p.Helper()
	out, err := p.command("retcon", nil, args...).CombinedOutput()
	require.NoError(p, err, string(out))
	return string(out)
}

// hook is one call of the agent's, which succeeds whatever happens.
func (p *workplace) hook(event string, more map[string]any) string {
	p.Helper()
	payload := map[string]any{"session_id": "s1", "cwd": p.dir, "hook_event_name": event}
	for name, v := range more {
		payload[name] = v
	}
	text, err := json.Marshal(payload)
	require.NoError(p, err)
	c := p.command("retcon-hook", text, "hook", "claude", event)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	require.NoError(p, c.Run(), errs.String())
	assert.Empty(p, errs.String())
	return out.String()
}

// turn is a prompt with a tool that writes a file.
func (p *workplace) turn(name, filler string) {
	p.Helper()
	p.hook("UserPromptSubmit", map[string]any{"prompt": name, "prompt_id": name})
	call := map[string]any{"tool_name": "Write", "tool_use_id": name, "tool_input": map[string]string{"content": filler}}
	p.hook("PreToolUse", call)
	require.NoError(p, os.WriteFile(filepath.Join(p.dir, name), nil, 0o600))
	p.hook("PostToolUse", call)
	p.hook("Stop", map[string]any{"prompt_id": name})
}

func TestRetconHook(t *testing.T) {
	p := &workplace{T: t, bin: installed(t), dir: t.TempDir(), home: t.TempDir()}
	out, err := exec.Command("git", "init", "-q", p.dir).CombinedOutput()
	require.NoError(t, err, string(out))

	p.turn("alone", strings.Repeat("long ", 1<<20)) // more than a pipe holds
	assert.Contains(t, p.retcon("timeline", "last"), "alone")

	watch := p.command("retcon", nil, "watch")
	require.NoError(t, watch.Start())
	sockets := func() []string {
		found, err := filepath.Glob(filepath.Join(p.dir, ".git", "retcon", "watch", "*.sock"))
		require.NoError(t, err)
		return found
	}
	for range 600 {
		if len(sockets()) > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.Len(t, sockets(), 1)
	require.NoError(t, os.Rename(filepath.Join(p.bin, "retcon"), filepath.Join(p.bin, "aside")))
	p.turn("watched", "short") // whoever records it, it is not the whole program
	require.NoError(t, os.Rename(filepath.Join(p.bin, "aside"), filepath.Join(p.bin, "retcon")))
	require.NoError(t, watch.Process.Signal(os.Interrupt))
	require.NoError(t, watch.Wait())
	assert.Empty(t, sockets())
	told := p.retcon("timeline", "last")
	assert.Contains(t, told, "watched")
	p.retcon("doctor")

	p.retcon("config", "set", "disabled", "true")
	p.turn("disabled", "short")
	p.retcon("config", "unset", "disabled")
	assert.NotContains(t, p.retcon("timeline", "last"), "disabled")
	assert.NotContains(t, p.retcon("snapshots"), "disabled")

	watch = p.command("retcon", nil, "watch")
	require.NoError(t, watch.Start())
	for range 600 {
		if len(sockets()) > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.NoError(t, watch.Process.Kill())
	_ = watch.Wait() // it was killed
	p.turn("after", "short")
	assert.Contains(t, p.retcon("timeline", "last"), "after")
}

// Without the whole program beside it, and whatever it is called with, a hook is
// silent and succeeds.
func TestRetconHookIsNeverInTheWay(t *testing.T) {
	if testing.Short() {
		t.Skip("building both programs takes longer than a short run may")
	}
	bin := t.TempDir()
	out, err := exec.Command("go", "build", "-o", bin+string(filepath.Separator), ".").CombinedOutput()
	require.NoError(t, err, string(out))
	for _, args := range [][]string{nil, {"hook"}, {"hook", "claude", "Stop"}, {"--help"}, {"hook", "nobody", "x"}} {
		for _, in := range []string{"", "{", `{"cwd":"/"}`, "\x00\xff"} {
			c := exec.Command(filepath.Join(bin, "retcon-hook"), args...)
			c.Stdin = strings.NewReader(in)
			out, err := c.CombinedOutput()
			assert.NoError(t, err, "%v %q", args, in)
			assert.Empty(t, string(out), "%v %q", args, in)
		}
	}
}
