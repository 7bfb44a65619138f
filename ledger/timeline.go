package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/snapshot"
)

// FrameQuery selects a page of frames, newest first. The zero value is the
// newest page.
type FrameQuery struct {
	Before  int64 // only before this frame; 0 for all
	Limit   int   // 200 when zero
	Changed bool  // fill in what each has changed
}

// frameRow is a frame as it is stored.
type frameRow struct {
	Frame
	delta []byte
}

const frameColumns = `branch_id, seq, at_ms, kind, root, checkpoint_id, note, delta`

func readFrame(s scanner) (f frameRow, err error) {
	var at int64
	var checkpoint sql.NullInt64
	var note sql.NullString
	err = s.Scan(&f.Branch, &f.Seq, &at, &f.Kind, hashIn{&f.Root}, &checkpoint, &note, &f.delta)
	f.At, f.Checkpoint, f.Note = fromMillis(at), checkpoint.Int64, note.String
	if f.Kind == "" {
		f.Kind = FrameOutcome
	}
	return f, err
}

// Frames returns a page of the frames of a branch and of those it descends
// from, newest first.
func (tx *Tx) Frames(branch int64, q FrameQuery) ([]Frame, error) {
	segments, _, err := tx.segments(branch, Newest)
	if err != nil {
		return nil, fmt.Errorf("frames of branch %d: %w", branch, err)
	}
	var rows []frameRow
	for _, g := range segments {
		if left := limit(q.Limit) - len(rows); left > 0 {
			page, err := all(tx, readFrame, `SELECT `+frameColumns+` FROM frame
				WHERE branch_id=? AND seq>? AND seq<=? ORDER BY seq DESC LIMIT ?`,
				g.branch, g.lo, min(g.hi, before(q.Before)-1), left)
			if err != nil {
				return nil, fmt.Errorf("frames of branch %d: %w", branch, err)
			}
			rows = append(rows, page...)
		}
	}
	frames, err := tx.frames(segments, rows, q.Changed)
	if err != nil {
		return nil, fmt.Errorf("frames of branch %d: %w", branch, err)
	}
	return frames, nil
}

// FrameAt returns one frame, as a branch sees it.
func (tx *Tx) FrameAt(branch, seq int64, changed bool) (Frame, error) {
	segments, seq, err := tx.segments(branch, seq)
	if err == nil && len(segments) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Frame{}, fmt.Errorf("frame %d of branch %d: %w", seq, branch, err)
	}
	frames, err := tx.Frames(branch, FrameQuery{Before: seq + 1, Limit: 1, Changed: changed})
	if err == nil && len(frames) == 0 {
		err = tx.corrupt("frame %d of branch %d is missing", seq, branch)
	}
	if err != nil {
		return Frame{}, err
	}
	return frames[0], nil
}

// frames completes rows that follow each other, newest first.
func (tx *Tx) frames(segments []segment, rows []frameRow, changed bool) ([]Frame, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	checkpoint, err := tx.checkpointAt(upTo(segments, rows[len(rows)-1].Seq))
	if err != nil {
		return nil, err
	}
	past := past{tx: tx, segments: segments, rows: map[string]*snapshot.Row{}}
	frames := make([]Frame, len(rows))
	for i, r := range slices.Backward(rows) {
		if r.Checkpoint == 0 {
			r.Checkpoint = checkpoint
		}
		checkpoint = r.Checkpoint
		if changed {
			if r.Changed, err = past.changes(r.Seq, r.delta); err != nil {
				return nil, err
			}
		}
		frames[i] = r.Frame
	}
	return frames, nil
}

// upTo is a lineage that ends at an earlier frame.
func upTo(segments []segment, seq int64) []segment {
	var cut []segment
	for _, g := range segments {
		if g.hi = min(g.hi, seq); g.lo < g.hi {
			cut = append(cut, g)
		}
	}
	return cut
}

// past knows rows as they were before frames that are handed to it in order. It
// looks one up the first time it meets it.
type past struct {
	tx       *Tx
	segments []segment
	rows     map[string]*snapshot.Row // nil where the row is gone
}

