package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			migrations = append(migrations, `CREATE TABLE later(x INTEGER) STRICT`)
			t.Cleanup(func() { migrations = migrations[:1] })
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
	t.Cleanup(func() { migrations = migrations[:1] })
	migrations = append(migrations, `CREATE TABLE later(x INTEGER) STRICT; INSERT INTO no_such_table VALUES(1)`)
	_, err := Open(path, Options{})
	require.Error(t, err)
	migrations[1] = `CREATE TABLE later(x INTEGER) STRICT` // nothing of the failed one is left
	db := open(t, path, Options{})
	assert.Equal(t, 1, count(t, db))
	require.NoError(t, db.Close())
	migrations = migrations[:1]
	_, err = Open(path, Options{})
	var newer *NewerSchemaError
	require.ErrorAs(t, err, &newer)
	assert.Equal(t, []int{2, 1}, []int{newer.Have, newer.Know})
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
		{ProblemOpenMove, `UPDATE op SET result = NULL, finished_ms = NULL; UPDATE op_worktree SET active = 1`},
	} {
		t.Run(c.kind+" "+c.statement, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			db := open(t, path, Options{})
			require.NoError(t, db.Commit(context.Background(), fill))
			problems, err := db.Check(context.Background())
			require.NoError(t, err)
			require.Empty(t, problems)
			require.NoError(t, db.Close())

			h := sql.OpenDB(connector{fileURI(path), &sqlite3.SQLiteDriver{}}) // foreign keys off
			_, err = h.Exec(c.statement)
			require.NoError(t, err)
			require.NoError(t, h.Close())
			db = open(t, path, Options{})
			problems, err = db.Check(context.Background())
			require.NoError(t, err)
			var kinds []string
			for _, p := range problems {
				kinds = append(kinds, p.Kind)
			}
			assert.Contains(t, kinds, c.kind, "%v", problems)
			if c.kind == ProblemRow && c.statement[:7] == "UPDATE " && c.statement[7] == 'c' {
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
	_, err4 := tx.StartAttempt(Attempt{RunID: r.ID, Task: "t"})
	commit := fmt.Sprintf("%040x", 1)
	c, err5 := tx.AppendCheckpoint(Checkpoint{WorktreeID: w.ID, Tier: TierManual, Commit: commit, Tree: commit})
	err6 := tx.Label(c.ID, "good", "me")
	o, err7 := tx.BeginOp(Op{Verb: "restore", Worktrees: []OpWorktree{{WorktreeID: w.ID, Target: commit}}}, nil)
	_, err8 := tx.FinishOp(o.ID, o.Token, ResultOK, "")
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
