package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/snapshot"
)

// intend records an effect of a task, called name, at the head of a run.
func (b *book) intend(run int64, attempt int64, call string, fresh bool) (e Effect) {
	b.Helper()
	b.update(func(tx *Tx) (err error) {
		row := Effect{RunID: run, Attempt: attempt, Task: "t", Effect: sideeffect.Effect{Tool: "sh", Rule: call, Class: sideeffect.Write,
			Compensation: sideeffect.Compensation{Command: []string{"undo", "{{.id}}"}}}}
		if r, err := tx.Run(run); err != nil {
			return err
		} else if r.HeadBranch != 0 {
			head, err := tx.RunHead(run)
			if err != nil {
				return err
			}
			row.Branch, row.Frame = head.ID, head.HeadSeq+1
		}
		e, err = tx.Intend(row, fresh, func(epoch int) string { return sideeffect.Key(fmt.Sprint(run), "t", call, epoch) })
		return err
	})
	return e
}

func (b *book) settle(id int64, to sideeffect.Status) (e Effect) {
	b.Helper()
	b.update(func(tx *Tx) (err error) {
		e, err = tx.Settle(id, to, func(e *sideeffect.Effect) { e.Fields = map[string]string{"id": "7"} })
		return err
	})
	return e
}

// comp undoes an effect, as an operation would.
func (b *book) comp(id, op int64, result sideeffect.Result) (e Effect) {
	b.Helper()
	b.update(func(tx *Tx) error { _, err := tx.BeginCompensation(id, op); return err })
	b.update(func(tx *Tx) (err error) {
		e, err = tx.EndCompensation(id, sideeffect.Outcome{Result: result, Detail: "so it is"})
		return err
	})
	return e
}

func (b *book) effect(id int64) (e Effect) {
	b.Helper()
	b.view(func(tx *Tx) (err error) { e, err = tx.Effect(id); return err })
	return e
}

func (b *book) attempt(run int64, branch int64, start int64) (a Attempt) {
	b.Helper()
	b.update(func(tx *Tx) (err error) {
		a, err = tx.StartAttempt(Attempt{RunID: run, Task: "t", Branch: branch, StartSeq: start, Input: sum(9)})
		return err
	})
	return a
}

func (b *book) flags(run int64) (why []string) {
	b.Helper()
	b.view(func(tx *Tx) error {
		open, err := tx.Attention(run)
		for _, a := range open {
			why = append(why, a.Why)
		}
		return err
	})
	return why
}

func TestEffectFields(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("t", snapshot.Running, 1))
	is := sideeffect.Effect{Tool: "Bash", Rule: "gh issue create", Args: []byte(`{"a":1}`), Command: "gh issue create", Output: "url",
		Fields: map[string]string{"number": "4"}, Class: sideeffect.Maybe, Status: sideeffect.Intended, Remote: "o", Refs: []string{"main"},
		Compensation: sideeffect.Compensation{Command: []string{"gh", "issue", "close", "{{.number}}"}, Gone: []string{"no such"}}, Source: "digest"}
	var e Effect
	b.update(func(tx *Tx) (err error) {
		e, err = tx.Intend(Effect{RunID: r.ID, Branch: h.Branch, Frame: 1, Task: "t", Effect: is}, false, func(n int) string { return fmt.Sprint("k#", n) })
		return err
	})
	is.Seq, is.Key = e.ID, "k#0"
	got := b.effect(e.ID)
	assert.Equal(t, is, got.Effect)
	assert.Equal(t, Effect{Effect: is, ID: e.ID, RunID: r.ID, Branch: h.Branch, Frame: 1, Task: "t", Created: b.now, Updated: b.now}, got)
	b.view(func(tx *Tx) error {
		byKey, err := tx.EffectByKey("k#0")
		require.NoError(t, err)
		assert.Equal(t, got, byKey)
		_, err = tx.EffectByKey("other")
		require.ErrorIs(t, err, ErrNotFound)
		_, err = tx.Settle(e.ID, sideeffect.Succeeded, nil)
		require.ErrorIs(t, err, ErrView)
		return nil
	})
}

