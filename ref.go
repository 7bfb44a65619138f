package retcon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
)

// Ref names a checkpoint as a person types it:
//
//	c17             by its number
//	before-merge    by its label; ~before-merge where that could be something else
//	9fce21          by the beginning of its commit, four digits or more
//	last, -1        the newest one, and the one before it
//	r3              the newest one of run 3; a run's name will do
//	r3@start        the first one of run 3
//	r3@before       where the newest attempt of run 3 began, and r3@after where it ended
//	r3@c17          c17, which must be of run 3
//	r3@5            frame 5 of run 3; r3@-1 one before its newest
//	r3@plan         where the task plan of run 3 stands; r3@plan#2.before where
//	                its second attempt began
//	r3@~ready       the frame of run 3 with this label
//	last@before     likewise for the newest run
//	now             the worktree as it is, where that makes sense
//
// "last" and "-1" do not count the checkpoints that moves take for themselves.
type Ref string

// Now is the Ref of the worktree as it is.
const Now Ref = "now"

// RefError says that a reference names nothing.
type RefError struct {
	Ref    Ref
	Reason string
}

func (e *RefError) Error() string { return fmt.Sprintf("%q: %s", string(e.Ref), e.Reason) }

// NotRecordedError says that what a reference names was not recorded, although
// it was there.
type NotRecordedError struct {
	Ref    Ref
	Reason string
}

func (e *NotRecordedError) Error() string { return fmt.Sprintf("%q: %s", string(e.Ref), e.Reason) }

type refKind uint8

const (
	refWord   refKind = iota // a label, the beginning of a commit, or a run: which, the ledger knows
	refNow                   // the worktree
	refNumber                // c17
	refLabel                 // ~label
	refBack                  // last, -1: n before the newest
	refEdge                  // start, before, after, newest: of a run only
)

// reference is a Ref taken apart.
type reference struct {
	kind refKind
	run  string // what stands before the @; "" when there is none
	text string // label, word or edge
	n    int64  // number, or how far back
}

// parseRef takes a reference apart, without looking anything up.
func parseRef(ref Ref) (reference, error) {
	s := string(ref)
	if s == "" || ref == Now {
		return reference{kind: refNow}, nil
	}
	run, point, of := strings.Cut(s, "@")
	if !of {
		return parsePoint(ref, s)
	}
	if run == "" {
		return reference{}, &RefError{Ref: ref, Reason: "no run before the @"}
	}
	var r reference
	var err error
	switch point {
	case "", "now":
		return reference{}, &RefError{Ref: ref, Reason: "no point after the @"}
	case "start", "before", "after":
		r = reference{kind: refEdge, text: point}
	default:
		if r, err = parsePoint(ref, point); err == nil && r.run != "" {
			err = &RefError{Ref: ref, Reason: "a run is no point of a run"}
		}
	}
	r.run = run
	return r, err
}

func parsePoint(ref Ref, s string) (reference, error) {
	digits := strings.TrimLeft(s, "cr-")
	n, err := strconv.ParseInt(digits, 10, 64)
	number := err == nil && digits == strings.TrimLeft(digits, "+-") && len(s)-len(digits) == 1
	switch {
	case s == "last":
		return reference{kind: refBack}, nil
	case s[0] == '~':
		if s == "~" {
			return reference{}, &RefError{Ref: ref, Reason: "no label after the ~"}
		}
		return reference{kind: refLabel, text: s[1:]}, nil
	case s[0] == 'c' && number:
		return reference{kind: refNumber, n: n}, nil
	case s[0] == 'r' && number:
		return reference{kind: refEdge, run: s, text: "newest", n: n}, nil
	case s[0] == '-' && number:
		return reference{kind: refBack, n: n}, nil
	case s[0] == '-':
		return reference{}, &RefError{Ref: ref, Reason: "no such reference"}
	}
	return reference{kind: refWord, text: s}, nil
}

// runNumber tells that a reference is "r3" and nothing else.
func runNumber(ref Ref) (int64, bool) {
	r, err := parseRef(ref)
	if err != nil || r.run != string(ref) {
		return 0, false
	}
	return r.n, true
}

// Resolve returns the checkpoint that a reference names.
//
// It fails with *RefError, *NotRecordedError or *ledger.AmbiguousError.
func (w *Workspace) Resolve(ctx context.Context, ref Ref) (*Checkpoint, error) {
	c, err := w.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	return shown(c)
}

func (w *Workspace) resolve(ctx context.Context, ref Ref) (c ledger.Checkpoint, err error) {
	r, err := parseRef(ref)
	if err != nil {
		return c, err
	}
	if r.kind == refNow {
		return c, &RefError{Ref: ref, Reason: "the worktree as it is has no checkpoint yet"}
	}
	err = w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		c, err = look{tx, row.ID, ref}.up(r)
		return err
	})
	return c, err
}

// look looks a reference up.
type look struct {
	tx       *ledger.Tx
	worktree int64
	ref      Ref
}

func (l look) nothing(reason string, args ...any) error {
	return &RefError{Ref: l.ref, Reason: fmt.Sprintf(reason, args...)}
}

func (l look) up(r reference) (ledger.Checkpoint, error) {
	var of ledger.Run
	if r.run != "" {
		run, err := l.run(r.run)
		if errors.Is(err, ledger.ErrNotFound) {
			return ledger.Checkpoint{}, l.nothing("no run %s", r.run)
		}
		if err != nil {
			return ledger.Checkpoint{}, err
		}
		of = run
	}
	if of.HeadBranch != 0 {
		return l.framed(r, of)
	}
	c, err := l.point(r, of)
	if errors.Is(err, ledger.ErrNotFound) {
		err = l.nothing("no such checkpoint")
	}
	if err == nil && of.ID != 0 && c.RunID != of.ID {
		err = l.nothing("c%d is not of run r%d", c.ID, of.ID)
	}
	return c, err
}

