package ledger

import (
	"errors"
	"fmt"
)

// Undo and redo walk a list of moves. An undo takes the newest move that is
// not undone. A redo takes the newest undo that is not redone, as long as no
// move has been made since, and is itself a move, which can be undone again:
// so ten undos and ten redos lead back to where they began.

// UndoTarget returns the operation that an undo in this worktree would take
// back. ErrNotFound when there is none, or its commits have been pruned.
func (tx *Tx) UndoTarget(worktree int64) (Op, error) {
	o, err := tx.newest(worktree, `verb <> 'undo' AND undone_by IS NULL`)
	if err == nil && o.Pruned {
		err = ErrNotFound
	}
	if err != nil {
		return Op{}, nothing(VerbUndo, worktree, err)
	}
	return o, nil
}

// RedoTarget returns the undo that a redo in this worktree would take back.
// ErrNotFound when there is none, when a move was made since, or when its
// commits have been pruned.
func (tx *Tx) RedoTarget(worktree int64) (Op, error) {
	o, err := tx.newest(worktree, `verb = 'undo' AND undone_by IS NULL`)
	if err == nil && o.Pruned {
		err = ErrNotFound
	}
	if err == nil {
		err = tx.noMoveSince(worktree, o.ID)
	}
	if err != nil {
		return Op{}, nothing(VerbRedo, worktree, err)
	}
	return o, nil
}

// NothingError says that there is no operation to undo or redo. It is an
// ErrNotFound.
type NothingError struct{ Verb string }

func (e *NothingError) Error() string        { return "nothing to " + e.Verb }
func (e *NothingError) Is(target error) bool { return target == ErrNotFound }

func nothing(verb string, worktree int64, err error) error {
	if errors.Is(err, ErrNotFound) {
		return &NothingError{Verb: verb}
	}
	return fmt.Errorf("%s in worktree %d: %w", verb, worktree, err)
}

// noMoveSince is ErrNotFound when a move of its own was made after an operation.
func (tx *Tx) noMoveSince(worktree, op int64) error {
	move, err := tx.newest(worktree, `verb <> 'undo' AND verb <> 'redo'`)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err == nil && move.ID > op:
		return ErrNotFound
	}
	return err
}

// newest returns the newest operation in a worktree that did what it was for.
func (tx *Tx) newest(worktree int64, where string) (Op, error) {
	o, err := one(tx, readOp, `SELECT `+opColumns+` FROM op
		WHERE result = 'ok' AND `+where+` AND id IN (SELECT op_id FROM op_worktree WHERE worktree_id = ?)
		ORDER BY id DESC LIMIT 1`, worktree)
	if err != nil {
		return Op{}, err
	}
	return o, tx.loadWorktrees(&o)
}

func (tx *Tx) canUndo(id int64) error {
	o, err := tx.Op(id)
	switch {
	case err != nil:
		return err
	case o.Result != ResultOK:
		return &UndoneError{Op: id, Reason: "has changed nothing"}
	case o.UndoneBy != 0:
		return &UndoneError{Op: id, Reason: fmt.Sprintf("was undone by op %d", o.UndoneBy)}
	case o.Pruned:
		return &UndoneError{Op: id, Reason: "has been pruned"}
	}
	return nil
}

func (tx *Tx) markUndone(id, by int64) error {
	n, err := tx.exec(`UPDATE op SET undone_by=? WHERE id=? AND undone_by IS NULL`, by, id)
	if err == nil && n == 0 {
		err = &UndoneError{Op: id, Reason: "was undone meanwhile"}
	}
	if err != nil {
		return fmt.Errorf("op %d undoes %d: %w", by, id, err)
	}
	return nil
}

// PruneOp gives up the commits of an operation: they no longer count as live,
// and it can't be undone. The row stays. An open one is refused with an
// *InProgressError. Which are old enough is for the caller to say; prune the
// oldest first.
func (tx *Tx) PruneOp(id int64, actor string) error {
	o, err := tx.Op(id)
	if err != nil {
		return err
	}
	if o.Result == "" {
		return inProgress(o)
	}
	if o.Pruned {
		return nil
	}
	if _, err := tx.exec(`UPDATE op SET pruned=1 WHERE id=?`, id); err != nil {
		return fmt.Errorf("prune op %d: %w", id, err)
	}
	return tx.audit(actor, id, "op.prune", "{}")
}
