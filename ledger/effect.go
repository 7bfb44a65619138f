package ledger

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/sideeffect"
)

// Effect is something that a run did outside its worktree. It belongs to the
// frame it leads to, as an event does. No move changes where it belongs: it is
// in the world.
//
// Redact what a tool was given and answered before it comes here.
type Effect struct {
	sideeffect.Effect // Seq is the ID

	ID      int64
	RunID   int64
	Branch  int64 // 0 for a run without frames
	Frame   int64
	Attempt int64 // the newest that made it; 0 for none
	Task    string
	CompOp  int64 // the operation that compensated or crossed it
	Created time.Time
	Updated time.Time
}

const effectColumns = `effect.id, effect.run_id, effect.branch_id, effect.seq, effect.attempt_id, effect.task, effect.key, effect.epoch, ` +
	`effect.tool, effect.class, effect.status, effect.comp, effect.comp_op, effect.comp_detail, effect.late, effect.source, effect.body, ` +
	`effect.created_ms, effect.updated_ms`

func readEffect(s scanner) (e Effect, err error) {
	var branch, attempt, op sql.NullInt64
	var created, updated int64
	var is sideeffect.Effect
	var body string
	err = s.Scan(&e.ID, &e.RunID, &branch, &e.Frame, &attempt, &e.Task, &is.Key, &is.Epoch, &is.Tool, &is.Class, &is.Status,
		&is.Comp, &op, &is.CompDetail, &is.Late, &is.Source, &body, &created, &updated)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal([]byte(body), &e.Effect); err != nil {
		return e, fmt.Errorf("effect %d: %w", e.ID, err)
	}
	is.Seq, is.Rule, is.Args, is.Command, is.Output, is.Fields = e.ID, e.Rule, e.Args, e.Command, e.Output, e.Fields
	is.Remote, is.Refs, is.Compensation = e.Remote, e.Refs, e.Compensation
	e.Effect, e.Branch, e.Attempt, e.CompOp = is, branch.Int64, attempt.Int64, op.Int64
	e.Created, e.Updated = fromMillis(created), fromMillis(updated)
	return e, nil
}

// name is what an effect is called where its number is told.
func (e Effect) name() string {
	if e.Rule != "" {
		return e.Rule
	}
	return e.Tool
}

// body is the part of an effect that no column has.
func (e Effect) body() (string, error) {
	b, err := json.Marshal(sideeffect.Effect{Rule: e.Rule, Args: e.Args, Command: e.Command, Output: e.Output, Fields: e.Fields,
		Remote: e.Remote, Refs: e.Refs, Compensation: e.Compensation})
	return string(b), err
}

// Intend records an effect before it is made and returns it with its number.
//
// An effect whose key is known is the same call once more: the row is taken over
// by e's branch, frame, attempt and compensation. It is intended again if the
// call before had failed; if nobody knows what came of that one, it stays
// unknown, and one that has succeeded stays so. After a compensation or a
// crossing, and with fresh always, the call is another one: it gets the next
// epoch. name makes the key of an epoch.
func (tx *Tx) Intend(e Effect, fresh bool, name func(epoch int) string) (Effect, error) {
	for epoch := e.Epoch; ; epoch++ {
		e.Epoch, e.Key = epoch, name(epoch)
		old, err := tx.EffectByKey(e.Key)
		switch {
		case errors.Is(err, ErrNotFound):
			return tx.insertEffect(e)
		case err != nil:
			return Effect{}, err
		case fresh || old.Comp == sideeffect.Compensated || old.Comp == sideeffect.Crossed:
			continue
		}
		return tx.intendAgain(old, e)
	}
}

