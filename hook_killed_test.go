package retcon_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
)

// killed is a session whose client died while a command of its second prompt was
// writing.
func killed(t *testing.T) *talker {
	k := living(t, "s1")
	k.prompt("first")
	k.stop()
	k.process = 1 << 30 // nobody: from now on the client is dead
	k.prompt("second")
	k.hook("PreToolUse.Bash", fields{"tool_use_id": "c1"})
	k.write("half", "written")
	return k
}

// The call of a client that was killed ends where that is noticed: what it left
// is its work, and what comes later is not.
func TestCallOfAKilledClient(t *testing.T) {
	k := killed(t)
	k.process = 0
	k.prompt("third")
	assert.Equal(t, []string{"prompt-2/Bash[c1] interrupted +half"}, k.windows())
	k.write("mine", "")
	k.stop()
	assert.Equal(t, []string{
		"3 prompt prompt-3 done +1 ~0 -0 (third)",
		"2 prompt prompt-2 cancelled +1 ~0 -0 (second)",
		"1 prompt prompt-1 done +0 ~0 -0 (first)",
		"0 start",
	}, k.frames("s1"))
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	assert.NoFileExists(t, k.path("half"))
	assert.FileExists(t, k.path("mine"))
}

// A move notices it as well.
func TestRewindAfterAKilledClient(t *testing.T) {
	k := killed(t)
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	assert.NoFileExists(t, k.path("half"))
	assert.Equal(t, []string{"prompt-2/Bash[c1] interrupted +half"}, k.windows())
	k.write("mine", "")
	k.process = 0
	k.prompt("third")
	k.stop()
	_, err = k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	assert.FileExists(t, k.path("mine"), "written after the move")
	_, err = k.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	_, err = k.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "written", k.read("half"))
}

// So it is with a command that was recorded from outside.
func TestCommandOfAKilledRecorder(t *testing.T) {
	p := newFolder(t)
	before := p.checkpoint(retcon.CheckpointOptions{})
	dead := checkpoint.Self("dead")
	dead.Start++
	db, err := ledger.Open(p.Folder()+"/ledger.db", ledger.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Update(ctx, func(tx *ledger.Tx) error {
		r, err := tx.CreateRun(ledger.Run{Source: "exec", WorktreeID: 1})
		if err != nil {
			return err
		}
		c, err := tx.AppendCheckpoint(ledger.Checkpoint{WorktreeID: 1, RunID: r.ID, Tier: ledger.TierTool, Commit: before.Commit, Tree: before.Tree})
		if err != nil {
			return err
		}
		_, err = tx.StartAttempt(ledger.Attempt{RunID: r.ID, Task: "exec", Owner: dead, Before: c.ID})
		return err
	}))
	require.NoError(t, db.Close())
	p.write("half", "written")
	p.checkpoint(retcon.CheckpointOptions{})
	p.write("mine", "")
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before"})
	require.NoError(t, err)
	assert.NoFileExists(t, p.path("half"))
	assert.FileExists(t, p.path("mine"))
}

// A client whose process is not known looks as if it were dead: its calls end
// with their own events all the same.
func TestCallsOfAnUnknownProcess(t *testing.T) {
	k := living(t, "s1")
	k.process = 1 << 30
	k.prompt("go")
	k.tool("Bash", "c1", func() { k.write("made", "") })
	k.stop()
	assert.Equal(t, []string{"prompt-1/Bash[c1] ok +made"}, k.windows())
	list, err := k.Snapshots(ctx, retcon.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list, 2)
}
