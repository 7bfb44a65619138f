package ledger

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckpointByLabel returns the checkpoint of a worktree that carries a label,
// or ErrNotFound.
func (tx *Tx) CheckpointByLabel(worktree int64, label string) (Checkpoint, error) {
	c, err := one(tx, readCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoint WHERE worktree_id=? AND label=?`,
		worktree, label)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("label %q: %w", label, err)
	}
	return c, nil
}

// Label gives a checkpoint a label. It is a *LabelError when another checkpoint
// of the worktree carries it, or this one carries another.
func (tx *Tx) Label(id int64, label, actor string) error {
	c, err := tx.Checkpoint(id)
	if err != nil {
		return err
	}
	if c.Label == label {
		return nil
	}
	if c.Label != "" {
		return &LabelError{Label: label, Holder: id, Has: c.Label}
	}
	if err := tx.labelFree(c.WorktreeID, label); err != nil {
		return err
	}
	return tx.setLabel(c, label, actor)
}

// MoveLabel gives a checkpoint a label, and takes it from the one that carries
// it. Another label of the checkpoint is replaced.
func (tx *Tx) MoveLabel(id int64, label, actor string) error {
	c, err := tx.Checkpoint(id)
	if err != nil {
		return err
	}
	if c.Label == label {
		return nil
	}
	holder, err := tx.CheckpointByLabel(c.WorktreeID, label)
	if err == nil {
		err = tx.setLabel(holder, "", actor)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err := tx.labelFree(c.WorktreeID, label); err != nil {
		return err
	}
	return tx.setLabel(c, label, actor)
}

// Unlabel takes the label from a checkpoint, if it has one.
func (tx *Tx) Unlabel(id int64, actor string) error {
	c, err := tx.Checkpoint(id)
	if err != nil || c.Label == "" {
		return err
	}
	return tx.setLabel(c, "", actor)
}

func (tx *Tx) setLabel(c Checkpoint, label, actor string) error {
	if _, err := tx.exec(`UPDATE checkpoint SET label=? WHERE id=?`, word(label), c.ID); err != nil {
		return fmt.Errorf("label c%d: %w", c.ID, err)
	}
	return tx.Audit(actor, "checkpoint.label", detail{"checkpoint": c.ID, "old": c.Label, "new": label}.String())
}

// labelFree refuses a label that is taken, or that can't be written on one
// line.
func (tx *Tx) labelFree(worktree int64, label string) error {
	if label == "" || !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) {
		return fmt.Errorf("%q can't be a label", label)
	}
	holder, err := tx.CheckpointByLabel(worktree, label)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return &LabelError{Label: label, Holder: holder.ID, Has: label}
}
