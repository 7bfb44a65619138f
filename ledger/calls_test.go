package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

// A ledger of the third schema: the calls of a session's attempts are found by
// their ids, whatever they look like, and those of others are none.
func TestMigrateCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	h := writeHandle(path, Truncate, "NORMAL", 0)
	insert := func(id, run int, task string) string {
		return fmt.Sprintf(`INSERT INTO attempt(id, run_id, task, number, outcome, started_ms, ended_ms, process_id) VALUES(%d, %d, '%s', 1, 'ok', 5, 6, 1)`, id, run, task)
	}
	for _, s := range []string{
		schemaFirst, schemaFrames, schemaEffects,
		fmt.Sprintf(`PRAGMA application_id=%d`, applicationID),
		`PRAGMA user_version=3`,
		`INSERT INTO counter VALUES('worktree', 1), ('run', 2), ('attempt', 9)`,
		`INSERT INTO worktree VALUES(1, x'2f77', 1, 2, x'', 'plain', 'h', 5)`,
		`INSERT INTO run(id, uid, source, ext_id, status, worktree_id, command, created_ms, updated_ms, kind, lineage)
			VALUES(1, 'u1', 'gemini', 's', 'running', 1, x'', 5, 6, 'session', 1), (2, 'u2', 'workflow', NULL, 'running', 1, x'', 5, 6, 'workflow', 2)`,
		`INSERT INTO process VALUES(1, 'gemini', 11, 12, 'boot', 'h')`,
		insert(1, 1, "prompt-1"),
		insert(2, 1, "prompt-1/Bash[toolu_1]"),
		insert(3, 1, "prompt-1/mcp__x__[y][call_2]"),
		insert(4, 1, "prompt-1/sub-1/write_file[h0123456789ab.1]"),
		insert(5, 1, "prompt-2/write_file[h0123456789ab.2]"),
		insert(6, 1, "prompt-2/write_file[h0123456789abc.2]"),
		insert(7, 1, "prompt-2/Edit[h0123456789ab.x]"),
		insert(8, 1, "prompt-2/Edit[a]b]"),
		insert(9, 2, "e0[item]"),
	} {
		_, err := h.Exec(s)
		require.NoError(t, err, s)
	}
	require.NoError(t, h.Close())

	b := &book{TB: t, db: open(t, path, Options{})}
	b.view(func(tx *Tx) error {
		as, err := tx.Attempts(1)
		require.NoError(t, err)
		var calls []string
		for _, a := range as {
			calls = append(calls, a.Call)
		}
		assert.Equal(t, []string{"", "toolu_1", "call_2", "h0123456789ab", "h0123456789ab", "h0123456789abc.2", "h0123456789ab.x", "a]b"}, calls)
		last, err := tx.LastOfCall(1, "h0123456789ab")
		require.NoError(t, err)
		assert.Equal(t, "prompt-2/write_file[h0123456789ab.2]", last.Task)
		_, err = tx.LastOfCall(2, "item")
		assert.ErrorIs(t, err, ErrNotFound)
		running, err := tx.RunningRuns(1, "workflow")
		require.NoError(t, err)
		assert.Len(t, running, 1)
		return nil
	})
	assert.Empty(t, b.problems())
	require.NoError(t, b.db.Close())
}

func TestLastOfCall(t *testing.T) {
	b := newBook(t, Options{})
	run := b.run(Run{}).ID
	began := time.UnixMilli(1_700_000_000_123)
	b.update(func(tx *Tx) error {
		for i, call := range []string{"a", "b", "a", ""} {
			a, err := tx.StartAttempt(Attempt{RunID: run, Task: fmt.Sprintf("t%d", i), Call: call, Started: began})
			require.NoError(t, err)
			assert.True(t, began.Equal(a.Started))
			open, err := tx.Open(run)
			require.NoError(t, err)
			assert.True(t, open)
			require.NoError(t, tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK}))
		}
		open, err := tx.Open(run)
		assert.False(t, open)
		return err
	})
	b.view(func(tx *Tx) error {
		a, err := tx.LastOfCall(run, "a")
		require.NoError(t, err)
		assert.Equal(t, "t2 a", a.Task+" "+a.Call)
		assert.True(t, began.Equal(a.Started), "the event's time")
		for _, call := range []string{"c", "", "A"} {
			_, err = tx.LastOfCall(run, call)
			assert.ErrorIs(t, err, ErrNotFound, call)
		}
		_, err = tx.LastOfCall(run+1, "a")
		assert.ErrorIs(t, err, ErrNotFound, "of another run")
		return nil
	})
}

