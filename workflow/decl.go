package workflow

import (
	"errors"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// Kinds of tasks.
const (
	KindShell   = "sh"
	KindAgent   = "agent"
	KindHTTP    = "http"
	KindPure    = "pure"
	KindMerge   = "merge"
	KindSignal  = "signal"
	KindTimer   = "timer"
	KindRace    = "race"
	KindMark    = "checkpoint"
	KindNow     = "now"
	KindUUID    = "uuid4"
	KindRandom  = "randint"
	KindChoice  = "choice"
	KindWaitRun = "wait_run"
)

// Fx says what a task has to do with the files of its worktree.
type Fx string

const (
	FxPure     Fx = "pure"     // nothing
	FxRead     Fx = "read"     // it reads them
	FxWrite    Fx = "write"    // it reads and changes them
	FxExternal Fx = "external" // it reads them, and acts outside the worktree
)

func (f Fx) reads() bool  { return f == FxRead || f == FxWrite || f == FxExternal }
func (f Fx) writes() bool { return f == FxWrite }

// Decl is a task as a body declares it. Kind and Name are needed.
type Decl struct {
	Kind string
	Name string
	Key  string // makes the id readable and independent of the arguments
	Args value.Dict
	Fx   Fx

	// None of the following is part of an identity: they say how often and how
	// long something is tried, not what it is.
	Retry    Retry
	Timeout  time.Duration
	Cache    time.Duration // take a successful result of any run that is not older
	Once     string        // once in a lineage, under this label
	Fallback *value.V      // the outcome when every attempt failed
	At       string        // "build.star:12:5", for messages

	// Undo says how what the task does outside is undone. With it, or with
	// FxExternal, the task is one effect, whose command is called with its key.
	Undo *sideeffect.Compensation

	run runner
}

// compensated tells that the declaration says how the task is undone.
func (d *Decl) compensated() bool { return d.Undo != nil && !d.Undo.IsZero() }

// Retry says how often a task is tried, and how long to wait in between.
type Retry struct {
	Max       int           // attempts in all; 1 when zero
	Delay     time.Duration // before the second
	Backoff   float64       // factor from one delay to the next; 1 when zero
	KeepFiles bool          // begin a retry with the files the failed attempt left
}

func (r Retry) attempts() int { return max(1, r.Max) }

// wait is how long to wait before an attempt, which is counted from 1. A delay
// does not grow beyond ten minutes.
func (r Retry) wait(attempt int) time.Duration {
	d := float64(r.Delay)
	for range attempt - 2 {
		if r.Backoff > 0 {
			d *= r.Backoff
		}
	}
	return min(time.Duration(d), max(r.Delay, 10*time.Minute))
}

// scheme is the version of what digests are made of.
const scheme = 1

// canonical appends what the declaration digest covers: a list, so that it can be
// read back.
func (d *Decl) canonical(b []byte) []byte {
	b = value.AppendText(value.AppendList(b, 8), "retcon.decl")
	b = value.AppendText(value.AppendInt(b, scheme), d.Kind, d.Name, d.Key, string(d.Fx), d.Once)
	return value.AppendDict(b, d.Args)
}

// kept tells that the declaration is stored as a content, to be shown and
// compared. Of what is cheap to make again only the digest is.
func (d *Decl) kept() bool {
	switch d.Kind {
	case KindPure, KindNow, KindUUID, KindRandom, KindChoice, KindTimer, KindMark, KindRace:
		return false
	}
	return true
}

// declaration is what a task was declared with, read from its content.
type declaration struct {
	Kind, Name, Key, Fx, Once string
	Args                      value.Dict
}

func decodeDeclared(b []byte) (declaration, error) {
	v, err := value.Decode(b)
	list, _ := v.([]value.V)
	if err != nil || len(list) != 8 {
		return declaration{}, errors.Join(errors.New("not a declaration"), err)
	}
	word := func(i int) string { s, _ := list[i].(string); return s }
	args, _ := list[7].(value.Dict)
	return declaration{Kind: word(2), Name: word(3), Key: word(4), Fx: word(5), Once: word(6), Args: args}, nil
}

// input is the digest that decides what a task's result may be kept for. tree
// is "" for a task that has nothing to do with files.
func (d *Decl) input(out func(task string) ([32]byte, bool), tree string) snapshot.Hash {
	if d.Once != "" {
		tree = ""
		out = func(string) ([32]byte, bool) { return [32]byte{}, true }
	}
	var room [512]byte
	b := value.AppendText(value.AppendList(room[:0], 7), "retcon.input")
	b = value.AppendText(value.AppendInt(b, scheme), d.Kind, d.Name, d.Once)
	if out == nil {
		b = value.AppendDict(b, d.Args)
	} else {
		b = value.Append(b, value.Resolve(d.Args, out))
	}
	return value.Hash(value.AppendText(b, tree))
}

// base is the id of a task in its scope, without the number of its occurrence.
func (d *Decl) base(digest snapshot.Hash) string {
	if d.Key != "" {
		return fmt.Sprintf("%s[%s]", d.Name, d.Key)
	}
	return d.Name + "~" + digest.Short()
}
