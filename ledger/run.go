package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/snapshot"
)

// What can become of a run or an attempt. A run that goes on is StatusRunning,
// an attempt that goes on has no outcome yet.
const (
	StatusRunning      = "running"
	OutcomeOK          = "ok"
	OutcomeFailed      = "failed"
	OutcomeInterrupted = "interrupted"
)

// Run is one execution, written r7 where its ID is 7.
type Run struct {
	ID         int64
	UID        string // unique everywhere, sorts by creation; made when empty
	Source     string // what recorded it: "exec", "watch", an agent's name
	ExtID      string // the source's own name for it, unique in the source
	Name       string
	Status     string // StatusRunning when empty
	WorktreeID int64
	Command    string // bytes
	Parent     int64  // 0 for none
	Created    time.Time
	Updated    time.Time

	Kind       string        // what carries it out, "workflow" or "session"; "" for a recorded command
	Lineage    int64         // the first run of its tree of forks; the run itself when 0 is given
	HeadBranch int64         // 0 while it has no branch
	HeadOp     int64         // the operation that moved it last; 0 for none
	Generation int           // how often part of it was run again
	Input      snapshot.Hash // a content
	Def        snapshot.Hash // a content: the definition it is pinned to
	Seed       snapshot.Hash // from which recorded values derive
	Tape       bool          // its operations are recorded
}

const runColumns = `id, uid, source, ext_id, name, status, worktree_id, command, parent_id, created_ms, updated_ms, ` +
	`kind, lineage, head_branch, head_op, generation, input, def, seed, tape`

func readRun(s scanner) (r Run, err error) {
	var ext, name sql.NullString
	var parent, head, op sql.NullInt64
	var command []byte
	var created, updated int64
	err = s.Scan(&r.ID, &r.UID, &r.Source, &ext, &name, &r.Status, &r.WorktreeID, &command, &parent, &created, &updated,
		&r.Kind, &r.Lineage, &head, &op, &r.Generation, hashIn{&r.Input}, hashIn{&r.Def}, hashIn{&r.Seed}, &r.Tape)
	r.HeadBranch, r.HeadOp = head.Int64, op.Int64
	r.ExtID, r.Name, r.Parent, r.Command = ext.String, name.String, parent.Int64, string(command)
	r.Created, r.Updated = fromMillis(created), fromMillis(updated)
	return r, err
}

