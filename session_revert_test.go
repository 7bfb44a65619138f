package retcon_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/timeline"
)

// regions is a text of eight parts, far enough from each other.
func regions(change map[int]string) string {
	var b strings.Builder
	for i := range 8 {
		text := change[i]
		if text == "" {
			text = "as it was"
		}
		b.WriteString("== " + string(rune('a'+i)) + "\n" + text + "\n1\n2\n3\n4\n")
	}
	return b.String()
}

// fourTurns is a session in which each prompt changes its own part of a.txt, and
// makes a file; the user changes a part as well.
func fourTurns(t *testing.T) *talker {
	p := newRepo(t)
	p.write("a.txt", regions(nil))
	p.write("gone.txt", "still here")
	k := newTalker(p, agent.Claude, "s1")
	now := map[int]string{}
	for i, n := range []string{"one", "two", "three", "four"} {
		k.prompt(n)
		k.tool("Edit", "edit-"+n, func() {
			now[i] = "by " + n
			k.write("a.txt", regions(now))
			k.write(n+".txt", n)
			if n == "two" {
				require.NoError(t, os.Remove(k.path("gone.txt")))
			}
		})
		if n == "two" { // between two calls of the same turn
			now[7] = "by the user"
			k.write("a.txt", regions(now))
			k.write("mine.txt", "mine")
			k.tool("Bash", "list", func() {})
		}
		k.stop()
	}
	return k
}

// One prompt in the middle is taken back: what the others, and the user, did to
// the same file stays.
func TestP69OnePromptIsTakenBack(t *testing.T) {
	k := fourTurns(t)
	before := k.frames("s1")
	dry, err := k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-3", Only: true, DryRun: true})
	require.NoError(t, err)
	done, err := k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-3", Only: true, PlanID: dry.Plan.ID})
	require.NoError(t, err)
	assert.Empty(t, done.Plan.Conflicts)
	assert.Equal(t, regions(map[int]string{0: "by one", 1: "by two", 3: "by four", 7: "by the user"}), k.read("a.txt"))
	assert.NoFileExists(t, k.path("three.txt"))
	for _, stays := range []string{"one.txt", "two.txt", "four.txt", "mine.txt"} {
		assert.FileExists(t, k.path(stays))
	}
	assert.Equal(t, before, k.frames("s1"), "the record stays")
	_, err = k.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "three", k.read("three.txt"))
	assert.Equal(t, regions(map[int]string{0: "by one", 1: "by two", 2: "by three", 3: "by four", 7: "by the user"}), k.read("a.txt"))
}

// What the user did to another part of the file since is in nobody's way.
func TestRevertOfAPromptBeforeTheUser(t *testing.T) {
	k := fourTurns(t)
	k.write("a.txt", regions(map[int]string{0: "by one", 1: "by two", 2: "by three", 3: "by four", 5: "by the user, later", 7: "by the user"}))
	_, err := k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-3", Only: true})
	require.NoError(t, err)
	assert.Equal(t, regions(map[int]string{0: "by one", 1: "by two", 3: "by four", 5: "by the user, later", 7: "by the user"}), k.read("a.txt"))
	k.checkpoint(retcon.CheckpointOptions{})
	_, err = k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-4", Only: true})
	require.NoError(t, err)
	assert.Equal(t, regions(map[int]string{0: "by one", 1: "by two", 5: "by the user, later", 7: "by the user"}), k.read("a.txt"))
}

// A prompt during which the user changed the same file: which of the two it was
// is told, and nothing is lost. What only the agent did is taken back when one
// side is chosen.
func TestRevertOfAPromptTheUserWorkedIn(t *testing.T) {
	k := fourTurns(t)
	_, err := k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-2", Only: true})
	var conflict *timeline.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Len(t, conflict.Plan.Conflicts, 1)
	assert.Equal(t, "a.txt", conflict.Plan.Conflicts[0].Path)
	assert.FileExists(t, k.path("two.txt"), "nothing was done")

	_, err = k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-2", Only: true, Conflicts: timeline.Mine})
	require.NoError(t, err)
	assert.NoFileExists(t, k.path("two.txt"))
	assert.Equal(t, "still here", k.read("gone.txt"))
	assert.Equal(t, "mine", k.read("mine.txt"))
	assert.Contains(t, k.read("a.txt"), "by the user")
}

