package ledger

// schemaCalls names the call that an attempt is of, so that an event about a
// call finds its attempts without reading those of the whole run, and indexes
// the runs that are said to go on.
//
// In a session the call stood at the end of the task, in brackets: its id, or,
// where a client has none, a digest with a number behind it, which tells calls
// apart that are to do the same.
const schemaCalls = `
ALTER TABLE attempt ADD COLUMN call TEXT;
UPDATE attempt SET call = substr(task, length(rtrim(task, replace(task, '[', ''))) + 1)
	WHERE task LIKE '%[%]' AND run_id IN (SELECT id FROM run WHERE kind = 'session');
UPDATE attempt SET call = substr(call, 1, length(call) - 1) WHERE call IS NOT NULL;
UPDATE attempt SET call = substr(call, 1, 13) WHERE call GLOB 'h' || replace(hex(zeroblob(6)), '0', '[0-9a-f]') || '.[0-9]*';
CREATE INDEX attempt_call ON attempt(run_id, call) WHERE call IS NOT NULL;
CREATE INDEX run_running ON run(worktree_id, kind) WHERE status = 'running';
`
