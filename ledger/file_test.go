package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

func open(t *testing.T, path string, o Options) *DB {
	t.Helper()
	db, err := Open(path, o)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func note(db *DB, n int) error {
	return db.Update(context.Background(), func(tx *Tx) error { return tx.Audit("me", "note", fmt.Sprint(n)) })
}

func count(t *testing.T, db *DB) (n int) {
	t.Helper()
	require.NoError(t, db.View(context.Background(), func(tx *Tx) error { return tx.get(`SELECT count(*) FROM audit`, nil, &n) }))
	return n
}

func TestOpenCreates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a?b%41#\xff ledger.db")
	db := open(t, path, Options{})
	require.NoError(t, note(db, 1))
	s, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), s.Mode())
	require.ErrorIs(t, db.View(context.Background(), func(tx *Tx) error { return tx.Audit("", "x", "") }), ErrView)
	failure := errors.New("no")
	require.ErrorIs(t, db.Update(context.Background(), func(tx *Tx) error { tx.Audit("", "x", ""); return failure }), failure)
	assert.Panics(t, func() { db.Update(context.Background(), func(tx *Tx) error { panic("oh") }) })
	require.NoError(t, note(db, 2), "a panic lets go of the lock")
	assert.Equal(t, 2, count(t, db))
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, db.Update(canceled, func(tx *Tx) error { return nil }), context.Canceled)

	db.CloseFast()
	require.ErrorIs(t, note(db, 3), ErrClosed)
	again := open(t, path, Options{})
	assert.Equal(t, 2, count(t, again))
	require.NoError(t, again.Close())
	require.NoError(t, again.Close())
}

func TestOpenRefuses(t *testing.T) {
	sqlite := func(t *testing.T, path string, statements ...string) {
		h := writeHandle(path, Truncate, "NORMAL", 0)
		defer h.Close()
		for _, s := range statements {
			_, err := h.Exec(s)
			require.NoError(t, err)
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		o    Options
		as   any
	}{
		{"newer schema", func(t *testing.T, path string) {
			open(t, path, Options{}).Close()
			sqlite(t, path, `PRAGMA user_version=99`)
		}, Options{}, new(*NewerSchemaError)},
		{"older schema, reading", func(t *testing.T, path string) {
			open(t, path, Options{}).Close()
			known := migrations
			migrations = append(slices.Clip(known), `CREATE TABLE later(x INTEGER) STRICT`)
			t.Cleanup(func() { migrations = known })
		}, Options{ReadOnly: true}, new(*OlderSchemaError)},
		{"another program's", func(t *testing.T, path string) { sqlite(t, path, `CREATE TABLE mine(x)`) }, Options{}, new(*NotLedgerError)},
		{"another application id", func(t *testing.T, path string) { sqlite(t, path, `PRAGMA application_id=5`) }, Options{}, new(*NotLedgerError)},
		{"text", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, make([]byte, 5000), 0o600))
		}, Options{}, new(*NotLedgerError)},
		{"empty, reading", func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }, Options{ReadOnly: true}, new(*NotLedgerError)},
		{"empty, with a log", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			require.NoError(t, os.WriteFile(path+"-wal", []byte("log"), 0o600))
		}, Options{}, new(*CorruptError)},
		{"missing, reading", func(t *testing.T, path string) {}, Options{ReadOnly: true}, new(*fs.PathError)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			c.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(path, c.o)
			require.ErrorAs(t, err, c.as)
			after, _ := os.ReadFile(path)
			assert.Equal(t, before, after, "the file was changed")
		})
	}
}

func TestOpenEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, note(open(t, path, Options{}), 1))
}

