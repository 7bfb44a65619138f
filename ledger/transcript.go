package ledger

import (
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/snapshot"
)

// Transcript is our copy of a file that a client writes about a conversation.
// It only grows: when the client has written the file anew, another copy
// begins.
type Transcript struct {
	ID      int64
	RunID   int64
	Path    string // bytes; of the client's file
	Size    int64  // how much of it was copied
	Digest  []byte // the state of a SHA-256 that has read it
	Leaf    string // the last entry of the conversation in it; "" for none
	Created time.Time
	Updated time.Time
}

// Piece is a part of a copy: a content.
type Piece struct {
	Start, Size int64
	Hash        snapshot.Hash
}

const transcriptColumns = `id, run_id, path, size, digest, leaf, created_ms, updated_ms`

func readTranscript(s scanner) (t Transcript, err error) {
	var path []byte
	var created, updated int64
	err = s.Scan(&t.ID, &t.RunID, &path, &t.Size, &t.Digest, &t.Leaf, &created, &updated)
	t.Path, t.Created, t.Updated = string(path), fromMillis(created), fromMillis(updated)
	return t, err
}

// Transcripts returns the copies of a run, oldest first.
func (tx *Tx) Transcripts(run int64) ([]Transcript, error) {
	ts, err := all(tx, readTranscript, `SELECT `+transcriptColumns+` FROM transcript WHERE run_id=? ORDER BY id`, run)
	if err != nil {
		return nil, fmt.Errorf("transcripts of r%d: %w", run, err)
	}
	return ts, nil
}

// AllTranscripts hands the copies of all runs to a function, oldest first, and
// stops at its first error.
func (tx *Tx) AllTranscripts(do func(Transcript) error) error {
	return each(tx, readTranscript, do, `SELECT `+transcriptColumns+` FROM transcript ORDER BY id`)
}

// AppendTranscript adds to a copy what came after its Size, in pieces, and
// records its Digest and Leaf as t has them now. One without an ID begins.
// ErrStale when somebody else has added to it meanwhile.
func (tx *Tx) AppendTranscript(t Transcript, pieces []Prepared) (Transcript, error) {
	t, err := tx.appendTranscript(t, pieces)
	if err != nil {
		return t, fmt.Errorf("transcript %s of r%d: %w", t.Path, t.RunID, err)
	}
	return t, nil
}

func (tx *Tx) appendTranscript(t Transcript, pieces []Prepared) (Transcript, error) {
	was := t.Size
	t.Updated = tx.Now()
	if t.ID == 0 {
		id, err := tx.next("transcript")
		if err != nil {
			return t, err
		}
		t.ID, t.Created = id, t.Updated
		_, err = tx.exec(`INSERT INTO transcript(`+transcriptColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?)`,
			t.ID, t.RunID, []byte(t.Path), t.Size, t.Digest, t.Leaf, millis(t.Created), millis(t.Updated))
		if err != nil {
			return t, err
		}
	}
	for _, p := range pieces {
		h, err := tx.PutContent(p)
		if err != nil {
			return t, err
		}
		_, err = tx.exec(`INSERT INTO transcript_piece(transcript_id, start, size, hash) VALUES(?, ?, ?, ?)
			ON CONFLICT(transcript_id, start) DO NOTHING`, t.ID, t.Size, p.Size, h[:])
		if err != nil {
			return t, err
		}
		t.Size += p.Size
	}
	n, err := tx.exec(`UPDATE transcript SET size=?, digest=?, leaf=?, updated_ms=? WHERE id=? AND size=?`,
		t.Size, t.Digest, t.Leaf, millis(t.Updated), t.ID, was)
	if err == nil && n == 0 {
		err = ErrStale
	}
	crash.Point("ledger.transcript")
	return t, err
}

// Pieces returns the parts of a copy in their order.
func (tx *Tx) Pieces(transcript int64) ([]Piece, error) {
	read := func(s scanner) (p Piece, err error) {
		err = s.Scan(&p.Start, &p.Size, hashIn{&p.Hash})
		return p, err
	}
	ps, err := all(tx, read, `SELECT start, size, hash FROM transcript_piece WHERE transcript_id=? ORDER BY start`, transcript)
	if err != nil {
		return nil, fmt.Errorf("pieces of transcript %d: %w", transcript, err)
	}
	return ps, nil
}

// LastPiece returns the newest part of a copy, or ErrNotFound.
func (tx *Tx) LastPiece(transcript int64) (p Piece, err error) {
	err = tx.get(`SELECT start, size, hash FROM transcript_piece WHERE transcript_id=? ORDER BY start DESC LIMIT 1`,
		[]any{transcript}, &p.Start, &p.Size, hashIn{&p.Hash})
	if err != nil {
		return p, fmt.Errorf("last piece of transcript %d: %w", transcript, err)
	}
	return p, nil
}

// transcripts looks whether the pieces of copies lie end to end.
func (c *check) transcripts() error {
	return c.each(ProblemRow, `
		SELECT 'transcript ' || t.id, 'its pieces hold ' || coalesce(sum(p.size), 0) || ' bytes of ' || t.size
			FROM transcript t LEFT JOIN transcript_piece p ON p.transcript_id = t.id GROUP BY t.id HAVING coalesce(sum(p.size), 0) <> t.size
		UNION ALL SELECT 'transcript ' || p.transcript_id, 'nothing leads to its piece at ' || p.start
			FROM transcript_piece p WHERE p.start > 0 AND NOT EXISTS (SELECT 1 FROM transcript_piece q
				WHERE q.transcript_id = p.transcript_id AND q.start < p.start AND q.start + q.size = p.start)
		UNION ALL SELECT 'transcript ' || p.transcript_id, 'is not there, and has pieces'
			FROM transcript_piece p WHERE p.transcript_id NOT IN (SELECT id FROM transcript)`)
}
