package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/internal/crash"
)

// applicationID marks the file as a ledger: "rtcn".
const applicationID = 0x7274636e

// migrations lead from an empty file to the newest schema. The schema's number
// is how many of them have run. One that has been released is never changed;
// a new one is put at the end.
var migrations = []string{
	schemaFirst,
	schemaFrames,
	schemaEffects,
	schemaCalls + schemaSessions,
}

// schemaFirst holds worktrees, runs, checkpoints and moves.
const schemaFirst = `
CREATE TABLE counter(
	name TEXT NOT NULL PRIMARY KEY,
	value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE worktree(
	id INTEGER PRIMARY KEY,
	path BLOB NOT NULL UNIQUE,
	dev INTEGER NOT NULL,
	ino INTEGER NOT NULL,
	git_dir BLOB NOT NULL,
	kind TEXT NOT NULL CHECK(kind IN ('plain', 'git', 'linked', 'submodule')),
	host TEXT NOT NULL,
	created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE run(
	id INTEGER PRIMARY KEY,
	uid TEXT NOT NULL UNIQUE,
	source TEXT NOT NULL,
	ext_id TEXT,
	name TEXT,
	status TEXT NOT NULL,
	worktree_id INTEGER NOT NULL REFERENCES worktree(id),
	command BLOB NOT NULL,
	parent_id INTEGER REFERENCES run(id),
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX run_ext ON run(source, ext_id) WHERE ext_id IS NOT NULL;
CREATE INDEX run_name ON run(name) WHERE name IS NOT NULL;
CREATE INDEX run_worktree ON run(worktree_id, id);
CREATE INDEX run_parent ON run(parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE attempt(
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL REFERENCES run(id),
	task TEXT NOT NULL,
	number INTEGER NOT NULL,
	outcome TEXT,
	exit_code INTEGER,
	before_id INTEGER REFERENCES checkpoint(id),
	after_id INTEGER REFERENCES checkpoint(id),
	owner TEXT NOT NULL,
	pid INTEGER NOT NULL,
	pid_start INTEGER NOT NULL,
	boot TEXT NOT NULL,
	host TEXT NOT NULL,
	started_ms INTEGER NOT NULL,
	ended_ms INTEGER,
	UNIQUE(run_id, task, number),
	CHECK((outcome IS NULL) = (ended_ms IS NULL))
) STRICT;
CREATE INDEX attempt_open ON attempt(run_id) WHERE outcome IS NULL;
CREATE INDEX attempt_before ON attempt(before_id) WHERE before_id IS NOT NULL;
CREATE INDEX attempt_after ON attempt(after_id) WHERE after_id IS NOT NULL;

CREATE TABLE checkpoint(
	id INTEGER PRIMARY KEY,
	worktree_id INTEGER NOT NULL REFERENCES worktree(id),
	run_id INTEGER REFERENCES run(id),
	attempt_id INTEGER REFERENCES attempt(id),
	edge TEXT NOT NULL CHECK(edge IN ('', 'before', 'after')),
	tier TEXT NOT NULL CHECK(tier IN ('tool', 'watch', 'manual', 'safety', 'rescue')),
	commit_id TEXT NOT NULL,
	tree_id TEXT NOT NULL,
	label TEXT,
	pinned INTEGER NOT NULL CHECK(pinned IN (0, 1)),
	note TEXT NOT NULL,
	actor TEXT NOT NULL,
	partial INTEGER NOT NULL CHECK(partial IN (0, 1)),
	stats TEXT NOT NULL,
	created_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX checkpoint_label ON checkpoint(worktree_id, label) WHERE label IS NOT NULL;
CREATE INDEX checkpoint_worktree ON checkpoint(worktree_id, id);
CREATE INDEX checkpoint_run ON checkpoint(run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX checkpoint_attempt ON checkpoint(attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX checkpoint_commit ON checkpoint(commit_id);

CREATE TABLE op(
	id INTEGER PRIMARY KEY,
	uid TEXT NOT NULL UNIQUE,
	verb TEXT NOT NULL,
	actor TEXT NOT NULL,
	phase INTEGER NOT NULL,
	token INTEGER NOT NULL,
	plan TEXT NOT NULL,
	request_key TEXT,
	request_digest TEXT,
	undoes INTEGER REFERENCES op(id),
	undone_by INTEGER REFERENCES op(id),
	pruned INTEGER NOT NULL CHECK(pruned IN (0, 1)),
	owner TEXT NOT NULL,
	pid INTEGER NOT NULL,
	pid_start INTEGER NOT NULL,
	boot TEXT NOT NULL,
	host TEXT NOT NULL,
	started_ms INTEGER NOT NULL,
	finished_ms INTEGER,
	result TEXT CHECK(result IN ('ok', 'aborted', 'failed', 'rolled-back')),
	detail TEXT NOT NULL,
	CHECK((result IS NULL) = (finished_ms IS NULL))
) STRICT;
CREATE UNIQUE INDEX op_request ON op(request_key)
	WHERE request_key IS NOT NULL AND (result IS NULL OR result = 'ok' OR result = 'failed');
CREATE INDEX op_rate ON op(actor, started_ms);
CREATE INDEX op_undoes ON op(undoes) WHERE undoes IS NOT NULL;

CREATE TABLE op_worktree(
	op_id INTEGER NOT NULL REFERENCES op(id),
	worktree_id INTEGER NOT NULL REFERENCES worktree(id),
	from_commit TEXT,
	safety TEXT,
	target TEXT,
	rescue TEXT,
	done INTEGER NOT NULL CHECK(done IN (0, 1)),
	active INTEGER NOT NULL CHECK(active IN (0, 1)),
	PRIMARY KEY(op_id, worktree_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX op_active ON op_worktree(worktree_id) WHERE active = 1;
CREATE INDEX op_of_worktree ON op_worktree(worktree_id, op_id);

CREATE TABLE lease(
	resource TEXT NOT NULL PRIMARY KEY,
	token INTEGER NOT NULL UNIQUE,
	owner TEXT NOT NULL,
	pid INTEGER NOT NULL,
	pid_start INTEGER NOT NULL,
	boot TEXT NOT NULL,
	host TEXT NOT NULL,
	acquired_ms INTEGER NOT NULL,
	expires_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE audit(
	id INTEGER PRIMARY KEY,
	ts_ms INTEGER NOT NULL,
	actor TEXT NOT NULL,
	op_id INTEGER,
	action TEXT NOT NULL,
	detail TEXT NOT NULL,
	prev_hash BLOB NOT NULL CHECK(length(prev_hash) = 32),
	hash BLOB NOT NULL UNIQUE CHECK(length(hash) = 32)
) STRICT;
CREATE INDEX audit_op ON audit(op_id) WHERE op_id IS NOT NULL;
CREATE TRIGGER audit_update BEFORE UPDATE ON audit
	BEGIN SELECT RAISE(ABORT, 'audit rows are never changed'); END;
CREATE TRIGGER audit_delete BEFORE DELETE ON audit
	BEGIN SELECT RAISE(ABORT, 'audit rows are never deleted'); END;
`

