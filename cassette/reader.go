package cassette

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// ReadOptions of Open. The zero value serves all of a run, and only that.
type ReadOptions struct {
	Range

	// Live: what the tape does not have will be carried out. A miss is then
	// no divergence; a cell that is not whole still is.
	Live bool
}

// Reader serves the cells of a run, each once. It may be used by many
// goroutines at once, and writes nothing.
type Reader struct {
	tape *Tape
	run  int64
	live bool

	mu       sync.Mutex
	cells    []ledger.Cell // that can be asked for
	holes    []ledger.Cell
	served   []bool
	byKey    map[snapshot.Hash][]int
	diverged error
}

// Open returns a reader of a run's tape as it is now. It returns ErrTapeOff for
// a run that was not recorded.
func (t *Tape) Open(ctx context.Context, run int64, o ReadOptions) (*Reader, error) {
	r := &Reader{tape: t, run: run, live: o.Live, byKey: map[snapshot.Hash][]int{}}
	err := t.DB.View(ctx, func(tx *ledger.Tx) error {
		if err := recorded(tx, run); err != nil {
			return err
		}
		return each(tx, run, o.Range, func(c ledger.Cell) bool { r.add(c); return true })
	})
	if err != nil {
		return nil, fmt.Errorf("open tape: %w", err)
	}
	r.served = make([]bool, len(r.cells))
	return r, nil
}

func (r *Reader) add(c ledger.Cell) {
	if c.Flags.Has(ledger.CellHole) {
		r.holes = append(r.holes, c)
		return
	}
	r.byKey[c.Key] = append(r.byKey[c.Key], len(r.cells))
	r.cells = append(r.cells, c)
}

// Next returns the first cell not yet served of the same operation with the
// same arguments, and its output. Those of other operations may have come
// before it, so it does not matter in which order parallel work asks.
//
// A call that the tape can't answer is a divergence: *MissError,
// *TruncatedError or *HoleError. The first one is kept, and every later call
// returns it again.
func (r *Reader) Next(ctx context.Context, op string, args any) (ledger.Cell, []byte, error) {
	a, err := r.tape.arguments(op, args)
	if err != nil {
		return ledger.Cell{}, nil, fmt.Errorf("arguments of %s: %w", op, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.diverged != nil {
		return ledger.Cell{}, nil, r.diverged
	}
	i := r.find(a)
	if i < 0 {
		return ledger.Cell{}, nil, r.miss(op, a)
	}
	cell := r.cells[i]
	if cell.Flags.Has(ledger.CellTruncated) {
		r.diverged = &TruncatedError{Cell: cell, Setting: MaxSetting}
		return ledger.Cell{}, nil, r.diverged
	}
	var output []byte
	err = r.tape.DB.View(ctx, func(tx *ledger.Tx) (err error) { output, err = tx.CellOutput(cell); return err })
	if err != nil {
		return ledger.Cell{}, nil, fmt.Errorf("cell %d of r%d: %w", cell.Seq, r.run, err)
	}
	r.served[i] = true
	return cell, output, nil
}

// find returns the place of the cell to serve, or -1.
func (r *Reader) find(a arguments) int {
	for _, i := range r.byKey[a.key] {
		if !r.served[i] && agree(r.cells[i].HMAC, a.hmac) {
			return i
		}
	}
	if a.plain == a.key {
		return -1
	}
	for _, i := range r.byKey[a.plain] { // recorded before this was known to be a secret
		if !r.served[i] {
			return i
		}
	}
	return -1
}

// agree reports whether two calls that look alike are. Where one of them was
// redacted when it came, as on a tape that is served from its own words, the
// look is all there is.
func agree(a, b []byte) bool { return a == nil || b == nil || bytes.Equal(a, b) }

// miss explains why there is nothing to serve.
func (r *Reader) miss(op string, a arguments) error {
	for _, h := range r.holes {
		if h.Op == op {
			r.diverged = holeError(h)
			return r.diverged
		}
	}
	miss := &MissError{Run: r.run, Op: op, View: string(a.view)}
	if r.live {
		return miss
	}
	miss.Near, miss.Secret = r.near(op, a)
	r.diverged = miss
	return miss
}

// near returns the first cell left with the same arguments but for what is
// redacted in them, or else the first of the same operation.
func (r *Reader) near(op string, a arguments) (near *ledger.Cell, same bool) {
	for i, c := range r.cells {
		switch {
		case r.served[i] || c.Op != op:
		case c.Key == a.key:
			return &r.cells[i], true
		case near == nil:
			near = &r.cells[i]
		}
	}
	return near, false
}

// Diverged returns the first call that the tape could not answer, or nil.
func (r *Reader) Diverged() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.diverged
}

// Served is how many cells have been served, out of how many. A hole counts as
// one that has not.
func (r *Reader) Served() (served, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.served {
		if s {
			served++
		}
	}
	return served, len(r.cells) + len(r.holes)
}

// Unserved returns what nobody has asked for, in order, holes among it.
func (r *Reader) Unserved() []ledger.Cell {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []ledger.Cell
	holes := r.holes
	for i, c := range r.cells {
		for len(holes) > 0 && holes[0].Seq < c.Seq {
			left, holes = append(left, holes[0]), holes[1:]
		}
		if !r.served[i] {
			left = append(left, c)
		}
	}
	return append(left, holes...)
}
