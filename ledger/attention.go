package ledger

import (
	"database/sql"
	"fmt"
	"time"
)

// Attention is something about a run that somebody has to look at. It stays
// until it is acknowledged.
type Attention struct {
	ID      int64
	RunID   int64
	Op      int64 // 0 for none
	Effect  int64 // 0 for none
	Why     string
	Created time.Time
	Acked   time.Time // zero while it is open
	AckedBy string
}

const attentionColumns = `id, run_id, op_id, effect_id, why, created_ms, acked_ms, acked_by`

func readAttention(s scanner) (a Attention, err error) {
	var op, effect, acked sql.NullInt64
	var by sql.NullString
	var created int64
	err = s.Scan(&a.ID, &a.RunID, &op, &effect, &a.Why, &created, &acked, &by)
	a.Op, a.Effect, a.Created, a.Acked, a.AckedBy = op.Int64, effect.Int64, fromMillis(created), maybeMillis(acked), by.String
	return a, err
}

// Flag asks for somebody to look at a run. What was asked for already, and is
// open, is not asked for twice.
func (tx *Tx) Flag(run, op, effect int64, why string) error {
	id, err := tx.next("attention")
	if err != nil {
		return err
	}
	_, err = tx.exec(`INSERT INTO attention(id, run_id, op_id, effect_id, why, created_ms) SELECT ?, ?, ?, ?, ?, ?
		WHERE NOT EXISTS (SELECT 1 FROM attention WHERE run_id=? AND effect_id IS ? AND why=? AND acked_ms IS NULL)`,
		id, run, ref(op), ref(effect), why, millis(tx.Now()), run, ref(effect), why)
	if err != nil {
		return fmt.Errorf("flag r%d: %w", run, err)
	}
	return nil
}

// Attention returns what is open about a run, oldest first.
func (tx *Tx) Attention(run int64) ([]Attention, error) {
	return all(tx, readAttention, `SELECT `+attentionColumns+` FROM attention WHERE run_id=? AND acked_ms IS NULL ORDER BY id`, run)
}

// Ack records that somebody has looked at a run, and returns what was open.
func (tx *Tx) Ack(run int64, actor string) ([]Attention, error) {
	open, err := tx.Attention(run)
	if err != nil || len(open) == 0 {
		return open, err
	}
	_, err = tx.exec(`UPDATE attention SET acked_ms=?, acked_by=? WHERE run_id=? AND acked_ms IS NULL`, millis(tx.Now()), actor, run)
	if err != nil {
		return nil, fmt.Errorf("acknowledge r%d: %w", run, err)
	}
	return open, tx.Audit(actor, "run.ack", detail{"run": run, "count": len(open)}.String())
}
