package ledger

import (
	"database/sql"
	"errors"
	"fmt"
)

// LiveCommits hands every commit that a row needs to a function: those of all
// checkpoints, and of all operations that are not pruned. One may come several
// times. It is what decides about deleting objects, so it fails closed: a row
// that can't be read, or that names no commit, is an error (a *CorruptError),
// and then nothing may be deleted. The first error of do is returned too.
func (tx *Tx) LiveCommits(do func(commit string) error) error {
	live := func(commit sql.NullString) error {
		if !commit.Valid {
			return nil
		}
		if !isHex(commit.String) {
			return &CorruptError{Path: tx.db.path, Err: fmt.Errorf("%q is no commit", commit.String)}
		}
		return do(commit.String)
	}
	read := func(s scanner) (c sql.NullString, err error) {
		if err = s.Scan(&c); err == nil && !c.Valid {
			err = &CorruptError{Path: tx.db.path, Err: errors.New("checkpoint without a commit")}
		}
		return c, err
	}
	if err := each(tx, read, live, `SELECT commit_id FROM checkpoint ORDER BY id`); err != nil {
		return fmt.Errorf("live commits of checkpoints: %w", err)
	}
	readFour := func(s scanner) (c [4]sql.NullString, err error) {
		err = s.Scan(&c[0], &c[1], &c[2], &c[3])
		return c, err
	}
	liveFour := func(commits [4]sql.NullString) error {
		for _, c := range commits {
			if err := live(c); err != nil {
				return err
			}
		}
		return nil
	}
	// An entry whose operation is missing counts as not pruned.
	err := each(tx, readFour, liveFour, `SELECT from_commit, safety, target, rescue FROM op_worktree
		WHERE op_id NOT IN (SELECT id FROM op WHERE pruned = 1) ORDER BY op_id, worktree_id`)
	if err != nil {
		return fmt.Errorf("live commits of operations: %w", err)
	}
	return nil
}