func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	require.NoError(t, note(open(t, path, Options{}), 1))
	known := migrations
	t.Cleanup(func() { migrations = known })
	migrations = append(slices.Clip(known), `CREATE TABLE later(x INTEGER) STRICT; INSERT INTO no_such_table VALUES(1)`)
	_, err := Open(path, Options{})
	require.Error(t, err)
	migrations[len(known)] = `CREATE TABLE later(x INTEGER) STRICT` // nothing of the failed one is left
	db := open(t, path, Options{})
	assert.Equal(t, 1, count(t, db))
	require.NoError(t, db.Close())
	migrations = known
	_, err = Open(path, Options{})
	var newer *NewerSchemaError
	require.ErrorAs(t, err, &newer)
	assert.Equal(t, []int{len(known) + 1, len(known)}, []int{newer.Have, newer.Know})
}

func TestCorruptFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := open(t, path, Options{})
	for i := range 200 {
		require.NoError(t, note(db, i))
	}
	require.NoError(t, db.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(b[len(b)-5*4096:])
	require.NoError(t, os.Remove(path+"-wal"))
	require.NoError(t, os.WriteFile(path, b, 0o600))
	db = open(t, path, Options{})
	problems, err := db.Check(context.Background())
	require.NoError(t, err)
	require.NotEmpty(t, problems)
	assert.Equal(t, ProblemDamage, problems[0].Kind)
	var corrupt *CorruptError
	require.ErrorAs(t, note(db, 1), &corrupt)
}

