package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func recording(t testing.TB, agent, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", agent, file))
	require.NoError(t, err)
	return data
}

func readAll(t testing.TB, agent string, text []byte) []Entry {
	t.Helper()
	entries, next, err := ReadTranscript(agent, bytes.NewReader(text), 0)
	require.NoError(t, err)
	require.EqualValues(t, len(text), next)
	return entries
}

// shown is a conversation in short: P prompt, M message, C call, R result.
func shown(entries []Entry) string {
	letters := map[EntryKind]string{Said: "P", Message: "M", Called: "C", Came: "R", Cut: "X"}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(letters[e.Kind])
	}
	return b.String()
}

func TestLive(t *testing.T) {
	for _, test := range []struct{ agent, file, all, live string }{
		{Claude, "transcript.jsonl", "PMCRCRCRCRMCCRRCRCRCRM", "PMCRCRCRCRMCCRRCRCRCRM"},
		{Claude, "transcript_after_native_rewind.jsonl", "PMCRMPMCRMPM", "PMCRMPM"},
		{Codex, "rollout_two_turns.jsonl", "PCRCRCRCRMPCRM", "PCRCRCRCRMPCRM"},
		{Codex, "rollout_after_thread_revert.jsonl", "", ""},
		{Gemini, "transcript.jsonl", "PMCRMCRMCRMCRMCRMCRMCRMCRMCRM", "PCRCRCRCRCRCRCRCRCRM"},
		{Gemini, "chat_with_rewind.jsonl", "PMCRMCRMCRMCRMX", ""},
	} {
		t.Run(test.agent+" "+test.file, func(t *testing.T) {
			entries := readAll(t, test.agent, recording(t, test.agent, test.file))
			assert.Equal(t, test.all, shown(entries))
			live, err := Live(test.agent, entries)
			require.NoError(t, err)
			assert.Equal(t, test.live, shown(live))
		})
	}
	_, _, err := ReadTranscript(OpenCode, nil, 0)
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = Live(Generic, nil)
	require.ErrorIs(t, err, ErrUnsupported)
}

// However a file grows, reading on gives what reading at once does, and never
// half a line.
func TestReadTranscriptGoesOn(t *testing.T) {
	text := recording(t, Claude, "transcript.jsonl")
	want := readAll(t, Claude, text)
	rapid.Check(t, func(t *rapid.T) {
		var got []Entry
		var at int64
		for size := 0; size < len(text); {
			size = min(len(text), size+rapid.IntRange(1, 20_000).Draw(t, "more"))
			entries, next, err := ReadTranscript(Claude, bytes.NewReader(text[:size]), at)
			require.NoError(t, err)
			require.True(t, next == 0 || text[next-1] == '\n')
			got, at = append(got, entries...), next
		}
		require.Equal(t, want, got)
	})
}

func TestReadTranscriptPassesOverWhatIsNotJSON(t *testing.T) {
	text := "\x00\x00\n{\"uuid\":\"a\",\"type\":\"user\",\"message\":{\"content\":\"x" + strings.Repeat("é", 300) + "\"}}\n[]\n{\"type\":1}\n{\"uuid\":\"b\""
	entries, next, err := ReadTranscript(Claude, strings.NewReader(text), 0)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	assert.Equal(t, "a", entries[0].ID)
	assert.Equal(t, "x"+strings.Repeat("é", 199), entries[0].Text)
	assert.EqualValues(t, 3, entries[0].Offset)
	assert.EqualValues(t, strings.LastIndex(text, "{"), next)
}

func FuzzReadTranscript(f *testing.F) {
	for _, agent := range []string{Claude, Codex, Gemini} {
		f.Add(recording(f, agent, "transcript.jsonl"))
	}
	f.Add([]byte("{\"uuid\":\"a\",\"parentUuid\":\"a\",\"type\":\"user\"}\n{\"$rewindTo\":\"x\"}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, agent := range []string{Claude, Codex, Gemini} {
			entries, next, err := ReadTranscript(agent, bytes.NewReader(text), 0)
			require.NoError(t, err)
			require.LessOrEqual(t, next, int64(len(text)))
			live, err := Live(agent, entries)
			require.NoError(t, err)
			for _, e := range live {
				for _, call := range e.Calls {
					_, err := CutAfter(agent, entries, call)
					require.True(t, err == nil || e.Kind != Called)
					_, err = CutBefore(agent, entries, call)
					require.True(t, err == nil || e.Kind != Called)
				}
			}
		}
	})
}

