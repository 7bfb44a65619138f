package ledger

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/retcon-dev/retcon/snapshot"
)

func (c *check) branches() error {
	return c.each(ProblemBranch, `
		SELECT 'branch ' || b.id, 'begins at frame ' || b.base_seq || ' of branch ' || p.id || ', which has ' || (p.base_seq + 1) || ' to ' || p.head_seq
			FROM branch b JOIN branch p ON p.id = b.parent_id WHERE b.base_seq <= p.base_seq OR b.base_seq > p.head_seq
		UNION ALL SELECT 'branch ' || b.id, 'has ' || count(f.seq) || ' frames, ' || coalesce(min(f.seq), '-') || ' to ' || coalesce(max(f.seq), '-')
				|| ', and should have ' || (b.base_seq + 1) || ' to ' || b.head_seq
			FROM branch b LEFT JOIN frame f ON f.branch_id = b.id GROUP BY b.id
			HAVING count(f.seq) <> b.head_seq - b.base_seq
				OR count(f.seq) > 0 AND (min(f.seq) <> b.base_seq + 1 OR max(f.seq) <> b.head_seq)
		UNION ALL SELECT 'branch ' || b.id, 'is closed by op ' || o.id || ', which has ended'
			FROM branch b JOIN op o ON o.id = b.op_id WHERE o.result IS NOT NULL
		UNION ALL SELECT 'branch ' || b.id, 'is ' || b.state || ', and closed by an operation' FROM branch b WHERE b.state <> 'live' AND b.op_id IS NOT NULL
		UNION ALL SELECT 'branch ' || b.id, 'is live, and r' || b.run_id || ' goes on elsewhere'
			FROM branch b JOIN run r ON r.id = b.run_id WHERE b.state = 'live' AND b.id IS NOT r.head_branch
		UNION ALL SELECT 'r' || r.id, 'goes on with branch ' || b.id || ', which is ' || b.state || ' and of r' || b.run_id
			FROM run r JOIN branch b ON b.id = r.head_branch WHERE b.run_id <> r.id OR b.state <> 'live'
		UNION ALL SELECT 'r' || r.id, 'is of the lineage of r' || r.lineage || ', which is not the first of one'
			FROM run r LEFT JOIN run l ON l.id = r.lineage WHERE l.id IS NULL OR l.lineage <> l.id
		UNION ALL SELECT 'branch ' || k.branch_id, 'has a keyframe of frame ' || k.seq || ', which is not there'
			FROM keyframe k WHERE NOT EXISTS (SELECT 1 FROM frame f WHERE f.branch_id = k.branch_id AND f.seq = k.seq)
		UNION ALL SELECT 'branch ' || f.branch_id, 'has frames, and is not there'
			FROM frame f WHERE f.branch_id NOT IN (SELECT id FROM branch) GROUP BY f.branch_id
		UNION ALL SELECT 'branch ' || e.branch_id, 'has events from ' || min(e.seq) || ' to ' || max(e.seq)
				|| ', and frames from ' || coalesce(b.base_seq, '-') || ' to ' || coalesce(b.head_seq, '-')
			FROM event e LEFT JOIN branch b ON b.id = e.branch_id GROUP BY e.branch_id
			HAVING b.id IS NULL OR min(e.seq) <= b.base_seq OR max(e.seq) > b.head_seq + 1`)
}

// frames computes the root of every frame anew, keyframes included.
func (c *check) frames() error {
	branches, err := all(c.tx, readBranch, `SELECT `+branchColumns+` FROM branch ORDER BY id`)
	if err != nil {
		return err
	}
	for _, b := range branches {
		err := c.branch(b)
		var corrupt *CorruptError
		switch {
		case errors.As(err, &corrupt):
			c.found(ProblemFrame, fmt.Sprintf("branch %d", b.ID), "%v", corrupt.Err)
		case errors.Is(err, ErrNotFound):
			c.found(ProblemFrame, fmt.Sprintf("branch %d", b.ID), "%v", err)
		case err != nil:
			return err
		}
	}
	return nil
}

func (c *check) branch(b Branch) error {
	s := snapshot.NewSet()
	if b.BaseSeq >= 0 {
		h, err := c.tx.LoadFrame(b.Parent, b.BaseSeq)
		if err != nil {
			return err
		}
		s = h.Set
	}
	err := each(c.tx, readFrame, func(f frameRow) error { return c.frame(s, f) },
		`SELECT `+frameColumns+` FROM frame WHERE branch_id=? ORDER BY seq`, b.ID)
	if err != nil {
		return err
	}
	if s.Root() != b.HeadRoot {
		return c.tx.corrupt("its head is %s, its frames lead to %s", b.HeadRoot.Short(), s.Root().Short())
	}
	return each(c.tx, readKeyframe, c.keyframe, `SELECT branch_id, seq, body FROM keyframe WHERE branch_id=? ORDER BY seq`, b.ID)
}

