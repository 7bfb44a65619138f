package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/retcon-dev/retcon/internal/crash"
)

// Options of Open. The zero value is right for a program that writes.
type Options struct {
	// Now is the clock; time.Now when nil.
	Now func() time.Time

	// ReadOnly opens an existing ledger and refuses to write to it.
	ReadOnly bool

	// BusyTimeout is how long to wait for other writers; ten seconds when
	// zero. A transaction that waited in vain returns a *LockedError.
	BusyTimeout time.Duration

	journal   Journal // instead of what suits the file system
	keyframes int     // how many bytes of frames there are at least between two
}

// DB is an open ledger. It may be used by many goroutines at once. Connections
// are made when they are first needed, and there are at most six: one for
// Update, one for Commit, four for View.
type DB struct {
	path     string
	now      func() time.Time
	busy     time.Duration
	journal  Journal
	readOnly error // why nothing can be written; nil when it can

	update, commit, view *sql.DB
	closed               atomic.Bool
	idleLock             atomic.Pointer[os.File] // of lockWriters; nil while somebody has it
	keyframes            int
	processes            sync.Map // from Owner to its number
}

// Open opens the ledger at path, and creates it with mode 0600 if there is
// none; the directory must exist, and should be the user's alone. Any number
// of processes may open, and create, the same ledger at the same time. A
// ledger of an older schema is brought up to date.
//
// A ledger that can't be written for want of permission is opened for reading;
// see [DB.ReadOnly]. In a directory that can't be written, when no log file
// tells of a writer, the file is believed to stay as it is.
//
// Errors about the file are *NewerSchemaError, *OlderSchemaError,
// *NotLedgerError, *CorruptError, *FullError, *ReadOnlyError and *LockedError;
// a missing file opened ReadOnly is an fs.ErrNotExist.
func Open(path string, o Options) (*DB, error) {
	db := &DB{path: path, now: o.Now, busy: o.BusyTimeout, journal: o.journal, keyframes: o.keyframes}
	if db.now == nil {
		db.now = time.Now
	}
	if db.busy == 0 {
		db.busy = 10 * time.Second
	}
	if db.keyframes == 0 {
		db.keyframes = keyframeMin
	}
	if db.journal == "" {
		db.journal = journalFor(filepath.Dir(path))
	}

	err := db.open(context.Background(), o.ReadOnly)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, readOnly bool) error {
	if readOnly {
		return db.openReadOnly(ctx, &ReadOnlyError{Path: db.path, Err: errors.New("opened for reading")})
	}
	err := db.openWriter(ctx)
	if !unwritable(err) {
		return err
	}
	if _, statErr := os.Stat(db.path); statErr != nil {
		return err // there is nothing to read either
	}
	db.Close()
	db.closed.Store(false)
	return db.openReadOnly(ctx, err)
}

func (db *DB) openWriter(ctx context.Context) error {
	if err := db.writable(); err != nil {
		return err
	}
	if err := db.create(ctx); err != nil {
		return err
	}
	db.update = writeHandle(db.path, db.journal, "NORMAL", db.busy)
	db.commit = writeHandle(db.path, db.journal, "FULL", db.busy)
	db.view = readHandle(db.path, false, db.busy)
	return db.migrate(ctx)
}

