package ledger

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

// What has been released is never changed.
func TestFirstSchemaStands(t *testing.T) {
	assert.Equal(t, "6f62aff746ed2d744a4152e69da367ec20e8471998b419e2cdcc14e8942f781c", fmt.Sprintf("%x", sha256.Sum256([]byte(schemaFirst))))
}

// A ledger of the first schema, as it was released, with what it may hold.
func TestMigrateFromFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	h := writeHandle(path, Truncate, "NORMAL", 0)
	for _, s := range []string{
		schemaFirst,
		fmt.Sprintf(`PRAGMA application_id=%d`, applicationID),
		`PRAGMA user_version=1`,
		`INSERT INTO counter VALUES('worktree', 1), ('run', 3), ('attempt', 3)`,
		`INSERT INTO worktree VALUES(1, x'2f77', 1, 2, x'', 'plain', 'h', 5)`,
		`INSERT INTO run VALUES(1, 'u1', 'exec', NULL, NULL, 'ok', 1, x'', NULL, 5, 6)`,
		`INSERT INTO run VALUES(3, 'u3', 'exec', NULL, NULL, 'running', 1, x'', 1, 5, 6)`,
		`INSERT INTO attempt VALUES(1, 1, 't', 1, 'ok', 0, NULL, NULL, 'exec', 11, 12, 'boot', 'h', 5, 6)`,
		`INSERT INTO attempt VALUES(2, 1, 't', 2, 'failed', 0, NULL, NULL, 'exec', 11, 12, 'boot', 'h', 5, 6)`,
		`INSERT INTO attempt VALUES(3, 3, 't', 1, NULL, NULL, NULL, NULL, 'exec', 13, 14, 'boot', 'h', 5, NULL)`,
	} {
		_, err := h.Exec(s)
		require.NoError(t, err, s)
	}
	require.NoError(t, h.Close())

	b := &book{TB: t, db: open(t, path, Options{})}
	b.view(func(tx *Tx) error {
		header, err := readHeader(bg, tx.tx)
		require.NoError(t, err)
		assert.Equal(t, len(migrations), header.version)
		as, err := tx.Attempts(1)
		require.NoError(t, err)
		require.Len(t, as, 2)
		assert.Equal(t, Owner{Name: "exec", PID: 11, Start: 12, Boot: "boot", Host: "h"}, as[1].Owner)
		as, err = tx.OpenAttempts(1)
		require.NoError(t, err)
		require.Len(t, as, 1)
		assert.Equal(t, int64(13), as[0].Owner.PID)
		r, err := tx.Run(3)
		require.NoError(t, err)
		assert.Equal(t, []int64{3, 1, 0}, []int64{r.Lineage, r.Parent, r.HeadBranch})
		return nil
	})
	assert.Empty(t, b.problems())
	b.update(func(tx *Tx) error {
		h, err := tx.CreateBranch(3)
		require.NoError(t, err)
		_, err = tx.AppendFrame(h, NewFrame{Put: []snapshot.Row{task("t", snapshot.Running, 1)}})
		require.NoError(t, err)
		a, err := tx.StartAttempt(Attempt{RunID: 3, Task: "t", Owner: Owner{Name: "exec", PID: 13, Start: 14, Boot: "boot", Host: "h"}})
		assert.Equal(t, []int64{4, 2}, []int64{a.ID, int64(a.Number)})
		return err
	})
	assert.Empty(t, b.problems())
	b.view(func(tx *Tx) error {
		var processes int
		require.NoError(t, tx.get(`SELECT count(*) FROM process`, nil, &processes))
		assert.Equal(t, 2, processes)
		return nil
	})
	require.NoError(t, b.db.Close())
}