func TestEventsByName(t *testing.T) {
	b := newBook(t, Options{})
	run := b.run(Run{}).ID
	b.update(func(tx *Tx) error {
		head, err := tx.CreateBranch(run)
		require.NoError(t, err)
		put := func(events ...Event) { require.NoError(t, tx.AppendEvents(head.Branch, events)) }
		put(Event{Type: "note", ExtID: "op-1"}, Event{Type: "prompt", Task: "p0"})
		_, err = tx.AppendFrame(head, NewFrame{Put: []snapshot.Row{task("t", snapshot.Done, 1)}})
		require.NoError(t, err)
		put(Event{Type: "note"}, Event{Type: "prompt", Task: "p1"}, Event{Type: "note", ExtID: "op-3"}, Event{Type: "note", ExtID: "op-2"}, Event{Type: "prompt", Task: "late"})
		own, err := tx.BranchByID(head.Branch)
		require.NoError(t, err)

		names := func(after int64) (out []string) {
			events, err := tx.NamedEvents(own.ID, after, "note")
			require.NoError(t, err)
			for _, e := range events {
				out = append(out, e.ExtID)
			}
			return out
		}
		assert.Equal(t, []string{"op-1", "op-3", "op-2"}, names(-1))
		assert.Equal(t, []string{"op-3", "op-2"}, names(own.HeadSeq))
		first, err := tx.FirstComing(own, "prompt")
		require.NoError(t, err)
		assert.Equal(t, "p1", first.Task)
		_, err = tx.FirstComing(own, "nothing")
		require.ErrorIs(t, err, ErrNotFound)
		e, err := tx.EventByExt(own.ID, "note", "op-3")
		require.NoError(t, err)
		assert.Equal(t, own.HeadSeq+1, e.Seq)
		for _, of := range []Event{{Branch: own.ID + 1, Type: "note", ExtID: "op-3"}, {Branch: own.ID, Type: "prompt", ExtID: "op-3"}, {Branch: own.ID, Type: "note", ExtID: "op-4"}} {
			_, err = tx.EventByExt(of.Branch, of.Type, of.ExtID)
			assert.ErrorIs(t, err, ErrNotFound)
		}
		return nil
	})
}

// looks is a step of a plan that reads what it was not pointed to.
var looks = regexp.MustCompile(`^SCAN (\S+)(?: |$)`)

