package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// A frame has the edges between tasks, where loops and waits stand, the input
// and the definition; beside it is the worktree, before and after.
func TestT17FrameHoldsTheGraph(t *testing.T) {
	l := newLab(t)
	p := l.load(`
def main(ctx):
    a = sh("echo a > a", name="a")
    b = sh("cat a", name="b", fx="read", env={"A": a})
    c = sh("echo c > c", name="c")
    def turn(i):
        return True if i == 1 else None
    loop(turn, name="turns")
    signal("go", of=b).out()
`)
	r, err := workflow.Start(ctx, l.opt, p, "", []byte(`{"n": 1}`))
	require.NoError(t, err)
	require.Equal(t, "waiting", r.Status)
	rows := map[string]snapshot.Row{}
	for row := range l.head(r.Run).Rows() {
		rows[bare(row.Key)] = row
		if strings.HasPrefix(row.Key, "~") {
			rows[row.Key] = row
		}
	}
	assert.Equal(t, []string{rows["a"].Key}, rows["b"].Deps)
	assert.Equal(t, rows["a"].Key, rows["b"].After, "the writer whose files it sees")
	assert.Equal(t, rows["a"].Key, rows["c"].After)
	assert.Equal(t, snapshot.Waiting, rows["go"].State)
	assert.EqualValues(t, 2, rows["~loop/turns"].Iter)
	assert.Equal(t, snapshot.Done, rows["~loop/turns"].State)
	assert.Equal(t, p.Definition().Hash, rows["~def"].Out)
	assert.False(t, rows["~input"].Out.IsZero())
	require.NoError(t, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		all, err := tx.Attempts(r.Run)
		require.NoError(t, err)
		for _, a := range all {
			assert.NotZero(t, a.Before, a.Task)
			assert.NotZero(t, a.After, a.Task)
			after, err := tx.Checkpoint(a.After)
			require.NoError(t, err)
			assert.NotEmpty(t, after.Commit)
		}
		b, err := tx.RunHead(r.Run)
		require.NoError(t, err)
		frames, err := tx.Frames(b.ID, ledger.FrameQuery{})
		for _, f := range frames {
			assert.NotZero(t, f.Checkpoint, "every frame has its files")
		}
		return err
	}))
}

// What a run is pinned to is kept whole, with what it loads and reads, and goes
// on when the files are gone or have become others.
func TestD81DefinitionIsPinned(t *testing.T) {
	l := newLab(t)
	p := l.load("main.star:\nload('lib/words.star', 'words')\nTEXT = file('prompt.md')\ndef main(ctx):\n    sh('test -f go', name='gate').out()\n    return words(TEXT)\n",
		"lib/words.star:\ndef words(text):\n    return len(text.split(' '))\n", "prompt.md:\none two three")
	r, err := workflow.Start(ctx, l.opt, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, "failed", r.Status)
	require.NoError(t, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		run, err := tx.Run(r.Run)
		require.NoError(t, err)
		d, err := workflow.PinnedDefinition(tx, run)
		require.NoError(t, err)
		assert.Equal(t, []string{"lib/words.star", "main.star", "prompt.md"}, d.Paths())
		assert.Equal(t, p.Definition().Files, d.Files)
		assert.Equal(t, p.Definition().Hash, d.Hash)
		return nil
	}))
	l.write("go", "")
	r = l.resume(r.Run) // nothing is read: there are no files
	require.NoError(t, r.Err)
	assert.Equal(t, value.V(int64(3)), r.Value)
}