// CreateRun adds a run and returns it with its number, UID and times. It has no
// branch yet: see [Tx.CreateBranch] and [Tx.Fork].
func (tx *Tx) CreateRun(r Run) (Run, error) {
	for _, h := range []snapshot.Hash{r.Input, r.Def} {
		if err := tx.name(h); err != nil {
			return Run{}, fmt.Errorf("create run of %s: %w", r.Source, err)
		}
	}
	id, err := tx.next("run")
	if err != nil {
		return Run{}, err
	}
	r.ID, r.Created = id, tx.Now()
	r.Updated = r.Created
	if r.UID == "" {
		r.UID = newUID(r.Created)
	}
	if r.Status == "" {
		r.Status = StatusRunning
	}
	if r.Lineage == 0 {
		r.Lineage = r.ID
	}
	r.HeadBranch, r.HeadOp = 0, 0
	_, err = tx.exec(`INSERT INTO run(`+runColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?, ?, ?, ?, ?)`,
		r.ID, r.UID, r.Source, word(r.ExtID), word(r.Name), r.Status, r.WorktreeID, []byte(r.Command), ref(r.Parent),
		millis(r.Created), millis(r.Updated), r.Kind, r.Lineage, r.Generation, hashRef(r.Input), hashRef(r.Def), hashRef(r.Seed), r.Tape)
	if err != nil {
		return Run{}, fmt.Errorf("create run of %s: %w", r.Source, err)
	}
	return r, nil
}

// SetRunStatus records that a run has ended, or goes on.
func (tx *Tx) SetRunStatus(id int64, status string) error {
	n, err := tx.exec(`UPDATE run SET status=?, updated_ms=? WHERE id=?`, status, millis(tx.Now()), id)
	return found(n, err, "r%d", id)
}

// SetRunDef pins a run to another definition, a content.
func (tx *Tx) SetRunDef(id int64, def snapshot.Hash) error {
	if err := tx.name(def); err != nil {
		return fmt.Errorf("definition of r%d: %w", id, err)
	}
	n, err := tx.exec(`UPDATE run SET def=?, updated_ms=? WHERE id=?`, hashRef(def), millis(tx.Now()), id)
	return found(n, err, "r%d", id)
}

// NextGeneration begins another generation of a run and returns its number.
func (tx *Tx) NextGeneration(id int64) (int, error) {
	n, err := tx.exec(`UPDATE run SET generation = generation + 1, updated_ms=? WHERE id=?`, millis(tx.Now()), id)
	if err := found(n, err, "r%d", id); err != nil {
		return 0, err
	}
	r, err := tx.Run(id)
	return r.Generation, err
}

// Lineage returns a run and those it was forked from, nearest first.
func (tx *Tx) Lineage(id int64) ([]int64, error) {
	ids, err := all(tx, readInt, `WITH RECURSIVE line(id, parent, lineage) AS (
			SELECT id, parent_id, lineage FROM run WHERE id = ?
			UNION ALL SELECT r.id, r.parent_id, r.lineage FROM line JOIN run r ON r.id = line.parent AND r.lineage = line.lineage
		) SELECT id FROM line`, id)
	if err == nil && len(ids) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("lineage of r%d: %w", id, err)
	}
	return ids, nil
}

// Run returns the run with this number, or ErrNotFound.
func (tx *Tx) Run(id int64) (Run, error) {
	r, err := one(tx, readRun, `SELECT `+runColumns+` FROM run WHERE id=?`, id)
	if err != nil {
		return Run{}, fmt.Errorf("r%d: %w", id, err)
	}
	return r, nil
}

// RunByExt returns the run its source calls ext, or ErrNotFound.
func (tx *Tx) RunByExt(source, ext string) (Run, error) {
	r, err := one(tx, readRun, `SELECT `+runColumns+` FROM run WHERE source=? AND ext_id=?`, source, ext)
	if err != nil {
		return Run{}, fmt.Errorf("run %s of %s: %w", ext, source, err)
	}
	return r, nil
}

// FindRun returns the run that a person means by a word: its number ("r7"), its
// name, or the beginning of its UID or of its source's name for it, tried in
// this order. ErrNotFound when it is none, *AmbiguousError when it is several.
func (tx *Tx) FindRun(what string) (Run, error) {
	if digits, ok := strings.CutPrefix(what, "r"); ok {
		if id, err := strconv.ParseInt(digits, 10, 64); err == nil {
			if r, err := tx.Run(id); !errors.Is(err, ErrNotFound) {
				return r, err
			}
		}
	}
	if what == "" {
		return Run{}, fmt.Errorf("run %q: %w", what, ErrNotFound)
	}
	for _, where := range []string{`name = ? AND ? <> ''`, `uid >= ? AND uid < ?`, `ext_id >= ? AND ext_id < ?`} {
		rs, err := all(tx, readRun, `SELECT `+runColumns+` FROM run WHERE `+where+` ORDER BY id DESC LIMIT 10`,
			what, pastPrefix(what))
		if err != nil {
			return Run{}, fmt.Errorf("run %q: %w", what, err)
		}
		switch len(rs) {
		case 0:
			continue
		case 1:
			return rs[0], nil
		}
		ambiguous := &AmbiguousError{Prefix: what}
		for _, r := range rs {
			ambiguous.Matches = append(ambiguous.Matches, fmt.Sprintf("r%d", r.ID))
		}
		return Run{}, ambiguous
	}
	return Run{}, fmt.Errorf("run %q: %w", what, ErrNotFound)
}

// pastPrefix sorts after every text that begins with prefix.
func pastPrefix(prefix string) string { return prefix + "\U0010FFFF" }

// RunQuery selects a page of runs, newest first. The zero value is the newest
// page of all.
type RunQuery struct {
	Worktree int64  // only in this worktree
	Status   string // only with this status
	Before   int64  // only older than this run
	Limit    int    // 200 when zero
}

// Runs returns a page of runs, newest first.
func (tx *Tx) Runs(q RunQuery) ([]Run, error) {
	return all(tx, readRun, `SELECT `+runColumns+` FROM run
		WHERE id < ? AND (? = 0 OR worktree_id = ?) AND (? = '' OR status = ?) ORDER BY id DESC LIMIT ?`,
		before(q.Before), q.Worktree, q.Worktree, q.Status, q.Status, limit(q.Limit))
}

// RunningRuns returns the runs of a kind in a worktree that are said to go on,
// newest first. It does not look at others.
func (tx *Tx) RunningRuns(worktree int64, kind string) ([]Run, error) {
	return all(tx, readRun, `SELECT `+runColumns+` FROM run INDEXED BY run_running
		WHERE worktree_id=? AND kind=? AND status='`+StatusRunning+`' ORDER BY id DESC`, worktree, kind)
}

// DeleteRun deletes a run with all that belongs to it: attempts, checkpoints,
// branches with their frames and events, effects, signals, transcripts and cells. It refuses with a
// *ReferencedError while an attempt is open, a label is on one of the
// checkpoints, or another run, a branch or an attempt of another run, or an
// operation that is not pruned needs it; with a *PinnedError when a checkpoint is pinned.
func (tx *Tx) DeleteRun(id int64, actor string) error {
	if _, err := tx.Run(id); err != nil {
		return err
	}
	what := fmt.Sprintf("r%d", id)
	var by int64
	err := tx.get(`SELECT id FROM run WHERE parent_id=? LIMIT 1`, []any{id}, &by)
	if !errors.Is(err, ErrNotFound) {
		return refusal(err, what, "r%d", by)
	}
	err = tx.get(`SELECT number FROM attempt WHERE run_id=? AND outcome IS NULL LIMIT 1`, []any{id}, &by)
	if !errors.Is(err, ErrNotFound) {
		return refusal(err, what, "open attempt %d", by)
	}
	err = tx.get(`SELECT o.run_id FROM branch b JOIN branch o ON o.parent_id = b.id
		WHERE b.run_id=? AND o.run_id <> b.run_id LIMIT 1`, []any{id}, &by)
	if !errors.Is(err, ErrNotFound) {
		return refusal(err, what, "r%d", by)
	}
	err = tx.get(`SELECT op.id FROM branch b JOIN op ON op.id = b.archived_by OR op.id = b.op_id
		WHERE b.run_id=? AND op.pruned=0 LIMIT 1`, []any{id}, &by)
	if !errors.Is(err, ErrNotFound) {
		return refusal(err, what, "op %d", by)
	}
	checkpoints, err := all(tx, readCheckpoint, `SELECT `+checkpointColumns+` FROM checkpoint WHERE run_id=?`, id)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for _, c := range checkpoints {
		if err := tx.deletable(c, id); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	for _, statement := range []string{
		`UPDATE attempt SET before_id=NULL, after_id=NULL WHERE run_id=?`,
		`UPDATE run SET head_branch=NULL WHERE id=?`,
		`DELETE FROM attention WHERE run_id=?`,
		`DELETE FROM effect WHERE run_id=?`,
		`DELETE FROM cell WHERE run_id=?`,
		`DELETE FROM signal WHERE run_id=?`,
		`DELETE FROM transcript_piece WHERE transcript_id IN (SELECT id FROM transcript WHERE run_id=?)`,
		`DELETE FROM transcript WHERE run_id=?`,
		`DELETE FROM event WHERE branch_id IN (SELECT id FROM branch WHERE run_id=?)`,
		`DELETE FROM keyframe WHERE branch_id IN (SELECT id FROM branch WHERE run_id=?)`,
		`DELETE FROM frame WHERE branch_id IN (SELECT id FROM branch WHERE run_id=?)`,
		`DELETE FROM branch WHERE run_id=?`,
		`DELETE FROM checkpoint WHERE run_id=?`,
		`INSERT INTO counter(name, value) SELECT 'attempt', id FROM attempt WHERE run_id=? ORDER BY id DESC LIMIT 1
			ON CONFLICT(name) DO UPDATE SET value = excluded.value WHERE counter.value < excluded.value`, // see nextAttempt
		`DELETE FROM attempt WHERE run_id=?`,
		`DELETE FROM run WHERE id=?`,
	} {
		if _, err := tx.exec(statement, id); err != nil {
			return fmt.Errorf("delete %s: %w", what, err)
		}
	}
	return tx.Audit(actor, "run.delete", detail{"run": id, "checkpoints": len(checkpoints)}.String())
}

// refusal is the error of a look-up that found who needs a row.
func refusal(err error, what, format string, by ...any) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &ReferencedError{What: what, By: fmt.Sprintf(format, by...)}
}

// found turns an update of no row into ErrNotFound.
func found(n int64, err error, format string, args ...any) error {
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return nil
}