// What a hook asks at every event is answered by an index: no query of these
// goes through a table, or through an index of more than what is open.
func TestHooksAskByIndex(t *testing.T) {
	b := newBook(t, Options{})
	run, head := b.start()
	var queries []asked
	h := sql.OpenDB(noting{connector{fileURI(b.db.path), &sqlite3.SQLiteDriver{}}, &queries})
	defer h.Close()
	h.SetMaxOpenConns(1)
	conn, err := h.Conn(bg)
	require.NoError(t, err)
	defer conn.Close()
	tx := &Tx{db: b.db, tx: conn, ctx: bg}
	for name, q := range map[string]struct {
		ask func() error
		by  string // the step that decides how much is read
	}{
		"LastOfCall":   {func() error { _, err := tx.LastOfCall(run.ID, "a"); return err }, "INDEX attempt_call (run_id=? AND call=?)"},
		"OpenAttempts": {func() error { _, err := tx.OpenAttempts(1); return err }, "INDEX attempt_open"},
		"Open":         {func() error { _, err := tx.Open(run.ID); return err }, "INDEX attempt_open (run_id=?)"},
		"RunningRuns":  {func() error { _, err := tx.RunningRuns(1, "workflow"); return err }, "INDEX run_running (worktree_id=? AND kind=?)"},
		"RunByExt":     {func() error { _, err := tx.RunByExt("a", "b"); return err }, "INDEX run_ext (source=? AND ext_id=?)"},
		"Run":          {func() error { _, err := tx.Run(run.ID); return err }, "INTEGER PRIMARY KEY (rowid=?)"},
		"RunHead":      {func() error { _, err := tx.RunHead(run.ID); return err }, "INTEGER PRIMARY KEY (rowid=?)"},
		"EventByExt":   {func() error { _, err := tx.EventByExt(head.Branch, "a", "b"); return err }, "INDEX event_ext (branch_id=? AND type=? AND ext_id=?)"},
		"NamedEvents":  {func() error { _, err := tx.NamedEvents(head.Branch, 1, "a"); return err }, "INDEX event_ext (branch_id=? AND type=? AND ext_id>?)"},
		"FirstComing":  {func() error { _, err := tx.FirstComing(Branch{ID: head.Branch}, "a"); return err }, "PRIMARY KEY (branch_id=? AND seq=?)"},
		"OpenOps":      {func() error { _, err := tx.OpenOps(); return err }, "INDEX op_active"},
		"Ops":          {func() error { _, err := tx.Ops(OpQuery{Worktree: 1, Limit: 50}); return err }, "INDEX op_of_worktree (worktree_id=? AND op_id<?)"},
		"Checkpoints":  {func() error { _, err := tx.Checkpoints(CheckpointQuery{Worktree: 1, Limit: 20}); return err }, "INDEX checkpoint_worktree (worktree_id=? AND id<?)"},
		"Latest":       {func() error { _, err := tx.LatestCheckpoint(1); return err }, "INDEX checkpoint_worktree (worktree_id=?)"},
		"Lease":        {func() error { _, err := tx.Lease("x"); return err }, "PRIMARY KEY (resource=?)"},
		"WorktreeAt":   {func() error { _, err := tx.WorktreeAt("/w"); return err }, "(path=?)"},
	} {
		queries = nil
		if err := q.ask(); err != nil {
			require.ErrorIs(t, err, ErrNotFound, name)
		}
		require.Len(t, queries, 1, name)
		plan := planOf(t, tx, queries[0])
		assert.Contains(t, strings.Join(plan, "\n"), q.by, name)
		for _, step := range plan {
			if m := looks.FindStringSubmatch(step); m != nil && m[1] != "CONSTANT" {
				assert.Regexp(t, `USING (COVERING )?INDEX (attempt_open|op_active)`, step, name)
			}
		}
	}
}

func planOf(t *testing.T, tx *Tx, q asked) []string {
	t.Helper()
	steps, err := all(tx, func(s scanner) (text string, err error) {
		var id, parent, unused int
		err = s.Scan(&id, &parent, &unused, &text)
		return text, err
	}, `EXPLAIN QUERY PLAN `+q.text, q.args...)
	require.NoError(t, err, q.text)
	require.NotEmpty(t, steps)
	return steps
}

// asked is a query that was sent to SQLite.
type asked struct {
	text string
	args []any
}

// noting is a connector whose connections note what they are asked.
type noting struct {
	connector
	asked *[]asked
}

func (n noting) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := n.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return notingConn{c.(*sqlite3.SQLiteConn), n.asked}, nil
}

type notingConn struct {
	*sqlite3.SQLiteConn
	asked *[]asked
}

func (c notingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q := asked{text: query}
	for _, a := range args {
		q.args = append(q.args, a.Value)
	}
	*c.asked = append(*c.asked, q)
	return c.SQLiteConn.QueryContext(ctx, query, args)
}