func TestCheckFinds(t *testing.T) {
	filled := filepath.Join(t.TempDir(), "ledger.db")
	db := open(t, filled, Options{keyframes: 100})
	require.NoError(t, db.Commit(context.Background(), fill))
	problems, err := db.Check(context.Background())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, db.Close())
	whole, err := os.ReadFile(filled)
	require.NoError(t, err)
	for _, c := range []struct {
		kind      string
		statement string
	}{
		{ProblemAudit, `DROP TRIGGER audit_update; UPDATE audit SET detail = 'another' WHERE id = 2`},
		{ProblemAudit, `DROP TRIGGER audit_delete; DELETE FROM audit WHERE id = 2`},
		{ProblemAudit, `DROP TRIGGER audit_delete; DELETE FROM audit WHERE id = (SELECT max(id) FROM audit)`},
		{ProblemAudit, `INSERT INTO audit(id, ts_ms, actor, action, detail, prev_hash, hash) VALUES(77, 0, '', '', '', zeroblob(32), zeroblob(32))`},
		{ProblemAudit, `DROP TRIGGER audit_update; UPDATE audit SET action = 'op.phase' WHERE action = 'op.finish'`},
		{ProblemReference, `UPDATE checkpoint SET worktree_id = 55`},
		{ProblemReference, `UPDATE attempt SET before_id = 1; UPDATE run SET worktree_id = 2`},
		{ProblemReference, `UPDATE op SET undoes = 1 WHERE id = 1`},
		{ProblemSequence, `UPDATE counter SET value = 0 WHERE name = 'checkpoint'`},
		{ProblemSequence, `UPDATE attempt SET number = 3`},
		{ProblemRow, `UPDATE checkpoint SET commit_id = 'nothing'`},
		{ProblemRow, `UPDATE op_worktree SET active = 1`},
		{ProblemRow, `DELETE FROM op_worktree`},
		{ProblemLease, `INSERT INTO lease VALUES('worktree/1', 99, '', 0, 0, '', '', 0, NULL)`},
		{ProblemSequence, `UPDATE counter SET value = 0 WHERE name = 'branch'`},
		{ProblemSequence, `UPDATE counter SET value = 0 WHERE name = 'cell'`},
		{ProblemSequence, `UPDATE counter SET value = 0 WHERE name = 'signal'`},
		{ProblemBranch, `UPDATE branch SET head_seq = 7 WHERE id = 1`},
		{ProblemBranch, `DELETE FROM frame WHERE branch_id = 2 AND seq = 3`},
		{ProblemBranch, `DELETE FROM frame WHERE seq = 2`},
		{ProblemBranch, `DELETE FROM frame WHERE seq = 0`},
		{ProblemBranch, `UPDATE frame SET seq = 9 WHERE branch_id = 2 AND seq = 3`},
		{ProblemBranch, `UPDATE branch SET base_seq = 3, head_seq = 4 WHERE id = 2`},
		{ProblemBranch, `UPDATE branch SET op_id = 1 WHERE id = 2`},
		{ProblemBranch, `UPDATE branch SET op_id = 1 WHERE id = 1`},
		{ProblemBranch, `UPDATE branch SET state = 'live', archived_ms = NULL WHERE id = 1`},
		{ProblemBranch, `UPDATE run SET head_branch = 1`},
		{ProblemBranch, `UPDATE run SET lineage = 5`},
		{ProblemBranch, `INSERT INTO keyframe VALUES(1, 9, x'00')`},
		{ProblemBranch, `INSERT INTO frame SELECT 9, seq, at_ms, kind, root, checkpoint_id, note, delta FROM frame WHERE branch_id = 1`},
		{ProblemBranch, `UPDATE event SET seq = 9`},
		{ProblemBranch, `UPDATE event SET branch_id = 9`},
		{ProblemFrame, `UPDATE frame SET root = zeroblob(32) WHERE branch_id = 2 AND seq = 3`},
		{ProblemFrame, `UPDATE frame SET root = zeroblob(32) WHERE seq = 1`},
		{ProblemFrame, `UPDATE frame SET delta = x'00' WHERE seq = 1`},
		{ProblemFrame, `UPDATE frame SET delta = x'ff' WHERE seq = 1`},
		{ProblemFrame, `UPDATE frame SET delta = x'28b52ffd00' WHERE seq = 1`},
		{ProblemFrame, `UPDATE branch SET head_root = zeroblob(32) WHERE id = 2`},
		{ProblemFrame, `UPDATE keyframe SET body = x'00'`},
		{ProblemFrame, `UPDATE keyframe SET body = (SELECT body FROM keyframe ORDER BY seq LIMIT 1)`},
		{ProblemContent, `UPDATE content SET body = CAST('other' AS BLOB)`},
		{ProblemContent, `UPDATE attempt SET output = x'01'`},
		{ProblemContent, `UPDATE signal SET value = x'01'`},
		{ProblemReference, `DELETE FROM content`},
		{ProblemReference, `UPDATE run SET def = zeroblob(32)`},
		{ProblemReference, `UPDATE attempt SET output = NULL`},
		{ProblemReference, `UPDATE signal SET value = NULL`},
		{ProblemReference, `UPDATE cell SET view_hash = zeroblob(32)`},
		{ProblemReference, `UPDATE event SET content = zeroblob(32)`},
		{ProblemReference, `DELETE FROM process`},
		{ProblemRow, `UPDATE cell SET seq = 2`},
		{ProblemRow, `UPDATE cell SET attempt_id = 9`},
		{ProblemRow, `UPDATE attempt SET start_seq = 3, end_seq = 2`},
		{ProblemRow, `UPDATE attempt SET process_id = NULL`},
		{ProblemOpenMove, `UPDATE op SET result = NULL, finished_ms = NULL; UPDATE op_worktree SET active = 1`},
	} {
		t.Run(c.kind+" "+c.statement, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			require.NoError(t, os.WriteFile(path, whole, 0o600))
			h := sql.OpenDB(connector{fileURI(path) + "?_synchronous=OFF", &sqlite3.SQLiteDriver{}}) // foreign keys off
			_, err := h.Exec(c.statement)
			require.NoError(t, err)
			require.NoError(t, h.Close())
			db := open(t, path, Options{})
			problems, err := db.Check(context.Background())
			require.NoError(t, err)
			var kinds []string
			for _, p := range problems {
				kinds = append(kinds, p.Kind)
			}
			assert.Contains(t, kinds, c.kind, "%v", problems)
			if strings.HasPrefix(c.statement, "UPDATE checkpoint SET commit_id") {
				var corrupt *CorruptError
				require.ErrorAs(t, db.View(context.Background(), func(tx *Tx) error {
					return tx.LiveCommits(func(string) error { return nil })
				}), &corrupt, "an unreadable commit must stop the deletion of objects")
			}
		})
	}
}

