package ledger

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// AuditRow is one entry of the audit: what was done, by whom. Hash covers the
// row and the hash of the row before, so that a row can't be changed, taken
// out or put in without breaking the chain.
type AuditRow struct {
	ID     int64
	At     time.Time
	Actor  string
	Op     int64 // 0 for none
	Action string
	Detail string
	Prev   [32]byte
	Hash   [32]byte
}

// AuditQuery selects a page of the audit, newest first. The zero value is the
// newest page.
type AuditQuery struct {
	Op     int64 // only of this operation
	Before int64 // only older than this row
	Limit  int   // 200 when zero
}

const auditColumns = `id, ts_ms, actor, op_id, action, detail, prev_hash, hash`

func readAudit(s scanner) (r AuditRow, err error) {
	var at int64
	var op sql.NullInt64
	var prev, hash []byte
	if err := s.Scan(&r.ID, &at, &r.Actor, &op, &r.Action, &r.Detail, &prev, &hash); err != nil {
		return AuditRow{}, err
	}
	r.At, r.Op = fromMillis(at), op.Int64
	if copy(r.Prev[:], prev) != len(r.Prev) || copy(r.Hash[:], hash) != len(r.Hash) {
		return AuditRow{}, fmt.Errorf("audit row %d: hash is cut short", r.ID)
	}
	return r, nil
}

// Audit appends a row that belongs to no operation. The methods of Tx write
// theirs; this is for what others do, such as deleting objects.
func (tx *Tx) Audit(actor, action, detail string) error {
	return tx.audit(actor, 0, action, detail)
}

func (tx *Tx) audit(actor string, op int64, action, detail string) error {
	id, err := tx.next("audit")
	if err != nil {
		return err
	}
	r := AuditRow{ID: id, At: tx.Now(), Actor: actor, Op: op, Action: action, Detail: detail}
	var prev []byte
	err = tx.get(`SELECT hash FROM audit ORDER BY id DESC LIMIT 1`, nil, &prev)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("audit: %w", err)
	}
	copy(r.Prev[:], prev)
	r.Hash = r.sum()
	_, err = tx.exec(`INSERT INTO audit(`+auditColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.At.UnixMilli(), r.Actor, ref(r.Op), r.Action, r.Detail, r.Prev[:], r.Hash[:])
	if err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	return nil
}

// sum is the hash of everything in the row but the hash itself: numbers as
// varints, texts with their length, in the order of the columns.
func (r AuditRow) sum() [32]byte {
	b := append([]byte{0x01}, "retcon.audit.v1"...)
	b = append(b, r.Prev[:]...)
	b = binary.AppendVarint(b, r.ID)
	b = binary.AppendVarint(b, r.At.UnixMilli())
	b = appendText(b, r.Actor)
	b = binary.AppendVarint(b, r.Op)
	b = appendText(b, r.Action)
	b = appendText(b, r.Detail)
	return sha256.Sum256(b)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AuditRows returns a page of the audit, newest first.
func (tx *Tx) AuditRows(q AuditQuery) ([]AuditRow, error) {
	rows, err := all(tx, readAudit, `SELECT `+auditColumns+` FROM audit
		WHERE id < ? AND (? = 0 OR op_id = ?) ORDER BY id DESC LIMIT ?`,
		before(q.Before), q.Op, q.Op, limit(q.Limit))
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return rows, nil
}
