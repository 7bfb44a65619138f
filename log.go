package retcon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// Op is one move in the operation log.
type Op struct {
	ID        int64          `json:"id"`
	Verb      string         `json:"verb"`
	Actor     string         `json:"actor"`
	Target    string         `json:"target"` // as it was named
	Result    string         `json:"result"` // ok, aborted, failed, rolled-back; "" while it is open
	Started   time.Time      `json:"started"`
	Finished  *time.Time     `json:"finished"`
	Safety    string         `json:"safety,omitempty"` // checkpoint of the worktree as it was
	Rescue    string         `json:"rescue,omitempty"` // checkpoint of what somebody wrote meanwhile
	Undoes    int64          `json:"undoes,omitempty"` // the operation it took back or did again
	UndoneBy  int64          `json:"undone_by,omitempty"`
	Pruned    bool           `json:"pruned"` // it can't be undone any more
	RequestID string         `json:"request_id,omitempty"`
	Paths     int            `json:"paths"`          // that it changed
	Plan      *timeline.Plan `json:"plan,omitempty"` // of one that was asked for by number
}

func shownOp(o ledger.Op, whole bool) (*Op, error) {
	out := &Op{ID: o.ID, Verb: o.Verb, Actor: o.Actor, Result: o.Result, Started: o.Started.UTC(), Undoes: o.Undoes,
		UndoneBy: o.UndoneBy, Pruned: o.Pruned, RequestID: o.RequestKey}
	if !o.Finished.IsZero() {
		at := o.Finished.UTC()
		out.Finished = &at
	}
	var detail struct{ Safety, Rescue string }
	if err := json.Unmarshal([]byte(o.Detail), &detail); err != nil {
		return nil, fmt.Errorf("op %d: detail: %w", o.ID, err)
	}
	out.Safety, out.Rescue = detail.Safety, detail.Rescue
	var plan timeline.Plan
	if err := json.Unmarshal([]byte(o.Plan), &plan); err != nil {
		return nil, fmt.Errorf("op %d: plan: %w", o.ID, err)
	}
	out.Target, out.Paths = plan.Target, len(plan.Changes)
	if whole {
		out.Plan = &plan
	}
	return out, nil
}

// Ops lists the operations on this worktree that are older than one, newest
// first: all when before is zero, 50 when limit is.
func (w *Workspace) Ops(ctx context.Context, before int64, limit int) ([]Op, error) {
	if limit <= 0 {
		limit = 50
	}
	out := []Op{}
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		if row.ID == 0 {
			return nil
		}
		ops, err := tx.Ops(ledger.OpQuery{Worktree: row.ID, Before: before, Limit: limit})
		if err != nil {
			return err
		}
		for _, o := range ops {
			s, err := shownOp(o, false)
			if err != nil {
				return err
			}
			out = append(out, *s)
		}
		return nil
	})
	return out, err
}

// OpError says that there is no operation of a number.
type OpError struct{ ID int64 }

func (e *OpError) Error() string { return fmt.Sprintf("no operation %d", e.ID) }

// Op returns an operation with its plan, or a *OpError.
func (w *Workspace) Op(ctx context.Context, id int64) (*Op, error) {
	var out *Op
	err := w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		o, err := tx.Op(id)
		if errors.Is(err, ledger.ErrNotFound) {
			return &OpError{ID: id}
		}
		if err != nil {
			return err
		}
		out, err = shownOp(o, true)
		return err
	})
	return out, err
}

// Kinds of a LogEntry.
const (
	LogCheckpoint = "checkpoint"
	LogRun        = "run"
	LogOp         = "op"
)