// fill puts a row into every table.
func fill(tx *Tx) error {
	w, err1 := tx.EnsureWorktree(Worktree{Path: "/w", Kind: KindPlain})
	_, err2 := tx.EnsureWorktree(Worktree{Path: "/v", Kind: KindPlain})
	r, err3 := tx.CreateRun(Run{Source: "exec", WorktreeID: w.ID})
	a, err4 := tx.StartAttempt(Attempt{RunID: r.ID, Task: "t"})
	commit := fmt.Sprintf("%040x", 1)
	c, err5 := tx.AppendCheckpoint(Checkpoint{WorktreeID: w.ID, Tier: TierManual, Commit: commit, Tree: commit})
	err6 := tx.Label(c.ID, "good", "me")
	o, err7 := tx.BeginOp(Op{Verb: "restore", Worktrees: []OpWorktree{{WorktreeID: w.ID, Target: commit}}}, nil)
	_, err8 := tx.FinishOp(o.ID, o.Token, ResultOK, "")
	return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, fillFrames(tx, r.ID, a.ID, o.ID))
}

// fillFrames makes a branch of frames 0 to 2, and one of 2 and 3 that begins at
// frame 1; every frame has a keyframe.
func fillFrames(tx *Tx, run, attempt, op int64) error {
	h, err1 := tx.CreateBranch(run)
	for i := range 3 {
		_, err := tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Done, i), task("y", snapshot.Done, i)}})
		err1 = errors.Join(err1, err)
	}
	b, err2 := tx.Rewind(run, 1, op)
	h, err3 := tx.LoadFrame(b.ID, Newest)
	for i := range 2 {
		_, err := tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{task("x", snapshot.Failed, i), task("y", snapshot.Failed, i)}})
		err3 = errors.Join(err3, err)
	}
	c, err4 := tx.PutContent(Prepare([]byte("content")))
	err5 := tx.FinishAttempt(attempt, Finish{Outcome: OutcomeOK, Output: []byte("output")})
	err6 := tx.AppendEvents(b.ID, []Event{{Type: "x", Content: c}})
	_, err7 := tx.PutSignal(Signal{RunID: run, Name: "go", Value: []byte("value")})
	_, err8 := tx.AppendCell(Cell{RunID: run, AttemptID: attempt, Op: "sh", Out: c})
	return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8)
}

func TestAuditIsInsertOnly(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ledger.db"), Options{})
	require.NoError(t, note(db, 1))
	for _, s := range []string{`UPDATE audit SET actor = 'you'`, `DELETE FROM audit`} {
		require.ErrorContains(t, db.Update(context.Background(), func(tx *Tx) error { _, err := tx.exec(s); return err }), "never")
	}
}

func TestNetworkFileSystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db := open(t, path, Options{journal: Truncate})
	require.NoError(t, note(db, 1))
	assert.Equal(t, Truncate, db.Journal())
	assert.Equal(t, 1, count(t, db))
	assert.NoFileExists(t, path+"-wal")
	require.NoError(t, db.Close())

	db = open(t, path, Options{journal: WAL}) // moved to a local disk
	require.NoError(t, note(db, 2))
	assert.FileExists(t, path+"-wal")
	require.NoError(t, db.Close())

	db = open(t, path, Options{journal: Truncate}) // and back
	require.NoError(t, note(db, 3))
	assert.Equal(t, 3, count(t, db))
	h, err := readHeader(context.Background(), db.update)
	require.NoError(t, err)
	assert.Equal(t, Truncate, h.journal)
}
