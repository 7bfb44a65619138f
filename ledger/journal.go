package ledger

// Journal is how SQLite keeps a transaction whole.
type Journal string

const (
	// WAL lets readers go on while one writer writes. It needs memory shared
	// by all users of the file, so they must be on one host.
	WAL Journal = "wal"

	// Truncate is the rollback journal, for network file systems. Readers and
	// the writer wait for each other.
	Truncate Journal = "truncate"
)
