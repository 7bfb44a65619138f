package ledger

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/snapshot"
)

// What has become of a branch.
const (
	BranchLive     = "live"
	BranchArchived = "archived" // cut off by a move; no view shows it
	BranchPurged   = "purged"   // the frames that only it had are deleted
)

// Branch is one line of frames in a run. Its own frames are those after Base up
// to Head; the ones before are its parent's.
type Branch struct {
	ID         int64
	RunID      int64
	Parent     int64 // 0 for the first of a run that is no fork
	BaseSeq    int64 // -1 when there is no parent
	HeadSeq    int64 // -1 while there is no frame
	HeadRoot   snapshot.Hash
	State      string
	Op         int64 // the operation that keeps others from appending; 0 for none
	ArchivedBy int64 // the operation that cut it off
	Archived   time.Time
	ReplacedBy int64 // the branch its run went on with
	Label      string
	Created    time.Time
}

// GatedError says that an operation is about to move the branch. Wait for it,
// or recover it if its owner is dead.
type GatedError struct{ Branch, Op int64 }

func (e *GatedError) Error() string {
	return fmt.Sprintf("branch %d is closed while op %d moves it", e.Branch, e.Op)
}

// ArchivedError says that a branch was cut off by an operation. The run goes on
// elsewhere, see [Tx.RunHead]; what began on this branch and ends only now is
// recorded with [Tx.AppendLate].
type ArchivedError struct {
	Branch int64
	By     int64 // 0 when it is not known
}

func (e *ArchivedError) Error() string {
	return fmt.Sprintf("branch %d was cut off by op %d", e.Branch, e.By)
}

const branchColumns = `id, run_id, parent_id, base_seq, head_seq, head_root, state, op_id, archived_by, archived_ms, replaced_by, label, created_ms`

func readBranch(s scanner) (b Branch, err error) {
	var parent, op, by, archived, next sql.NullInt64
	var created int64
	err = s.Scan(&b.ID, &b.RunID, &parent, &b.BaseSeq, &b.HeadSeq, hashIn{&b.HeadRoot}, &b.State, &op, &by, &archived, &next, &b.Label, &created)
	b.Parent, b.Op, b.ArchivedBy, b.ReplacedBy = parent.Int64, op.Int64, by.Int64, next.Int64
	b.Archived, b.Created = maybeMillis(archived), fromMillis(created)
	return b, err
}

// CreateBranch makes the first branch of a run, which becomes the run's head,
// and returns it as a state without rows. An error when the run has one.
func (tx *Tx) CreateBranch(runID int64) (*Head, error) {
	set := snapshot.NewSet()
	b, err := tx.firstBranch(Branch{RunID: runID, BaseSeq: -1, HeadSeq: -1, HeadRoot: set.Root()})
	if err != nil {
		return nil, err
	}
	return &Head{Branch: b.ID, Seq: -1, Set: set}, nil
}

// Fork makes the first branch of a run out of a frame of another one: nothing
// is copied. A seq of Newest is the branch's head.
func (tx *Tx) Fork(branch, seq, runID int64, label string) (Branch, error) {
	at, err := tx.place(branch, seq)
	if err != nil {
		return Branch{}, err
	}
	return tx.firstBranch(Branch{RunID: runID, Parent: at.Branch, BaseSeq: at.Seq, HeadSeq: at.Seq, HeadRoot: at.root, Label: label})
}

func (tx *Tx) firstBranch(b Branch) (Branch, error) {
	r, err := tx.Run(b.RunID)
	if err != nil {
		return Branch{}, err
	}
	if r.HeadBranch != 0 {
		return Branch{}, fmt.Errorf("r%d has its first branch already", b.RunID)
	}
	if b, err = tx.insertBranch(b); err != nil {
		return Branch{}, err
	}
	crash.Point("ledger.branch")
	return b, tx.setHead(b, 0)
}