// create makes sure that there is a file, and does not open one that has
// anything in it: closing it would drop the locks this process has on it.
func (db *DB) create(ctx context.Context) error {
	if s, err := os.Stat(db.path); err == nil && s.Size() > 0 {
		return nil
	}
	unlock, err := db.lockWriters(ctx, db.busy)
	if err != nil {
		return err
	}
	defer unlock()

	f, err := os.OpenFile(db.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := f.Stat()
	if err != nil {
		return err
	}
	if s.Size() > 0 {
		return nil
	}
	// A log without its ledger: SQLite would delete the log.
	if w, err := os.Stat(db.path + "-wal"); err == nil && w.Size() > 0 {
		return &CorruptError{Path: db.path, Err: errors.New("the file is empty, its log is not")}
	}
	crash.Point("ledger.create")
	dir, err := os.Open(filepath.Dir(db.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func (db *DB) openReadOnly(ctx context.Context, why error) error {
	s, err := os.Stat(db.path)
	if err != nil {
		return err
	}
	if s.Size() == 0 {
		return &NotLedgerError{Path: db.path, Reason: "the file is empty"}
	}
	db.readOnly = why
	db.view = readHandle(db.path, false, db.busy)
	err = db.checkSchema(ctx)
	if !unwritable(err) && !cantOpen(err) {
		return err
	}
	// SQLite wants to create the files it shares with writers, and may not.
	if w, statErr := os.Stat(db.path + "-wal"); statErr == nil && w.Size() > 0 {
		// An immutable reading would miss what is in the log.
		return &ReadOnlyError{Path: db.path, Err: fmt.Errorf("its log can't be read without writing beside it: %w", err)}
	}
	db.view.Close()
	db.view = readHandle(db.path, true, db.busy)
	return db.checkSchema(ctx)
}

// Path returns what Open was given.
func (db *DB) Path() string { return db.path }

// Journal tells which journal the file system allows.
func (db *DB) Journal() Journal { return db.journal }

// ReadOnly returns why the ledger can't be written, or nil when it can.
func (db *DB) ReadOnly() error { return db.readOnly }

// View calls fn with a transaction that sees one state of the ledger, whatever
// others write meanwhile. It returns fn's error.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	if db.closed.Load() {
		return ErrClosed
	}
	return db.transact(ctx, db.view, false, fn)
}

// Update calls fn with a transaction that reads and writes, and commits it if
// fn returns nil; after any error nothing has changed. What it committed
// outlives the process. Loss of power may take the newest of these commits, and
// leaves the ledger whole.
//
// One transaction writes at a time, over all processes: fn should be short, and
// must not call Update or Commit itself, which would wait for each other until
// the timeout.
func (db *DB) Update(ctx context.Context, fn func(*Tx) error) error {
	return db.write(ctx, db.update, fn)
}

// Commit is Update, and returns only when the disk has what was written.
func (db *DB) Commit(ctx context.Context, fn func(*Tx) error) error {
	return db.write(ctx, db.commit, fn)
}

// TryUpdate is Update for what is not worth waiting for: when others write for
// longer than patience, nothing is written, and the error is a *LockedError.
func (db *DB) TryUpdate(ctx context.Context, patience time.Duration, fn func(*Tx) error) error {
	// A connection of its own: how long one waits for SQLite's lock, which others
	// than us may hold, is settled when it is made.
	h := writeHandle(db.path, db.journal, "NORMAL", patience)
	defer h.Close()
	return db.writeWithin(ctx, patience, h, fn)
}

func (db *DB) write(ctx context.Context, h *sql.DB, fn func(*Tx) error) error {
	return db.writeWithin(ctx, db.busy, h, fn)
}

func (db *DB) writeWithin(ctx context.Context, patience time.Duration, h *sql.DB, fn func(*Tx) error) error {
	if db.closed.Load() {
		return ErrClosed
	}
	if db.readOnly != nil {
		var ro *ReadOnlyError
		if errors.As(db.readOnly, &ro) {
			return ro
		}
		return &ReadOnlyError{Path: db.path, Err: db.readOnly}
	}
	unlock, err := db.lockWriters(ctx, patience)
	if err != nil {
		return err
	}
	defer unlock()
	return db.transact(ctx, h, true, fn)
}

// transact calls fn in a transaction. It is not an sql.Tx: that one keeps a
// goroutine for itself, and one for each query, to watch for the end of a context
// that mostly has none; passing between them costs more than a small query.
func (db *DB) transact(ctx context.Context, h *sql.DB, writes bool, fn func(*Tx) error) error {
	conn, err := h.Conn(ctx)
	if err != nil {
		return db.explain(err)
	}
	defer conn.Close() // to be used again
	begin := "BEGIN"
	if writes {
		begin = "BEGIN IMMEDIATE"
	}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return db.explain(err)
	}
	open := true
	defer func() {
		if open {
			rollback(context.WithoutCancel(ctx), conn)
		}
	}()
	if writes {
		crash.Point("ledger.begin")
	}
	tx := &Tx{db: db, tx: conn, ctx: ctx, writes: writes}
	defer func() { tx.takeBack() }()
	if err := fn(tx); err != nil {
		return err
	}
	if !writes {
		return nil
	}
	crash.Point("ledger.commit")
	if err := ctx.Err(); err != nil {
		return db.explain(err)
	}
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		return db.explain(err)
	}
	open, tx.undo = false, nil
	crash.Point("ledger.committed")
	return nil
}

// rollback ends a transaction of which nothing comes. SQLite may have done it, as
// when the disk is full. A connection that can't is not used again: whatever it is
// adds nothing to the error that is returned.
func rollback(ctx context.Context, conn *sql.Conn) {
	_, _ = conn.ExecContext(ctx, "ROLLBACK")
	_ = conn.Raw(func(c any) error {
		if c.(*sqlite3.SQLiteConn).AutoCommit() {
			return nil
		}
		return driver.ErrBadConn
	})
}

// takeBack undoes what methods of the transaction did to values of the
// caller's.
func (tx *Tx) takeBack() {
	for _, undo := range slices.Backward(tx.undo) {
		undo()
	}
}

// Close waits for the transactions under way, moves the log into the ledger
// file if this was its last user, and closes it. Closing twice is fine.
func (db *DB) Close() error {
	if db.closed.Swap(true) {
		return nil
	}
	db.closeLock()
	var errs []error
	for _, h := range []*sql.DB{db.view, db.commit, db.update} {
		if h != nil {
			errs = append(errs, h.Close())
		}
	}
	return db.explain(errors.Join(errs...))
}

// CloseFast refuses further use and leaves the log as it is, for a process
// that is about to end and has somebody waiting: the kernel closes the files,
// and a later writer moves the log. Everything committed stays committed.
func (db *DB) CloseFast() { db.closed.Store(true) }
