package main

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"

	"github.com/retcon-dev/retcon/snapshot"
)

// hamt keeps the state as a tree of nodes with sixteen places each, by the
// hashed key, every node a row under its own hash: frames share what they have
// in common, and have one hash each.
type hamt struct {
	db   *sql.DB
	root *node
	seq  int64
}

// node is a row, or places for sixteen of them. What is not loaded or not
// stored yet has no hash.
type node struct {
	row    *snapshot.Row
	places [16]*node
	hash   [32]byte
	stored bool
}

const hamtSchema = `
CREATE TABLE node(hash BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE frame(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, root BLOB NOT NULL);`

func newHAMT(dir string) (*hamt, error) {
	db, err := openSQLite(dir, hamtSchema)
	return &hamt{db: db, root: &node{}}, err
}

func nibble(hash [32]byte, depth int) byte {
	return hash[depth/2] >> (4 * (1 - depth&1)) & 15
}

func (n *node) put(r *snapshot.Row, hash [32]byte, depth int) *node {
	if n == nil {
		return &node{row: r}
	}
	if n.row != nil {
		if n.row.Key == r.Key {
			return &node{row: r}
		}
		deeper := (&node{}).put(n.row, sha256.Sum256([]byte(n.row.Key)), depth)
		return deeper.put(r, hash, depth)
	}
	c := &node{places: n.places}
	at := nibble(hash, depth)
	c.places[at] = n.places[at].put(r, hash, depth+1)
	return c
}

func (h *hamt) append(changed []snapshot.Row) error {
	for _, r := range changed {
		h.root = h.root.put(&r, sha256.Sum256([]byte(r.Key)), 0)
	}
	err := inTx(h.db, func(tx *sql.Tx) error {
		if err := h.store(tx, h.root); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO frame VALUES(?, 0, ?)`, h.seq, h.root.hash[:])
		return err
	})
	h.seq++
	return err
}

// store stores a node that has not been, those below it first. A node is its
// rows and the hashes of the nodes in its places.
func (h *hamt) store(tx *sql.Tx, n *node) error {
	if n.stored {
		return nil
	}
	var body []byte
	for i, p := range n.places {
		switch {
		case p == nil:
		case p.row != nil:
			b, err := p.row.MarshalBinary()
			if err != nil {
				return err
			}
			body = append(append(body, byte(i)), b...)
		default:
			if err := h.store(tx, p); err != nil {
				return err
			}
			body = append(append(body, byte(i)|0x80), p.hash[:]...)
		}
	}
	n.hash, n.stored = sha256.Sum256(body), true
	_, err := tx.Exec(`INSERT INTO node VALUES(?, ?) ON CONFLICT(hash) DO NOTHING`, n.hash[:], body)
	return err
}

func (h *hamt) flush() error { return nil }

func (h *hamt) load(seq int64) error {
	tx, err := h.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var root []byte
	if err := tx.QueryRow(`SELECT root FROM frame WHERE seq=?`, seq).Scan(&root); err != nil {
		return err
	}
	get, err := tx.Prepare(`SELECT body FROM node WHERE hash=?`)
	if err != nil {
		return err
	}
	defer get.Close()
	_, err = loadNode(get, root)
	return err
}

func loadNode(get *sql.Stmt, hash []byte) (*node, error) {
	var body []byte
	if err := get.QueryRow(hash).Scan(&body); err != nil {
		return nil, err
	}
	n := &node{hash: sha256.Sum256(body), stored: true}
	if !bytes.Equal(n.hash[:], hash) {
		return nil, errors.New("damaged")
	}
	for len(body) > 0 {
		at := body[0]
		var err error
		if at&0x80 != 0 {
			n.places[at&15], err = loadNode(get, body[1:33])
			body = body[33:]
		} else {
			length, width := binary.Uvarint(body[1:])
			end := 1 + width + int(length)
			r := new(snapshot.Row)
			err = r.UnmarshalBinary(body[1:end])
			n.places[at&15] = &node{row: r}
			body = body[end:]
		}
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (h *hamt) close() error { return h.db.Close() }
