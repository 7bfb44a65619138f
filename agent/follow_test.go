package agent

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Read on from any line, a conversation in which nothing was taken back stands
// where all of it read at once stands.
func TestFollowOfWhatOnlyGrows(t *testing.T) {
	for _, test := range []struct{ agent, file string }{
		{Claude, "transcript.jsonl"}, {Codex, "transcript.jsonl"}, {Codex, "rollout_two_turns.jsonl"}, {Gemini, "transcript.jsonl"},
	} {
		text := recording(t, test.agent, test.file)
		all := readAll(t, test.agent, text)
		for _, end := range lines(text) {
			var first, more []Entry
			for _, e := range all {
				if e.Offset < int64(end) {
					first = append(first, e)
				} else {
					more = append(more, e)
				}
			}
			then, err := Follow(test.agent, "", first)
			require.NoError(t, err)
			now, err := Follow(test.agent, then.Leaf, more)
			require.NoError(t, err)
			whole, _ := endOf(t, Pointer{Agent: test.agent, Session: "s"}, text)
			if test.agent != Gemini { // where a later line may be about an earlier entry
				require.Equal(t, whole.Entry, now.Leaf, "%s %s from %d", test.agent, test.file, end)
			}
			if test.agent != Claude { // whose results may stand beside the chain
				require.True(t, now.Straight, "%s %s from %d", test.agent, test.file, end)
			}
		}
	}
}

// A rewind is never straight on, wherever one had read before it.
func TestFollowOfARewind(t *testing.T) {
	text := recording(t, Claude, "transcript_after_native_rewind.jsonl")
	all := readAll(t, Claude, text)
	at := int64(bytes.Index(text, []byte("third after rewind")))
	second := int64(bytes.Index(text, []byte("create tui2.txt")))
	for _, end := range lines(text) {
		if int64(end) > at || int64(end) <= second {
			continue
		}
		var first, more []Entry
		for _, e := range all {
			if e.Offset < int64(end) {
				first = append(first, e)
			} else {
				more = append(more, e)
			}
		}
		then, err := Follow(Claude, "", first)
		require.NoError(t, err)
		now, err := Follow(Claude, then.Leaf, more)
		require.NoError(t, err)
		assert.False(t, now.Straight, end)
	}
	for client, file := range map[string]string{Gemini: "chat_with_rewind.jsonl", Codex: "rollout_after_thread_revert.jsonl"} {
		now, err := Follow(client, "x", readAll(t, client, recording(t, client, file)))
		require.NoError(t, err)
		assert.False(t, now.Straight, client)
	}
}

func TestFollowOfNothing(t *testing.T) {
	for _, client := range []string{Claude, Codex, Gemini} {
		now, err := Follow(client, "leaf", nil)
		require.NoError(t, err)
		assert.Equal(t, Followed{Leaf: "leaf", Straight: true}, now)
	}
	_, err := Follow(OpenCode, "", nil)
	require.ErrorIs(t, err, ErrUnsupported)
	now, err := Follow(Claude, "a", []Entry{{ID: "b", Parent: "c", Kind: Said}, {ID: "c", Parent: "b", Kind: Said}})
	require.NoError(t, err)
	assert.False(t, now.Straight, "a chain that bites its tail")
}
