package ledger

// schemaFrames adds frames and what they are made of, the results that are
// carried from one run to another, signals, and the tape. Who carried out an
// attempt moves to a table of its own: a run has thousands of attempts and few
// processes.
//
// Of an input eight bytes are indexed: they tell it from others as well as all
// of them do. Of an outcome that stands in its attempt eight bytes of the hash
// stand beside it: they tell damage, and the rest is computed; see outRef.
//
// References to contents, and from a frame to the branch it is on, are kept by
// this package alone: a foreign key would cost an index on every one of them.
// [DB.Check] looks at them.
const schemaFrames = `
CREATE TABLE process(
	id INTEGER PRIMARY KEY,
	owner TEXT NOT NULL,
	pid INTEGER NOT NULL,
	pid_start INTEGER NOT NULL,
	boot TEXT NOT NULL,
	host TEXT NOT NULL,
	UNIQUE(owner, pid, pid_start, boot, host)
) STRICT;
INSERT INTO process(owner, pid, pid_start, boot, host)
	SELECT owner, pid, pid_start, boot, host FROM attempt GROUP BY owner, pid, pid_start, boot, host ORDER BY min(id);

CREATE TABLE content(
	id INTEGER PRIMARY KEY,
	hash BLOB NOT NULL UNIQUE CHECK(length(hash) = 32),
	size INTEGER NOT NULL,
	codec INTEGER NOT NULL,
	ref_ms INTEGER NOT NULL,
	body BLOB NOT NULL
) STRICT;

CREATE TABLE branch(
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL REFERENCES run(id),
	parent_id INTEGER REFERENCES branch(id),
	base_seq INTEGER NOT NULL,
	head_seq INTEGER NOT NULL,
	head_root BLOB NOT NULL CHECK(length(head_root) = 32),
	state TEXT NOT NULL CHECK(state IN ('live', 'archived', 'purged')),
	op_id INTEGER REFERENCES op(id),
	archived_by INTEGER REFERENCES op(id),
	archived_ms INTEGER,
	replaced_by INTEGER,
	label TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	CHECK(base_seq <= head_seq),
	CHECK((parent_id IS NULL) = (base_seq = -1)),
	CHECK((state = 'live') = (archived_ms IS NULL))
) STRICT;
CREATE INDEX branch_run ON branch(run_id, id);
CREATE INDEX branch_parent ON branch(parent_id, base_seq) WHERE parent_id IS NOT NULL;
CREATE INDEX branch_op ON branch(op_id) WHERE op_id IS NOT NULL;
CREATE INDEX branch_archived ON branch(archived_by) WHERE archived_by IS NOT NULL;

CREATE TABLE frame(
	branch_id INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	at_ms INTEGER NOT NULL,
	kind TEXT NOT NULL,
	root BLOB NOT NULL CHECK(length(root) = 32),
	checkpoint_id INTEGER REFERENCES checkpoint(id),
	note TEXT,
	delta BLOB NOT NULL,
	PRIMARY KEY(branch_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX frame_checkpoint ON frame(checkpoint_id) WHERE checkpoint_id IS NOT NULL;
CREATE INDEX frame_moved ON frame(branch_id, seq, checkpoint_id) WHERE checkpoint_id IS NOT NULL;

CREATE TABLE keyframe(
	branch_id INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	body BLOB NOT NULL,
	PRIMARY KEY(branch_id, seq)
) STRICT;

CREATE TABLE event(
	branch_id INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	idx INTEGER NOT NULL,
	at_ms INTEGER NOT NULL,
	type TEXT NOT NULL,
	task TEXT,
	ext_id TEXT,
	actor TEXT,
	body BLOB,
	content BLOB CHECK(length(content) = 32),
	PRIMARY KEY(branch_id, seq, idx)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX event_ext ON event(branch_id, type, ext_id) WHERE ext_id IS NOT NULL;

CREATE TABLE signal(
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL REFERENCES run(id),
	name TEXT NOT NULL,
	hash BLOB NOT NULL CHECK(length(hash) = 32),
	value BLOB,
	request_key TEXT,
	request_digest TEXT,
	digest BLOB CHECK(length(digest) = 32),
	actor TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	delivered_seq INTEGER
) STRICT;
CREATE INDEX signal_run ON signal(run_id, id);
CREATE UNIQUE INDEX signal_request ON signal(run_id, request_key) WHERE request_key IS NOT NULL;

CREATE TABLE cell(
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL REFERENCES run(id),
	seq INTEGER NOT NULL,
	attempt_id INTEGER,
	branch_id INTEGER,
	op TEXT NOT NULL,
	key BLOB NOT NULL CHECK(length(key) = 32),
	hmac BLOB,
	view BLOB,
	view_hash BLOB CHECK(length(view_hash) = 32),
	exit_code INTEGER,
	out BLOB CHECK(length(out) = 32),
	out_size INTEGER NOT NULL,
	out_whole BLOB CHECK(length(out_whole) = 32),
	flags INTEGER NOT NULL,
	tree_in TEXT,
	tree_out TEXT,
	took_ns INTEGER NOT NULL,
	actor TEXT,
	created_ms INTEGER NOT NULL,
	UNIQUE(run_id, seq)
) STRICT;
CREATE INDEX cell_attempt ON cell(attempt_id) WHERE attempt_id IS NOT NULL;

ALTER TABLE run ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN head_branch INTEGER REFERENCES branch(id);
ALTER TABLE run ADD COLUMN head_op INTEGER REFERENCES op(id);
ALTER TABLE run ADD COLUMN lineage INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN input BLOB CHECK(length(input) = 32);
ALTER TABLE run ADD COLUMN def BLOB CHECK(length(def) = 32);
ALTER TABLE run ADD COLUMN seed BLOB CHECK(length(seed) = 32);
ALTER TABLE run ADD COLUMN tape INTEGER NOT NULL DEFAULT 0 CHECK(tape IN (0, 1));
UPDATE run SET lineage = id;
CREATE INDEX run_lineage ON run(lineage, id);

ALTER TABLE attempt ADD COLUMN process_id INTEGER REFERENCES process(id);
UPDATE attempt SET process_id = (SELECT p.id FROM process p WHERE p.owner = attempt.owner AND p.pid = attempt.pid
	AND p.pid_start = attempt.pid_start AND p.boot = attempt.boot AND p.host = attempt.host);
ALTER TABLE attempt DROP COLUMN owner;
ALTER TABLE attempt DROP COLUMN pid;
ALTER TABLE attempt DROP COLUMN pid_start;
ALTER TABLE attempt DROP COLUMN boot;
ALTER TABLE attempt DROP COLUMN host;
ALTER TABLE attempt ADD COLUMN branch_id INTEGER;
ALTER TABLE attempt ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN worktree_id INTEGER REFERENCES worktree(id);
ALTER TABLE attempt ADD COLUMN decl BLOB CHECK(length(decl) = 32);
ALTER TABLE attempt ADD COLUMN input BLOB CHECK(length(input) = 32);
ALTER TABLE attempt ADD COLUMN out BLOB CHECK(length(out) IN (8, 32));
ALTER TABLE attempt ADD COLUMN output BLOB;
ALTER TABLE attempt ADD COLUMN tree_in TEXT;
ALTER TABLE attempt ADD COLUMN tree_out TEXT;
ALTER TABLE attempt ADD COLUMN start_seq INTEGER;
ALTER TABLE attempt ADD COLUMN end_seq INTEGER;
ALTER TABLE attempt ADD COLUMN at_least_once INTEGER NOT NULL DEFAULT 0 CHECK(at_least_once IN (0, 1));
ALTER TABLE attempt ADD COLUMN truncated INTEGER NOT NULL DEFAULT 0 CHECK(truncated IN (0, 1));
ALTER TABLE attempt ADD COLUMN compensated INTEGER NOT NULL DEFAULT 0 CHECK(compensated IN (0, 1));
ALTER TABLE attempt ADD COLUMN carried_from INTEGER;
CREATE INDEX attempt_input ON attempt(substr(input, 1, 8)) WHERE input IS NOT NULL AND outcome = 'ok';
CREATE INDEX attempt_worktree ON attempt(worktree_id) WHERE worktree_id IS NOT NULL;
`
