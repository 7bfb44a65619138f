package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Kinds of problems.
const (
	ProblemDamage    = "damage"    // the file, as SQLite or reading it finds
	ProblemReference = "reference" // a row names one that is not there, or not the right one
	ProblemAudit     = "audit"     // the chain is broken, or does not tell of an operation
	ProblemSequence  = "sequence"  // a number was given twice, or is missing
	ProblemRow       = "row"       // a row says what can't be
	ProblemLease     = "lease"     // a worktree is leased to no operation, or to the wrong one
	ProblemOpenMove  = "open-move" // an operation has no result
	ProblemBranch    = "branch"    // branches and their frames do not fit together
	ProblemFrame     = "frame"     // a state is not the one that was recorded
	ProblemContent   = "content"   // a body is not what its hash says
)

// Problem is something Check found.
type Problem struct {
	Kind   string
	What   string // the row: "c17", "op 3", "audit 12"
	Detail string

	// Of an open move. While the operating system's lock on its worktree is
	// held, it is being carried out and all is well; the ledger can't know.
	Op        int64
	Owner     Owner
	Worktrees []int64
}

func (p Problem) String() string { return fmt.Sprintf("%s: %s: %s", p.Kind, p.What, p.Detail) }

// Check reads the whole ledger, as it is at one moment, and returns all that is
// wrong with it. The error says that the check could not be made; a file too
// damaged to read is a Problem. SQLite's own check finds torn pages and no
// flipped bits, so what is hashed is hashed again.
func (db *DB) Check(ctx context.Context) ([]Problem, error) {
	var c check
	err := db.View(ctx, func(tx *Tx) error {
		c.tx = tx
		for _, part := range []func() error{
			c.file, c.references, c.sequences, c.rows, c.audit, c.ops, c.leases,
			c.branches, c.frames, c.contents, c.tape, c.effects, c.transcripts,
		} {
			if err := part(); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				c.found(ProblemDamage, db.path, "%v", err)
			}
		}
		return nil
	})
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		c.found(ProblemDamage, db.path, "%v", corrupt.Err)
		err = nil
	}
	return c.problems, err
}

type check struct {
	tx       *Tx
	problems []Problem
}

func (c *check) found(kind, what, format string, args ...any) {
	c.problems = append(c.problems, Problem{Kind: kind, What: what, Detail: fmt.Sprintf(format, args...)})
}

func (c *check) file() error {
	return each(c.tx, readString, func(s string) error {
		if s != "ok" {
			c.found(ProblemDamage, c.tx.db.path, "%s", s)
		}
		return nil
	}, `PRAGMA quick_check(100)`)
}

func (c *check) references() error {
	type violation struct {
		table, parent string
		row           sql.NullInt64
	}
	read := func(s scanner) (v violation, err error) {
		err = s.Scan(&v.table, &v.row, &v.parent)
		return v, err
	}
	err := each(c.tx, read, func(v violation) error {
		c.found(ProblemReference, fmt.Sprintf("%s %d", v.table, v.row.Int64), "its %s is missing", v.parent)
		return nil
	}, `SELECT "table", rowid, parent FROM pragma_foreign_key_check`)
	if err != nil {
		return err
	}
	return c.each(ProblemReference, `
		SELECT 'c' || c.id, 'its attempt is of another run' FROM checkpoint c JOIN attempt a ON a.id = c.attempt_id
			WHERE c.run_id IS NULL OR c.run_id <> a.run_id
		UNION ALL SELECT 'attempt ' || a.id, 'checkpoint c' || c.id || ' is of another worktree'
			FROM attempt a JOIN run r ON r.id = a.run_id JOIN checkpoint c ON c.id = a.before_id OR c.id = a.after_id
			WHERE c.worktree_id <> coalesce(a.worktree_id, r.worktree_id)
		UNION ALL SELECT 'op ' || o.id, 'undoes op ' || u.id || ', which does not know' FROM op o JOIN op u ON u.id = o.undoes
			WHERE o.result = 'ok' AND (u.undone_by IS NULL OR u.undone_by <> o.id)
		UNION ALL SELECT 'op ' || o.id, 'undone by op ' || u.id || ', which does not know' FROM op o JOIN op u ON u.id = o.undone_by
			WHERE u.result IS NULL OR u.result <> 'ok' OR u.undoes IS NULL OR u.undoes <> o.id`)
}

