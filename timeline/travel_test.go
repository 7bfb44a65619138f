package timeline_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/timeline"
)

// T89, T92: where the worktree was not recorded the move is refused; the record
// alone is moved only when that is asked for.
func TestT89NoCommitNoMove(t *testing.T) {
	p := openPlace(t, t.TempDir())
	p.write("a", "1")
	p.update(func(tx *ledger.Tx) error {
		run, err := tx.CreateRun(ledger.Run{Source: "test", WorktreeID: p.m.WorktreeID})
		if err != nil {
			return err
		}
		h, err := tx.CreateBranch(run.ID)
		for i := 0; err == nil && i < 3; i++ {
			_, err = tx.AppendFrame(h, ledger.NewFrame{Put: []snapshot.Row{{Key: "t", Attempt: uint32(i)}}, Kind: "outcome"})
		}
		return err
	})
	to := timeline.Travel{Request: timeline.Request{Verb: timeline.VerbRewind}, Run: 1, Frame: 1}
	_, err := p.m.Travel(context.Background(), to)
	var none *timeline.NotRecordedError
	require.ErrorAs(t, err, &none)
	head := func() (seq int64) {
		p.update(func(tx *ledger.Tx) error {
			b, err := tx.RunHead(1)
			seq = b.HeadSeq
			return err
		})
		return seq
	}
	assert.Equal(t, int64(2), head(), "not a quiet half")
	before := p.capture().Commit
	to.LedgerOnly = true
	_, err = p.m.Travel(context.Background(), to)
	require.NoError(t, err)
	assert.Equal(t, int64(1), head())
	assert.Equal(t, before, p.capture().Commit)
}

// A plan that was agreed to is not carried out when the run has gone on since.
func TestStaleHistory(t *testing.T) {
	root := runScene(t, "rewind")
	p := openPlace(t, root)
	to := timeline.Travel{Request: timeline.Request{Verb: timeline.VerbRewind, DryRun: true}, Run: 1, Frame: 1}
	dry, err := p.m.Travel(context.Background(), to)
	require.NoError(t, err)
	to.DryRun, to.PlanID = false, dry.Plan.ID
	p.update(func(tx *ledger.Tx) error {
		b, err := tx.RunHead(1)
		if err != nil {
			return err
		}
		h, err := tx.LoadFrame(b.ID, ledger.Newest)
		if err == nil {
			_, err = tx.AppendFrame(h, ledger.NewFrame{Put: []snapshot.Row{{Key: "late"}}, Kind: "outcome"})
		}
		return err
	})
	_, err = p.m.Travel(context.Background(), to)
	var moved *timeline.BaseMovedError
	require.ErrorAs(t, err, &moved)
	to.PlanID = ""
	_, err = p.m.Travel(context.Background(), to)
	require.NoError(t, err)
}
