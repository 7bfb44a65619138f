package cassette

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/ledger"
)

// Prepared is a call redacted, hashed and compressed, ready to be appended.
type Prepared struct {
	tape     *Tape
	call     Call // without arguments and output
	cell     ledger.Cell
	contents []ledger.Prepared
}

// Prepare does everything about a call that needs no ledger: do it before a
// transaction is begun, where others wait for each other. An error means that
// the arguments are nothing that JSON can hold; mark it with [Tape.Hole].
func (t *Tape) Prepare(c Call) (Prepared, error) {
	p := Prepared{tape: t, call: c}
	p.call.Args, p.call.Output = nil, nil
	if t.Off {
		return p, nil
	}
	a, err := t.arguments(c.Op, c.Args)
	if err != nil {
		return Prepared{}, fmt.Errorf("arguments of %s: %w", c.Op, err)
	}
	p.cell = c.cell()
	p.cell.Key, p.cell.HMAC = a.key, a.hmac
	p.view(a.view)
	p.output(c.Output)
	return p, nil
}

// In says what a call was part of, for one that was prepared before that was
// known.
func (p Prepared) In(attempt, branch int64, treeIn string, took time.Duration) Prepared {
	p.cell.AttemptID, p.cell.Branch, p.cell.TreeIn, p.cell.Took = attempt, branch, treeIn, took
	p.call.Attempt, p.call.Branch, p.call.TreeIn, p.call.Took = attempt, branch, treeIn, took
	return p
}

// cell is what a call says of itself without being looked into.
func (c Call) cell() ledger.Cell {
	cell := ledger.Cell{RunID: c.Run, AttemptID: c.Attempt, Branch: c.Branch, Op: c.Op, Exit: c.Exit,
		TreeIn: c.TreeIn, TreeOut: c.TreeOut, Took: c.Took, Actor: c.Actor}
	if c.Failed {
		cell.Flags |= ledger.CellError
	}
	if c.Denied {
		cell.Flags |= ledger.CellDenied
	}
	return cell
}

func (p *Prepared) view(view []byte) {
	if int64(len(view)) > p.tape.max() {
		view = stub(view)
	}
	if len(view) <= ledger.InlineMax {
		p.cell.View = view
		return
	}
	p.cell.ViewHash = p.content(view)
}

func (p *Prepared) output(raw []byte) {
	whole, _ := p.tape.redact().Bytes(raw)
	p.cell.OutSize = int64(len(whole))
	kept := head(whole, p.tape.max())
	if len(kept) < len(whole) {
		p.cell.Flags |= ledger.CellTruncated
		p.cell.OutHash = sha256.Sum256(whole)
	}
	if len(kept) > 0 {
		p.cell.Out = p.content(kept)
	}
}

func (p *Prepared) content(body []byte) [sha256.Size]byte {
	c := ledger.Prepare(body)
	p.contents = append(p.contents, c)
	return c.Hash
}

// Append puts the call on the tape of its run and returns its cell. In a run
// that is not recorded there is none, and the zero Cell is returned. Where the
// tape is off but the run is recorded, the cell is a hole.
func (p Prepared) Append(tx *ledger.Tx) (ledger.Cell, error) {
	run, err := tx.Run(p.call.Run)
	switch {
	case err != nil:
		return ledger.Cell{}, fmt.Errorf("cell %s: %w", p.call.Op, err)
	case !run.Tape:
		return ledger.Cell{}, nil
	case p.tape.Off:
		return p.tape.mark(tx, p.call, ErrTapeOff)
	}
	for _, c := range p.contents {
		if _, err := tx.PutContent(c); err != nil {
			return ledger.Cell{}, fmt.Errorf("cell %s of r%d: %w", p.call.Op, p.call.Run, err)
		}
	}
	return tx.AppendCell(p.cell)
}

// Record prepares a call and appends it in a transaction of its own. The error
// is a *LostError, and a hole has been marked where that was possible.
func (t *Tape) Record(ctx context.Context, c Call) (cell ledger.Cell, err error) {
	p, err := t.Prepare(c)
	if err == nil {
		err = t.DB.Update(ctx, func(tx *ledger.Tx) (err error) { cell, err = p.Append(tx); return err })
	}
	if err == nil {
		return cell, nil
	}
	lost := &LostError{Run: c.Run, Op: c.Op, Err: err}
	var marked ledger.Cell
	lost.Mark = t.DB.Update(context.WithoutCancel(ctx), func(tx *ledger.Tx) (failed error) {
		marked, lost.First, failed = t.Hole(tx, c, err)
		return failed
	})
	if lost.Mark == nil && marked.ID == 0 {
		return ledger.Cell{}, nil // the run is not recorded
	}
	lost.First = lost.First || lost.Mark != nil
	return ledger.Cell{}, lost
}