func (tx *Tx) insertEffect(e Effect) (Effect, error) {
	id, err := tx.next("effect")
	if err != nil {
		return Effect{}, err
	}
	e.ID, e.Seq, e.Created, e.Updated = id, id, tx.Now(), tx.Now()
	if e.Status == "" {
		e.Status = sideeffect.Intended
	}
	body, err := e.body()
	if err != nil {
		return Effect{}, fmt.Errorf("effect %s: %w", e.Key, err)
	}
	_, err = tx.exec(`INSERT INTO effect(id, run_id, branch_id, seq, attempt_id, task, key, epoch, tool, class, status, comp, comp_op,
		comp_detail, late, source, body, created_ms, updated_ms) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '', ?, ?, ?, ?, ?)`,
		e.ID, e.RunID, ref(e.Branch), e.Frame, ref(e.Attempt), e.Task, e.Key, e.Epoch, e.Tool, string(e.Class), string(e.Status), string(e.Comp),
		e.Late, e.Source, body, millis(e.Created), millis(e.Updated))
	if err != nil {
		return Effect{}, fmt.Errorf("effect %s: %w", e.Key, err)
	}
	crash.Point("ledger.effect")
	return e, nil
}

func (tx *Tx) intendAgain(old, e Effect) (Effect, error) {
	now := old
	now.Branch, now.Frame, now.Attempt = e.Branch, e.Frame, e.Attempt
	now.Args, now.Command, now.Compensation, now.Source, now.Class = e.Args, e.Command, e.Compensation, e.Source, e.Class
	switch old.Status {
	case sideeffect.Failed:
		now.Status = sideeffect.Intended
	case sideeffect.Intended:
		now.Status = sideeffect.Unknown
	}
	return tx.changeEffect(old, now)
}

// changeEffect writes what became of an effect, unless somebody else has moved
// it meanwhile.
func (tx *Tx) changeEffect(old, now Effect) (Effect, error) {
	body, err := now.body()
	if err != nil {
		return old, fmt.Errorf("effect %d: %w", old.ID, err)
	}
	now.Updated = tx.Now()
	n, err := tx.exec(`UPDATE effect SET branch_id=?, seq=?, attempt_id=?, class=?, status=?, comp=?, comp_op=?, comp_detail=?, late=?, source=?, body=?,
		updated_ms=? WHERE id=? AND status=? AND comp=?`, ref(now.Branch), now.Frame, ref(now.Attempt), string(now.Class), string(now.Status), string(now.Comp),
		ref(now.CompOp), now.CompDetail, now.Late, now.Source, body, millis(now.Updated), old.ID, string(old.Status), string(old.Comp))
	if err == nil && n == 0 {
		err = ErrStale
	}
	if err != nil {
		return old, fmt.Errorf("effect %d: %w", old.ID, err)
	}
	return now, nil
}

// Settle gives an effect its outcome, and what is known of it then: find may be
// nil. One that was compensated or crossed meanwhile is marked late, and its run
// flagged. A *sideeffect.TransitionError when it has another outcome.
func (tx *Tx) Settle(id int64, to sideeffect.Status, find func(*sideeffect.Effect)) (Effect, error) {
	old, err := tx.Effect(id)
	if err != nil {
		return Effect{}, err
	}
	now := old
	if now.Effect, err = old.Effect.Settle(to); err != nil {
		return old, err
	}
	if find != nil {
		find(&now.Effect)
	}
	if now, err = tx.changeEffect(old, now); err != nil || !now.Late || old.Late {
		return now, err
	}
	return now, tx.Flag(now.RunID, now.CompOp, id, fmt.Sprintf("effect %d, %s, ended after it was %s", id, now.name(), now.Comp))
}

// SettleAs gives an effect the outcome of another, with its output and its
// fields. What somebody has said meanwhile came of it stands.
func (tx *Tx) SettleAs(id int64, e sideeffect.Effect) error {
	_, err := tx.Settle(id, e.Status, func(now *sideeffect.Effect) {
		if e.Output != "" {
			now.Output = e.Output
		}
		if now.Fields == nil && len(e.Fields) > 0 {
			now.Fields = map[string]string{}
		}
		maps.Copy(now.Fields, e.Fields)
	})
	var known *sideeffect.TransitionError
	if errors.As(err, &known) {
		return nil
	}
	return err
}

