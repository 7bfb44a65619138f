package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/retcon-dev/retcon"
)

// Options of New. Open and Now are needed.
type Options struct {
	// Open opens the workspace for one call, on behalf of actor. The server
	// closes it. Calls come from several goroutines at once.
	Open func(ctx context.Context, actor string) (*retcon.Workspace, error)
	Now  func() time.Time

	Actor   string       // on whose behalf all calls are made; what the client says its name is when empty
	Allow   []Capability // what callers may do; nil for Usual
	Version string       // of this program
}

// Server answers calls about one workspace.
type Server struct {
	opt  Options
	turn turn
}

// New makes a server of the tools that o.Allow permits.
func New(o Options) *Server {
	if o.Open == nil || o.Now == nil {
		panic("BUG: Options.Open or Options.Now is not set")
	}
	if o.Allow == nil {
		o.Allow = Usual()
	}
	return &Server{opt: o}
}

// offer is what is offered to clients for as long as they can be answered.
type offer struct {
	*Server
	sdk   *sdk.Server
	going context.Context       // when it is done, so is every call
	needs map[string]Capability // by tool, the ones that are not offered too
}

func (s *Server) offer(going context.Context) *offer {
	o := &offer{Server: s, going: going, needs: map[string]Capability{}}
	o.sdk = sdk.NewServer(&sdk.Implementation{Name: "retcon", Title: "retcon, a time machine for coding agents", Version: s.opt.Version},
		&sdk.ServerOptions{Instructions: instructions})
	o.sdk.AddReceivingMiddleware(o.answers)
	o.readTools()
	o.travelTools()
	o.moveTools()
	o.effectTools()
	o.runTools()
	return o
}

const instructions = `retcon records every run of an agent or workflow: its tasks, frame by frame, and the worktree with them.
A place in history is RUN@POINT: a run is an id (r7), a name or "last"; a point is a frame (5, -1 one back), a task (plan, plan#2 its second attempt), a checkpoint (c17), a label (~ready) or start.
list_runs and get_timeline show what happened and where one can go back to.
A tool that moves something does it in two calls: the first returns the plan with its plan_id and changes nothing; the second, with the same arguments, that plan_id and confirm: true, carries it out. undo_operation takes it back.`

// Serve answers one client that writes to in and reads from out, until it hangs
// up or ctx is done. What still goes on then is interrupted, and waited for.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	going, hangUp := context.WithCancel(ctx)
	defer hangUp()
	err := s.offer(going).sdk.Run(ctx, &sdk.IOTransport{Reader: &line{in, hangUp}, Writer: unclosed{out}})
	hangUp()
	s.turn.wait()
	if ctx.Err() != nil || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) {
		return nil // it has hung up, or was sent away
	}
	return err
}

// line is a stream that tells when it ends. It belongs to somebody else.
type line struct {
	io.Reader
	ended func()
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if err != nil {
		l.ended()
	}
	return n, err
}

func (*line) Close() error { return nil }

// unclosed is a stream that belongs to somebody else.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// actor is on whose behalf a call is made. A client can't pass for the person
// at the terminal, who is not limited.
func (s *Server) actor(req *sdk.CallToolRequest) string {
	if s.opt.Actor != "" {
		return s.opt.Actor
	}
	name := ""
	if p := req.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
		name = p.ClientInfo.Name
	}
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name))
	if runes := []rune(name); len(runes) > longestName {
		name = string(runes[:longestName])
	}
	if name == "" || strings.EqualFold(name, retcon.User) {
		return Anonymous
	}
	return name
}

// Anonymous is the actor of a client that does not say its name.
const Anonymous = "agent"

const longestName = 64

// answers stands around every call: it refuses what is not permitted, and is the
// one place where an error becomes an answer.
func (o *offer) answers(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		call, ok := req.(*sdk.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		defer func() {
			if p := recover(); p != nil { // it would end the process, and every other call with it
				res, err = refused(&brokenError{fmt.Sprint(p)}), nil
			}
		}()
		if err := o.may(o.needs[call.Params.Name]); err != nil {
			return refused(err), nil
		}
		res, err = next(ctx, method, req)
		if told, ok := res.(*sdk.CallToolResult); ok && err == nil {
			return answered(told), nil
		}
		return res, err
	}
}