// What was changed again in the same place is a conflict, and either side can be
// taken.
func TestRevertOfWhatWasChangedAgain(t *testing.T) {
	for policy, want := range map[string]string{timeline.Theirs: "as it was", timeline.Mine: "and again"} {
		k := fourTurns(t)
		k.prompt("five")
		k.tool("Edit", "edit-five", func() {
			k.write("a.txt", regions(map[int]string{0: "and again", 1: "by two", 2: "by three", 3: "by four", 7: "by the user"}))
		})
		k.stop()
		_, err := k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-1", Only: true})
		var conflict *timeline.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Len(t, conflict.Plan.Conflicts, 1)
		assert.Equal(t, timeline.Note{Path: "a.txt", Why: "changed again since, in the same place"}, conflict.Plan.Conflicts[0])
		_, err = k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-1", Only: true, Conflicts: policy})
		require.NoError(t, err)
		assert.NoFileExists(t, k.path("one.txt"))
		assert.Equal(t, regions(map[int]string{0: want, 1: "by two", 2: "by three", 3: "by four", 7: "by the user"}), k.read("a.txt"), policy)
	}
}

func TestRevertToAPrompt(t *testing.T) {
	k := fourTurns(t)
	shown, err := k.Show(ctx, retcon.ShowOptions{At: "s1@prompt-3"})
	require.NoError(t, err)
	tried := shown.Task.Attempts
	require.Len(t, tried, 1)
	assert.NotEmpty(t, tried[0].Before)
	assert.NotEmpty(t, tried[0].After)
	_, err = k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-3"})
	require.NoError(t, err)
	assert.Equal(t, regions(map[int]string{0: "by one", 1: "by two", 2: "by three", 7: "by the user"}), k.read("a.txt"))
	assert.NoFileExists(t, k.path("four.txt"))
	_, err = k.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	_, err = k.Revert(ctx, retcon.TravelOptions{Run: "s1", Task: "prompt-3", Before: true})
	require.NoError(t, err)
	assert.Equal(t, regions(map[int]string{0: "by one", 1: "by two", 7: "by the user"}), k.read("a.txt"))
	assert.NoFileExists(t, k.path("three.txt"))
	assert.Equal(t, "mine", k.read("mine.txt"))
}

// Two sessions in one checkout: what is taken back of one is what its own calls
// did, and where their calls overlapped it is a conflict.
func TestRevertOfAPromptBesideAnotherSession(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	one, two := newTalker(p, agent.Claude, "one"), newTalker(p, agent.Claude, "two")
	one.process, two.process = 0, 0
	one.prompt("one")
	two.prompt("two")
	one.tool("Write", "c1", func() { p.write("of-one", "1") })
	two.tool("Write", "c2", func() { p.write("of-two", "2") })
	one.hook("PreToolUse.Bash", fields{"tool_use_id": "c3"})
	two.tool("Write", "c4", func() { p.write("whose", "?") })
	one.hook("PostToolUse.Bash", fields{"tool_use_id": "c3"})
	one.stop()
	two.stop()
	_, err := p.Revert(ctx, retcon.TravelOptions{Run: "one", Task: "prompt-1", Only: true})
	var conflict *timeline.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Len(t, conflict.Plan.Conflicts, 1)
	assert.Equal(t, "whose", conflict.Plan.Conflicts[0].Path)
	_, err = p.Revert(ctx, retcon.TravelOptions{Run: "one", Task: "prompt-1", Only: true, Conflicts: timeline.Mine})
	require.NoError(t, err)
	assert.NoFileExists(t, p.path("of-one"))
	assert.Equal(t, "2?", p.read("of-two")+p.read("whose"))
}

// A workflow's task is taken back in the same way.
func TestRevertOnlyOfATask(t *testing.T) {
	f := newFlow(t)
	require.Equal(t, "ok", f.run(threeSteps).Status)
	_, err := f.Revert(ctx, retcon.TravelOptions{Run: "r1", Task: "build", Only: true})
	var conflict *timeline.ConflictError
	if errors.As(err, &conflict) { // the log grew at the same place
		_, err = f.Revert(ctx, retcon.TravelOptions{Run: "r1", Task: "build", Only: true, Conflicts: timeline.Mine})
	}
	require.NoError(t, err)
	assert.NoFileExists(t, f.path("build.txt"))
	assert.FileExists(t, f.path("test.txt"))
	assert.FileExists(t, f.path("plan.txt"))
}