// LogEntry is one thing that happened: one of Checkpoint, Run and Op is set.
type LogEntry struct {
	// Seq orders the log: the number of the checkpoint itself, of the one a run
	// began with, or of the one a move took first. Several entries can share it.
	Seq        int64       `json:"seq"`
	Kind       string      `json:"kind"`
	At         time.Time   `json:"at"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Run        *Run        `json:"run,omitempty"`
	Op         *Op         `json:"op,omitempty"`

	rank int // within a Seq: a run, its checkpoint, the move
}

// Log lists what happened in this worktree before a Seq, newest first: checkpoints,
// runs and moves in one list. All when before is zero; at least 50 when limit
// is, or as many as there are. The entries of one Seq are not parted, so there
// can be a few more than limit.
func (w *Workspace) Log(ctx context.Context, limit int, before int64) ([]LogEntry, error) {
	if limit <= 0 {
		limit = 50
	}
	all := []LogEntry{}
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		if row.ID == 0 {
			return nil
		}
		p := logPage{tx: tx, worktree: row.ID, before: before, limit: limit}
		if err := p.checkpoints(); err != nil {
			return err
		}
		if err := p.runs(); err != nil {
			return err
		}
		if err := p.ops(); err != nil {
			return err
		}
		all = append(all, p.entries...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b LogEntry) int {
		return cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(b.rank, a.rank))
	})
	for n := limit; n < len(all); n++ {
		if all[n].Seq != all[n-1].Seq {
			return all[:n], nil
		}
	}
	return all, nil
}

// logPage collects one page of the log.
type logPage struct {
	tx       *ledger.Tx
	worktree int64
	before   int64 // a Seq, 0 for none
	limit    int
	from     int64 // the lowest Seq of the page
	entries  []LogEntry
}

// takes tells whether a Seq is of the page.
func (p *logPage) takes(seq int64) bool { return seq >= p.from && (p.before == 0 || seq < p.before) }

func (p *logPage) checkpoints() error {
	page, err := p.tx.Checkpoints(ledger.CheckpointQuery{Worktree: p.worktree, Before: p.before, Limit: p.limit})
	if err != nil {
		return err
	}
	for _, c := range page {
		s, err := shown(c)
		if err != nil {
			return err
		}
		p.entries = append(p.entries, LogEntry{Seq: c.ID, Kind: LogCheckpoint, At: s.Created, Checkpoint: s, rank: 1})
	}
	if len(page) == p.limit {
		p.from = page[len(page)-1].ID
	}
	return nil
}

// runs adds the runs of the page. A run without a checkpoint stands where the
// next one began.
func (p *logPage) runs() error {
	seq := p.before
	if seq == 0 {
		seq = 1 << 62
	}
	newest := int64(1 << 62)
	if len(p.entries) > 0 {
		newest = p.entries[0].Seq
	}
	for q := (ledger.RunQuery{Worktree: p.worktree}); ; {
		page, err := p.tx.Runs(q)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			q.Before = r.ID
			s, err := shownRun(p.tx, r)
			if err != nil {
				return err
			}
			if n, ok := number(s.Before); ok {
				seq = n
			} else if seq == 1<<62 {
				seq = newest
			}
			if seq < p.from {
				return nil
			}
			if p.takes(seq) {
				p.entries = append(p.entries, LogEntry{Seq: seq, Kind: LogRun, At: s.Created, Run: s, rank: 0})
			}
		}
	}
}

// ops adds the moves of the page. A move takes its safety checkpoint as it
// begins.
func (p *logPage) ops() error {
	for q := (ledger.OpQuery{Worktree: p.worktree}); ; {
		page, err := p.tx.Ops(q)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, o := range page {
			q.Before = o.ID
			s, err := shownOp(o, false)
			if err != nil {
				return err
			}
			seq, err := p.began(o, s)
			if err != nil {
				return err
			}
			if seq < p.from {
				return nil
			}
			if p.takes(seq) {
				p.entries = append(p.entries, LogEntry{Seq: seq, Kind: LogOp, At: s.Started, Op: s, rank: 2})
			}
		}
	}
}

// began returns the number of the checkpoint a move took. One that is open, or
// died, has not noted it; the newest of that commit is it, or as good.
func (p *logPage) began(o ledger.Op, s *Op) (int64, error) {
	if n, ok := number(s.Safety); ok {
		return n, nil
	}
	for _, at := range o.Worktrees {
		if at.WorktreeID != p.worktree || at.Safety == "" {
			continue
		}
		c, err := p.tx.CheckpointByCommit(p.worktree, at.Safety)
		if err == nil {
			return c.ID, nil
		}
		if !errors.Is(err, ledger.ErrNotFound) {
			return 0, err
		}
	}
	return 0, nil
}

// number reads "c17".
func number(ref string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(ref, "c"), 10, 64)
	return n, err == nil
}
