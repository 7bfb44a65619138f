package ledgertest

import (
	"database/sql"
	"testing"

	_ "github.com/mattn/go-sqlite3" // ledgers are its files
)

// Exec carries out a statement on the ledger at path behind the ledger's back: to
// have it refuse something, or to damage it.
func Exec(t testing.TB, path, statement string) {
	t.Helper()
	h, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
