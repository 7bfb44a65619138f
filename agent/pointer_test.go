package agent

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endOf is the pointer to the end of a transcript, and its entries.
func endOf(t testing.TB, p Pointer, text []byte) (Pointer, []Entry) {
	t.Helper()
	entries, next, err := ReadTranscript(p.Agent, bytes.NewReader(text), 0)
	require.NoError(t, err)
	p, err = p.End(entries, next, bytes.NewReader(text))
	require.NoError(t, err)
	return p, entries
}

// lines are the offsets behind the lines of a text.
func lines(text []byte) (ends []int) {
	for i, b := range text {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	return ends
}

// A transcript that only grows has drifted nowhere, wherever one looked first.
func TestDriftOfWhatOnlyGrows(t *testing.T) {
	for _, test := range []struct{ agent, file string }{
		{Claude, "transcript.jsonl"}, {Codex, "transcript.jsonl"}, {Codex, "rollout_two_turns.jsonl"}, {Gemini, "transcript.jsonl"},
	} {
		text := recording(t, test.agent, test.file)
		now, entries := endOf(t, Pointer{Agent: test.agent, Session: "s", Transcript: "f"}, text)
		for _, end := range lines(text) {
			then, _ := endOf(t, Pointer{Agent: test.agent, Session: "s", Transcript: "f"}, text[:end])
			want := Grown
			if end == len(text) {
				want = Same
			}
			got, _, err := Drifted(then, now, entries)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s %s from %d", test.agent, test.file, end)
		}
	}
}

// The person went back to before the second prompt, and said something else.
func TestDriftOfARewindInClaude(t *testing.T) {
	const kept, second = "8da00e3f-e23b-4768-8caa-d7d1022f29fc", "73bf5be5-0a40-4f5d-8c9f-0a829a3cada1"
	text := recording(t, Claude, "transcript_after_native_rewind.jsonl")
	now, entries := endOf(t, Pointer{Agent: Claude, Session: "s"}, text)
	from := bytes.Index(text, []byte(`"uuid": "`+second))
	until := bytes.Index(text, []byte("third after rewind"))
	for _, end := range lines(text) {
		then, _ := endOf(t, Pointer{Agent: Claude, Session: "s"}, text[:end])
		got, to, err := Drifted(then, now, entries)
		require.NoError(t, err)
		switch {
		case end > from && end < until:
			assert.Equal(t, Rewound, got, end)
			assert.Equal(t, kept, to)
		default:
			assert.NotEqual(t, Rewound, got, end)
		}
	}
}

func TestDriftOfARewindInGemini(t *testing.T) {
	text := recording(t, Gemini, "chat_with_rewind.jsonl")
	now, entries := endOf(t, Pointer{Agent: Gemini, Session: "s"}, text)
	ends := lines(text)
	then, _ := endOf(t, Pointer{Agent: Gemini, Session: "s"}, text[:ends[len(ends)-2]])
	got, to, err := Drifted(then, now, entries)
	require.NoError(t, err)
	assert.Equal(t, Rewound, got)
	assert.Equal(t, "d04923d38bb0f6017037e74183378ef4", to)
}

// Codex writes a new file that goes on from the old one.
func TestDriftOfARewindInCodex(t *testing.T) {
	now, entries := endOf(t, Pointer{Agent: Codex, Session: "s", Transcript: "new"}, recording(t, Codex, "rollout_after_thread_revert.jsonl"))
	require.Equal(t, &Base{Session: "019f0a11-2c3d-7e4f-8a9b-0c1d2e3f4a5b", Offset: 54287}, baseOf(entries))
	for offset, want := range map[int64]Drift{60_000: Rewound, 54_287: Grown} {
		got, _, err := Drifted(Pointer{Agent: Codex, Session: "s", Transcript: "old", Offset: offset, Entry: "e"}, now, entries)
		require.NoError(t, err)
		assert.Equal(t, want, got, offset)
	}
}

func TestDriftOfAnotherFile(t *testing.T) {
	text := recording(t, Claude, "transcript.jsonl")
	p := Pointer{Agent: Claude, Session: "s"}
	full, _ := endOf(t, p, text)
	short, entries := endOf(t, p, text[:lines(text)[30]])
	got, _, err := Drifted(full, short, entries)
	require.NoError(t, err)
	assert.Equal(t, Replaced, got, "shortened")

	other := full
	other.Session = "another"
	got, _, err = Drifted(other, full, entries)
	require.NoError(t, err)
	assert.Equal(t, Replaced, got, "another session")

	short.Entry = "never heard of"
	_, entries = endOf(t, p, text)
	got, _, err = Drifted(short, full, entries)
	require.NoError(t, err)
	assert.Equal(t, Replaced, got, "rewritten")

	holds, err := full.Holds(bytes.NewReader(text))
	require.NoError(t, err)
	assert.True(t, holds)
	text[100] ^= 1
	for _, changed := range [][]byte{text, text[:200]} {
		holds, err = full.Holds(bytes.NewReader(changed))
		require.NoError(t, err)
		assert.False(t, holds)
	}
}