// changes returns what a frame has changed, given its delta.
func (p past) changes(seq int64, stored []byte) ([]snapshot.Change, error) {
	entries, err := p.tx.entries(seq, stored)
	if err != nil {
		return nil, err
	}
	changes := make([]snapshot.Change, len(entries))
	for i, e := range entries {
		if changes[i], err = p.change(seq, e); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func (p past) change(seq int64, e snapshot.Entry) (c snapshot.Change, err error) {
	c.Key = e.Key
	old, known := p.rows[e.Key]
	switch {
	case known:
		c.Old = old
	case e.Back != 0:
		if c.Old, err = p.rowAt(e.Key, seq-e.Back); err != nil {
			return c, err
		}
	}
	if !e.Gone {
		var before snapshot.Row
		if c.Old != nil {
			before = *c.Old
		}
		r := e.Row(before)
		c.New = &r
	}
	p.rows[e.Key] = c.New
	return c, nil
}

// rowAt returns a row as a frame left it, the frame being one that changed it.
// It follows the row's deltas back to one that is whole.
func (p past) rowAt(key string, seq int64) (*snapshot.Row, error) {
	var chain []snapshot.Entry
	for {
		e, err := p.entryAt(key, seq)
		if err != nil {
			return nil, err
		}
		if e.Gone {
			return nil, p.tx.corrupt("frame %d leads back to a row that was deleted", seq)
		}
		chain = append(chain, e)
		if e.Whole {
			break
		}
		seq -= e.Back
	}
	var r snapshot.Row
	for _, e := range slices.Backward(chain) {
		r = e.Row(r)
	}
	return &r, nil
}

// entryAt returns what a frame says of a row.
func (p past) entryAt(key string, seq int64) (snapshot.Entry, error) {
	for _, g := range p.segments {
		if seq <= g.lo {
			continue
		}
		var stored []byte
		err := p.tx.get(`SELECT delta FROM frame WHERE branch_id=? AND seq=?`, []any{g.branch, seq}, &stored)
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil {
			return snapshot.Entry{}, err
		}
		entries, err := p.tx.entries(seq, stored)
		if err != nil {
			return snapshot.Entry{}, err
		}
		i, ok := slices.BinarySearchFunc(entries, key, func(e snapshot.Entry, key string) int { return strings.Compare(e.Key, key) })
		if !ok {
			break
		}
		return entries[i], nil
	}
	return snapshot.Entry{}, p.tx.corrupt("frame %d does not tell of row %q", seq, key)
}

func (tx *Tx) entries(seq int64, stored []byte) ([]snapshot.Entry, error) {
	delta, err := unpackDelta(stored)
	if err != nil {
		return nil, tx.corrupt("frame %d: %w", seq, err)
	}
	entries, err := snapshot.DecodeDelta(delta)
	if err != nil {
		return nil, tx.corrupt("frame %d: %w", seq, err)
	}
	return entries, nil
}

// TaskHistory returns the frames that changed a row, newest first, each with
// that change alone. It costs what the row has changed, not how long the history
// is. A row that is not there at the newest frame has no history.
func (tx *Tx) TaskHistory(branch int64, key string, q FrameQuery) ([]Frame, error) {
	h, err := tx.LoadFrame(branch, Newest)
	if err != nil {
		return nil, fmt.Errorf("history of %q: %w", key, err)
	}
	segments, _, err := tx.segments(branch, Newest)
	if err != nil {
		return nil, fmt.Errorf("history of %q: %w", key, err)
	}
	seq, ok := h.Set.ChangedAt(key)
	if !ok {
		return nil, fmt.Errorf("history of %q: %w", key, ErrNotFound)
	}
	var frames []Frame
	for len(frames) < limit(q.Limit) {
		back, f, err := tx.version(segments, key, seq)
		if err != nil {
			return nil, fmt.Errorf("history of %q: %w", key, err)
		}
		if seq < before(q.Before) {
			frames = append(frames, f)
		}
		if back == 0 {
			break
		}
		seq -= back
	}
	return frames, nil
}

// version is the frame that made a row what it was, and how far back the one
// before is.
func (tx *Tx) version(segments []segment, key string, seq int64) (int64, Frame, error) {
	segments = upTo(segments, seq)
	if len(segments) == 0 {
		return 0, Frame{}, tx.corrupt("frame %d is missing", seq)
	}
	r, err := one(tx, readFrame, `SELECT `+frameColumns+` FROM frame WHERE branch_id=? AND seq=?`, segments[0].branch, seq)
	if err != nil {
		return 0, Frame{}, err
	}
	p := past{tx: tx, segments: segments, rows: map[string]*snapshot.Row{}}
	e, err := p.entryAt(key, seq)
	if err != nil {
		return 0, Frame{}, err
	}
	c, err := p.change(seq, e)
	if err != nil {
		return 0, Frame{}, err
	}
	r.Changed = []snapshot.Change{c}
	if r.Checkpoint == 0 {
		r.Checkpoint, err = tx.checkpointAt(segments)
	}
	return e.Back, r.Frame, err
}

// nearby is how many frames apart two positions may be, for their difference to
// be read from the frames between them.
const nearby = 1000

// DiffFrames returns what leads from one frame to another, sorted by key. The
// two may be of different runs.
func (tx *Tx) DiffFrames(a, b Position) ([]snapshot.Change, error) {
	changes, err := tx.diffFrames(a, b)
	if err != nil {
		return nil, fmt.Errorf("frames %d of branch %d and %d of branch %d: %w", a.Seq, a.Branch, b.Seq, b.Branch, err)
	}
	return changes, nil
}

func (tx *Tx) diffFrames(a, b Position) ([]snapshot.Change, error) {
	x, aSeq, err := tx.segments(a.Branch, a.Seq)
	if err != nil {
		return nil, err
	}
	y, bSeq, err := tx.segments(b.Branch, b.Seq)
	if err != nil {
		return nil, err
	}
	switch {
	case aSeq <= bSeq && bSeq-aSeq <= nearby && leadsTo(x, y, aSeq):
		return tx.between(y, aSeq)
	case bSeq < aSeq && aSeq-bSeq <= nearby && leadsTo(y, x, bSeq):
		changes, err := tx.between(x, bSeq)
		return snapshot.Invert(changes), err
	}
	from, err := tx.LoadFrame(a.Branch, aSeq)
	if err != nil {
		return nil, err
	}
	to, err := tx.LoadFrame(b.Branch, bSeq)
	if err != nil {
		return nil, err
	}
	return snapshot.Diff(from.Set, to.Set), nil
}

// leadsTo tells that the lineage x, which ends with the frame seq, is the
// beginning of y.
func leadsTo(x, y []segment, seq int64) bool {
	y = upTo(y, seq)
	return len(x) > 0 && len(y) > 0 && x[0].branch == y[0].branch
}

// between folds all changes of a lineage after a frame into one.
func (tx *Tx) between(segments []segment, after int64) ([]snapshot.Change, error) {
	p := past{tx: tx, segments: segments, rows: map[string]*snapshot.Row{}}
	total := map[string]snapshot.Change{}
	for _, g := range slices.Backward(segments) {
		rows, err := all(tx, readFrame, `SELECT `+frameColumns+` FROM frame WHERE branch_id=? AND seq>? AND seq<=? ORDER BY seq`,
			g.branch, max(g.lo, after), g.hi)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			changes, err := p.changes(r.Seq, r.delta)
			if err != nil {
				return nil, err
			}
			for _, c := range changes {
				if first, ok := total[c.Key]; ok {
					c.Old = first.Old
				}
				total[c.Key] = c
			}
		}
	}
	var changes []snapshot.Change
	for _, c := range total {
		if c.Old == nil && c.New == nil || c.Old != nil && c.New != nil && c.Old.Equal(*c.New) {
			continue
		}
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b snapshot.Change) int { return strings.Compare(a.Key, b.Key) })
	return changes, nil
}
