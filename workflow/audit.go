package workflow

import (
	"context"

	"github.com/retcon-dev/retcon/ledger"
)

// Audit renders a run against each of its frames and holds the render to what
// was recorded. It returns how many frames agreed; the error of the first that
// does not is a *DivergedError. program is nil for the definition that each
// frame is pinned to; of another one the graph is compared.
func Audit(ctx context.Context, o Options, run int64, program *Program) (int64, error) {
	var b body
	if program != nil {
		b = program.p
	}
	return audit(ctx, o, run, b)
}

// AuditGo is [Audit] of a Go program's run.
func AuditGo(ctx context.Context, o Options, run int64, p GoProgram) (int64, error) {
	return audit(ctx, o, run, newGoBody(p))
}

func audit(ctx context.Context, o Options, run int64, p body) (int64, error) {
	e, b, err := openRun(ctx, o, run, p)
	if err != nil {
		return 0, err
	}
	newest := e.head.Seq
	for seq := range newest + 1 {
		err := o.Ledger.View(ctx, func(tx *ledger.Tx) (err error) {
			e.head, err = tx.LoadFrame(e.run.HeadBranch, seq)
			return err
		})
		if err != nil {
			return seq, err
		}
		if e.past, err = readPast(ctx, o.Ledger, e.run, e.head, e.lineage, seq); err != nil {
			return seq, err
		}
		if p == nil {
			if b, err = e.pinned(ctx, b); err != nil {
				return seq, err
			}
		}
		if err := e.strict(ctx, b); err != nil {
			return seq, err
		}
	}
	return newest + 1, nil
}

// pinned is the body that the frame was made with: b, when it is the one.
func (e *engine) pinned(ctx context.Context, b body) (body, error) {
	row, ok := e.head.Set.Get(keyDefinition)
	if !ok || row.Out == b.definition().Hash {
		return b, nil
	}
	var loaded *Program
	err := e.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		def, err := storedDefinition(tx, row.Out)
		if err == nil {
			loaded, err = loadProgram(def, nil)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return loaded.p, nil
}
