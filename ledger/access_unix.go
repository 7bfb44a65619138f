//go:build unix

package ledger

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// writable returns why the ledger's file, if there is one, or its directory
// can't be written. It has to be asked: SQLite quietly opens for reading what it
// can't open for writing. And it must be asked without opening the file, since
// closing it would drop all locks this process has on it.
func (db *DB) writable() error {
	for _, path := range []string{filepath.Dir(db.path), db.path} {
		err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return &ReadOnlyError{Path: db.path, Err: &os.PathError{Op: "access", Path: path, Err: err}}
		}
	}
	return nil
}
