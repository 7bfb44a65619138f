package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-sqlite3"
)

// journalLimit is how large a write-ahead log may stay after a checkpoint.
const journalLimit = 8 << 20

// connector opens connections with one set of pragmas. It takes the place of
// a driver registered by name, which could carry no settings of ours.
type connector struct {
	dsn string
	drv *sqlite3.SQLiteDriver
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.drv.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.drv }

// writeHandle is a handle of one connection, whose every transaction takes
// SQLite's write lock at once: a read that turns into a write later fails, with
// no waiting, when another process has written in between.
func writeHandle(path string, journal Journal, synchronous string, busy time.Duration) *sql.DB {
	dsn := fmt.Sprintf("%s?_txlock=immediate&_busy_timeout=%d&_foreign_keys=1&_synchronous=%s&_stmt_cache_size=64",
		fileURI(path), busy.Milliseconds(), synchronous)
	if journal == Truncate {
		dsn += "&_journal_mode=TRUNCATE" // unlike WAL, forgotten with the connection
	}
	h := sql.OpenDB(connector{dsn, &sqlite3.SQLiteDriver{ConnectHook: settleWriter}})
	h.SetMaxOpenConns(1)
	h.SetMaxIdleConns(1)
	return h
}

// settleWriter keeps the log file in place when the last connection closes, so
// that a reader who may not create files can still open the ledger, and keeps
// it from staying large.
func settleWriter(c *sqlite3.SQLiteConn) error {
	if err := c.SetFileControlInt("main", sqlite3.SQLITE_FCNTL_PERSIST_WAL, 1); err != nil {
		return err
	}
	_, err := c.Exec(fmt.Sprintf("PRAGMA journal_size_limit=%d", journalLimit), nil)
	return err
}

// readHandle is a pool that can't write. An immutable one takes no locks and
// believes that nobody writes.
func readHandle(path string, immutable bool, busy time.Duration) *sql.DB {
	dsn := fmt.Sprintf("%s?mode=ro&_query_only=1&_busy_timeout=%d&_foreign_keys=1&_stmt_cache_size=32",
		fileURI(path), busy.Milliseconds())
	if immutable {
		dsn += "&immutable=1"
	}
	h := sql.OpenDB(connector{dsn, &sqlite3.SQLiteDriver{}})
	h.SetMaxOpenConns(4)
	h.SetMaxIdleConns(4)
	return h
}

// fileURI escapes every byte that SQLite or the driver might read as syntax.
func fileURI(path string) string {
	const plain = "/.-_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	var b strings.Builder
	b.WriteString("file:")
	for i := range len(path) {
		if strings.IndexByte(plain, path[i]) >= 0 {
			b.WriteByte(path[i])
		} else {
			fmt.Fprintf(&b, "%%%02x", path[i])
		}
	}
	return b.String()
}

// explain is the one place where SQLite's codes become errors of ours. It
// passes on what it does not know.
func (db *DB) explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case sqlite3.ErrNotADB:
		return &NotLedgerError{Path: db.path, Reason: "not a database"}
	case sqlite3.ErrCorrupt:
		return &CorruptError{Path: db.path, Err: err}
	case sqlite3.ErrFull:
		return &FullError{Path: db.path, Err: err}
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return &ReadOnlyError{Path: db.path, Err: err}
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return &LockedError{Resource: db.path}
	case sqlite3.ErrCantOpen, sqlite3.ErrIoErr:
		return db.explainErrno(e)
	}
	return err
}

// explainErrno looks at what the operating system said; SQLite's own text
// for these codes is often misleading.
func (db *DB) explainErrno(e sqlite3.Error) error {
	switch e.SystemErrno {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG:
		return &FullError{Path: db.path, Err: fmt.Errorf("%w (%w)", e, e.SystemErrno)}
	case syscall.EROFS, syscall.EACCES, syscall.EPERM:
		return &ReadOnlyError{Path: db.path, Err: fmt.Errorf("%w (%w)", e, e.SystemErrno)}
	case 0:
		return e
	}
	return fmt.Errorf("%w (%w)", e, e.SystemErrno)
}

// unwritable reports whether a file operation failed for want of permission.
func unwritable(err error) bool {
	var ro *ReadOnlyError
	return errors.As(err, &ro) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// cantOpen reports whether SQLite could not open a file. When that is one it
// would have to create in a directory it may not write, it names the reason
// "no such file or directory".
func cantOpen(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.Code == sqlite3.ErrCantOpen
}