func TestCuts(t *testing.T) {
	for _, test := range []struct {
		agent, file, where, id string
		kept                   string // in short, of what is live
		exact                  bool
	}{
		{Claude, "transcript.jsonl", "after", "toolu_1570ed7a527d715cf8a6c016", "PMCR", true},
		{Claude, "transcript.jsonl", "before", "toolu_1570ed7a527d715cf8a6c016", "P", true},
		{Claude, "transcript.jsonl", "after", "toolu_88e4d96a9f155b060f02a1e1", "PMCRCRCRCRMCCRR", false}, // one of two
		{Claude, "transcript.jsonl", "after", "toolu_4bc24e1360d1ea8d933c5389", "PMCRCRCRCRMCCRR", false},
		{Claude, "transcript.jsonl", "before", "toolu_88e4d96a9f155b060f02a1e1", "PMCRCRCRCR", true},
		{Claude, "transcript.jsonl", "before", "toolu_4bc24e1360d1ea8d933c5389", "PMCRCRCRCR", false},
		{Claude, "transcript.jsonl", "prompt", "544996e5-2ee9-433d-bbf9-655fc8c63439", "", true},
		{Claude, "transcript_after_native_rewind.jsonl", "prompt", "b281ba8c-1aa1-4f9f-84bc-495a7fe27326", "PMCRM", true},
		{Codex, "rollout_two_turns.jsonl", "after", "call_RetconSample000002", "PCRCR", true},
		{Codex, "rollout_two_turns.jsonl", "before", "call_RetconSample000002", "PCR", true},
		{Codex, "rollout_two_turns.jsonl", "prompt", "019f0a11-3000-7000-8000-00000000bbbb", "PCRCRCRCRM", true},
		{Codex, "transcript.jsonl", "after", "call_53372449b5c4992cc5d04349", "PMCRCRCRCRMCCRR", false},
		{Gemini, "transcript.jsonl", "after", "replace__call_3de4e4d677fa276f6681fded", "PCRCR", true},
		{Gemini, "transcript.jsonl", "before", "replace__call_3de4e4d677fa276f6681fded", "PCR", true},
		{Gemini, "transcript.jsonl", "after", "run_shell_command__call_f338c6500a7afc4baddaeabf", "PCRCRCRCRCR", false},
		{Gemini, "transcript.jsonl", "prompt", "07ae620f-7652-4a28-a7d7-790c2b431d4c", "", true},
	} {
		t.Run(fmt.Sprint(test.agent, test.where, test.id), func(t *testing.T) {
			entries := readAll(t, test.agent, recording(t, test.agent, test.file))
			cut := map[string]func(string, []Entry, string) (Cutting, error){"after": CutAfter, "before": CutBefore, "prompt": CutBeforePrompt}[test.where]
			c, err := cut(test.agent, entries, test.id)
			require.NoError(t, err)
			live, err := Live(test.agent, entries)
			require.NoError(t, err)
			var kept []Entry
			for _, e := range live {
				if e.End() <= c.Offset {
					kept = append(kept, e)
				}
			}
			assert.Equal(t, test.kept, shown(kept))
			assert.Equal(t, test.exact, c.Exact)
			if len(kept) > 0 {
				assert.Equal(t, kept[len(kept)-1].ID, c.Keep.ID)
			}
		})
	}
	entries := readAll(t, Codex, recording(t, Codex, "transcript.jsonl"))
	var e *NoCutError
	_, err := CutAfter(Codex, entries, "exec-nested")
	require.ErrorAs(t, err, &e)
	_, err = CutBefore(Codex, entries, "exec-nested")
	require.ErrorAs(t, err, &e)
	_, err = CutBeforePrompt(Codex, entries, "nobody")
	require.EqualError(t, err, "prompt nobody is not in the conversation")
}

// Nothing of a turn is left when it is cut away: not what the client wrote
// about it before the prompt either.
func TestCutBeforePromptTakesTheWholeTurn(t *testing.T) {
	const turn = "019f0a11-3000-7000-8000-00000000bbbb"
	text := recording(t, Codex, "rollout_two_turns.jsonl")
	c, err := CutBeforePrompt(Codex, readAll(t, Codex, text), turn)
	require.NoError(t, err)
	assert.NotContains(t, string(text[:c.Offset]), turn)
	assert.Contains(t, string(text[c.Offset:]), "task_started")
}
