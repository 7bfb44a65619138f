package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/cli/handover"
)

// watchedPlace is a folder with a store, whose hooks a process that watches takes.
type watchedPlace struct {
	*testing.T
	dir   string
	w     *retcon.Workspace
	place handover.Place
	home  string
}

func newWatchedPlace(t *testing.T) *watchedPlace {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w, err := retcon.Open(t.Context(), retcon.Options{Dir: dir, Create: true, Now: time.Now})
	require.NoError(t, err)
	_, err = w.Checkpoint(t.Context(), retcon.CheckpointOptions{})
	require.NoError(t, err)
	p := &watchedPlace{T: t, dir: dir, w: w, place: handover.Place{Root: w.Root(), Folder: w.Folder()}, home: t.TempDir()}
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return p
}

// serve takes hooks and hands them to do, until the test ends or stop is called.
func (p *watchedPlace) serve(do func(retcon.HookCall)) (stop func()) {
	p.Helper()
	c := &console{Env: Env{Home: p.home, Now: time.Now}.orNothing()}
	ctx, cancel := context.WithCancel(context.Background())
	calls, last := c.takeHooks(ctx, p.w)
	if calls == nil {
		cancel()
		return nil
	}
	go func() {
		for {
			select {
			case call := <-calls:
				do(call)
			case <-ctx.Done():
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		last()
	})
	p.Cleanup(stop)
	return stop
}

// hook is what an agent's process does: what it is told, and what it would have
// the whole program do.
func (p *watchedPlace) hook(home string) (answer string, long bool) {
	p.Helper()
	payload, err := json.Marshal(map[string]string{"session_id": "s", "cwd": p.dir, "hook_event_name": "Stop"})
	require.NoError(p, err)
	var out bytes.Buffer
	err = handover.Hook{Args: []string{"hook", "claude", "Stop"}, Parent: os.Getpid(), In: bytes.NewReader(payload), Out: &out,
		Getenv: func(name string) string { return map[string]string{"HOME": home}[name] },
		Long:   func([]byte) error { long = true; return nil }}.Run()
	require.NoError(p, err)
	return out.String(), long
}

func answering(call retcon.HookCall) {
	taken := call.Take()
	call.Done([]byte("told "+call.Agent+" "+call.Event), taken)
}

func TestWatchServesHooks(t *testing.T) {
	p := newWatchedPlace(t)
	stop := p.serve(answering)
	answer, long := p.hook(p.home)
	assert.False(t, long)
	assert.Equal(t, "told claude Stop", answer)
	_, long = p.hook("/other")
	assert.True(t, long, "another home has other settings")

	assert.Nil(t, p.serve(answering), "the first has it")
	answer, _ = p.hook(p.home)
	assert.Equal(t, "told claude Stop", answer, "and keeps it")

	require.NoError(t, os.WriteFile(filepath.Join(p.w.Folder(), configName), []byte("max_file = '1MiB'\n"), 0o600))
	_, long = p.hook(p.home)
	assert.True(t, long, "settings that came later are not in force here")
	stop()
	_, err := os.Lstat(p.place.Socket())
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, long = p.hook(p.home)
	assert.True(t, long)
	p.serve(answering)
	_, long = p.hook(p.home)
	assert.False(t, long)
}

func TestWatchReplacesASocketThatWasLeft(t *testing.T) {
	p := newWatchedPlace(t)
	socket := p.place.Socket()
	require.NoError(t, os.MkdirAll(filepath.Dir(socket), 0o700))
	path, done, ok := handover.Address(socket)
	require.True(t, ok)
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close()) // as a killed process leaves it
	require.NotNil(t, p.serve(answering))
	_, long := p.hook(p.home)
	assert.False(t, long)
}

// What is not taken goes the long way, and what others send does no harm.
func TestWatchRefusesHooks(t *testing.T) {
	p := newWatchedPlace(t)
	p.serve(func(call retcon.HookCall) { call.Done(nil, false) })
	_, long := p.hook(p.home)
	assert.True(t, long)
	path, done, ok := handover.Address(p.place.Socket())
	require.True(t, ok)
	defer done()
	for _, text := range []string{"", "GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 100)} {
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	_, long = p.hook(p.home)
	assert.True(t, long)
}

// While the process that watches stops, nothing is taken and nobody waits.
func TestWatchEndsWithHooksWaiting(t *testing.T) {
	p := newWatchedPlace(t)
	busy, release := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(busy) })
	stop := p.serve(func(call retcon.HookCall) { begun(); <-release; call.Done(nil, call.Take()) }) // the second call comes too, when the first is done
	first := make(chan bool)
	go func() { _, long := p.hook(p.home); first <- long }()
	<-busy
	ended := make(chan bool)
	go func() { _, long := p.hook(p.home); ended <- long }()
	assert.True(t, <-ended, "nobody has taken it in time")
	close(release)
	<-first
	stop()
}
