package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kinds of worktrees.
const (
	KindPlain     = "plain"
	KindGit       = "git"
	KindLinked    = "linked"
	KindSubmodule = "submodule"
)

// Worktree is a directory tree being worked in.
type Worktree struct {
	ID      int64
	Path    string // bytes
	Dev     uint64 // identity of the root directory
	Ino     uint64
	GitDir  string // bytes; empty for a plain directory
	Kind    string
	Host    string
	Created time.Time

	// Adopt tells EnsureWorktree to go on with another directory at the
	// same path. It is not stored.
	Adopt bool
}

// RootID tells a directory from another that was put in its place.
type RootID struct {
	Dev, Ino uint64
}

func (w Worktree) root() RootID { return RootID{w.Dev, w.Ino} }

const worktreeColumns = `id, path, dev, ino, git_dir, kind, host, created_ms`

func readWorktree(s scanner) (w Worktree, err error) {
	var path, gitDir []byte
	var dev, ino, created int64
	err = s.Scan(&w.ID, &path, &dev, &ino, &gitDir, &w.Kind, &w.Host, &created)
	w.Path, w.GitDir = string(path), string(gitDir)
	w.Dev, w.Ino = uint64(dev), uint64(ino)
	w.Created = fromMillis(created)
	return w, err
}

// EnsureWorktree returns the row of the worktree at w.Path, made from w if
// there was none. Git directory, kind and host are brought up to date.
//
// When the row was made for another root directory the error is a
// *RootChangedError, unless w.Adopt is set: then the row is changed, and the
// audit says so.
func (tx *Tx) EnsureWorktree(w Worktree) (Worktree, error) {
	old, err := tx.WorktreeAt(w.Path)
	if errors.Is(err, ErrNotFound) {
		return tx.insertWorktree(w)
	}
	if err != nil {
		return Worktree{}, err
	}
	if old.root() != w.root() && !w.Adopt {
		return Worktree{}, &RootChangedError{Path: w.Path, Old: old.root(), New: w.root()}
	}
	w.ID, w.Created, w.Adopt = old.ID, old.Created, false
	if w == old {
		return old, nil
	}
	_, err = tx.exec(`UPDATE worktree SET dev=?, ino=?, git_dir=?, kind=?, host=? WHERE id=?`,
		int64(w.Dev), int64(w.Ino), []byte(w.GitDir), w.Kind, w.Host, w.ID)
	if err != nil {
		return Worktree{}, fmt.Errorf("worktree %q: %w", w.Path, err)
	}
	if w.root() != old.root() {
		err = tx.Audit("", "worktree.adopt", detail{"worktree": w.ID, "old": old.root(), "new": w.root()}.String())
	}
	return w, err
}

func (tx *Tx) insertWorktree(w Worktree) (Worktree, error) {
	id, err := tx.next("worktree")
	if err != nil {
		return Worktree{}, err
	}
	w.ID, w.Created, w.Adopt = id, tx.Now(), false
	_, err = tx.exec(`INSERT INTO worktree(`+worktreeColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?)`,
		w.ID, []byte(w.Path), int64(w.Dev), int64(w.Ino), []byte(w.GitDir), w.Kind, w.Host, millis(w.Created))
	if err != nil {
		return Worktree{}, fmt.Errorf("worktree %q: %w", w.Path, err)
	}
	return w, nil
}

// WorktreeAt returns the worktree with this path, or ErrNotFound.
func (tx *Tx) WorktreeAt(path string) (Worktree, error) {
	w, err := one(tx, readWorktree, `SELECT `+worktreeColumns+` FROM worktree WHERE path=?`, []byte(path))
	if err != nil {
		return Worktree{}, fmt.Errorf("worktree %q: %w", path, err)
	}
	return w, nil
}

// Worktree returns the worktree with this number, or ErrNotFound.
func (tx *Tx) Worktree(id int64) (Worktree, error) {
	w, err := one(tx, readWorktree, `SELECT `+worktreeColumns+` FROM worktree WHERE id=?`, id)
	if err != nil {
		return Worktree{}, fmt.Errorf("worktree %d: %w", id, err)
	}
	return w, nil
}

// Worktrees returns all of them, in the order they were first seen.
func (tx *Tx) Worktrees() ([]Worktree, error) {
	return all(tx, readWorktree, `SELECT `+worktreeColumns+` FROM worktree ORDER BY id`)
}

// detail is what an audit row says besides its action.
type detail map[string]any

func (d detail) String() string {
	b, err := json.Marshal(d)
	if err != nil {
		panic("BUG: audit detail: " + err.Error())
	}
	return string(b)
}
