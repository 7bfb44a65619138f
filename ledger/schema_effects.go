package ledger

// schemaEffects adds what runs did outside their worktrees, and what somebody
// has to look at. An effect is in the world, whatever becomes of the branch it
// was made on: a move leaves these rows where they are.
const schemaEffects = `
CREATE TABLE effect(
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL REFERENCES run(id),
	branch_id INTEGER,
	seq INTEGER NOT NULL,
	attempt_id INTEGER REFERENCES attempt(id),
	task TEXT NOT NULL,
	key TEXT NOT NULL UNIQUE,
	epoch INTEGER NOT NULL,
	tool TEXT NOT NULL,
	class TEXT NOT NULL CHECK(class IN ('write', 'maybe', 'push', 'exempt')),
	status TEXT NOT NULL CHECK(status IN ('intended', 'succeeded', 'failed', 'unknown')),
	comp TEXT NOT NULL CHECK(comp IN ('', 'compensating', 'compensated', 'failed', 'crossed')),
	comp_op INTEGER REFERENCES op(id),
	comp_detail TEXT NOT NULL,
	late INTEGER NOT NULL CHECK(late IN (0, 1)),
	source TEXT NOT NULL,
	body TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX effect_run ON effect(run_id, id);
CREATE INDEX effect_branch ON effect(branch_id, seq) WHERE branch_id IS NOT NULL;
CREATE INDEX effect_attempt ON effect(attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX effect_op ON effect(comp_op) WHERE comp_op IS NOT NULL;

CREATE TABLE attention(
	id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL REFERENCES run(id),
	op_id INTEGER REFERENCES op(id),
	effect_id INTEGER REFERENCES effect(id),
	why TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	acked_ms INTEGER,
	acked_by TEXT,
	CHECK((acked_ms IS NULL) = (acked_by IS NULL))
) STRICT;
CREATE INDEX attention_run ON attention(run_id, id);
CREATE INDEX attention_effect ON attention(effect_id) WHERE effect_id IS NOT NULL;
`