// Describe changes what is known of an effect that was neither compensated nor
// crossed: its fields, or how it is undone.
func (tx *Tx) Describe(id int64, change func(*sideeffect.Effect)) (Effect, error) {
	old, err := tx.Effect(id)
	if err != nil {
		return Effect{}, err
	}
	if old.Comp == sideeffect.Compensated || old.Comp == sideeffect.Crossed {
		return old, &sideeffect.TransitionError{Effect: old.Key, From: string(old.Comp), To: "changed"}
	}
	now := old
	change(&now.Effect)
	return tx.changeEffect(old, now)
}

// lose records that nobody will tell any more what came of the effects of an
// attempt.
func (tx *Tx) lose(attempt int64) error {
	_, err := tx.exec(`UPDATE effect SET status='unknown', updated_ms=? WHERE attempt_id=? AND status='intended'`, millis(tx.Now()), attempt)
	if err != nil {
		return fmt.Errorf("effects of attempt %d: %w", attempt, err)
	}
	return nil
}

// BeginCompensation is called before an effect is undone, by an operation or by
// none. One that was intended counts as unknown from here on.
func (tx *Tx) BeginCompensation(id, op int64) (Effect, error) {
	old, err := tx.Effect(id)
	if err != nil {
		return Effect{}, err
	}
	now := old
	if now.Effect, err = old.Effect.BeginCompensation(); err != nil {
		return old, err
	}
	if now.Status == sideeffect.Intended {
		now.Status = sideeffect.Unknown
	}
	now.CompOp = op
	return tx.changeEffect(old, now)
}

// EndCompensation records what came of undoing an effect. The result of an
// attempt whose effect was undone is not carried any more; where it could not be
// undone, the run is flagged.
func (tx *Tx) EndCompensation(id int64, o sideeffect.Outcome) (Effect, error) {
	old, err := tx.Effect(id)
	if err != nil {
		return Effect{}, err
	}
	now := old
	if now.Effect, err = old.Effect.EndCompensation(o); err != nil {
		return old, err
	}
	if now, err = tx.changeEffect(old, now); err != nil {
		return old, err
	}
	switch {
	case now.Comp == sideeffect.CompFailed:
		return now, tx.Flag(now.RunID, now.CompOp, id, fmt.Sprintf("effect %d, %s, could not be undone: %s", id, now.name(), now.CompDetail))
	case now.Attempt != 0:
		return now, tx.SetCompensated(now.Attempt)
	}
	return now, nil
}

// Cross records that an operation has moved past an effect and left it in the
// world. The run is flagged.
func (tx *Tx) Cross(id, op int64) (Effect, error) {
	old, err := tx.Effect(id)
	if err != nil {
		return Effect{}, err
	}
	now := old
	if now.Effect, err = old.Effect.Cross(); err != nil {
		return old, err
	}
	if old.Comp == sideeffect.Crossed {
		return old, nil
	}
	now.CompOp = op
	if now, err = tx.changeEffect(old, now); err != nil {
		return old, err
	}
	return now, tx.Flag(now.RunID, op, id, fmt.Sprintf("op %d moved past effect %d, %s, which is still there", op, id, now.name()))
}

// Effect returns the effect with this number, or ErrNotFound.
func (tx *Tx) Effect(id int64) (Effect, error) {
	e, err := one(tx, readEffect, `SELECT `+effectColumns+` FROM effect WHERE id=?`, id)
	if err != nil {
		return Effect{}, fmt.Errorf("effect %d: %w", id, err)
	}
	return e, nil
}

// EffectByKey returns the effect with this key, or ErrNotFound.
func (tx *Tx) EffectByKey(key string) (Effect, error) {
	e, err := one(tx, readEffect, `SELECT `+effectColumns+` FROM effect WHERE key=?`, key)
	if err != nil {
		return Effect{}, fmt.Errorf("effect %s: %w", key, err)
	}
	return e, nil
}

// EffectQuery selects a page of effects, newest first. The zero value is the
// newest page of all.
type EffectQuery struct {
	Run      int64
	Worktree int64     // only of runs in this worktree
	Attempt  int64     // only of this attempt
	Since    time.Time // only made since
	Before   int64     // only older than this effect
	Limit    int       // 200 when zero
}

