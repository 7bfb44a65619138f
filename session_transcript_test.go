package retcon_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
)

// copies are our copies of a session's transcripts, oldest first, and the
// pieces each is made of.
func (k *talker) copies() (texts []string, pieces [][]ledger.Piece) {
	k.t.Helper()
	k.book(func(tx *ledger.Tx) error {
		run, err := tx.RunByExt(k.client, k.session)
		require.NoError(k.t, err)
		all, err := tx.Transcripts(run.ID)
		require.NoError(k.t, err)
		for _, t := range all {
			ps, err := tx.Pieces(t.ID)
			require.NoError(k.t, err)
			var text []byte
			for _, p := range ps {
				b, err := tx.Content(p.Hash)
				require.NoError(k.t, err)
				text = append(text, b...)
			}
			texts, pieces = append(texts, string(text)), append(pieces, ps)
		}
		return nil
	})
	return texts, pieces
}

// A conversation goes on from a frame although its client has deleted its file,
// or has written another in its place.
func TestContinuationFromOurCopy(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"deleted":   os.Remove,
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"shortened": func(path string) error { return os.Truncate(path, 40) },
		"written anew": func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte(`{"uuid":"x","type":"user","message":{"content":"of another"}}`+"\n"), 50), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := spoken(t)
			require.NoError(t, lose(k.transcriptPath()))
			left, _ := os.ReadFile(k.transcriptPath())
			for frame, want := range map[int64][]string{1: {"p1", "m1"}, 2: {"p1", "m1", "p2", "m2"}} {
				c, err := k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: frame})
				require.NoError(t, err)
				assert.Equal(t, want, conversationOf(t, c))
				assert.Contains(t, c.Note, "taken from the copy")
				c, err = k.Continuation(ctx, retcon.ContinueOptions{Run: "s1", Frame: frame, Headless: true})
				require.NoError(t, err)
				assert.Equal(t, want, conversationOf(t, c), "there is nothing that could be branched off from")
			}
			now, _ := os.ReadFile(k.transcriptPath())
			assert.Equal(t, left, now, "the client's file stays as it is")

			h, err := k.Doctor(ctx, retcon.DoctorOptions{})
			require.NoError(t, err)
			at := slices.IndexFunc(h.Checks, func(c retcon.Check) bool { return c.Name == "transcripts" })
			assert.True(t, h.Checks[at].OK)
			if name != "written anew" {
				assert.Equal(t, "1 copied; only here: r1 "+k.transcriptPath(), h.Checks[at].Detail)
			}
		})
	}
}

// Also of the clients whose continuation is a copy with another id in it.
func TestContinuationFromOurCopyOfOthers(t *testing.T) {
	for client, test := range map[string]struct{ file, say, end, turn, upTo, gone string }{
		agent.Codex:  {"rollout_two_turns.jsonl", "UserPromptSubmit", "Stop", "019f0a11-3000-7000-8000-00000000aaaa", "019f0a11-3000-7000-8000-00000000bbbb", "bbbb"},
		agent.Gemini: {"chat_with_rewind.jsonl", "BeforeAgent", "AfterAgent", "", "$rewindTo", "nothing"},
	} {
		t.Run(client, func(t *testing.T) {
			p := newRepo(t)
			p.write("a", "1")
			k := newTalker(p, client, map[string]string{agent.Codex: "019f0a11-2c3d-7e4f-8a9b-0c1d2e3f4a5b", agent.Gemini: "7e57ab1e-0000-4a4a-8b8b-123456789abc"}[client])
			r := k.recorded(test.file)
			k.tell(test.say, fields{"prompt": "Add a greeting module", "turn_id": test.turn})
			r.upTo(test.upTo)
			k.tell(test.end, fields{"turn_id": test.turn})
			was, err := os.ReadFile(k.transcriptPath())
			require.NoError(t, err)
			require.NoError(t, os.Remove(k.transcriptPath()))
			c, err := k.Continuation(ctx, retcon.ContinueOptions{Run: k.session, Frame: 1})
			require.NoError(t, err)
			require.NoError(t, c.Write())
			require.Len(t, c.Files, 1)
			text, err := os.ReadFile(c.Files[0])
			require.NoError(t, err)
			assert.Equal(t, strings.ReplaceAll(string(was), k.session, c.Session), strings.ReplaceAll(string(text), k.session, c.Session))
			assert.NotContains(t, string(text), test.gone)
		})
	}
}

