package ledger

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/snapshot"
)

// CellFlags are marks of a cell.
type CellFlags uint8

const (
	CellTruncated CellFlags = 1 << iota // the end of the output was not kept
	CellDenied                          // the operation was not allowed
	CellError                           // the operation failed
	CellHole                            // something was not recorded here
)

// Has tells that all of the marks are there.
func (f CellFlags) Has(marks CellFlags) bool { return f&marks == marks }

// Cell is one recorded operation of a run. What its arguments are, and what was
// taken out of them, the tape knows.
type Cell struct {
	ID        int64
	RunID     int64
	AttemptID int64 // 0 for none
	Branch    int64 // 0 for none
	Seq       int64 // counted from 1 in the run
	Op        string
	Key       snapshot.Hash // what the operation is found by
	HMAC      []byte        // of what the key leaves out; nil for none
	View      []byte        // the arguments, JSON; up to InlineMax, see Tx.CellView
	ViewHash  snapshot.Hash // the content with a longer view; zero otherwise
	Exit      *int
	Out       snapshot.Hash // a content: the output, as far as it was kept; zero for none
	OutSize   int64         // of the whole output
	OutHash   snapshot.Hash // of the whole output, where it is not Out
	Flags     CellFlags
	TreeIn    string // "" for none
	TreeOut   string
	Took      time.Duration
	Actor     string
	Created   time.Time
}

const cellColumns = `id, run_id, attempt_id, branch_id, seq, op, key, hmac, view, view_hash, exit_code, out, out_size, out_whole, ` +
	`flags, tree_in, tree_out, took_ns, actor, created_ms`

func readCell(s scanner) (c Cell, err error) {
	var attempt, branch, exit sql.NullInt64
	var treeIn, treeOut, actor sql.NullString
	var created int64
	err = s.Scan(&c.ID, &c.RunID, &attempt, &branch, &c.Seq, &c.Op, hashIn{&c.Key}, &c.HMAC, &c.View, hashIn{&c.ViewHash}, &exit,
		hashIn{&c.Out}, &c.OutSize, hashIn{&c.OutHash}, &c.Flags, &treeIn, &treeOut, &c.Took, &actor, &created)
	c.AttemptID, c.Branch, c.Created = attempt.Int64, branch.Int64, fromMillis(created)
	c.TreeIn, c.TreeOut, c.Actor = treeIn.String, treeOut.String, actor.String
	if exit.Valid {
		code := int(exit.Int64)
		c.Exit = &code
	}
	return c, err
}

// AppendCell adds a cell to the tape of its run and returns it with its
// numbers and time. The output is a content put before. A view longer than
// InlineMax becomes a content; put it beforehand, and name it by ViewHash, where
// others may be waiting.
func (tx *Tx) AppendCell(c Cell) (Cell, error) {
	if !tx.writes {
		return Cell{}, ErrView
	}
	inline, view, err := tx.keep(c.View, c.ViewHash)
	if err == nil {
		err = tx.name(c.Out)
	}
	if err != nil {
		return Cell{}, fmt.Errorf("cell %s of r%d: %w", c.Op, c.RunID, err)
	}
	if inline != nil {
		view = snapshot.Hash{}
	}
	if c.ID, err = tx.next("cell"); err != nil {
		return Cell{}, err
	}
	c.View, c.ViewHash, c.Created = inline, view, tx.Now()
	var exit any
	if c.Exit != nil {
		exit = *c.Exit
	}
	err = tx.insert(`INSERT INTO cell(`+cellColumns+`)
		SELECT ?, ?, ?, ?, coalesce(max(seq), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM cell WHERE run_id=?
		RETURNING seq`,
		[]any{c.ID, c.RunID, ref(c.AttemptID), ref(c.Branch), c.Op, c.Key[:], c.HMAC, c.View, hashRef(c.ViewHash), exit,
			hashRef(c.Out), c.OutSize, hashRef(c.OutHash), c.Flags, word(c.TreeIn), word(c.TreeOut), c.Took, word(c.Actor),
			millis(c.Created), c.RunID}, &c.Seq)
	if err != nil {
		return Cell{}, fmt.Errorf("cell %s of r%d: %w", c.Op, c.RunID, err)
	}
	crash.Point("ledger.cell")
	return c, nil
}

// CellQuery selects a page of the cells of a run, oldest first. The zero value
// is the oldest page.
type CellQuery struct {
	After   int64 // only after this number in the run
	To      int64 // only up to this number; 0 for all
	Attempt int64 // only of this attempt
	Limit   int   // 200 when zero
}

// Cells returns a page of the tape of a run, oldest first.
func (tx *Tx) Cells(run int64, q CellQuery) ([]Cell, error) {
	if q.To == 0 {
		q.To = 1<<63 - 1
	}
	query := `SELECT ` + cellColumns + ` FROM cell WHERE run_id=? AND seq>? AND seq<=?`
	args := []any{run, q.After, q.To}
	if q.Attempt != 0 {
		query, args = query+` AND attempt_id=?`, append(args, q.Attempt)
	}
	return all(tx, readCell, query+` ORDER BY seq LIMIT ?`, append(args, limit(q.Limit))...)
}

// CellByID returns the cell with this number, or ErrNotFound.
func (tx *Tx) CellByID(id int64) (Cell, error) {
	c, err := one(tx, readCell, `SELECT `+cellColumns+` FROM cell WHERE id=?`, id)
	if err != nil {
		return Cell{}, fmt.Errorf("cell %d: %w", id, err)
	}
	return c, nil
}

// MarkCell adds marks to a cell.
func (tx *Tx) MarkCell(id int64, marks CellFlags) error {
	n, err := tx.exec(`UPDATE cell SET flags = flags | ? WHERE id=?`, marks, id)
	return found(n, err, "cell %d", id)
}

// CellView returns the view of a cell, wherever it is.
func (tx *Tx) CellView(c Cell) ([]byte, error) { return tx.body(c.View, c.ViewHash) }

// CellOutput returns the output of a cell as far as it was kept, nil for none.
func (tx *Tx) CellOutput(c Cell) ([]byte, error) { return tx.body(nil, c.Out) }