func (c *check) sequences() error {
	for _, table := range []string{"worktree", "run", "checkpoint", "op", "audit", "branch", "signal", "cell", "effect", "attention", "transcript"} {
		var highest, given sql.NullInt64
		err := c.tx.get(`SELECT (SELECT max(id) FROM `+table+`), (SELECT value FROM counter WHERE name = ?)`,
			[]any{table}, &highest, &given)
		if err != nil {
			return err
		}
		if highest.Int64 > given.Int64 {
			c.found(ProblemSequence, fmt.Sprintf("%s %d", table, highest.Int64), "only %d numbers were given", given.Int64)
		}
	}
	return c.each(ProblemSequence, `
		SELECT 'r' || run_id, 'attempts of ' || task || ' are not numbered 1 to ' || count(*)
			FROM attempt GROUP BY run_id, task HAVING min(number) <> 1 OR max(number) <> count(*)`)
}

func (c *check) rows() error {
	read := func(s scanner) (row [3]string, err error) {
		err = s.Scan(&row[0], &row[1], &row[2])
		return row, err
	}
	return each(c.tx, read, func(row [3]string) error {
		if !isHex(row[1]) || !isHex(row[2]) {
			c.found(ProblemRow, row[0], "commit %q, tree %q", row[1], row[2])
		}
		return nil
	}, `SELECT 'c' || id, commit_id, tree_id FROM checkpoint ORDER BY id`)
}

func (c *check) audit() error {
	var last AuditRow
	err := each(c.tx, readAudit, func(r AuditRow) error {
		what := fmt.Sprintf("audit %d", r.ID)
		if r.ID != last.ID+1 {
			c.found(ProblemAudit, what, "follows row %d", last.ID)
		}
		if r.Prev != last.Hash {
			c.found(ProblemAudit, what, "does not continue the chain")
		}
		if r.Hash != r.sum() {
			c.found(ProblemAudit, what, "was changed")
		}
		last = r
		return nil
	}, `SELECT `+auditColumns+` FROM audit ORDER BY id`)
	if err != nil {
		return err
	}
	var given int64
	err = c.tx.get(`SELECT value FROM counter WHERE name = 'audit'`, nil, &given)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if given > last.ID {
		c.found(ProblemAudit, fmt.Sprintf("audit %d", given), "the chain ends at %d", last.ID)
	}
	return c.each(ProblemAudit, `
		SELECT 'op ' || op.id, 'the audit tells of ' || begun || ' begins and ' || ended || ' ends' FROM op JOIN (
			SELECT o.id, (SELECT count(*) FROM audit a WHERE a.op_id = o.id AND a.action = 'op.begin') AS begun,
				(SELECT count(*) FROM audit a WHERE a.op_id = o.id AND a.action = 'op.finish') AS ended FROM op o
			) n ON n.id = op.id
			WHERE begun <> 1 OR ended <> CASE WHEN result IS NULL THEN 0 ELSE 1 END`)
}

func (c *check) ops() error {
	open, err := c.tx.ops(`SELECT ` + opColumns + ` FROM op WHERE result IS NULL ORDER BY id`)
	if err != nil {
		return err
	}
	for _, o := range open {
		p := Problem{Kind: ProblemOpenMove, What: fmt.Sprintf("op %d", o.ID), Op: o.ID, Owner: o.Owner,
			Detail: fmt.Sprintf("%s in phase %d, begun by %s", o.Verb, o.Phase, o.Owner)}
		for _, w := range o.Worktrees {
			p.Worktrees = append(p.Worktrees, w.WorktreeID)
		}
		c.problems = append(c.problems, p)
	}
	return c.each(ProblemRow, `
		SELECT 'op ' || id, 'has no worktree' FROM op WHERE id NOT IN (SELECT op_id FROM op_worktree)
		UNION ALL SELECT 'op ' || o.id, 'worktree ' || w.worktree_id || ' is active after the end, or not before it'
			FROM op o JOIN op_worktree w ON w.op_id = o.id WHERE (o.result IS NULL) <> (w.active = 1)`)
}

func (c *check) leases() error {
	return c.each(ProblemLease, `
		SELECT l.resource, 'is leased to no open operation' FROM lease l WHERE l.resource LIKE 'worktree/%' AND NOT EXISTS (
			SELECT 1 FROM op_worktree w JOIN op o ON o.id = w.op_id
			WHERE w.active = 1 AND o.token = l.token AND l.resource = 'worktree/' || w.worktree_id)
		UNION ALL SELECT 'op ' || o.id, 'has no lease on worktree ' || w.worktree_id
			FROM op o JOIN op_worktree w ON w.op_id = o.id WHERE w.active = 1 AND NOT EXISTS (
			SELECT 1 FROM lease l WHERE l.token = o.token AND l.resource = 'worktree/' || w.worktree_id)`)
}

// each makes a problem of every row, which is what and detail.
func (c *check) each(kind, query string) error {
	read := func(s scanner) (p Problem, err error) {
		p.Kind = kind
		err = s.Scan(&p.What, &p.Detail)
		return p, err
	}
	return each(c.tx, read, func(p Problem) error { c.problems = append(c.problems, p); return nil }, query)
}
