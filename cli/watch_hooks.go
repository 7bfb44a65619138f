package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/cli/handover"
)

// hookServer takes calls of hooks for the process that watches a worktree. Of
// several processes that watch the same one, the first has it.
type hookServer struct {
	c      *console
	config string // the settings' file
	text   []byte // what it held when the workspace was opened
	calls  chan retcon.HookCall
	ctx    context.Context
}

// takeHooks begins to listen. Where that is not possible there are no calls,
// and hooks record for themselves.
func (c *console) takeHooks(ctx context.Context, w *retcon.Workspace) (calls <-chan retcon.HookCall, stop func()) {
	socket := handover.Place{Root: w.Root(), Folder: w.Folder()}.Socket()
	l, err := listen(socket)
	if err != nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &hookServer{c: c, config: filepath.Join(w.Folder(), configName), calls: make(chan retcon.HookCall), ctx: ctx}
	s.text, _ = os.ReadFile(s.config) // none is none
	var going sync.WaitGroup
	going.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed; or hooks go the long way from here on
			}
			going.Go(func() { s.serve(conn) })
		}
	})
	return s.calls, func() {
		cancel()
		_ = os.Remove(socket)
		_ = l.Close()
		going.Wait()
	}
}

// listen opens a socket, also in the place of one that a process has left when
// it was killed.
func listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, err
	}
	path, done, ok := handover.Address(socket)
	if !ok {
		return nil, errors.New("the path of the socket is too long for this system")
	}
	defer done()
	open := func() (net.Listener, error) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil {
			l.SetUnlinkOnClose(false) // by then this name of it may be gone
		}
		return l, err
	}
	l, err := open()
	if !errors.Is(err, unix.EADDRINUSE) {
		return l, err
	}
	if conn, dialed := net.Dial("unix", path); dialed == nil {
		conn.Close()
		return nil, err // somebody listens
	}
	if err := os.Remove(socket); err != nil {
		return nil, err
	}
	return open()
}

// hookPatience is how long a hook may take to send its call.
const hookPatience = 5 * time.Second

// serve takes one call.
func (s *hookServer) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetReadDeadline(s.c.Now().Add(hookPatience))
	call, err := handover.ReadCall(bufio.NewReader(conn))
	if err != nil || !s.fits(call) {
		_, _ = conn.Write([]byte{handover.Refused})
		return
	}
	done := make(chan struct{})
	h := retcon.HookCall{
		HookOptions: retcon.HookOptions{Agent: call.Agent, Event: call.Event, Payload: call.Payload, Client: client(call.Parent)},
		Take: func() bool {
			_, err := conn.Write([]byte{handover.Taken})
			return err == nil
		},
		Done: func(answer []byte, taken bool) {
			defer close(done)
			if !taken {
				_, _ = conn.Write([]byte{handover.Refused})
				return
			}
			_, _ = conn.Write(handover.Answered(answer)) // the agent has gone: nobody to tell
		},
	}
	select {
	case s.calls <- h:
		<-done
	case <-s.ctx.Done():
		_, _ = conn.Write([]byte{handover.Refused})
	}
}

// fits tells whether a hook has the surroundings of this process, and the
// settings are those it began with.
func (s *hookServer) fits(call handover.Call) bool {
	text, _ := os.ReadFile(s.config) // none is none
	return call.Home == s.c.Home && call.XDGConfigHome == s.c.Getenv("XDG_CONFIG_HOME") && bytes.Equal(text, s.text)
}