// What may become of an effect, and what not.
func TestEffectTransitions(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("t", snapshot.Running, 1))
	a := b.attempt(r.ID, h.Branch, 0)
	e := b.intend(r.ID, a.ID, "one", false)
	assert.Equal(t, sideeffect.Succeeded, b.settle(e.ID, sideeffect.Succeeded).Status)
	assert.Equal(t, "7", b.effect(e.ID).Fields["id"])
	err := b.db.Update(bg, func(tx *Tx) error { _, err := tx.Settle(e.ID, sideeffect.Failed, nil); return err })
	var refused *sideeffect.TransitionError
	require.ErrorAs(t, err, &refused, "a known outcome stands")
	err = b.db.Update(bg, func(tx *Tx) error { _, err := tx.EndCompensation(e.ID, sideeffect.Outcome{}); return err })
	require.ErrorAs(t, err, &refused, "what was not begun does not end")

	op := b.op()
	assert.Equal(t, sideeffect.CompFailed, b.comp(e.ID, op.ID, sideeffect.Refused).Comp)
	assert.Len(t, b.flags(r.ID), 1)
	assert.Equal(t, sideeffect.CompFailed, b.comp(e.ID, op.ID, sideeffect.Unsure).Comp, "it may be tried again")
	assert.Equal(t, sideeffect.Compensated, b.comp(e.ID, op.ID, sideeffect.Done).Comp)
	assert.Equal(t, op.ID, b.effect(e.ID).CompOp)
	b.finish(op)
	b.view(func(tx *Tx) error {
		a, err := tx.Attempt(a.ID)
		assert.True(t, a.Compensated, "its result is not carried")
		return err
	})
	err = b.db.Update(bg, func(tx *Tx) error { _, err := tx.BeginCompensation(e.ID, 0); return err })
	require.ErrorAs(t, err, &refused)
	err = b.db.Update(bg, func(tx *Tx) error { _, err := tx.Cross(e.ID, op.ID); return err })
	require.ErrorAs(t, err, &refused)
	err = b.db.Update(bg, func(tx *Tx) error { _, err := tx.Describe(e.ID, func(*sideeffect.Effect) {}); return err })
	require.ErrorAs(t, err, &refused)

	// Two writers with the same row in hand: the second is refused.
	two := b.intend(r.ID, a.ID, "two", false)
	b.settle(two.ID, sideeffect.Succeeded)
	require.ErrorIs(t, b.db.Update(bg, func(tx *Tx) error { _, err := tx.changeEffect(two, two); return err }), ErrStale)
}

func TestEffectCrossed(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("t", snapshot.Running, 1))
	e := b.intend(r.ID, 0, "one", false)
	op := b.op()
	for range 2 {
		b.update(func(tx *Tx) error { _, err := tx.Cross(e.ID, op.ID); return err })
	}
	b.finish(op)
	require.Len(t, b.flags(r.ID), 1, "once")
	late := b.settle(e.ID, sideeffect.Succeeded)
	assert.True(t, late.Late)
	assert.Len(t, b.flags(r.ID), 2)
	b.update(func(tx *Tx) error {
		open, err := tx.Ack(r.ID, "me")
		assert.Len(t, open, 2)
		return err
	})
	assert.Empty(t, b.flags(r.ID))
	b.update(func(tx *Tx) error { return tx.Flag(r.ID, 0, e.ID, "again") })
	assert.Equal(t, []string{"again"}, b.flags(r.ID))
}