func (c *check) frame(s *snapshot.Set, f frameRow) error {
	delta, err := unpackDelta(f.delta)
	if err == nil {
		err = s.Fold(f.Seq, delta)
	}
	if err != nil {
		return c.tx.corrupt("frame %d: %w", f.Seq, err)
	}
	if s.Root() != f.Root {
		return c.tx.corrupt("frame %d has the root %s, its changes lead to %s", f.Seq, f.Root.Short(), s.Root().Short())
	}
	return nil
}

type keyframeRow struct {
	branch, seq int64
	body        []byte
}

func readKeyframe(s scanner) (k keyframeRow, err error) {
	err = s.Scan(&k.branch, &k.seq, &k.body)
	return k, err
}

// keyframe loads a keyframe by itself; what the deltas lead to was looked at
// before.
func (c *check) keyframe(k keyframeRow) error {
	body, err := decompress(k.body)
	var s *snapshot.Set
	if err == nil {
		s, err = snapshot.ParseKeyframe(k.seq, body)
	}
	if err != nil {
		return c.tx.corrupt("keyframe %d: %w", k.seq, err)
	}
	at, err := c.tx.place(k.branch, k.seq)
	if err != nil {
		return err
	}
	if s.Root() != at.root {
		return c.tx.corrupt("keyframe %d has the root %s, its frame has %s", k.seq, s.Root().Short(), at.root.Short())
	}
	return nil
}

// contents reads every body that has a hash, and looks for those that rows
// name. The hashes in frames may be of other things, so nothing is asked of
// them.
func (c *check) contents() error {
	type row struct {
		hash        snapshot.Hash
		size, codec int64
		body        []byte
	}
	read := func(s scanner) (r row, err error) {
		err = s.Scan(hashIn{&r.hash}, &r.size, &r.codec, &r.body)
		return r, err
	}
	err := each(c.tx, read, func(r row) error {
		_, err := unpack(r.hash, r.size, int(r.codec), r.body)
		var external *ExternalError
		if err != nil && !errors.As(err, &external) {
			c.found(ProblemContent, "content "+r.hash.Short(), "%v", err)
		}
		return nil
	}, `SELECT hash, size, codec, body FROM content ORDER BY id`)
	if err != nil {
		return err
	}
	if err := c.inline(); err != nil {
		return err
	}
	return c.each(ProblemReference, `
		SELECT what, 'its content ' || lower(hex(hash)) || ' is missing' FROM (
			SELECT 'r' || id AS what, input AS hash FROM run
			UNION ALL SELECT 'r' || id, def FROM run
			UNION ALL SELECT 'attempt ' || id, out FROM attempt WHERE output IS NULL
			UNION ALL SELECT 'event ' || seq || '.' || idx || ' of branch ' || branch_id, content FROM event
			UNION ALL SELECT 'signal ' || id, hash FROM signal WHERE value IS NULL
			UNION ALL SELECT 'cell ' || id, out FROM cell
			UNION ALL SELECT 'cell ' || id, view_hash FROM cell
			UNION ALL SELECT 'transcript ' || transcript_id, hash FROM transcript_piece
		) WHERE hash IS NOT NULL AND hash NOT IN (SELECT hash FROM content)`)
}

// inline looks at bodies that stand in the row that has their hash.
func (c *check) inline() error {
	type row struct {
		what       string
		hash, body []byte
	}
	read := func(s scanner) (r row, err error) {
		err = s.Scan(&r.what, &r.hash, &r.body)
		return r, err
	}
	return each(c.tx, read, func(r row) error {
		if sum := sha256.Sum256(r.body); len(r.hash) < 8 || !bytes.HasPrefix(sum[:], r.hash) {
			c.found(ProblemContent, r.what, "what it holds does not agree with its hash")
		}
		return nil
	}, `SELECT 'attempt ' || id, out, output FROM attempt WHERE output IS NOT NULL
		UNION ALL SELECT 'signal ' || id, hash, value FROM signal WHERE value IS NOT NULL`)
}

// tape looks at what belongs together in attempts and cells.
func (c *check) tape() error {
	return c.each(ProblemRow, `
		SELECT 'r' || run_id, 'its cells are not numbered 1 to ' || count(*)
			FROM cell GROUP BY run_id HAVING min(seq) <> 1 OR max(seq) <> count(*)
		UNION ALL SELECT 'cell ' || c.id, 'its attempt is missing, or of another run'
			FROM cell c LEFT JOIN attempt a ON a.id = c.attempt_id
			WHERE c.attempt_id IS NOT NULL AND (a.id IS NULL OR a.run_id <> c.run_id)
		UNION ALL SELECT 'attempt ' || id, 'ended at frame ' || end_seq || ', before ' || start_seq
			FROM attempt WHERE end_seq < start_seq
		UNION ALL SELECT 'attempt ' || id, 'has no process' FROM attempt WHERE process_id IS NULL`)
}