// What an event copies is what came since the one before, however the file grows
// and whatever the client does with it: at every event the newest copy is the
// file's whole lines, and no older one changes.
func TestTranscriptIsCopiedAsItGrows(t *testing.T) {
	p := newRepo(t)
	k := newTalker(p, agent.Claude, "s1")
	random := rand.New(rand.NewPCG(1, 2))
	var file []byte
	var older []string
	n := 0
	for step := range 40 {
		switch {
		case step%13 == 12: // the client writes another file
			file = fmt.Appendf(nil, `{"uuid":"anew%d","type":"user"}`+"\n", step)
		case step%7 == 6: // half a line
			file = append(file, `{"uuid":"half`...)
		default:
			if bytes.HasSuffix(file, []byte("half")) {
				file = append(file, `","type":"user"}`+"\n"...)
			}
			for range random.IntN(30) {
				n++
				file = fmt.Appendf(file, `{"uuid":"e%d","parentUuid":"e%d","type":"assistant","message":{"content":"%s"}}`+"\n", n, n-1, strings.Repeat("x", random.IntN(400)))
			}
		}
		var before []string
		if step > 0 {
			before, _ = k.copies()
		}
		require.NoError(t, os.WriteFile(k.transcriptPath(), file, 0o600))
		k.tell("Stop", fields{"prompt_id": "none"})
		whole := string(file[:bytes.LastIndexByte(file, '\n')+1])
		texts, _ := k.copies()
		if whole == "" && len(texts) == len(before) {
			continue
		}
		require.Equal(t, whole, texts[len(texts)-1], step)
		if step%13 == 12 {
			older = before
		}
		require.Equal(t, strings.Join(older, "\x00"), strings.Join(texts[:len(texts)-1], "\x00"), "nothing that was copied is given up")
	}
	_, pieces := k.copies()
	require.Greater(t, len(pieces), 3)
	seen := map[int64]bool{}
	for _, p := range pieces[0] {
		require.False(t, seen[p.Start], "twice")
		seen[p.Start] = true
	}
	require.Greater(t, len(pieces[0]), 5, "each event added its own")
}

// An event that finds nothing new writes nothing.
func TestTranscriptThatStandsStill(t *testing.T) {
	k := spoken(t)
	_, before := k.copies()
	for range 3 {
		k.tell("Stop", fields{"prompt_id": "t2"})
		k.tell("SessionEnd", nil)
	}
	_, after := k.copies()
	assert.Equal(t, before, after)
}

// What is large is copied in pieces that the ledger keeps, and is whole again.
func TestLargeTranscript(t *testing.T) {
	k := living(t, "s1")
	line := `{"uuid":"big","type":"user","promptId":"t1","message":{"content":"` + strings.Repeat("0123456789abcdef", 60_000) + `"}}` + "\n"
	require.NoError(t, os.WriteFile(k.transcriptPath(), []byte(line), 0o600))
	k.tell("UserPromptSubmit", fields{"prompt": "big", "prompt_id": "t1"})
	k.tell("Stop", fields{"prompt_id": "t1"})
	texts, pieces := k.copies()
	require.Len(t, texts, 1)
	assert.Equal(t, len(line), len(texts[0]))
	assert.True(t, texts[0] == line)
	for _, p := range pieces[0] {
		assert.Less(t, p.Size, int64(ledger.ExternalMin))
	}
}

// What is no file is nobody's transcript, and holds nobody up.
func TestTranscriptThatIsNoFile(t *testing.T) {
	k := living(t, "s1")
	fifo := filepath.Join(filepath.Dir(k.dir), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, path := range []string{fifo, k.dir, "/dev/zero", "relative", filepath.Join(k.dir, "a", "below a file")} {
		k.hook("UserPromptSubmit", fields{"prompt": path, "prompt_id": path, "transcript_path": path})
		k.hook("Stop", fields{"prompt_id": path, "transcript_path": path})
	}
	texts, _ := k.copies()
	assert.Empty(t, texts)
	assert.Len(t, k.frames("s1"), 6)
}

// The transcript of a subagent is not the session's.
func TestTranscriptOfASubagent(t *testing.T) {
	p := newRepo(t)
	k := newTalker(p, agent.Codex, "s1")
	require.NoError(t, os.WriteFile(k.transcriptPath(), []byte("{}\n"), 0o600))
	k.hook("UserPromptSubmit", fields{"turn_id": "t1"})
	k.tell("UserPromptSubmit.subagent", nil)
	k.tell("PostToolUse.Bash.subagent", nil)
	texts, _ := k.copies()
	assert.Empty(t, texts)
}

// The copy goes when the run goes.
func TestTranscriptIsDeletedWithItsRun(t *testing.T) {
	k := spoken(t)
	texts, _ := k.copies()
	require.NotEmpty(t, texts)
	k.book(func(tx *ledger.Tx) error { return tx.DeleteRun(1, "test") })
	k.book(func(tx *ledger.Tx) error {
		all, err := tx.Transcripts(1)
		assert.Empty(t, all)
		return err
	})
}
