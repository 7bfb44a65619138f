package ledger_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
)

// What is not worth waiting for is given up while somebody else writes, however
// long others would wait, and written when nobody does.
func TestTryUpdate(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "ledger.db")
	open := func() *ledger.DB {
		db, err := ledger.Open(path, ledger.Options{BusyTimeout: time.Hour})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
	db, other := open(), open()
	note := func(tx *ledger.Tx) error { return tx.Audit("user", "note", "{}") }
	writing, written := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- other.Update(ctx, func(*ledger.Tx) error { close(writing); <-written; return nil })
	}()
	<-writing
	var locked *ledger.LockedError
	assert.ErrorAs(t, db.TryUpdate(ctx, time.Millisecond, note), &locked)
	close(written)
	require.NoError(t, <-done)
	require.NoError(t, db.TryUpdate(ctx, time.Minute, note))
	require.NoError(t, db.View(ctx, func(tx *ledger.Tx) error {
		rows, err := tx.AuditRows(ledger.AuditQuery{})
		assert.Len(t, rows, 1)
		return err
	}))
}
