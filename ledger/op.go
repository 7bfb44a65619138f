package ledger

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon/internal/crash"
)

// How an operation ended.
const (
	ResultOK         = "ok"          // the worktrees are at their targets
	ResultAborted    = "aborted"     // given up before anything was touched
	ResultFailed     = "failed"      // refused on the way, nothing was touched
	ResultRolledBack = "rolled-back" // tried, and put back as it was
)

// Verbs with a meaning for undo and redo. Every other verb is a move.
const (
	VerbUndo = "undo"
	VerbRedo = "redo"
)

// VerbNative is a rewind that was made inside a client, and found out later.
const VerbNative = "native-rewind"

// Op is one move in the journal. While Result is empty it is open: its
// worktrees are leased to it, and no other operation can begin there.
type Op struct {
	ID            int64
	UID           string
	Verb          string
	Actor         string
	Owner         Owner // the process that carries it out
	Phase         int   // begins at 1, never goes back; its meaning is the caller's
	Token         int64
	Plan          string // JSON
	RequestKey    string // "" for none
	RequestDigest string
	Undoes        int64 // the operation this one undoes or redoes
	UndoneBy      int64
	Pruned        bool // its commits may be gone
	Started       time.Time
	Finished      time.Time
	Result        string
	Detail        string // JSON

	Worktrees []OpWorktree
}

// OpWorktree is what an operation does to one worktree. The commits are
// hexadecimal, and empty while there is none.
type OpWorktree struct {
	WorktreeID int64
	From       string // what the worktree was known to hold
	Safety     string // the whole of it, before anything was touched
	Target     string // what it is to become
	Rescue     string // what somebody wrote meanwhile
	Done       bool   // it is at the target
}

const opColumns = `op.id, uid, verb, actor, phase, token, plan, request_key, request_digest, undoes, undone_by, pruned, ` +
	`started_ms, finished_ms, result, detail, ` + ownerColumns

func readOp(s scanner) (o Op, err error) {
	var key, digest, result sql.NullString
	var undoes, undoneBy, finished sql.NullInt64
	var started int64
	err = s.Scan(append([]any{&o.ID, &o.UID, &o.Verb, &o.Actor, &o.Phase, &o.Token, &o.Plan, &key, &digest,
		&undoes, &undoneBy, &o.Pruned, &started, &finished, &result, &o.Detail}, o.Owner.dest()...)...)
	o.RequestKey, o.RequestDigest, o.Result = key.String, digest.String, result.String
	o.Undoes, o.UndoneBy = undoes.Int64, undoneBy.Int64
	o.Started, o.Finished = fromMillis(started), maybeMillis(finished)
	return o, err
}

func readOpWorktree(s scanner) (w OpWorktree, err error) {
	var from, safety, target, rescue sql.NullString
	err = s.Scan(&w.WorktreeID, &from, &safety, &target, &rescue, &w.Done)
	w.From, w.Safety, w.Target, w.Rescue = from.String, safety.String, target.String, rescue.String
	return w, err
}

// BeginOp opens an operation, leases its worktrees to its owner and returns it
// with its number, UID, token and phase 1. Call it inside [DB.Commit].
//
// An *InProgressError says that an operation is open on a worktree or under the
// request key: recover it with [Tx.TakeOp] if its owner is dead. A
// *RepeatedError holds the result of the same request, made before. Others are
// *RequestKeyReuseError, *UndoneError, and *LockedError when somebody who is
// alive holds the worktree without an operation.
func (tx *Tx) BeginOp(o Op, alive func(Owner) bool) (Op, error) {
	if err := tx.refuseOp(o); err != nil {
		return Op{}, err
	}
	var err error
	if o.Plan, err = jsonText("plan", o.Plan); err != nil {
		return Op{}, err
	}
	if o.Detail, err = jsonText("detail", o.Detail); err != nil {
		return Op{}, err
	}
	if o.ID, err = tx.next("op"); err != nil {
		return Op{}, err
	}
	if o.Token, err = tx.next("token"); err != nil {
		return Op{}, err
	}
	o.Started, o.Phase = tx.Now(), 1
	o.UID, o.Result, o.UndoneBy, o.Pruned, o.Finished = newUID(o.Started), "", 0, false, time.Time{}
	if err := tx.insertOp(o); err != nil {
		return Op{}, fmt.Errorf("begin %s: %w", o.Verb, err)
	}
	if err := tx.leaseOp(o, alive); err != nil {
		return Op{}, fmt.Errorf("begin %s: %w", o.Verb, err)
	}
	crash.Point("ledger.op.begin")
	return o, tx.audit(o.Actor, o.ID, "op.begin", detail{"verb": o.Verb, "uid": o.UID, "token": o.Token}.String())
}

