package ledger

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// However a transaction ends, nothing of it is left unless it was committed, and
// the next one begins.
func TestTransactionEnds(t *testing.T) {
	b := newBook(t, Options{})
	b.start()
	value := func() (n int64) {
		require.NoError(t, b.db.View(bg, func(tx *Tx) error {
			return tx.get(`SELECT coalesce(max(value), 0) FROM counter WHERE name='x'`, nil, &n)
		}))
		return n
	}
	next := func(tx *Tx) {
		_, err := tx.next("x")
		require.NoError(t, err)
	}
	mine := errors.New("mine")
	for name, end := range map[string]func(t *testing.T){
		"an error": func(t *testing.T) {
			assert.ErrorIs(t, b.db.Update(bg, func(tx *Tx) error { next(tx); return mine }), mine)
		},
		"a panic": func(t *testing.T) {
			assert.PanicsWithValue(t, mine, func() { _ = b.db.Update(bg, func(tx *Tx) error { next(tx); panic(mine) }) })
		},
		"the context, and nobody asks": func(t *testing.T) {
			ctx, cancel := context.WithCancel(bg)
			assert.ErrorIs(t, b.db.Update(ctx, func(tx *Tx) error { next(tx); cancel(); return nil }), context.Canceled)
		},
		"the context, within": func(t *testing.T) {
			ctx, cancel := context.WithCancel(bg)
			assert.ErrorIs(t, b.db.Update(ctx, func(tx *Tx) error {
				next(tx)
				cancel()
				_, err := tx.next("x")
				return err
			}), context.Canceled)
		},
		"a commit that fails": func(t *testing.T) {
			assert.ErrorContains(t, b.db.Update(bg, func(tx *Tx) error {
				next(tx)
				_, err := tx.exec(`PRAGMA defer_foreign_keys=1`)
				require.NoError(t, err)
				_, err = tx.exec(`UPDATE branch SET run_id=999`)
				require.NoError(t, err)
				return nil
			}), "FOREIGN KEY")
		},
		"a reading that fails": func(t *testing.T) {
			assert.ErrorIs(t, b.db.View(bg, func(*Tx) error { return mine }), mine)
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := value()
			end(t)
			assert.Equal(t, before, value(), "nothing of it is left")
			require.NoError(t, b.db.Update(bg, func(tx *Tx) error { next(tx); return nil }))
			assert.Equal(t, before+1, value())
		})
	}
}