func (l look) point(r reference, of ledger.Run) (ledger.Checkpoint, error) {
	switch r.kind {
	case refNumber:
		return l.tx.Checkpoint(r.n)
	case refLabel:
		return l.tx.CheckpointByLabel(l.worktree, r.text)
	case refBack:
		return l.back(r.n, of)
	case refEdge:
		return l.edge(r.text, of)
	}
	return l.word(r.text, of)
}

// run finds what stands before an @.
func (l look) run(what string) (ledger.Run, error) {
	if what != "last" {
		return l.tx.FindRun(what)
	}
	for before := int64(0); ; {
		runs, err := l.tx.Runs(ledger.RunQuery{Worktree: l.worktree, Before: before, Limit: 20})
		if err == nil && len(runs) == 0 {
			err = ledger.ErrNotFound
		}
		if err != nil {
			return ledger.Run{}, err
		}
		for _, r := range runs {
			if r.Kind != KindSubagent { // what it did is in its parent
				return r, nil
			}
			before = r.ID
		}
	}
}

// word finds a label, else a commit, else a run, in the order in which one is
// likely to be meant.
func (l look) word(text string, of ledger.Run) (ledger.Checkpoint, error) {
	c, err := l.tx.CheckpointByLabel(l.worktree, text)
	if !errors.Is(err, ledger.ErrNotFound) {
		return c, err
	}
	if hexadecimal(text) {
		c, err := l.tx.CheckpointByCommit(l.worktree, strings.ToLower(text))
		if !errors.Is(err, ledger.ErrNotFound) {
			return c, err
		}
	}
	if of.ID != 0 {
		return ledger.Checkpoint{}, l.nothing("r%d has no such checkpoint", of.ID)
	}
	run, err := l.tx.FindRun(text)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Checkpoint{}, l.nothing("no checkpoint, label or run of that name")
	}
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	if run.HeadBranch != 0 {
		return l.framed(reference{kind: refEdge, run: text}, run)
	}
	return l.edge("newest", run)
}

// framed finds a point of a run with frames: what the run itself knows, else a
// label or a commit of it.
func (l look) framed(r reference, of ledger.Run) (ledger.Checkpoint, error) {
	a, err := snapshot.ParseAddress(string(l.ref))
	if err != nil {
		return ledger.Checkpoint{}, l.nothing("no such reference")
	}
	at, err := timeline.Locate(l.tx, of, a.Point)
	var none *timeline.NoPointError
	if errors.As(err, &none) && r.kind == refWord {
		c, werr := l.word(r.text, of)
		if werr == nil && c.RunID == of.ID {
			return c, nil
		}
		return c, err
	}
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	if at.Checkpoint.ID == 0 {
		return ledger.Checkpoint{}, &timeline.NotRecordedError{Run: of.ID, Point: a.Point.String(), Reason: "the files were not recorded there"}
	}
	return at.Checkpoint, nil
}

// shortest is how many digits a commit must be named with.
const shortest = 4

func hexadecimal(s string) bool {
	return len(s) >= shortest && len(s) <= 64 && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// back returns the checkpoint n before the newest, of the worktree or of a run.
func (l look) back(n int64, of ledger.Run) (ledger.Checkpoint, error) {
	q := ledger.CheckpointQuery{Worktree: l.worktree}
	if of.ID != 0 {
		q = ledger.CheckpointQuery{Run: of.ID}
	}
	if q.Worktree == 0 && q.Run == 0 {
		return ledger.Checkpoint{}, l.nothing("nothing has been recorded here")
	}
	for seen := int64(0); ; {
		page, err := l.tx.Checkpoints(q)
		if err != nil {
			return ledger.Checkpoint{}, err
		}
		if len(page) == 0 {
			if seen == 0 {
				return ledger.Checkpoint{}, l.nothing("nothing has been recorded here")
			}
			return ledger.Checkpoint{}, l.nothing("there are only %d checkpoints", seen)
		}
		for _, c := range page {
			q.Before = c.ID
			if ofMoves(c.Tier) {
				continue
			}
			if seen == n {
				return c, nil
			}
			seen++
		}
	}
}

// ofMoves tells the tiers that moves take for themselves.
func ofMoves(tier string) bool { return tier == ledger.TierSafety || tier == ledger.TierRescue }

// edge returns the first or newest checkpoint of a run, or the one on an edge of
// its newest attempt.
func (l look) edge(which string, of ledger.Run) (ledger.Checkpoint, error) {
	none := func(reason string) error { return &NotRecordedError{Ref: l.ref, Reason: reason} }
	if which == "newest" {
		page, err := l.tx.Checkpoints(ledger.CheckpointQuery{Run: of.ID, Limit: 1})
		if err == nil && len(page) == 0 {
			err = none(fmt.Sprintf("r%d has no checkpoint", of.ID))
		}
		if err != nil {
			return ledger.Checkpoint{}, err
		}
		return page[0], nil
	}
	attempts, err := l.tx.Attempts(of.ID)
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	var id int64
	for _, a := range attempts {
		switch which {
		case "start":
			if id == 0 {
				id = a.Before
			}
		case "before":
			id = a.Before
		case "after":
			id = a.After
		}
	}
	if id == 0 {
		if which == "after" && of.Status == ledger.StatusRunning {
			return ledger.Checkpoint{}, none(fmt.Sprintf("r%d has not ended", of.ID))
		}
		return ledger.Checkpoint{}, none(fmt.Sprintf("r%d has no checkpoint there", of.ID))
	}
	return l.tx.Checkpoint(id)
}
