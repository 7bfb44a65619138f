package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/snapshot"
)

// Deleting is done in chunks, each a transaction of its own, so that nobody who
// writes waits long.
const (
	purgeChunk = 2000 // frames
	sweepChunk = 250  // contents
)

// MinSweepAge is how long ago a content was last put or named, at least, before
// it is swept: who puts one has that long to write what names it.
const MinSweepAge = time.Hour

// Purged is what PurgeBranches has deleted.
type Purged struct {
	Branches, Frames, Events int64
}

// PurgeBranches deletes branches that were cut off before a time by operations
// that have been pruned: nothing can bring them back. Frames from which a branch
// that stays descends are kept. It may be stopped and begun again; the ledger is
// whole at every moment.
func (db *DB) PurgeBranches(ctx context.Context, archivedBefore time.Time) (Purged, error) {
	var total Purged
	for {
		var did Purged
		more := false
		err := db.Update(ctx, func(tx *Tx) (err error) {
			did, more, err = tx.purgeSome(archivedBefore)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("purge branches: %w", err)
		}
		total.Branches += did.Branches
		total.Frames += did.Frames
		total.Events += did.Events
		if !more {
			return total, nil
		}
	}
}

// purgeSome deletes a chunk of the newest branch that has something to delete.
// Children are newer than their parents, so they go first.
func (tx *Tx) purgeSome(archivedBefore time.Time) (did Purged, more bool, err error) {
	read := func(s scanner) (p purgeable, err error) {
		err = s.Scan(&p.id, &p.base, &p.head, &p.floor, &p.children)
		return p, err
	}
	ps, err := all(tx, read, `SELECT id, base_seq, head_seq, floor, children FROM (
			SELECT b.id, b.base_seq, b.head_seq, coalesce((SELECT max(c.base_seq) FROM branch c WHERE c.parent_id = b.id), b.base_seq) AS floor,
				(SELECT count(*) FROM branch c WHERE c.parent_id = b.id) AS children, b.state
			FROM branch b WHERE b.state = 'purged' OR b.state = 'archived' AND b.archived_ms < ?
				AND (b.archived_by IS NULL OR b.archived_by IN (SELECT id FROM op WHERE pruned = 1))
		) p WHERE p.head_seq > p.floor OR p.children = 0 OR p.state = 'archived' ORDER BY p.id DESC LIMIT 1`, archivedBefore.UnixMilli())
	if err != nil || len(ps) == 0 {
		return did, false, err
	}
	did, err = tx.purge(ps[0])
	return did, true, err
}

type purgeable struct {
	id, base, head int64
	floor          int64 // the last frame that a child needs
	children       int64
}

func (tx *Tx) purge(p purgeable) (did Purged, err error) {
	head := max(p.floor, p.head-purgeChunk)
	root := snapshot.NewSet().Root()
	if head >= 0 {
		at, err := tx.place(p.id, head)
		if err != nil {
			return did, err
		}
		root = at.root
	}
	for _, d := range []struct {
		count     *int64
		statement string
	}{
		{&did.Frames, `DELETE FROM frame WHERE branch_id=? AND seq>?`},
		{new(int64), `DELETE FROM keyframe WHERE branch_id=? AND seq>?`},
		{&did.Events, `DELETE FROM event WHERE branch_id=? AND seq>?`},
	} {
		if *d.count, err = tx.exec(d.statement, p.id, head); err != nil {
			return did, err
		}
	}
	crash.Point("ledger.purge")
	if head == p.base && p.children == 0 {
		did.Branches, err = tx.exec(`DELETE FROM branch WHERE id=?`, p.id)
		return did, err
	}
	_, err = tx.exec(`UPDATE branch SET state='purged', head_seq=?, head_root=? WHERE id=?`, head, root[:], p.id)
	return did, err
}

// Swept is what SweepContents has deleted.
type Swept struct {
	Contents, Bytes int64 // bytes as stored
}

// SweepContents deletes the contents that no row names and that were not put or
// named since a time, which is at least MinSweepAge ago. It fails closed: when a
// row can't be read, nothing is deleted.
func (db *DB) SweepContents(ctx context.Context, unusedSince time.Time) (Swept, error) {
	var total Swept
	var dead []content
	err := db.View(ctx, func(tx *Tx) (err error) {
		if oldest := tx.Now().Add(-MinSweepAge); unusedSince.After(oldest) {
			unusedSince = oldest
		}
		dead, err = tx.unnamed(unusedSince)
		return err
	})
	if err == nil {
		total, err = db.sweep(ctx, dead, unusedSince)
	}
	if err != nil {
		return total, fmt.Errorf("sweep contents: %w", err)
	}
	return total, nil
}

// sweep deletes contents that nobody named. One that somebody has named
// meanwhile is fresh, and stays.
func (db *DB) sweep(ctx context.Context, dead []content, unusedSince time.Time) (total Swept, err error) {
	for len(dead) > 0 {
		chunk := dead[:min(len(dead), sweepChunk)]
		dead = dead[len(chunk):]
		var did Swept
		err := db.Update(ctx, func(tx *Tx) error {
			for _, c := range chunk {
				n, err := tx.exec(`DELETE FROM content WHERE hash=? AND ref_ms<?`, c.hash[:], unusedSince.UnixMilli())
				if err != nil {
					return err
				}
				did.Contents += n
				did.Bytes += n * c.stored
			}
			crash.Point("ledger.sweep")
			return nil
		})
		if err != nil {
			return total, err
		}
		total.Contents += did.Contents
		total.Bytes += did.Bytes
	}
	return total, nil
}

type content struct {
	hash   snapshot.Hash
	stored int64
}

func readStored(s scanner) (c content, err error) {
	err = s.Scan(hashIn{&c.hash}, &c.stored)
	return c, err
}

// unnamed returns the contents no row names that are older than a time.
func (tx *Tx) unnamed(before time.Time) (dead []content, err error) {
	live := map[snapshot.Hash]bool{}
	if err := tx.LiveContents(func(h snapshot.Hash) error { live[h] = true; return nil }); err != nil {
		return nil, err
	}
	err = each(tx, readStored, func(c content) error {
		if !live[c.hash] {
			dead = append(dead, c)
		}
		return nil
	}, `SELECT hash, length(body) FROM content WHERE ref_ms < ? ORDER BY id`, before.UnixMilli())
	return dead, err
}

// namers are the columns that name contents.
var namers = []string{
	`SELECT input FROM run WHERE input IS NOT NULL`,
	`SELECT def FROM run WHERE def IS NOT NULL`,
	`SELECT out FROM attempt WHERE out IS NOT NULL AND output IS NULL`,
	`SELECT content FROM event WHERE content IS NOT NULL`,
	`SELECT hash FROM signal`,
	`SELECT out FROM cell WHERE out IS NOT NULL`,
	`SELECT view_hash FROM cell WHERE view_hash IS NOT NULL`,
	`SELECT hash FROM transcript_piece`,
}

// LiveContents hands every hash that a row or a frame names to a function, some
// several times, and some that are hashes of other things. The first error of do
// is returned; a row that can't be read is a *CorruptError.
func (tx *Tx) LiveContents(do func(snapshot.Hash) error) error {
	read := func(s scanner) (h snapshot.Hash, err error) {
		if err = s.Scan(hashIn{&h}); err != nil {
			err = tx.corrupt("a hash that is none: %w", err)
		}
		return h, err
	}
	for _, query := range namers {
		if err := each(tx, read, do, query); err != nil {
			return fmt.Errorf("live contents: %w", err)
		}
	}
	if err := tx.liveInFrames(do); err != nil {
		return fmt.Errorf("live contents: %w", err)
	}
	return nil
}

// liveInFrames looks into the deltas alone: a keyframe repeats them.
func (tx *Tx) liveInFrames(do func(snapshot.Hash) error) error {
	read := func(s scanner) (stored sql.RawBytes, err error) {
		err = s.Scan(&stored)
		return stored, err
	}
	return each(tx, read, func(stored sql.RawBytes) error {
		entries, err := tx.entries(-1, stored)
		if err != nil {
			return err
		}
		for _, e := range entries {
			r := e.Row(snapshot.Row{})
			for _, h := range []snapshot.Hash{r.Decl, r.Input, r.Out} {
				if h.IsZero() {
					continue
				}
				if err := do(h); err != nil {
					return err
				}
			}
		}
		return nil
	}, `SELECT delta FROM frame`)
}

// LiveExternal hands the place of every content that is kept elsewhere to a
// function: objects that must not be deleted.
func (tx *Tx) LiveExternal(do func(id string) error) error {
	return each(tx, readString, do, `SELECT body FROM content WHERE codec=? ORDER BY id`, codecExternal)
}
