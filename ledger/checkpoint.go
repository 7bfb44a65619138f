package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Why a checkpoint was taken.
const (
	TierTool   = "tool"   // around a tool call or an attempt
	TierWatch  = "watch"  // by a watcher
	TierManual = "manual" // by hand
	TierSafety = "safety" // before a move
	TierRescue = "rescue" // what somebody wrote during a move
)

// Which side of a tool call or an attempt a checkpoint was taken on.
const (
	EdgeBefore = "before"
	EdgeAfter  = "after"
)

// Checkpoint is a worktree commit and why it was taken, written c17 where its
// ID is 17. A later checkpoint has a higher ID, whatever the clock said.
type Checkpoint struct {
	ID         int64
	WorktreeID int64
	RunID      int64  // 0 for none
	AttemptID  int64  // 0 for none
	Edge       string // EdgeBefore, EdgeAfter or ""
	Tier       string
	Commit     string // lower-case hexadecimal
	Tree       string // lower-case hexadecimal
	Label      string // unique in the worktree; "" for none
	Pinned     bool
	Note       string
	Actor      string
	Partial    bool   // something was not captured
	Stats      string // JSON
	Created    time.Time
}

const checkpointColumns = `id, worktree_id, run_id, attempt_id, edge, tier, commit_id, tree_id, label, pinned, note, actor, partial, stats, created_ms`

func readCheckpoint(s scanner) (c Checkpoint, err error) {
	var run, attempt sql.NullInt64
	var label sql.NullString
	var created int64
	err = s.Scan(&c.ID, &c.WorktreeID, &run, &attempt, &c.Edge, &c.Tier, &c.Commit, &c.Tree, &label,
		&c.Pinned, &c.Note, &c.Actor, &c.Partial, &c.Stats, &created)
	c.RunID, c.AttemptID, c.Label, c.Created = run.Int64, attempt.Int64, label.String, fromMillis(created)
	return c, err
}

// AppendCheckpoint adds a checkpoint and returns it with its number and time. A
// label that is taken is a *LabelError.
func (tx *Tx) AppendCheckpoint(c Checkpoint) (Checkpoint, error) {
	if !isHex(c.Commit) || !isHex(c.Tree) {
		return Checkpoint{}, fmt.Errorf("checkpoint: commit %q, tree %q: not hexadecimal", c.Commit, c.Tree)
	}
	stats, err := jsonText("checkpoint stats", c.Stats)
	if err != nil {
		return Checkpoint{}, err
	}
	if c.Label != "" {
		if err := tx.labelFree(c.WorktreeID, c.Label); err != nil {
			return Checkpoint{}, err
		}
	}
	id, err := tx.next("checkpoint")
	if err != nil {
		return Checkpoint{}, err
	}
	c.ID, c.Stats, c.Created = id, stats, tx.Now()
	_, err = tx.exec(`INSERT INTO checkpoint(`+checkpointColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.ID, c.WorktreeID, ref(c.RunID), ref(c.AttemptID), c.Edge, c.Tier, c.Commit, c.Tree, word(c.Label),
		c.Pinned, c.Note, c.Actor, c.Partial, c.Stats, millis(c.Created))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint of worktree %d: %w", c.WorktreeID, err)
	}
	return c, nil
}

