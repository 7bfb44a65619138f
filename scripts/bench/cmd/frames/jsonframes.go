package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/retcon-dev/retcon/snapshot"
)

// jsonFrames keeps the whole state of every frame as JSON text under its hash,
// so that equal states are stored once, with counted references; what was
// written is read back. It is the scheme of an orchestrator that has snapshots.
type jsonFrames struct {
	db    *sql.DB
	state map[string]snapshot.Row
	seq   int64
}

const jsonSchema = `
CREATE TABLE content(hash TEXT PRIMARY KEY, body TEXT NOT NULL, refs INTEGER NOT NULL DEFAULT 0);
CREATE TABLE frame(run TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY(run, seq));
CREATE TRIGGER frame_added AFTER INSERT ON frame BEGIN UPDATE content SET refs = refs + 1 WHERE hash = NEW.hash; END;
CREATE TRIGGER frame_deleted AFTER DELETE ON frame BEGIN UPDATE content SET refs = refs - 1 WHERE hash = OLD.hash; END;`

func newJSONFrames(dir string) (*jsonFrames, error) {
	db, err := openSQLite(dir, jsonSchema)
	return &jsonFrames{db: db, state: map[string]snapshot.Row{}}, err
}

func (j *jsonFrames) append(changed []snapshot.Row) error {
	for _, r := range changed {
		j.state[r.Key] = r
	}
	body, err := json.Marshal(j.state) // sorted by key
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	err = inTx(j.db, func(tx *sql.Tx) error {
		if _, err := tx.Exec(`INSERT INTO content(hash, body) VALUES(?, ?) ON CONFLICT(hash) DO NOTHING`, hash, string(body)); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO frame VALUES('run', ?, 0, ?)`, j.seq, hash); err != nil {
			return err
		}
		var back string
		if err := tx.QueryRow(`SELECT body FROM content WHERE hash=?`, hash).Scan(&back); err != nil {
			return err
		}
		if back != string(body) {
			return errors.New("what was read is not what was written")
		}
		return nil
	})
	j.seq++
	return err
}

func (j *jsonFrames) flush() error { return nil }

func (j *jsonFrames) load(seq int64) error {
	var hash string
	var body []byte
	err := j.db.QueryRow(`SELECT c.hash, c.body FROM frame f JOIN content c ON c.hash = f.hash WHERE f.run='run' AND f.seq=?`, seq).Scan(&hash, &body)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return errors.New("damaged")
	}
	return json.Unmarshal(body, &map[string]snapshot.Row{})
}

func (j *jsonFrames) close() error { return j.db.Close() }
