package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/snapshot"
)

// Signal is a value sent to a run, kept until the run takes it.
type Signal struct {
	ID            int64
	RunID         int64
	Name          string
	Value         []byte        // up to InlineMax; see Tx.SignalValue
	Hash          snapshot.Hash // of the value; names a content when Value is nil
	RequestKey    string        // "" for none; a key sends one signal to a run, however often it is sent
	RequestDigest string
	Digest        snapshot.Hash // of what it answers; zero for whatever waits
	Actor         string
	Created       time.Time
	Delivered     int64 // the frame that took it; -1 while it waits

	Repeated bool // it was there already; set by PutSignal only
}

// SignalReuseError says that a request key was used to send another signal.
type SignalReuseError struct {
	Key    string
	Signal int64
}

func (e *SignalReuseError) Error() string {
	return fmt.Sprintf("request key %q was used to send another signal, %d", e.Key, e.Signal)
}

const signalColumns = `id, run_id, name, hash, value, request_key, request_digest, digest, actor, created_ms, delivered_seq`

func readSignal(s scanner) (g Signal, err error) {
	var key, request sql.NullString
	var delivered sql.NullInt64
	var created int64
	err = s.Scan(&g.ID, &g.RunID, &g.Name, hashIn{&g.Hash}, &g.Value, &key, &request, hashIn{&g.Digest}, &g.Actor, &created, &delivered)
	g.RequestKey, g.RequestDigest, g.Created, g.Delivered = key.String, request.String, fromMillis(created), -1
	if delivered.Valid {
		g.Delivered = delivered.Int64
	}
	return g, err
}

// PutSignal keeps a signal for its run and returns it with its number. The same
// request returns the signal it sent the first time, marked Repeated; the same
// key with another digest is a *SignalReuseError.
func (tx *Tx) PutSignal(g Signal) (Signal, error) {
	if !tx.writes {
		return Signal{}, ErrView
	}
	if g.RequestKey != "" {
		sent, err := one(tx, readSignal, `SELECT `+signalColumns+` FROM signal WHERE run_id=? AND request_key=?`, g.RunID, g.RequestKey)
		switch {
		case err == nil && sent.RequestDigest != g.RequestDigest:
			return Signal{}, &SignalReuseError{Key: g.RequestKey, Signal: sent.ID}
		case err == nil:
			sent.Repeated = true
			return sent, nil
		case !errors.Is(err, ErrNotFound):
			return Signal{}, fmt.Errorf("signal %s to r%d: %w", g.Name, g.RunID, err)
		}
	}
	if g.Value == nil && g.Hash.IsZero() {
		g.Value = []byte{}
	}
	inline, hash, err := tx.keep(g.Value, g.Hash)
	if err != nil {
		return Signal{}, fmt.Errorf("signal %s to r%d: %w", g.Name, g.RunID, err)
	}
	if g.ID, err = tx.next("signal"); err != nil {
		return Signal{}, err
	}
	g.Value, g.Hash, g.Created, g.Delivered, g.Repeated = inline, hash, tx.Now(), -1, false
	_, err = tx.exec(`INSERT INTO signal(`+signalColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)`,
		g.ID, g.RunID, g.Name, g.Hash[:], g.Value, word(g.RequestKey), word(g.RequestDigest), hashRef(g.Digest), g.Actor, millis(g.Created))
	if err != nil {
		return Signal{}, fmt.Errorf("signal %s to r%d: %w", g.Name, g.RunID, err)
	}
	crash.Point("ledger.signal")
	return g, nil
}

// PendingSignals returns the signals a run has not taken, oldest first.
func (tx *Tx) PendingSignals(run int64) ([]Signal, error) {
	return all(tx, readSignal, `SELECT `+signalColumns+` FROM signal WHERE run_id=? AND delivered_seq IS NULL ORDER BY id`, run)
}

// Signals returns all signals sent to a run, oldest first.
func (tx *Tx) Signals(run int64) ([]Signal, error) {
	return all(tx, readSignal, `SELECT `+signalColumns+` FROM signal WHERE run_id=? ORDER BY id`, run)
}

// MarkSignal records that a frame has taken a signal; -1 puts it back. A signal
// that was taken is ErrFinished.
func (tx *Tx) MarkSignal(id, seq int64) error {
	var n int64
	var err error
	if seq < 0 {
		n, err = tx.exec(`UPDATE signal SET delivered_seq=NULL WHERE id=?`, id)
		return found(n, err, "signal %d", id)
	}
	n, err = tx.exec(`UPDATE signal SET delivered_seq=? WHERE id=? AND delivered_seq IS NULL`, seq, id)
	if err != nil || n > 0 {
		return err
	}
	if err := tx.get(`SELECT 1 FROM signal WHERE id=?`, []any{id}, &n); err != nil {
		return fmt.Errorf("signal %d: %w", id, err)
	}
	return fmt.Errorf("signal %d: %w", id, ErrFinished)
}

// SignalValue returns the value of a signal, wherever it is.
func (tx *Tx) SignalValue(g Signal) ([]byte, error) { return tx.body(g.Value, g.Hash) }