// T116: the key of a call, when it is made again.
func TestT116IntendAgain(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("t", snapshot.Running, 1))
	a := b.attempt(r.ID, h.Branch, 0)
	one := b.intend(r.ID, a.ID, "call", false)
	assert.Equal(t, 0, one.Epoch)

	b.settle(one.ID, sideeffect.Failed)
	again := b.intend(r.ID, a.ID, "call", false)
	assert.Equal(t, one.ID, again.ID)
	assert.Equal(t, sideeffect.Intended, again.Status, "it had failed: nothing is known but that it is tried again")

	again = b.intend(r.ID, a.ID, "call", false)
	assert.Equal(t, sideeffect.Unknown, again.Status, "nobody knows what came of the call before")
	b.settle(again.ID, sideeffect.Succeeded)
	again = b.intend(r.ID, a.ID, "call", false)
	assert.Equal(t, sideeffect.Succeeded, again.Status, "it is in the world")
	assert.Equal(t, one.Key, again.Key)

	b.comp(one.ID, 0, sideeffect.Done)
	next := b.intend(r.ID, a.ID, "call", false)
	assert.NotEqual(t, one.ID, next.ID)
	assert.Equal(t, 1, next.Epoch)
	assert.NotEqual(t, one.Key, next.Key)
	fresh := b.intend(r.ID, a.ID, "call", true)
	assert.Equal(t, 2, fresh.Epoch, "each call is one of its own")
	assert.Equal(t, sideeffect.Intended, b.effect(next.ID).Status)
}

// T110: an attempt that is cut short leaves what it was doing unknown.
func TestT110InterruptedIsUnknown(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("t", snapshot.Running, 1))
	a := b.attempt(r.ID, h.Branch, 0)
	open, done := b.intend(r.ID, a.ID, "one", false), b.intend(r.ID, a.ID, "two", false)
	b.settle(done.ID, sideeffect.Succeeded)
	b.update(func(tx *Tx) error { return tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeInterrupted}) })
	assert.Equal(t, sideeffect.Unknown, b.effect(open.ID).Status)
	assert.Equal(t, sideeffect.Succeeded, b.effect(done.ID).Status)
}

// Which effects lie behind a frame.
func TestEffectsAfter(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	names := func(run, frame int64) (found string) {
		b.view(func(tx *Tx) error {
			es, err := tx.EffectsAfter(run, frame)
			for _, e := range es {
				found += e.Rule
			}
			return err
		})
		return found
	}
	tick := func() { b.now = b.now.Add(time.Second) }
	b.put(h, task("t", snapshot.Running, 1)) // frame 0
	a := b.attempt(r.ID, h.Branch, 0)
	b.intend(r.ID, a.ID, "a", false) // leads to frame 1, and goes on at frame 1
	tick()
	b.put(h, task("u", snapshot.Done, 1)) // frame 1
	tick()
	b.intend(r.ID, 0, "b", false)
	b.update(func(tx *Tx) error { return tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK, EndSeq: 2}) })
	b.put(h, task("t", snapshot.Done, 1)) // frame 2
	tick()
	b.intend(r.ID, 0, "c", false) // nothing leads to a frame yet
	assert.Equal(t, "abc", names(r.ID, -1))
	assert.Equal(t, "abc", names(r.ID, 0))
	assert.Equal(t, "abc", names(r.ID, 1), "its attempt had not ended")
	assert.Equal(t, "c", names(r.ID, 2))

	// A child's count from when they were made; a fork's are its own affair.
	child := b.run(Run{Parent: r.ID})
	fork := b.run(Run{Parent: r.ID, Lineage: r.ID})
	b.update(func(tx *Tx) error { _, err := tx.Fork(h.Branch, 2, fork.ID, ""); return err })
	b.intend(child.ID, 0, "d", false)
	b.intend(b.run(Run{Parent: child.ID}).ID, 0, "e", false)
	b.intend(fork.ID, 0, "f", false)
	assert.Equal(t, "cde", names(r.ID, 2))
	assert.Equal(t, "f", names(fork.ID, 0), "not the parent's")
	tick()
	b.put(h, task("v", snapshot.Done, 1)) // frame 3
	assert.Equal(t, "", names(r.ID, 3), "a child's that were made before")
	assert.Equal(t, "de", names(child.ID, 0), "a run without frames")

	// What is cut off is out of sight, and still there.
	b.rewind(r.ID, 1)
	assert.Equal(t, "ade", names(r.ID, 1), "b and c are on the branch that was cut off")
	b.intend(r.ID, 0, "g", false)
	assert.Equal(t, "adeg", names(r.ID, 1))
	b.view(func(tx *Tx) error {
		all, err := tx.Effects(EffectQuery{Run: r.ID})
		assert.Len(t, all, 4)
		return err
	})
}