// refuseOp finds what stands in the way of an operation.
func (tx *Tx) refuseOp(o Op) error {
	if o.Verb == "" || len(o.Worktrees) == 0 {
		return errors.New("an operation needs a verb and a worktree")
	}
	if o.RequestKey != "" {
		past, err := tx.RequestByKey(o.RequestKey, o.RequestDigest)
		if err == nil {
			return &RepeatedError{Op: past}
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	for _, w := range o.Worktrees {
		open, err := one(tx, readOp, `SELECT `+opColumns+` FROM op JOIN op_worktree w ON w.op_id = op.id
			WHERE w.worktree_id = ? AND w.active = 1`, w.WorktreeID)
		if err == nil {
			return inProgress(open)
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	if o.Undoes == 0 {
		return nil
	}
	return tx.canUndo(o.Undoes)
}

func inProgress(o Op) error {
	return &InProgressError{Op: o.ID, Verb: o.Verb, Owner: o.Owner, Since: o.Started}
}

func (tx *Tx) insertOp(o Op) error {
	_, err := tx.exec(`INSERT INTO op(id, uid, verb, actor, phase, token, plan, request_key, request_digest, undoes, pruned,
		started_ms, detail, `+ownerColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)`,
		append([]any{o.ID, o.UID, o.Verb, o.Actor, o.Phase, o.Token, o.Plan, word(o.RequestKey), word(o.RequestDigest),
			ref(o.Undoes), millis(o.Started), o.Detail}, o.Owner.values()...)...)
	if err != nil {
		return err
	}
	for _, w := range o.Worktrees {
		if err := w.check(); err != nil {
			return err
		}
		_, err := tx.exec(`INSERT INTO op_worktree(op_id, worktree_id, from_commit, safety, target, rescue, done, active)
			VALUES(?, ?, ?, ?, ?, ?, ?, 1)`,
			o.ID, w.WorktreeID, word(w.From), word(w.Safety), word(w.Target), word(w.Rescue), w.Done)
		if err != nil {
			return fmt.Errorf("worktree %d: %w", w.WorktreeID, err)
		}
	}
	return nil
}

func (w OpWorktree) check() error {
	for _, c := range []string{w.From, w.Safety, w.Target, w.Rescue} {
		if c != "" && !isHex(c) {
			return fmt.Errorf("worktree %d: commit %q is not hexadecimal", w.WorktreeID, c)
		}
	}
	return nil
}

// WorktreeResource is the lease that an operation on a worktree holds.
func WorktreeResource(id int64) string { return fmt.Sprintf("worktree/%d", id) }

func (tx *Tx) leaseOp(o Op, alive func(Owner) bool) error {
	for _, w := range o.Worktrees {
		if _, err := tx.acquire(WorktreeResource(w.WorktreeID), o.Owner, o.Token, 0, alive); err != nil {
			return err
		}
	}
	return nil
}

// AdvanceOp records what an open operation has done and the phase it enters,
// which may be the one it is in. From what change makes of the operation these
// are kept: Detail, and of each worktree Safety, Target, Rescue and Done. It
// may be nil.
//
// ErrFenced when the token is not the operation's, or it has ended: stop.
func (tx *Tx) AdvanceOp(id, token int64, phase int, change func(*Op) error) (Op, error) {
	o, err := tx.openOp(id, token)
	if err != nil {
		return Op{}, err
	}
	if phase < o.Phase {
		return Op{}, fmt.Errorf("op %d: phase %d is behind %d", id, phase, o.Phase)
	}
	if change != nil {
		if err := change(&o); err != nil {
			return Op{}, err
		}
	}
	if o.Detail, err = jsonText("detail", o.Detail); err != nil {
		return Op{}, err
	}
	o.Phase = phase
	n, err := tx.exec(`UPDATE op SET phase=?, detail=? WHERE id=? AND token=? AND result IS NULL`, phase, o.Detail, id, token)
	if err := fenced(n, err, "op %d", id); err != nil {
		return Op{}, err
	}
	for _, w := range o.Worktrees {
		if err := w.check(); err != nil {
			return Op{}, fmt.Errorf("op %d: %w", id, err)
		}
		n, err := tx.exec(`UPDATE op_worktree SET safety=?, target=?, rescue=?, done=? WHERE op_id=? AND worktree_id=? AND active=1`,
			word(w.Safety), word(w.Target), word(w.Rescue), w.Done, id, w.WorktreeID)
		if err := fenced(n, err, "op %d, worktree %d", id, w.WorktreeID); err != nil {
			return Op{}, err
		}
	}
	crash.Point("ledger.op.advance")
	return o, tx.audit(o.Actor, id, "op.phase", detail{"phase": phase}.String())
}

// FinishOp closes an operation with its result, frees its worktrees and opens
// the branches it has closed. An empty detail keeps the one there is. An undo or redo that is ok marks the
// operation it was for. A request key can be used again unless the result is
// ok or failed. ErrFenced as in AdvanceOp.
func (tx *Tx) FinishOp(id, token int64, result, detailJSON string) (Op, error) {
	o, err := tx.openOp(id, token)
	if err != nil {
		return Op{}, err
	}
	if detailJSON != "" {
		o.Detail = detailJSON
	}
	if o.Detail, err = jsonText("detail", o.Detail); err != nil {
		return Op{}, err
	}
	o.Result, o.Finished = result, tx.Now()
	n, err := tx.exec(`UPDATE op SET result=?, finished_ms=?, detail=? WHERE id=? AND token=? AND result IS NULL`,
		result, millis(o.Finished), o.Detail, id, token)
	if err := fenced(n, err, "finish op %d", id); err != nil {
		return Op{}, err
	}
	for _, statement := range []string{
		`UPDATE op_worktree SET active=0 WHERE op_id=?`,
		`UPDATE branch SET op_id=NULL WHERE op_id=?`,
	} {
		if _, err := tx.exec(statement, id); err != nil {
			return Op{}, fmt.Errorf("finish op %d: %w", id, err)
		}
	}
	for _, w := range o.Worktrees {
		err := tx.Release(Lease{Resource: WorktreeResource(w.WorktreeID), Token: token})
		if err != nil {
			return Op{}, fmt.Errorf("finish op %d: %w", id, err)
		}
	}
	if o.Undoes != 0 && result == ResultOK {
		if err := tx.markUndone(o.Undoes, id); err != nil {
			return Op{}, err
		}
	}
	crash.Point("ledger.op.finish")
	return o, tx.audit(o.Actor, id, "op.finish", detail{"result": result}.String())
}

// TakeOp makes a new owner responsible for an open operation, whose old owner
// the caller knows to be dead, and returns it with a new token. From then on
// the old one is fenced out. ErrFinished when it is not open.
func (tx *Tx) TakeOp(id int64, owner Owner) (Op, error) {
	o, err := tx.Op(id)
	if err != nil {
		return Op{}, err
	}
	if o.Result != "" {
		return Op{}, fmt.Errorf("op %d: %w", id, ErrFinished)
	}
	old := o.Owner
	if o.Token, err = tx.next("token"); err != nil {
		return Op{}, err
	}
	o.Owner = owner
	_, err = tx.exec(`UPDATE op SET token=?, owner=?, pid=?, pid_start=?, boot=?, host=? WHERE id=? AND result IS NULL`,
		append(append([]any{o.Token}, owner.values()...), id)...)
	if err != nil {
		return Op{}, fmt.Errorf("take op %d: %w", id, err)
	}
	if err := tx.leaseOp(o, func(Owner) bool { return false }); err != nil {
		return Op{}, fmt.Errorf("take op %d: %w", id, err)
	}
	crash.Point("ledger.op.take")
	return o, tx.audit(o.Actor, id, "op.recover", detail{"from": old.String(), "by": owner.String(), "token": o.Token}.String())
}

// openOp returns an operation that is open under a token.
func (tx *Tx) openOp(id, token int64) (Op, error) {
	o, err := tx.Op(id)
	if err != nil {
		return Op{}, err
	}
	if o.Result != "" || o.Token != token {
		return Op{}, fmt.Errorf("op %d: %w", id, ErrFenced)
	}
	return o, nil
}

// Op returns the operation with this number, or ErrNotFound.
func (tx *Tx) Op(id int64) (Op, error) {
	o, err := one(tx, readOp, `SELECT `+opColumns+` FROM op WHERE id=?`, id)
	if err != nil {
		return Op{}, fmt.Errorf("op %d: %w", id, err)
	}
	return o, tx.loadWorktrees(&o)
}

func (tx *Tx) loadWorktrees(o *Op) (err error) {
	o.Worktrees, err = all(tx, readOpWorktree, `SELECT worktree_id, from_commit, safety, target, rescue, done
		FROM op_worktree WHERE op_id=? ORDER BY worktree_id`, o.ID)
	if err != nil {
		return fmt.Errorf("op %d: %w", o.ID, err)
	}
	return nil
}

// OpenOps returns the operations that have no result, oldest first: those being
// carried out, and those whose owner died.
func (tx *Tx) OpenOps() ([]Op, error) {
	return tx.ops(`SELECT ` + opColumns + ` FROM op WHERE id IN (SELECT op_id FROM op_worktree WHERE active = 1) ORDER BY id`)
}

// OpQuery selects a page of operations, newest first. The zero value is the
// newest page of all.
type OpQuery struct {
	Worktree int64 // only on this worktree
	Before   int64 // only older than this operation
	Limit    int   // 200 when zero
}

// Ops returns a page of operations, newest first.
func (tx *Tx) Ops(q OpQuery) ([]Op, error) {
	if q.Worktree != 0 {
		return tx.ops(`SELECT `+opColumns+` FROM op WHERE id IN (SELECT op_id FROM op_worktree
			WHERE worktree_id = ? AND op_id < ? ORDER BY op_id DESC LIMIT ?) ORDER BY id DESC`,
			q.Worktree, before(q.Before), limit(q.Limit))
	}
	return tx.ops(`SELECT `+opColumns+` FROM op WHERE id < ? ORDER BY id DESC LIMIT ?`, before(q.Before), limit(q.Limit))
}

func (tx *Tx) ops(query string, args ...any) ([]Op, error) {
	os, err := all(tx, readOp, query, args...)
	if err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	for i := range os {
		if err := tx.loadWorktrees(&os[i]); err != nil {
			return nil, err
		}
	}
	return os, nil
}

// RequestByKey returns the operation that answered a request, so that a request
// made twice is carried out once. ErrNotFound when it must be carried out;
// *InProgressError when that is happening; *RequestKeyReuseError when the key
// was used with another digest. One that was aborted or rolled back has freed
// its key.
func (tx *Tx) RequestByKey(key, digest string) (Op, error) {
	o, err := one(tx, readOp, `SELECT `+opColumns+` FROM op
		WHERE request_key = ? AND (result IS NULL OR result = 'ok' OR result = 'failed')`, key)
	if err != nil {
		return Op{}, fmt.Errorf("request %q: %w", key, err)
	}
	if o.RequestDigest != digest {
		return Op{}, &RequestKeyReuseError{Key: key, Op: o.ID}
	}
	if o.Result == "" {
		return Op{}, inProgress(o)
	}
	return o, tx.loadWorktrees(&o)
}

// CountMutations returns how many operations an actor has begun since a time
// that changed something or still may, and when the oldest of them began: that
// is the first to leave a window that moves with the clock. What was done
// inside a client was not begun here, and does not count.
func (tx *Tx) CountMutations(actor string, since time.Time) (n int, oldest time.Time, err error) {
	var first sql.NullInt64
	err = tx.get(`SELECT count(*), min(started_ms) FROM op
		WHERE actor = ? AND started_ms >= ? AND verb <> '`+VerbNative+`' AND (result IS NULL OR result = 'ok' OR result = 'rolled-back')`,
		[]any{actor, since.UnixMilli()}, &n, &first)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("operations of %s: %w", actor, err)
	}
	return n, maybeMillis(first), nil
}