// header is what a file says of itself.
type header struct {
	version, application int
	journal              Journal
}

func readHeader(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (h header, err error) {
	err = q.QueryRowContext(ctx, `SELECT user_version, application_id, journal_mode
		FROM pragma_user_version, pragma_application_id, pragma_journal_mode`).
		Scan(&h.version, &h.application, &h.journal)
	return h, err
}

// blank reports whether nothing has been written to the file. What a killed
// creator left is blank too.
func (h header) blank() bool { return h.version == 0 && h.application == 0 }

// check decides whether the file is a ledger we can use, migrated or not.
func (h header) check(path string) error {
	switch {
	case h.application != applicationID:
		return &NotLedgerError{Path: path, Reason: fmt.Sprintf("a database of another program (application id %#x)", h.application)}
	case h.version > len(migrations):
		return &NewerSchemaError{Path: path, Have: h.version, Know: len(migrations)}
	case h.version < 1:
		return &NotLedgerError{Path: path, Reason: fmt.Sprintf("schema number %d", h.version)}
	}
	return nil
}

// checkSchema is for a ledger that is only read.
func (db *DB) checkSchema(ctx context.Context) error {
	h, err := readHeader(ctx, db.view)
	if err != nil {
		return db.explain(err)
	}
	if h.blank() {
		return &NotLedgerError{Path: db.path, Reason: "no schema"}
	}
	if err := h.check(db.path); err != nil {
		return err
	}
	if h.version < len(migrations) {
		return &OlderSchemaError{Path: db.path, Have: h.version, Know: len(migrations)}
	}
	return nil
}

// migrate brings the file to the newest schema. The usual case, nothing to do,
// costs one query and no lock.
func (db *DB) migrate(ctx context.Context) error {
	h, err := readHeader(ctx, db.update)
	if err != nil {
		return db.explain(err)
	}
	if !h.blank() {
		if err := h.check(db.path); err != nil {
			return err
		}
		if h.version == len(migrations) && (h.journal == WAL) == (db.journal == WAL) {
			return nil
		}
	}
	unlock, err := db.lockWriters(ctx, db.busy)
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have finished while we waited: every step looks anew.
	if err := db.refuseForeign(ctx); err != nil {
		return err
	}
	if err := db.setJournal(ctx); err != nil {
		return err
	}
	return db.transact(ctx, db.commit, true, func(tx *Tx) error { return tx.migrate() })
}

// refuseForeign keeps us from putting tables into somebody's database, which
// may well have neither number set.
func (db *DB) refuseForeign(ctx context.Context) error {
	h, err := readHeader(ctx, db.update)
	if err != nil {
		return db.explain(err)
	}
	if !h.blank() {
		return h.check(db.path)
	}
	var tables int
	if err := db.update.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master`).Scan(&tables); err != nil {
		return db.explain(err)
	}
	if tables > 0 {
		return &NotLedgerError{Path: db.path, Reason: "a database of another program"}
	}
	return nil
}

// setJournal can't be part of a transaction. WAL is remembered in the file.
func (db *DB) setJournal(ctx context.Context) error {
	if db.journal != WAL {
		return nil // the connections set it themselves
	}
	var mode Journal
	err := db.update.QueryRowContext(ctx, `PRAGMA journal_mode=WAL`).Scan(&mode)
	if err != nil {
		return db.explain(err)
	}
	if mode != WAL { // the file system refused; SQLite keeps what it had
		db.journal = Truncate
	}
	crash.Point("ledger.journal")
	return nil
}

func (tx *Tx) migrate() error {
	h, err := readHeader(tx.ctx, tx.tx)
	if err != nil {
		return tx.db.explain(err)
	}
	if !h.blank() {
		if err := h.check(tx.db.path); err != nil {
			return err
		}
	}
	if h.version == len(migrations) {
		return nil
	}
	for i := h.version; i < len(migrations); i++ {
		if _, err := tx.exec(migrations[i]); err != nil {
			return fmt.Errorf("migrate to schema %d: %w", i+1, err)
		}
	}
	_, err1 := tx.exec(fmt.Sprintf(`PRAGMA application_id=%d`, applicationID))
	_, err2 := tx.exec(fmt.Sprintf(`PRAGMA user_version=%d`, len(migrations)))
	return errors.Join(err1, err2)
}
