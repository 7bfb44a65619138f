package ledger

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/snapshot"
)

// Event is something that happened in a run. It belongs to the frame it leads
// to, which may not be there yet.
type Event struct {
	Branch  int64
	Seq     int64 // of the frame
	Idx     int   // counted from 0 in the frame
	At      time.Time
	Type    string
	Task    string
	ExtID   string // its source's name for it; an event is recorded once for (branch, type, name)
	Actor   string
	Body    []byte        // JSON; stored in the event up to InlineMax
	Content snapshot.Hash // where a longer body is; see Tx.EventBody
}

const eventColumns = `branch_id, seq, idx, at_ms, type, task, ext_id, actor, body, content`

func readEvent(s scanner) (e Event, err error) {
	var task, ext, actor sql.NullString
	var at int64
	err = s.Scan(&e.Branch, &e.Seq, &e.Idx, &at, &e.Type, &task, &ext, &actor, &e.Body, hashIn{&e.Content})
	e.At, e.Task, e.ExtID, e.Actor = fromMillis(at), task.String, ext.String, actor.String
	return e, err
}

// AppendEvents adds events to the frame that comes next on a branch. An event
// whose ExtID is known on the branch is left out: it was recorded before. Only
// type, task, ExtID, actor, body and content are taken, and At where it is set.
// A body longer than InlineMax becomes a content; put it beforehand, and name it
// by Content, where others may be waiting. Errors are *GatedError and
// *ArchivedError.
func (tx *Tx) AppendEvents(branch int64, events []Event) error {
	return tx.appendEvents(branch, events, func(b Branch) error { return b.refusal(0) })
}

// AppendLate is AppendEvents for what began on a branch and ends only now: the
// branch may have been archived meanwhile, or be closed by an operation.
func (tx *Tx) AppendLate(branch int64, events []Event) error {
	return tx.appendEvents(branch, events, func(b Branch) error {
		if b.State == BranchPurged {
			return &ArchivedError{Branch: b.ID, By: b.ArchivedBy}
		}
		return nil
	})
}

func (tx *Tx) appendEvents(branch int64, events []Event, refuse func(Branch) error) error {
	if !tx.writes {
		return ErrView
	}
	b, err := tx.BranchByID(branch)
	if err == nil {
		err = refuse(b)
	}
	if err == nil {
		err = tx.insertEvents(branch, b.HeadSeq+1, events)
	}
	return err
}

func (tx *Tx) insertEvents(branch, seq int64, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	var idx int
	err := tx.get(`SELECT coalesce(max(idx) + 1, 0) FROM event WHERE branch_id=? AND seq=?`, []any{branch, seq}, &idx)
	if err != nil {
		return fmt.Errorf("events of branch %d: %w", branch, err)
	}
	for _, e := range events {
		n, err := tx.insertEvent(branch, seq, idx, e)
		if err != nil {
			return fmt.Errorf("event %s of branch %d: %w", e.Type, branch, err)
		}
		idx += int(n)
	}
	crash.Point("ledger.event")
	return nil
}

func (tx *Tx) insertEvent(branch, seq int64, idx int, e Event) (int64, error) {
	inline, hash, err := tx.keep(e.Body, e.Content)
	if err != nil {
		return 0, err
	}
	if inline != nil {
		hash = snapshot.Hash{}
	}
	if e.At.IsZero() {
		e.At = tx.Now()
	}
	return tx.exec(`INSERT INTO event(`+eventColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(branch_id, type, ext_id) WHERE ext_id IS NOT NULL DO NOTHING`,
		branch, seq, idx, millis(e.At), e.Type, word(e.Task), word(e.ExtID), word(e.Actor), inline, hashRef(hash))
}

// EventBody returns the body of an event, wherever it is.
func (tx *Tx) EventBody(e Event) ([]byte, error) { return tx.body(e.Body, e.Content) }

// EventQuery selects a page of events. The zero value is the oldest page of
// all.
type EventQuery struct {
	From, FromIdx int64    // the first to return: its frame, and its place in it
	To            int64    // the last frame; 0 for all, the events of a frame to come included
	Types         []string // only of these types
	Task          string   // only of this task
	Limit         int      // 200 when zero
}

// Events returns events along the lineage of a branch, oldest first.
func (tx *Tx) Events(branch int64, q EventQuery) ([]Event, error) {
	segments, _, err := tx.segments(branch, Newest)
	if err != nil {
		return nil, fmt.Errorf("events of branch %d: %w", branch, err)
	}
	if len(segments) == 0 || segments[0].branch != branch {
		b, err := tx.BranchByID(branch)
		if err != nil {
			return nil, err
		}
		segments = append([]segment{{branch: branch, lo: b.BaseSeq}}, segments...)
	}
	segments[0].hi = 1<<63 - 1
	if q.To == 0 {
		q.To = 1<<63 - 1
	}
	var events []Event
	for i := len(segments) - 1; i >= 0 && len(events) < limit(q.Limit); i-- {
		g := segments[i]
		page, err := tx.eventsOf(segment{g.branch, max(g.lo, q.From-1), min(g.hi, q.To)}, q, limit(q.Limit)-len(events))
		if err != nil {
			return nil, fmt.Errorf("events of branch %d: %w", branch, err)
		}
		events = append(events, page...)
	}
	return events, nil
}

// EventByExt returns the event of a type that its source gave a name, on the
// branch itself and not on those before it, or ErrNotFound.
func (tx *Tx) EventByExt(branch int64, kind, ext string) (Event, error) {
	e, err := one(tx, readEvent, `SELECT `+eventColumns+` FROM event WHERE branch_id=? AND type=? AND ext_id=?`, branch, kind, ext)
	if err != nil {
		return Event{}, fmt.Errorf("event %s %s of branch %d: %w", kind, ext, branch, err)
	}
	return e, nil
}

// NamedEvents returns the events of a type that their source gave names, of
// the frames after one on the branch itself, oldest first. It does not look at
// events of other types.
func (tx *Tx) NamedEvents(branch, after int64, kind string) ([]Event, error) {
	return all(tx, readEvent, `SELECT `+eventColumns+` FROM event INDEXED BY event_ext
		WHERE branch_id=? AND type=? AND ext_id IS NOT NULL AND seq>? ORDER BY seq, idx`, branch, kind, after)
}

// FirstComing returns the oldest event of a type that belongs to the frame that
// comes next on a branch, or ErrNotFound.
func (tx *Tx) FirstComing(b Branch, kind string) (Event, error) {
	e, err := one(tx, readEvent, `SELECT `+eventColumns+` FROM event
		WHERE branch_id=? AND seq=? AND +type=? ORDER BY idx LIMIT 1`, b.ID, b.HeadSeq+1, kind)
	if err != nil {
		return Event{}, fmt.Errorf("event %s of branch %d: %w", kind, b.ID, err)
	}
	return e, nil
}

func (tx *Tx) eventsOf(g segment, q EventQuery, limit int) ([]Event, error) {
	query := `SELECT ` + eventColumns + ` FROM event WHERE branch_id=? AND seq>? AND seq<=? AND (seq, idx)>=(?, ?)`
	args := []any{g.branch, g.lo, g.hi, q.From, q.FromIdx}
	if len(q.Types) > 0 {
		query += ` AND type IN (?` + strings.Repeat(`, ?`, len(q.Types)-1) + `)`
		for _, t := range q.Types {
			args = append(args, t)
		}
	}
	if q.Task != "" {
		query, args = query+` AND task=?`, append(args, q.Task)
	}
	return all(tx, readEvent, query+` ORDER BY seq, idx LIMIT ?`, append(args, limit)...)
}
