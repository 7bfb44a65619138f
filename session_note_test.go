package retcon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// What an agent is told says what was rolled back, who did it and why, and comes
// once to each session that was there.
func TestP67NoteOfAMove(t *testing.T) {
	k := living(t, "s1")
	other := newTalker(k.place, agent.Claude, "s2")
	other.process = 0
	other.prompt("beside it")
	other.stop()
	for _, text := range []string{"first", "second", "third"} {
		k.prompt(text)
		k.tool("Write", "c-"+text, func() { k.write(text, text) })
		k.stop()
	}
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1, Reason: "the tests broke\nand more"})
	require.NoError(t, err)
	said := k.prompt("go on")
	assert.Contains(t, said, "rewind r2@1: 2 files (second, third); taken back: prompt-2 (second), prompt-3 (third); by user: the tests broke")
	assert.NotContains(t, said, "and more")
	k.stop()
	assert.Empty(t, k.prompt("and on"), "once")
	k.stop()
	said = other.prompt("what of me")
	assert.Contains(t, said, "rewind r2@1: 2 files (second, third); by user: the tests broke", "its own prompts stand")
	other.stop()
	assert.Empty(t, other.prompt("once for it as well"))
	other.stop()
	assert.Empty(t, newTalker(k.place, agent.Claude, "s3").prompt("it was not there"))
}

// Files alone, or the record alone: of both an agent is told.
func TestNoteOfHalfAMove(t *testing.T) {
	k := living(t, "s1")
	k.prompt("first")
	k.tool("Write", "c1", func() { k.write("b", "1") })
	k.stop()
	_, err := k.Restore(ctx, retcon.RestoreOptions{Ref: "s1@0"})
	require.NoError(t, err)
	said := k.prompt("again")
	assert.Contains(t, said, "restore c1: 1 file (b); by user")
	assert.NotContains(t, said, "taken back: ")
	k.stop()
	_, err = k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1, LedgerOnly: true})
	require.NoError(t, err)
	assert.Contains(t, k.prompt("and again"), "rewind r1@1: 0 files; taken back: prompt-2 (again); by user")
	k.stop()
}

// However many moves there were, each is told of once, in their order, also when
// one of them took back the note itself.
func TestNotesAcrossManyMoves(t *testing.T) {
	k := living(t, "s1")
	heard := ""
	for i := range 6 {
		k.prompt(fmt.Sprint("p", i))
		k.tool("Write", fmt.Sprint("c", i), func() { k.write("f", fmt.Sprint(i)) })
		k.stop()
		_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = k.Undo(ctx, retcon.MoveOptions{})
			require.NoError(t, err)
		}
		said := k.prompt(fmt.Sprint("q", i))
		want := 1
		if i%2 == 0 {
			want = 2
		}
		assert.Equal(t, want, strings.Count(said, "by user"), said)
		assert.NotEqual(t, heard, said)
		heard = said
		k.stop()
	}
}
