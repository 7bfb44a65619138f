package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Run runs the command and waits for its end. An end of any kind is a Result;
// the error is a *StartError, and nothing has run then.
//
// When the context ends or Timeout is over, the whole session of the command
// gets SIGTERM, and SIGKILL after Grace if somebody is left.
func Run(ctx context.Context, c Command) (Result, error) {
	p, err := c.start(ctx)
	if err != nil {
		return Result{}, err
	}
	p.wait(ctx)
	p.drain()
	p.settle()
	return p.result(), nil
}

// process is a command that runs.
type process struct {
	Command
	cmd     *exec.Cmd
	session session
	ended   chan struct{} // closed when the command itself has ended

	in             *os.File // nil: there is no input
	out, err       stream
	outEnd, errEnd *os.File // where they are read

	timedOut, cancelled bool
	left                []int
	open                bool
}

func (c Command) start(ctx context.Context) (*process, error) {
	c = c.defaults()
	cmd, err := c.prepare()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &StartError{Name: cmd.Args[0], Err: err}
	}
	p := &process{Command: c, cmd: cmd, ended: make(chan struct{})}
	theirs, err := p.pipes()
	if err == nil {
		err = start(cmd)
	}
	for _, f := range theirs {
		_ = f.Close() // the command has its own
	}
	if err != nil {
		p.close()
		return nil, &StartError{Name: cmd.Args[0], NotFound: errors.Is(err, os.ErrNotExist), Err: err}
	}
	p.session = session(cmd.Process.Pid)
	go p.out.read(p.outEnd)
	go p.err.read(p.errEnd)
	if p.in != nil {
		go feed(p.in, c.Stdin)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in the state
		close(p.ended)
	}()
	return p, nil
}

func (c Command) defaults() Command {
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	if c.Drain == 0 {
		c.Drain = time.Second
	}
	if c.Max == 0 {
		c.Max = 1 << 20
	}
	return c
}

// pipes connects the streams. It returns the ends that are the command's.
func (p *process) pipes() (theirs []*os.File, err error) {
	pipe := func(ours, his **os.File, reading bool) {
		if err != nil {
			return
		}
		var r, w *os.File
		if r, w, err = os.Pipe(); err != nil {
			return
		}
		if *ours, *his = r, w; !reading {
			*ours, *his = w, r
		}
		theirs = append(theirs, *his)
	}
	var in, out, errs *os.File
	if len(p.Stdin) > 0 {
		pipe(&p.in, &in, false)
	}
	pipe(&p.outEnd, &out, true)
	pipe(&p.errEnd, &errs, true)
	if in != nil {
		p.cmd.Stdin = in
	}
	p.cmd.Stdout, p.cmd.Stderr = out, errs
	turn := new(sync.Mutex)
	p.out = stream{name: Stdout, max: p.Max, line: p.OnLine, turn: turn, done: make(chan struct{})}
	p.err = stream{name: Stderr, max: p.Max, line: p.OnLine, turn: turn, done: make(chan struct{})}
	return theirs, err
}

// wait waits for the command, and stops it when it is time to.
func (p *process) wait(ctx context.Context) {
	var late <-chan time.Time
	if p.Timeout > 0 {
		timer := time.NewTimer(p.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-p.ended:
		return
	case <-late:
		p.timedOut = true
	case <-ctx.Done():
		p.cancelled = true
	}
	p.stop()
}

// stop ends the session: with SIGTERM, and SIGKILL for who is still there after
// Grace.
func (p *process) stop() {
	p.session.signal(syscall.SIGTERM, syscall.SIGCONT) // who is stopped would not notice
	grace := time.NewTimer(p.Grace)
	defer grace.Stop()
	if !p.gone(grace.C) {
		p.session.signal(syscall.SIGKILL)
	}
	<-p.ended
}

// gone waits until the command has ended and nobody of its session is left, or
// until it is time.
func (p *process) gone(until <-chan time.Time) bool {
	select {
	case <-p.ended:
	case <-until:
		return false
	}
	return p.session.empty(until)
}

// drain reads the streams to their ends. Somebody who was left behind may hold
// one for ever, so there is a limit.
func (p *process) drain() {
	limit := time.NewTimer(p.Drain)
	defer limit.Stop()
	for _, s := range []*stream{&p.out, &p.err} {
		select {
		case <-s.done:
		case <-limit.C:
			p.open = true
		}
		if p.open {
			break
		}
	}
	p.close()
	<-p.out.done
	<-p.err.done
}

// close closes our ends of the streams, which ends what reads and writes them.
func (p *process) close() {
	for _, f := range []*os.File{p.in, p.outEnd, p.errEnd} {
		if f != nil {
			_ = f.Close() // the feeder may have been first
		}
	}
}

// settling is how long a process may take between closing its streams and its
// end before it counts as left behind.
const settling = 100 * time.Millisecond

// settle finds who is left. To look through all processes is slow, so it is not
// done when nothing speaks for it: a script that moves a process to a group of
// its own, away from the streams as well, leaves no trace.
func (p *process) settle() {
	if p.session.quiet() && !p.open {
		return
	}
	limit := time.NewTimer(settling)
	defer limit.Stop()
	if p.session.empty(limit.C) {
		return
	}
	for _, left := range p.session.members() {
		p.left = append(p.left, left.pid)
	}
	slices.Sort(p.left)
}

func (p *process) result() Result {
	r := Result{
		Exit:       p.cmd.ProcessState.ExitCode(),
		StdoutSize: p.out.size,
		StderrSize: p.err.size,
		TimedOut:   p.timedOut,
		Cancelled:  p.cancelled,
		Left:       p.left,
		Open:       p.open,
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.Signal = signalName(status.Signal())
	}
	var outCut, errCut bool
	r.Stdout, r.StdoutHash, outCut = p.out.kept()
	r.Stderr, r.StderrHash, errCut = p.err.kept()
	r.Truncated = outCut || errCut
	return r
}

// start starts cmd. A program that was just written may still be open for
// writing in a process that is being made at this moment; that passes.
func start(cmd *exec.Cmd) error {
	for wait := time.Millisecond; ; wait *= 2 {
		try := *cmd
		err := try.Start()
		if errors.Is(err, syscall.ETXTBSY) && wait < 200*time.Millisecond {
			time.Sleep(wait)
			continue
		}
		*cmd = try
		return err
	}
}
