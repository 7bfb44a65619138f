package ledger

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What ended later than a checkpoint, or has not ended, of whatever run; found
// without looking at what ended before.
func TestAttemptsSince(t *testing.T) {
	b := newBook(t, Options{})
	var points []int64
	var open Attempt
	for range 4 {
		points = append(points, b.checkpoint())
	}
	b.update(func(tx *Tx) error {
		for i, ends := range []Finish{
			{Outcome: OutcomeOK, After: points[1]},
			{Outcome: OutcomeFailed, After: points[2]},
			{Outcome: OutcomeInterrupted}, // nobody saw what it left
			{Outcome: OutcomeOK, After: points[3]},
			{},
		} {
			r, err := tx.CreateRun(Run{Source: "test", WorktreeID: b.worktree})
			require.NoError(t, err)
			a, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: "x", Before: points[0]})
			require.NoError(t, err)
			require.EqualValues(t, i+1, a.ID)
			if open = a; ends.Outcome != "" {
				require.NoError(t, tx.FinishAttempt(a.ID, ends))
			}
		}
		return nil
	})
	b.view(func(tx *Tx) error {
		for i, want := range [][]int64{{1, 2, 4, 5}, {2, 4, 5}, {4, 5}, {5}} {
			found, err := tx.AttemptsSince(points[i])
			require.NoError(t, err)
			var ids []int64
			for _, a := range found {
				ids = append(ids, a.ID)
			}
			assert.Equal(t, want, ids, "since c%d", points[i])
		}
		plan, err := all(tx, readPlan, `EXPLAIN QUERY PLAN `+attemptsSince, points[0])
		require.NoError(t, err)
		steps := strings.Join(plan, "\n")
		assert.Contains(t, steps, "INDEX attempt_after (after_id>?)")
		assert.Contains(t, steps, "INDEX attempt_open")
		assert.NotRegexp(t, `SCAN attempt(\n|$)`, steps)
		return nil
	})
	b.update(func(tx *Tx) error { return tx.FinishAttempt(open.ID, Finish{Outcome: OutcomeInterrupted}) })
}

// readPlan is what SQLite says of a step.
func readPlan(s scanner) (detail string, err error) {
	var id, parent, unused int64
	err = s.Scan(&id, &parent, &unused, &detail)
	return detail, err
}
