package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// Tx is a transaction. It belongs to the closure it was given to, and ends
// with it. A method that writes returns ErrView inside View.
//
// A method's error may be any of those Open returns, besides the ones it names.
type Tx struct {
	db     *DB
	tx     *sql.Conn
	ctx    context.Context // of the View, Update or Commit that made it
	writes bool
	undo   []func() // called, last first, when nothing comes of the transaction
}

// exec runs a statement that writes and returns how many rows it touched.
func (tx *Tx) exec(query string, args ...any) (int64, error) {
	if !tx.writes {
		return 0, ErrView
	}
	r, err := tx.tx.ExecContext(tx.ctx, query, args...)
	if err != nil {
		return 0, tx.db.explain(err)
	}
	n, err := r.RowsAffected()
	return n, tx.db.explain(err)
}

// get scans the one row of a query. No row is ErrNotFound.
func (tx *Tx) get(query string, args []any, dest ...any) error {
	return tx.db.explain(tx.tx.QueryRowContext(tx.ctx, query, args...).Scan(dest...))
}

// insert runs a statement that writes and returns one row.
func (tx *Tx) insert(query string, args []any, dest ...any) error {
	if !tx.writes {
		return ErrView
	}
	return tx.get(query, args, dest...)
}

// scanner is a row of a query, or the only one.
type scanner interface{ Scan(dest ...any) error }

// one reads the single row of a query with a function.
func one[T any](tx *Tx, read func(scanner) (T, error), query string, args ...any) (T, error) {
	v, err := read(tx.tx.QueryRowContext(tx.ctx, query, args...))
	return v, tx.db.explain(err)
}

// all reads every row of a query.
func all[T any](tx *Tx, read func(scanner) (T, error), query string, args ...any) ([]T, error) {
	var vs []T
	err := each(tx, read, func(v T) error { vs = append(vs, v); return nil }, query, args...)
	if err != nil {
		return nil, err
	}
	return vs, nil
}

// each hands every row of a query to a function, and stops at its first error.
func each[T any](tx *Tx, read func(scanner) (T, error), do func(T) error, query string, args ...any) error {
	rows, err := tx.tx.QueryContext(tx.ctx, query, args...)
	if err != nil {
		return tx.db.explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		v, err := read(rows)
		if err != nil {
			return tx.db.explain(err)
		}
		if err := do(v); err != nil {
			return err
		}
	}
	return tx.db.explain(rows.Err())
}

func readInt(s scanner) (n int64, err error)     { err = s.Scan(&n); return }
func readString(s scanner) (v string, err error) { err = s.Scan(&v); return }

// next returns the next number of a sequence. Numbers are never given twice,
// whatever becomes of the rows that had them.
func (tx *Tx) next(sequence string) (n int64, err error) {
	if !tx.writes {
		return 0, ErrView
	}
	err = tx.get(`INSERT INTO counter(name, value) VALUES(?, 1)
		ON CONFLICT(name) DO UPDATE SET value = counter.value + 1 RETURNING value`, []any{sequence}, &n)
	if err != nil {
		return 0, fmt.Errorf("next %s: %w", sequence, err)
	}
	return n, nil
}

// Now is the ledger's clock, to the millisecond.
func (tx *Tx) Now() time.Time { return fromMillis(tx.db.now().UnixMilli()) }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// millis is a time that may be unset, as it is stored.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func maybeMillis(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return fromMillis(ms.Int64)
}

// ref is a reference that may be unset, as it is stored.
func ref(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}

// word is a text that may be unset and must not collide with other unset ones.
func word(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func jsonText(what, s string) (string, error) {
	if s == "" {
		return "{}", nil
	}
	if !json.Valid([]byte(s)) {
		return "", fmt.Errorf("%s is not JSON: %.40q", what, s)
	}
	return s, nil
}

// pageSize is the limit of a query that names none.
const pageSize = 200

func limit(n int) int {
	if n <= 0 {
		return pageSize
	}
	return n
}

// before is the exclusive upper end of a page; zero means the newest rows.
func before(id int64) int64 {
	if id <= 0 {
		return 1<<63 - 1
	}
	return id
}
