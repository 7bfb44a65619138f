package retcon_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// watching is a conversation whose hooks a process that watches takes.
type watching struct {
	*talker
	calls chan retcon.HookCall
	fails atomic.Bool // the clock panics, once
	stop  func()
}

func newWatching(t *testing.T) *watching {
	s := &watching{talker: living(t, "s1"), calls: make(chan retcon.HookCall)}
	w, err := retcon.Open(ctx, retcon.Options{Dir: s.dir, Now: func() time.Time {
		if s.fails.Swap(false) {
			panic("BUG: no clock")
		}
		return time.Now()
	}})
	require.NoError(t, err)
	watch, cancel := context.WithCancel(ctx)
	first, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		ended <- w.Watch(watch, retcon.WatchOptions{Debounce: time.Hour, MaxDelay: time.Hour, Hooks: s.calls,
			On: func(*retcon.Checkpoint) { first <- struct{}{} }})
	}()
	<-first
	s.stop = func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, w.Close())
	}
	return s
}

// hand gives a call to the process that watches.
func (s *watching) hand(name string, change fields) (answer string, taken bool) {
	s.t.Helper()
	event, _, _ := strings.Cut(name, ".")
	done := make(chan struct{})
	s.calls <- retcon.HookCall{
		HookOptions: retcon.HookOptions{Agent: s.client, Event: event, Payload: s.payload(name, change), Client: os.Getpid()},
		Take:        func() bool { return change["gone"] == nil },
		Done:        func(a []byte, t bool) { answer, taken = string(a), t; close(done) },
	}
	<-done
	return answer, taken
}

func TestWatchTakesHooks(t *testing.T) {
	s := newWatching(t)
	take := func(name string, change fields) {
		t.Helper()
		answer, taken := s.hand(name, change)
		assert.True(t, taken, name)
		assert.Empty(t, answer, name)
	}
	take("UserPromptSubmit", fields{"prompt": "go", "prompt_id": "t1"})
	take("PreToolUse.Bash", fields{"tool_use_id": "c1"})
	s.write("b", "1")
	take("PostToolUse.Bash", fields{"tool_use_id": "c1"})

	s.fails.Store(true)
	take("PreToolUse.Bash", fields{"tool_use_id": "broken"}) // it was begun: nobody else must do it again
	take("PreToolUse.Bash", fields{"tool_use_id": "c2"})
	_, taken := s.hand("PostToolUse.Bash", fields{"tool_use_id": "c2", "gone": true})
	assert.False(t, taken, "whoever asked has gone another way")
	_, taken = s.hand("PostToolUse.Bash", fields{"tool_use_id": "c2", "cwd": t.TempDir()})
	assert.False(t, taken, "of another place")
	_, taken = s.hand("PostToolUse.Bash", fields{"tool_use_id": "c2", "cwd": ""})
	assert.False(t, taken, "of no place")
	take("CwdChanged", fields{"cwd": t.TempDir()}) // of which nothing is kept
	take("Stop", fields{"prompt_id": "t1"})
	s.stop()
	assert.Equal(t, []string{"prompt-1/Bash[c1] ok +b", "prompt-1/Bash[c2] interrupted"}, s.windows())
	missed, err := os.ReadFile(filepath.Join(s.Folder(), "log", "missed"))
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(missed), "\n"), string(missed))
	assert.Contains(t, string(missed), "BUG: no clock")
}

// What the watcher is not told of costs nothing to find out, and is not seen: a
// write through a hard link from elsewhere. Hooks that record for themselves do
// see it.
func TestHooksThatAreTakenDoNotScan(t *testing.T) {
	s := newWatching(t)
	elsewhere := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Link(s.path("a"), elsewhere))
	s.hand("UserPromptSubmit", fields{"prompt": "go", "prompt_id": "t1"})
	s.hand("PreToolUse.Bash", fields{"tool_use_id": "c1"})
	require.NoError(t, os.WriteFile(elsewhere, []byte("by the back door"), 0o644))
	s.hand("PostToolUse.Bash", fields{"tool_use_id": "c1"})
	s.stop()
	assert.Equal(t, []string{"prompt-1/Bash[c1] ok"}, s.windows())
	s.process = os.Getpid()
	s.hook("PreToolUse.Bash", fields{"tool_use_id": "c2"})
	require.NoError(t, os.WriteFile(elsewhere, []byte("once more by the back door"), 0o644))
	s.hook("PostToolUse.Bash", fields{"tool_use_id": "c2"})
	assert.Equal(t, []string{"prompt-1/Bash[c1] ok", "prompt-1/Bash[c2] ok ~a"}, s.windows())
}

// The agent is told what it would be told by a process of its own.
func TestHooksThatAreTakenAreAnswered(t *testing.T) {
	k := living(t, "s1")
	k.prompt("first")
	k.tool("Write", "c1", func() { k.write("b", "1") })
	k.hook("Stop", fields{"prompt_id": k.turn()})
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	watch, cancel := context.WithCancel(ctx)
	calls, ended := make(chan retcon.HookCall), make(chan error, 1)
	go func() { ended <- k.Watch(watch, retcon.WatchOptions{Hooks: calls}) }()
	answer := make(chan string, 1)
	calls <- retcon.HookCall{
		HookOptions: retcon.HookOptions{Agent: agent.Claude, Event: "UserPromptSubmit", Client: os.Getpid(),
			Payload: k.payload("UserPromptSubmit", fields{"prompt": "again", "prompt_id": "t2"})},
		Take: func() bool { return true },
		Done: func(a []byte, _ bool) { answer <- string(a) },
	}
	assert.Contains(t, <-answer, "rewind r1@0: 1 file (b)")
	cancel()
	require.NoError(t, <-ended)
}
