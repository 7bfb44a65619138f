package ledger

// schemaSessions adds what is kept of sessions beside their frames: copies of
// the transcripts that a client writes, in pieces, in the order they came.
const schemaSessions = `
CREATE TABLE transcript(
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL REFERENCES run(id),
	path BLOB NOT NULL,
	size INTEGER NOT NULL,
	digest BLOB NOT NULL,
	leaf TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX transcript_run ON transcript(run_id, id);

CREATE TABLE transcript_piece(
	transcript_id INTEGER NOT NULL REFERENCES transcript(id),
	start INTEGER NOT NULL,
	size INTEGER NOT NULL CHECK(size > 0),
	hash BLOB NOT NULL CHECK(length(hash) = 32),
	PRIMARY KEY(transcript_id, start)
) STRICT, WITHOUT ROWID;
`
