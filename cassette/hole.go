package cassette

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/ledger"
)

// Hole marks on the tape of a run that a call was not recorded, and why. It
// tells whether the hole is the run's first, and so has to be spoken of. In a
// run that is not recorded nothing is missing: nothing is marked, and the zero
// Cell is returned.
func (t *Tape) Hole(tx *ledger.Tx, c Call, why error) (cell ledger.Cell, first bool, err error) {
	switch err := recorded(tx, c.Run); {
	case errors.Is(err, ErrTapeOff):
		return ledger.Cell{}, false, nil
	case err != nil:
		return ledger.Cell{}, false, fmt.Errorf("hole for %s: %w", c.Op, err)
	}
	before, err := find(tx, c.Run, Range{}, ledger.CellHole)
	if err != nil {
		return ledger.Cell{}, false, err
	}
	cell, err = t.mark(tx, c, why)
	return cell, err == nil && before == nil, err
}

func (t *Tape) mark(tx *ledger.Tx, c Call, why error) (ledger.Cell, error) {
	reason, _ := t.redact().Text(why.Error())
	cell := c.cell()
	cell.Flags |= ledger.CellHole
	var err error
	if cell.View, err = marshal(hole{string(head([]byte(reason), 200))}); err != nil {
		return ledger.Cell{}, err
	}
	return tx.AppendCell(cell)
}

// hole is the view of a cell that is one.
type hole struct {
	Why string `json:"hole"`
}

func holeError(c ledger.Cell) *HoleError {
	var h hole
	_ = json.Unmarshal(c.View, &h) // a hole whose reason can't be read is one without
	return &HoleError{Cell: c, Why: h.Why}
}

// Range is a part of a tape. The zero Range is all of it.
type Range struct {
	After   int64 // only cells after this one
	To      int64 // only up to this one; 0 for all
	Attempt int64 // only of this attempt; 0 for all
}

// Whole looks whether a part of a run's tape can be relied on, for a verb that
// would carry it past there. The error is ErrTapeOff, or a *HoleError or a
// *TruncatedError about the first cell that is not whole.
func Whole(tx *ledger.Tx, run int64, part Range) error {
	if err := recorded(tx, run); err != nil {
		return err
	}
	c, err := find(tx, run, part, ledger.CellHole, ledger.CellTruncated)
	switch {
	case err != nil || c == nil:
		return err
	case c.Flags.Has(ledger.CellHole):
		return holeError(*c)
	}
	return &TruncatedError{Cell: *c, Setting: MaxSetting}
}

// recorded returns ErrTapeOff for a run that was not recorded.
func recorded(tx *ledger.Tx, id int64) error {
	run, err := tx.Run(id)
	if err == nil && !run.Tape {
		err = fmt.Errorf("r%d: %w", id, ErrTapeOff)
	}
	return err
}

// find returns the first cell with one of the marks, or nil.
func find(tx *ledger.Tx, run int64, part Range, marks ...ledger.CellFlags) (found *ledger.Cell, err error) {
	err = each(tx, run, part, func(c ledger.Cell) bool {
		for _, m := range marks {
			if c.Flags.Has(m) {
				found = &c
			}
		}
		return found == nil
	})
	return found, err
}

// each hands the cells of a part of a tape to a function, in order, until it
// returns false.
func each(tx *ledger.Tx, run int64, part Range, do func(ledger.Cell) bool) error {
	q := ledger.CellQuery{After: part.After, To: part.To, Attempt: part.Attempt}
	for {
		page, err := tx.Cells(run, q)
		if err != nil {
			return fmt.Errorf("tape of r%d: %w", run, err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, c := range page {
			if !do(c) {
				return nil
			}
		}
		q.After = page[len(page)-1].Seq
	}
}
