package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/mattn/go-sqlite3" // the database of all contestants

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
)

// store keeps the frames of one run.
type store interface {
	append(changed []snapshot.Row) error
	flush() error         // all that was appended is committed
	load(seq int64) error // verified, and ready to be appended to
	close() error
}

// ours is the ledger. Frames are committed batch by batch.
type ours struct {
	db      *ledger.DB
	run     int64
	head    *ledger.Head
	batch   int
	pending [][]snapshot.Row
}

func newOurs(dir string, batch int) (*ours, error) {
	db, err := ledger.Open(filepath.Join(dir, "ledger.db"), ledger.Options{})
	if err != nil {
		return nil, err
	}
	o := &ours{db: db, batch: batch}
	return o, db.Update(context.Background(), func(tx *ledger.Tx) error {
		w, err := tx.EnsureWorktree(ledger.Worktree{Path: dir, Kind: ledger.KindPlain})
		if err != nil {
			return err
		}
		r, err := tx.CreateRun(ledger.Run{Source: "bench", WorktreeID: w.ID})
		if err != nil {
			return err
		}
		o.run = r.ID
		o.head, err = tx.CreateBranch(r.ID)
		return err
	})
}

func (o *ours) append(changed []snapshot.Row) error {
	if o.pending = append(o.pending, changed); len(o.pending) < o.batch {
		return nil
	}
	return o.flush()
}

func (o *ours) flush() error {
	err := o.db.Update(context.Background(), func(tx *ledger.Tx) error {
		for _, rows := range o.pending {
			if _, err := tx.AppendFrame(o.head, ledger.NewFrame{Put: rows, Kind: "outcome"}); err != nil {
				return err
			}
		}
		return nil
	})
	o.pending = nil
	return err
}

func (o *ours) load(seq int64) error {
	return o.db.View(context.Background(), func(tx *ledger.Tx) error {
		_, err := tx.LoadFrame(o.head.Branch, seq)
		return err
	})
}

func (o *ours) close() error { return o.db.Close() }

// size closes the ledger and returns how large its file is.
func (o *ours) size() (int64, error) {
	if err := o.db.Close(); err != nil {
		return 0, err
	}
	s, err := os.Stat(o.db.Path())
	if err != nil {
		return 0, err
	}
	o.db, err = ledger.Open(o.db.Path(), ledger.Options{})
	return s.Size(), err
}

// openSQLite opens a database for a peer the way the ledger opens its own.
func openSQLite(dir, schema string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "peer.db")+
		"?_txlock=immediate&_journal_mode=WAL&_synchronous=NORMAL&_stmt_cache_size=64")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(schema); err != nil {
		return nil, fmt.Errorf("%w; %w", err, db.Close())
	}
	return db, nil
}

// inTx runs a function in a transaction.
func inTx(db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}