// A run is deleted with its effects.
func TestDeleteRunWithEffects(t *testing.T) {
	b := newBook(t, Options{})
	r := b.run(Run{})
	a := b.attempt(r.ID, 0, 0)
	e := b.intend(r.ID, a.ID, "one", false)
	b.update(func(tx *Tx) error { return tx.Flag(r.ID, 0, e.ID, "look") })
	b.update(func(tx *Tx) error {
		if err := tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK}); err != nil {
			return err
		}
		return tx.DeleteRun(r.ID, "me")
	})
	b.view(func(tx *Tx) error {
		_, err := tx.Effect(e.ID)
		require.ErrorIs(t, err, ErrNotFound)
		return nil
	})
}

// The check finds what can't be.
func TestCheckEffects(t *testing.T) {
	for name, breaks := range map[string]string{
		"belongs to frame 9":            `UPDATE effect SET seq=9`,
		"its branch is missing":         `UPDATE effect SET branch_id=77`,
		"its attempt is of another run": `UPDATE attempt SET run_id=2, number=5 WHERE id=1`,
		"still counts":                  `UPDATE effect SET comp='compensated', status='succeeded'`,
		"which has ended":               `UPDATE effect SET comp='compensating', comp_op=1`,
		"its effect is of another run":  `UPDATE attention SET run_id=2`,
		"json: unknown field":           `UPDATE effect SET body='{"compensation":{"x":1}}'`,
		"only 1 numbers were given":     `UPDATE effect SET id=40 WHERE id=1`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, Options{})
			r, h := b.start()
			b.put(h, task("t", snapshot.Running, 1))
			b.run(Run{})
			b.rewind(r.ID, 0)
			a := b.attempt(r.ID, 0, 0)
			e := b.intend(r.ID, a.ID, "one", false)
			b.update(func(tx *Tx) error { return tx.Flag(r.ID, 0, e.ID, "look") })
			require.Empty(t, b.problems())
			_, err := b.db.update.Exec(`PRAGMA foreign_keys=OFF; ` + breaks)
			require.NoError(t, err)
			text := ""
			for _, p := range b.problems() {
				text += p.String() + "\n"
			}
			assert.Contains(t, text, name)
			_, err = b.db.update.Exec(`DELETE FROM attention; DELETE FROM effect; DELETE FROM attempt`)
			require.NoError(t, err)
		})
	}
}

// What somebody has said came of an effect stands; nothing of a later word is
// taken over, and it is no error.
func TestSettleAs(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("t", snapshot.Running, 1))
	a := b.attempt(r.ID, h.Branch, 0)
	told := func(status sideeffect.Status) sideeffect.Effect {
		return sideeffect.Effect{Status: status, Output: "out", Fields: map[string]string{"id": "8"}}
	}
	e := b.intend(r.ID, a.ID, "one", false)
	b.update(func(tx *Tx) error { return tx.SettleAs(e.ID, told(sideeffect.Succeeded)) })
	e = b.effect(e.ID)
	assert.Equal(t, sideeffect.Succeeded, e.Status)
	assert.Equal(t, "out", e.Output)
	assert.Equal(t, map[string]string{"id": "8"}, e.Fields)

	b.update(func(tx *Tx) error {
		return tx.SettleAs(e.ID, sideeffect.Effect{Status: sideeffect.Failed, Output: "other"})
	})
	assert.Equal(t, e, b.effect(e.ID))
}
