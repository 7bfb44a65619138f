package retcon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
)

// readBytes is how much this process has asked the kernel to read.
func readBytes(t testing.TB) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip("the system does not count what is read")
	}
	_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
	require.NoError(t, err)
	return n
}

// grown is a session in the middle of a turn, that has made so many calls in it,
// in a ledger with as many other sessions, some of which never ended, and
// checkpoints and turns of their own.
func grown(t *testing.T, client string, calls int) *talker {
	k := newTalker(newRepo(t), client, "s1")
	k.write("a", "1")
	k.process = os.Getpid()
	k.begin()
	body := func(attempt int64) []byte {
		return fmt.Appendf(nil, `{"tool":"Bash","attempt":%d,"checkpoint":1,"command":"%s"}`, attempt, strings.Repeat("x", 100))
	}
	k.book(func(tx *ledger.Tx) error {
		head, err := tx.RunHead(1)
		require.NoError(t, err)
		for i := range calls {
			id := fmt.Sprintf("toolu_%06d", i)
			a, err := tx.StartAttempt(ledger.Attempt{RunID: 1, Call: id, Task: "prompt-1/Bash[" + id + "]", Before: 1, Branch: head.ID, StartSeq: head.HeadSeq})
			require.NoError(t, err)
			require.NoError(t, tx.FinishAttempt(a.ID, ledger.Finish{Outcome: ledger.OutcomeOK, After: 1}))
			for _, kind := range []string{retcon.EventToolBefore, retcon.EventToolAfter} {
				require.NoError(t, tx.AppendEvents(head.ID, []ledger.Event{{Type: kind, Task: "prompt-1", ExtID: id, Body: body(a.ID)}}))
			}
			c, err := tx.Checkpoint(1)
			require.NoError(t, err)
			status := ledger.OutcomeOK
			if i%2 == 0 {
				status = ledger.StatusRunning
			}
			other, err := tx.CreateRun(ledger.Run{Source: client, ExtID: "other-" + id, Kind: retcon.KindSession, WorktreeID: 1, Status: status})
			require.NoError(t, err)
			c.RunID, c.Note = other.ID, "before Bash"
			_, err = tx.AppendCheckpoint(c)
			require.NoError(t, err)
		}
		return nil
	})
	return k
}

// begin is the first prompt of a session.
func (k *talker) begin() {
	k.t.Helper()
	if k.client == agent.Gemini {
		k.hook("BeforeAgent", nil)
		return
	}
	k.prompt("go")
}

// costs are what the hooks of one more call, and of the turn's end, read: each
// in a workspace opened anew, as processes do.
func (k *talker) costs(events []string) map[string]int64 {
	k.t.Helper()
	cost := map[string]int64{}
	for round := range 2 { // what the first finds is kept for the second, as it is for the thousandth
		for n, event := range events {
			name, id, _ := strings.Cut(event, " ")
			kind, _, _ := strings.Cut(name, ".")
			change := fields{}
			if k.client == agent.Claude {
				change["tool_use_id"] = fmt.Sprintf("new-%s-%d", id, round)
				change["prompt_id"] = k.turn()
			}
			payload := k.payload(name, change)
			before := readBytes(k.t)
			w, err := retcon.Open(ctx, retcon.Options{Dir: k.dir, Now: time.Now})
			require.NoError(k.t, err)
			_, err = w.Hook(ctx, retcon.HookOptions{Agent: k.client, Event: kind, Payload: payload, Client: os.Getpid()})
			require.NoError(k.t, err, event)
			cost[fmt.Sprintf("%02d %s", n, event)] = readBytes(k.t) - before
			require.NoError(k.t, w.Close())
		}
	}
	return cost
}

// What a hook reads does not grow with the length of the session and of its
// turn, the number of runs, or that of checkpoints.
func TestHookReadsNoMoreInALongSession(t *testing.T) {
	for client, events := range map[string][]string{
		agent.Claude: {"PreToolUse.Bash a", "PreToolUse.Bash a", "PostToolUse.Bash a", "PostToolUse.Bash a", "PostToolUse.Bash unseen",
			"PreToolUse.Write.subagent b", "PostToolUse.Write.subagent b", "PostToolUse.Bash.background c", "PostToolBatch"},
		agent.Gemini: {"BeforeTool.run_shell_command", "BeforeTool.run_shell_command", "AfterTool.run_shell_command", "AfterTool.run_shell_command"},
	} {
		t.Run(client, func(t *testing.T) {
			short, long := grown(t, client, 50).costs(events), grown(t, client, 4000).costs(events)
			const page = 4096
			for event, read := range short {
				assert.LessOrEqual(t, long[event], read+read/2+10*page, event)
				t.Logf("%-40s %8d %8d", event, read, long[event])
			}
		})
	}
}

// A transcript is read on from where it was read to, however long it is.
func TestHookReadsATranscriptOnce(t *testing.T) {
	events := []string{"UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash", "Stop"}
	cost := func(turns int) map[string]int64 {
		k := newTalker(newRepo(t), agent.Claude, "s1")
		k.process = os.Getpid()
		transcript := filepath.Join(t.TempDir(), "t.jsonl")
		var text strings.Builder
		above := "null"
		say := func(n int) {
			id := fmt.Sprintf(`"entry-%d"`, n)
			fmt.Fprintf(&text, `{"type":"user","uuid":%s,"parentUuid":%s,"sessionId":"s1","message":{"role":"user","content":"%s"}}`+"\n", id, above, strings.Repeat("x", 1000))
			above = id
		}
		for n := range turns {
			say(n)
		}
		read := map[string]int64{}
		for round := range 2 {
			say(turns + round)
			require.NoError(t, os.WriteFile(transcript, []byte(text.String()), 0o600))
			k.n++
			for _, event := range events {
				change := fields{"transcript_path": transcript, "tool_use_id": fmt.Sprintf("c%d", round), "prompt": fmt.Sprintf("go %d", round), "prompt_id": k.turn()}
				before := readBytes(t)
				k.hook(event, change)
				read[event] = readBytes(t) - before
			}
		}
		return read
	}
	short, long := cost(10), cost(5000)
	for _, event := range events {
		t.Logf("%-40s %8d %8d", event, short[event], long[event])
		assert.LessOrEqual(t, long[event], short[event]+256<<10, event)
	}
}