// Effects returns a page of effects, newest first.
func (tx *Tx) Effects(q EffectQuery) ([]Effect, error) {
	since := int64(0)
	if !q.Since.IsZero() {
		since = q.Since.UnixMilli()
	}
	es, err := all(tx, readEffect, `SELECT `+effectColumns+` FROM effect WHERE effect.id < ? AND (? = 0 OR effect.run_id = ?)
		AND (? = 0 OR effect.run_id IN (SELECT id FROM run WHERE worktree_id = ?)) AND (? = 0 OR effect.attempt_id = ?)
		AND effect.created_ms >= ? ORDER BY effect.id DESC LIMIT ?`,
		before(q.Before), q.Run, q.Run, q.Worktree, q.Worktree, q.Attempt, q.Attempt, since, limit(q.Limit))
	if err != nil {
		return nil, fmt.Errorf("effects: %w", err)
	}
	return es, nil
}

// EffectsOf returns what the attempts of a task in a run have made, oldest
// first.
func (tx *Tx) EffectsOf(run int64, task string) ([]Effect, error) {
	es, err := all(tx, readEffect, `SELECT `+effectColumns+` FROM effect WHERE effect.attempt_id IN
		(SELECT id FROM attempt WHERE run_id = ? AND task = ?) ORDER BY effect.id`, run, task)
	if err != nil {
		return nil, fmt.Errorf("effects of %s in r%d: %w", task, run, err)
	}
	return es, nil
}

// EffectsAfter returns the effects that belong to a run after a frame, oldest
// first: those on the branch it goes on with, and those that its children have
// made since, but for forks. One whose attempt had not ended at the frame counts
// as made after it. A run without frames has made all of its own after any.
func (tx *Tx) EffectsAfter(run, frame int64) ([]Effect, error) {
	r, err := tx.Run(run)
	if err != nil {
		return nil, err
	}
	since := r.Created.UnixMilli()
	own := `SELECT effect.id FROM effect WHERE run_id = ` + fmt.Sprint(run) // a number
	if r.HeadBranch != 0 {
		own = fmt.Sprintf(`WITH RECURSIVE line(id, parent, hi) AS (
				SELECT id, parent_id, %d FROM branch WHERE id = %d
				UNION ALL SELECT b.id, b.parent_id, min(line.hi, c.base_seq) FROM line JOIN branch c ON c.id = line.id JOIN branch b ON b.id = line.parent
			) SELECT e.id FROM line JOIN effect e ON e.branch_id = line.id LEFT JOIN attempt a ON a.id = e.attempt_id
			WHERE e.run_id = %d AND (e.seq > %d OR a.end_seq > %d) AND e.seq <= line.hi`, int64(1)<<62, r.HeadBranch, run, frame, frame)
		if at, err := tx.FrameAt(r.HeadBranch, max(frame, 0), false); err == nil && frame >= 0 {
			since = at.At.UnixMilli()
		} else if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	es, err := all(tx, readEffect, `WITH RECURSIVE kin(id, lineage) AS (
			SELECT id, lineage FROM run WHERE parent_id = ? AND lineage <> ?
			UNION ALL SELECT r.id, r.lineage FROM kin JOIN run r ON r.parent_id = kin.id AND r.lineage <> kin.lineage
		) SELECT `+effectColumns+` FROM effect WHERE effect.run_id IN (SELECT id FROM kin) AND effect.created_ms >= ?
			OR effect.id IN (`+own+`) ORDER BY effect.id`, run, r.Lineage, since)
	if err != nil {
		return nil, fmt.Errorf("effects of r%d after frame %d: %w", run, frame, err)
	}
	return es, nil
}

// CompensatedBy returns the effects that an operation has undone or crossed,
// newest first.
func (tx *Tx) CompensatedBy(op int64) ([]Effect, error) {
	es, err := all(tx, readEffect, `SELECT `+effectColumns+` FROM effect WHERE comp_op=? ORDER BY id DESC`, op)
	if err != nil {
		return nil, fmt.Errorf("effects of op %d: %w", op, err)
	}
	return es, nil
}