func (tx *Tx) insertBranch(b Branch) (Branch, error) {
	id, err := tx.next("branch")
	if err != nil {
		return Branch{}, err
	}
	b.ID, b.State, b.Created = id, BranchLive, tx.Now()
	_, err = tx.exec(`INSERT INTO branch(`+branchColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, ?, ?)`,
		b.ID, b.RunID, ref(b.Parent), b.BaseSeq, b.HeadSeq, b.HeadRoot[:], b.State, b.Label, millis(b.Created))
	if err != nil {
		return Branch{}, fmt.Errorf("branch of r%d: %w", b.RunID, err)
	}
	return b, nil
}

// setHead makes a run go on with a branch, by the doing of an operation.
func (tx *Tx) setHead(b Branch, op int64) error {
	n, err := tx.exec(`UPDATE run SET head_branch=?, head_op=?, updated_ms=? WHERE id=?`, b.ID, ref(op), millis(tx.Now()), b.RunID)
	return found(n, err, "r%d", b.RunID)
}

// BranchByID returns the branch with this number, or ErrNotFound.
func (tx *Tx) BranchByID(id int64) (Branch, error) {
	b, err := one(tx, readBranch, `SELECT `+branchColumns+` FROM branch WHERE id=?`, id)
	if err != nil {
		return Branch{}, fmt.Errorf("branch %d: %w", id, err)
	}
	return b, nil
}

// RunHead returns the branch a run goes on with, or ErrNotFound.
func (tx *Tx) RunHead(runID int64) (Branch, error) {
	b, err := one(tx, readBranch, `SELECT `+branchColumns+` FROM branch
		WHERE id = (SELECT head_branch FROM run WHERE id=?)`, runID)
	if err != nil {
		return Branch{}, fmt.Errorf("head of r%d: %w", runID, err)
	}
	return b, nil
}

// Branches returns all branches of a run, archived ones too, oldest first.
func (tx *Tx) Branches(runID int64) ([]Branch, error) {
	return all(tx, readBranch, `SELECT `+branchColumns+` FROM branch WHERE run_id=? ORDER BY id`, runID)
}

// Children returns the branches that begin at frames of this one, whatever
// their run, in the order of those frames.
func (tx *Tx) Children(branch int64) ([]Branch, error) {
	return all(tx, readBranch, `SELECT `+branchColumns+` FROM branch WHERE parent_id=? ORDER BY base_seq, id`, branch)
}

// SetBranchLabel names a branch.
func (tx *Tx) SetBranchLabel(branch int64, label string) error {
	n, err := tx.exec(`UPDATE branch SET label=? WHERE id=?`, label, branch)
	return found(n, err, "branch %d", branch)
}

// Gate closes a branch to all but an open operation, until Ungate, or until the
// operation is finished. A *GatedError when another has closed it.
func (tx *Tx) Gate(branch, op int64) error {
	n, err := tx.exec(`UPDATE branch SET op_id=? WHERE id=? AND state='live' AND (op_id IS NULL OR op_id=?)
		AND EXISTS (SELECT 1 FROM op WHERE id=? AND result IS NULL)`, op, branch, op, op)
	if err != nil || n > 0 {
		return err
	}
	if _, err := tx.Op(op); err != nil {
		return err
	}
	b, err := tx.BranchByID(branch)
	if err == nil {
		err = b.refusal(op)
	}
	if err == nil {
		err = fmt.Errorf("op %d: %w", op, ErrFinished)
	}
	return err
}

// Ungate opens a branch that an operation has closed. One that is open, or
// closed by another, is left alone.
func (tx *Tx) Ungate(branch, op int64) error {
	_, err := tx.exec(`UPDATE branch SET op_id=NULL WHERE id=? AND op_id=?`, branch, op)
	return err
}

// refusal says why nothing can be appended to the branch, but by an operation;
// nil when it can.
func (b Branch) refusal(op int64) error {
	switch {
	case b.State != BranchLive:
		return &ArchivedError{Branch: b.ID, By: b.ArchivedBy}
	case b.Op != 0 && b.Op != op:
		return &GatedError{Branch: b.ID, Op: b.Op}
	}
	return nil
}

// Rewind makes a run go on from an earlier frame: a new branch begins there,
// and the one before is archived as it is. It costs the same however many frames
// there are. Gates of the operation itself are no hindrance.
func (tx *Tx) Rewind(runID, seq, op int64) (Branch, error) {
	old, err := tx.RunHead(runID)
	if err == nil {
		err = old.refusal(op)
	}
	if err != nil {
		return Branch{}, fmt.Errorf("rewind r%d: %w", runID, err)
	}
	at, err := tx.place(old.ID, seq)
	if err != nil {
		return Branch{}, fmt.Errorf("rewind r%d: %w", runID, err)
	}
	b, err := tx.insertBranch(Branch{RunID: runID, Parent: at.Branch, BaseSeq: at.Seq, HeadSeq: at.Seq, HeadRoot: at.root})
	if err != nil {
		return Branch{}, err
	}
	if err := tx.archive(old, op, b.ID); err != nil {
		return Branch{}, err
	}
	crash.Point("ledger.rewind")
	return b, tx.setHead(b, op)
}

func (tx *Tx) archive(b Branch, op, next int64) error {
	n, err := tx.exec(`UPDATE branch SET state='archived', archived_by=?, archived_ms=?, replaced_by=?, op_id=NULL
		WHERE id=? AND state='live' AND head_seq=?`, ref(op), millis(tx.Now()), next, b.ID, b.HeadSeq)
	if err == nil && n == 0 {
		err = ErrStale
	}
	if err != nil {
		return fmt.Errorf("archive branch %d: %w", b.ID, err)
	}
	return nil
}

// Unrewind takes back what an operation did to the heads of runs: each goes on
// with the branch that was archived, and the one it had meanwhile is archived
// by the operation by. Taking that one back in turn is the redo. ErrStale when
// the run has been moved since; *UndoneError when the branch has been purged.
func (tx *Tx) Unrewind(op, by int64) ([]Branch, error) {
	old, err := all(tx, readBranch, `SELECT `+branchColumns+` FROM branch WHERE archived_by=? ORDER BY id`, op)
	if err != nil {
		return nil, fmt.Errorf("undo op %d: %w", op, err)
	}
	for i := range old {
		if old[i], err = tx.unarchive(old[i], op, by); err != nil {
			return nil, fmt.Errorf("undo op %d: %w", op, err)
		}
	}
	return old, nil
}

func (tx *Tx) unarchive(b Branch, op, by int64) (Branch, error) {
	if b.State != BranchArchived {
		return b, &UndoneError{Op: op, Reason: "has been pruned"}
	}
	r, err := tx.Run(b.RunID)
	if err != nil {
		return b, err
	}
	if r.HeadBranch != b.ReplacedBy {
		return b, fmt.Errorf("r%d has been moved since: %w", b.RunID, ErrStale)
	}
	head, err := tx.BranchByID(r.HeadBranch)
	if err == nil {
		err = head.refusal(by)
	}
	if err == nil {
		err = tx.archive(head, by, b.ID)
	}
	if err != nil {
		return b, err
	}
	_, err = tx.exec(`UPDATE branch SET state='live', archived_by=NULL, archived_ms=NULL, replaced_by=NULL WHERE id=?`, b.ID)
	if err != nil {
		return b, err
	}
	b.State, b.ArchivedBy, b.ReplacedBy, b.Archived = BranchLive, 0, 0, time.Time{}
	crash.Point("ledger.unrewind")
	return b, tx.setHead(b, by)
}

// Position is a frame as seen from a branch: the frame itself may be one of the
// branch's parent.
type Position struct{ Branch, Seq int64 }

// owned is a frame, by the branch that owns it.
type owned struct {
	Position
	root snapshot.Hash
}

// place finds the branch that owns a frame, ErrNotFound when there is none.
func (tx *Tx) place(branch, seq int64) (owned, error) {
	segments, seq, err := tx.segments(branch, seq)
	if err == nil && len(segments) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return owned{}, fmt.Errorf("frame %d of branch %d: %w", seq, branch, err)
	}
	at := owned{Position: Position{Branch: segments[0].branch, Seq: seq}}
	err = tx.get(`SELECT root FROM frame WHERE branch_id=? AND seq=?`, []any{at.Branch, seq}, hashIn{&at.root})
	if err != nil {
		return owned{}, fmt.Errorf("frame %d of branch %d: %w", seq, branch, err)
	}
	return at, nil
}

// segment is a part of a lineage: the frames after lo up to hi of a branch.
type segment struct{ branch, lo, hi int64 }

// segments returns the parts that lead to a frame, newest first; those without
// a frame are left out. Newest is the head; which one that is, is returned.
// ErrNotFound when there is no such branch, or no such frame.
func (tx *Tx) segments(branch, seq int64) ([]segment, int64, error) {
	read := func(s scanner) (g segment, err error) {
		err = s.Scan(&g.branch, &g.lo, &g.hi)
		return g, err
	}
	line, err := all(tx, read, `WITH RECURSIVE line(id, parent, lo, hi) AS (
			SELECT id, parent_id, base_seq, head_seq FROM branch WHERE id = ?
			UNION ALL SELECT b.id, b.parent_id, b.base_seq, line.lo FROM line JOIN branch b ON b.id = line.parent
		) SELECT id, lo, hi FROM line`, branch)
	if err != nil {
		return nil, seq, err
	}
	if len(line) == 0 {
		return nil, seq, fmt.Errorf("no branch: %w", ErrNotFound)
	}
	if seq == Newest {
		seq = line[0].hi
	}
	if seq > line[0].hi || seq < -1 || seq == -1 && line[0].hi != -1 {
		return nil, seq, ErrNotFound
	}
	segments := line[:0]
	for _, g := range line {
		if g.hi = min(g.hi, seq); g.lo < g.hi {
			segments = append(segments, g)
		}
	}
	return segments, seq, nil
}
