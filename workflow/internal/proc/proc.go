// Package proc runs one command for a task, in a session of its own, and makes
// sure that it ends.
//
// What the command prints is kept up to a limit and hashed beyond it. On time
// out or cancellation everything the command started is told to stop, then
// killed. What it leaves running behind is neither waited for nor hidden: it is
// in the [Result].
//
// The package does not know what a task is, reads no environment of its own,
// and judges no exit status.
package proc

import (
	"fmt"
	"time"
)

// Command is what to run. Of Argv and Shell one is given; the zero value of
// each other field is fine.
type Command struct {
	Argv  []string // the program, looked up in the PATH of Env, and its arguments
	Shell string   // or a script for /bin/sh -c
	Dir   string   // where it runs
	Env   []string // KEY=value, all there is: nothing is inherited
	Stdin []byte   // empty: nothing to read

	Timeout time.Duration // after which it is stopped; 0: never
	Grace   time.Duration // between SIGTERM and SIGKILL; 0: 5 s
	Drain   time.Duration // how long to read on after its end, while others hold its streams; 0: 1 s

	Max int64 // bytes kept of each stream, from its beginning; 0: 1 MiB

	// OnLine is told each line of both streams as it comes, whether it is kept
	// or not, without its end; a long one comes in pieces. It is called by one
	// goroutine at a time, and the command waits for it. The line is only
	// valid during the call.
	OnLine func(stream string, line []byte)
}

// The names of the streams.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Result is how a command ended.
type Result struct {
	Exit   int    // its status; -1 when a signal ended it
	Signal string // SIGKILL, or ""

	Stdout, Stderr         []byte   // the first bytes, up to Max, cut between characters
	StdoutSize, StderrSize int64    // of all that was printed
	StdoutHash, StderrHash [32]byte // SHA-256 of all that was printed, of a stream that is cut
	Truncated              bool     // a stream is cut

	TimedOut  bool // it was stopped after Timeout
	Cancelled bool // it was stopped because the context ended

	// Left are the processes of its session that were still running at the
	// end, in order. They are not stopped, unless the command was.
	Left []int

	// Open says that reading stopped while somebody still held a stream, so
	// that more may have been printed later.
	Open bool
}

// OK reports whether the command ran to its end and returned 0.
func (r Result) OK() bool { return r.Exit == 0 && r.Signal == "" && !r.TimedOut && !r.Cancelled }

// StartError says that a command could not be started: nothing has run.
type StartError struct {
	Name     string // the program
	NotFound bool   // there is no such program
	Err      error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Name, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }
