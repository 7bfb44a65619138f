// Package ledgertest opens ledgers for tests, and checks them when the test
// ends.
package ledgertest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/retcon-dev/retcon/ledger"
)

// Open returns an empty ledger in a directory of the test. When the test ends
// it is checked, and closed; a problem fails the test, an open move included.
func Open(t testing.TB) *ledger.DB {
	t.Helper()
	return OpenAt(t, filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{})
}

// OpenAt is Open for a path and options of the caller's.
func OpenAt(t testing.TB, path string, o ledger.Options) *ledger.DB {
	t.Helper()
	db, err := ledger.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := db.Close(); err != nil {
			t.Errorf("close ledger: %v", err)
		}
		Check(t, path)
	})
	return db
}

// Check opens the ledger at path anew and fails the test for every problem.
func Check(t testing.TB, path string) {
	t.Helper()
	db, err := ledger.Open(path, ledger.Options{})
	if err != nil {
		t.Errorf("check ledger: %v", err)
		return
	}
	defer db.Close()
	problems, err := db.Check(context.Background())
	if err != nil {
		t.Errorf("check ledger: %v", err)
	}
	for _, p := range problems {
		t.Errorf("ledger: %s", p)
	}
}
