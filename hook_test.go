package retcon_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/timeline"
)

// talker is a conversation with a client in a place: it sends what the real one
// was recorded to send, with the differences that a test names.
type talker struct {
	*place
	client, session string
	process         int // see HookOptions.Client
	n               int
}

type fields map[string]any

func newTalker(p *place, client, session string) *talker {
	return &talker{place: p, client: client, session: session, process: 1 << 30} // nobody: a hook's process is gone, too
}

// payload is a recorded payload, about this place and session.
func (k *talker) payload(name string, change fields) []byte {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join("agent", "testdata", k.client, name+".json"))
	require.NoError(k.t, err)
	var all fields
	require.NoError(k.t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), "/home/dev/project", k.dir)), &all))
	all["session_id"] = k.session
	delete(all, "transcript_path")
	delete(all, "prompt_id")
	maps.Copy(all, change)
	b, err := json.Marshal(all)
	require.NoError(k.t, err)
	return b
}

// hook sends a recorded payload, and returns what the agent is told.
func (k *talker) hook(name string, change fields) string {
	k.t.Helper()
	event, _, _ := strings.Cut(name, ".")
	k.clock = k.clock.Add(time.Second)
	answer, err := k.Hook(ctx, retcon.HookOptions{Agent: k.client, Event: event, Payload: k.payload(name, change), Client: k.process})
	require.NoError(k.t, err, name)
	return string(answer)
}

func (k *talker) prompt(text string) string {
	k.t.Helper()
	k.n++
	return k.hook("UserPromptSubmit", fields{"prompt": text, "prompt_id": k.turn()})
}

func (k *talker) turn() string { return fmt.Sprintf("%s-turn-%d", k.session, k.n) }

func (k *talker) stop() { k.t.Helper(); k.hook("Stop", fields{"prompt_id": k.turn()}) }

// tool does something between the two events of a call, as a shell or an edit
// would.
func (k *talker) tool(name, id string, do func()) {
	k.t.Helper()
	k.hook("PreToolUse."+name, fields{"tool_use_id": id})
	do()
	k.hook("PostToolUse."+name, fields{"tool_use_id": id})
}

func (k *talker) run() string { return k.session }

// frames are the frames of a run, newest first, each as "2 prompt-2 done
// text +1 ~1 -1".
func (p *place) frames(run string) []string {
	p.t.Helper()
	tree, err := p.Timeline(ctx, retcon.TimelineOptions{Run: run})
	require.NoError(p.t, err)
	return told(tree)
}

func told(tree *timeline.Tree) (lines []string) {
	for _, f := range tree.Frames {
		words := []string{fmt.Sprint(f.Seq), f.Kind}
		for _, c := range f.Changes {
			words = append(words, c.ID, c.New)
		}
		if f.Files != nil {
			words = append(words, fmt.Sprintf("+%d ~%d -%d", f.Files.Added, f.Files.Changed, f.Files.Removed))
		}
		if f.Label != "" {
			words = append(words, "("+f.Label+")")
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// A session of Claude Code: tool edits, shell edits, and the user in between.
func story(t *testing.T) *talker {
	p := newRepo(t)
	p.write("a.txt", "alpha\n")
	p.write("b.txt", "beta\n")
	p.write("mine.txt", "mine\n")
	k := newTalker(p, agent.Claude, "s1")
	assert.Empty(t, k.hook("SessionStart.startup", nil))
	assert.Empty(t, k.prompt("first: write"))
	k.tool("Write", "call-1", func() { k.write("new.txt", "one\ntwo\n") })
	k.tool("Edit", "call-2", func() { k.write("new.txt", "one\nthree\n") })
	k.stop()
	k.write("mine.txt", "mine, and more\n") // the user, between two turns
	k.prompt("second: use the shell\nand more lines")
	k.tool("Bash", "call-3", func() {
		require.NoError(t, os.Remove(k.path("b.txt")))
		require.NoError(t, os.Rename(k.path("a.txt"), k.path("renamed.txt")))
		k.write("dir/made.txt", "made\n")
	})
	k.stop()
	return k
}

func TestSessionIsARunAndAPromptAFrame(t *testing.T) {
	k := story(t)
	assert.Equal(t, []string{
		"2 prompt prompt-2 done +2 ~1 -2 (second: use the shell)",
		"1 prompt prompt-1 done +1 ~0 -0 (first: write)",
		"0 start",
	}, k.frames("s1"))
	runs, err := k.Runs(ctx, 0)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	assert.Equal(t, "claude ok", runs[0].Source+" "+runs[0].Status)
}

func TestRewindToAPrompt(t *testing.T) {
	k := story(t)
	_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 1})
	require.NoError(t, err)
	assert.Equal(t, "alpha\n", k.read("a.txt"))
	assert.Equal(t, "beta\n", k.read("b.txt"))
	assert.NoFileExists(t, k.path("renamed.txt"))
	assert.NoFileExists(t, k.path("dir"))
	assert.Equal(t, "one\nthree\n", k.read("new.txt"))
	assert.Equal(t, "mine, and more\n", k.read("mine.txt"), "the user's")

	k.prompt("second, again")
	k.tool("Write", "call-4", func() { k.write("new.txt", "other\n") })
	k.stop()
	assert.Equal(t, []string{
		"2 prompt prompt-2 done +0 ~2 -0 (second, again)",
		"1 prompt prompt-1 done +1 ~0 -0 (first: write)",
		"0 start",
	}, k.frames("s1"))

	_, err = k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	require.NoError(t, err)
	assert.NoFileExists(t, k.path("new.txt"))
	_, err = k.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "other\n", k.read("new.txt"))
	assert.Equal(t, "2 prompt prompt-2 done +0 ~2 -0 (second, again)", k.frames("s1")[0])
}