// isHex reports whether s can be an object's name.
func isHex(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Checkpoint returns the checkpoint with this number, or ErrNotFound.
func (tx *Tx) Checkpoint(id int64) (Checkpoint, error) {
	c, err := one(tx, readCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoint WHERE id=?`, id)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("c%d: %w", id, err)
	}
	return c, nil
}

// CheckpointByCommit returns the newest checkpoint in a worktree whose commit
// begins with prefix. ErrNotFound when there is none; *AmbiguousError when the
// prefix fits several commits.
func (tx *Tx) CheckpointByCommit(worktree int64, prefix string) (Checkpoint, error) {
	commits, err := all(tx, readString, `SELECT DISTINCT commit_id FROM checkpoint
		WHERE commit_id >= ? AND commit_id < ? AND worktree_id = ? ORDER BY commit_id LIMIT 10`,
		prefix, pastPrefix(prefix), worktree)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint %s: %w", prefix, err)
	}
	if prefix == "" || len(commits) == 0 {
		return Checkpoint{}, fmt.Errorf("checkpoint %q: %w", prefix, ErrNotFound)
	}
	if len(commits) > 1 {
		return Checkpoint{}, &AmbiguousError{Prefix: prefix, Matches: commits}
	}
	return one(tx, readCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoint
		WHERE commit_id = ? AND worktree_id = ? ORDER BY id DESC LIMIT 1`, commits[0], worktree)
}

// CheckpointQuery selects a page of checkpoints, newest first. The zero value
// is the newest page of all.
type CheckpointQuery struct {
	Worktree int64  // only of this worktree
	Run      int64  // only of this run
	Tier     string // only taken for this reason
	Before   int64  // only older than this checkpoint
	Limit    int    // 200 when zero
}

// Checkpoints returns a page of checkpoints, newest first.
func (tx *Tx) Checkpoints(q CheckpointQuery) ([]Checkpoint, error) {
	query := `SELECT ` + checkpointColumns + ` FROM checkpoint WHERE id < ?`
	args := []any{before(q.Before)}
	if q.Worktree != 0 {
		query, args = query+` AND worktree_id = ?`, append(args, q.Worktree)
	}
	if q.Run != 0 {
		query, args = query+` AND run_id = ?`, append(args, q.Run)
	}
	if q.Tier != "" {
		query, args = query+` AND tier = ?`, append(args, q.Tier)
	}
	return all(tx, readCheckpoint, query+` ORDER BY id DESC LIMIT ?`, append(args, limit(q.Limit))...)
}

// LatestCheckpoint returns the newest checkpoint of a worktree, or ErrNotFound.
func (tx *Tx) LatestCheckpoint(worktree int64) (Checkpoint, error) {
	c, err := one(tx, readCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoint
		WHERE worktree_id = ? ORDER BY id DESC LIMIT 1`, worktree)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("newest checkpoint of worktree %d: %w", worktree, err)
	}
	return c, nil
}

// CheckpointsAfter hands the checkpoints of a worktree taken after one to a
// function, oldest first, and stops at its first error. After 0 comes all.
func (tx *Tx) CheckpointsAfter(worktree, after int64, do func(Checkpoint) error) error {
	return each(tx, readCheckpoint, do, `SELECT `+checkpointColumns+` FROM checkpoint
		WHERE worktree_id = ? AND id > ? ORDER BY id`, worktree, after)
}

// SetPinned pins a checkpoint, or frees it. A pinned one is never deleted.
func (tx *Tx) SetPinned(id int64, pinned bool, actor string) error {
	n, err := tx.exec(`UPDATE checkpoint SET pinned=? WHERE id=?`, pinned, id)
	if err := found(n, err, "c%d", id); err != nil {
		return err
	}
	return tx.Audit(actor, "checkpoint.pin", detail{"checkpoint": id, "pinned": pinned}.String())
}

// DeleteCheckpoint deletes a checkpoint; its number is not given again. A
// pinned one is refused with a *PinnedError. One that has a label, or belongs
// to an attempt or a frame, or whose commit an operation that is not pruned
// needs, is refused with a *ReferencedError: those of a run go with
// [Tx.DeleteRun].
func (tx *Tx) DeleteCheckpoint(id int64, actor string) error {
	c, err := tx.Checkpoint(id)
	if err != nil {
		return err
	}
	if err := tx.deletable(c, 0); err != nil {
		return err
	}
	if _, err := tx.exec(`DELETE FROM checkpoint WHERE id=?`, id); err != nil {
		return fmt.Errorf("delete c%d: %w", id, err)
	}
	return tx.Audit(actor, "checkpoint.delete", detail{"checkpoint": id, "commit": c.Commit}.String())
}

// deletable says who needs a checkpoint. Attempts and frames of the run that
// goes with it do not count.
func (tx *Tx) deletable(c Checkpoint, going int64) error {
	what := fmt.Sprintf("c%d", c.ID)
	if c.Pinned {
		return &PinnedError{Checkpoint: c.ID}
	}
	if c.Label != "" {
		return &ReferencedError{What: what, By: fmt.Sprintf("label %q", c.Label)}
	}
	a, err := one(tx, readAttempt, `SELECT `+attemptColumns+` FROM `+attemptTable+`
		WHERE (before_id = ? OR after_id = ? OR attempt.id = ?) AND run_id <> ? LIMIT 1`, c.ID, c.ID, c.AttemptID, going)
	if !errors.Is(err, ErrNotFound) {
		return refusal(err, what, "attempt %d of %s in r%d", a.Number, a.Task, a.RunID)
	}
	var run, seq int64
	err = tx.get(`SELECT b.run_id, f.seq FROM frame f JOIN branch b ON b.id = f.branch_id
		WHERE f.checkpoint_id = ? AND b.run_id <> ? LIMIT 1`, []any{c.ID, going}, &run, &seq)
	if !errors.Is(err, ErrNotFound) {
		return refusal(err, what, "frame %d of r%d", seq, run)
	}
	var op int64
	err = tx.get(`SELECT op.id FROM op JOIN op_worktree w ON w.op_id = op.id
		WHERE op.pruned = 0 AND (w.from_commit = ? OR w.safety = ? OR w.target = ? OR w.rescue = ?) ORDER BY op.id LIMIT 1`,
		[]any{c.Commit, c.Commit, c.Commit, c.Commit}, &op)
	if !errors.Is(err, ErrNotFound) {
		return refusal(err, what, "op %d", op)
	}
	return nil
}
