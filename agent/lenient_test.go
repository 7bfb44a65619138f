package agent

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// without are the copies of an object in which one field is missing, or is of
// another type: its own, and those of the objects in it.
func without(o map[string]any) (all []map[string]any) {
	for key, value := range o {
		for _, instead := range []any{nil, []any{1.0}, map[string]any{}, "x", 1.0, true} {
			one := maps.Clone(o)
			if one[key] = instead; instead == nil {
				delete(one, key)
			}
			all = append(all, one)
		}
		if inner, ok := value.(map[string]any); ok {
			for _, less := range without(inner) {
				one := maps.Clone(o)
				one[key] = less
				all = append(all, one)
			}
		}
	}
	return all
}

// Each recorded payload is understood without any one of its fields, or with
// another value in it, and as it is with fields that nobody has heard of.
func TestDecodeWithMoreAndLess(t *testing.T) {
	for _, agent := range []string{Claude, Codex, OpenCode, Gemini, Cline, Cursor, Copilot} {
		t.Run(agent, func(t *testing.T) {
			for file, payload := range payloads(t, agent) {
				var o map[string]any
				require.NoError(t, json.Unmarshal(payload, &o))
				plain, err := json.Marshal(o) // in which nothing but the order of the fields is another
				require.NoError(t, err)
				whole, err := Decode(agent, eventOf(agent, file), plain)
				require.NoError(t, err)
				for i, less := range without(o) {
					text, err := json.Marshal(less)
					require.NoError(t, err)
					e, err := Decode(agent, eventOf(agent, file), text)
					require.NoError(t, err, "%s, change %d", file, i)
					require.NotEmpty(t, e.Kind)
				}
				more := maps.Clone(o)
				for key, value := range o {
					if inner, ok := value.(map[string]any); ok {
						inner = maps.Clone(inner)
						inner["of_tomorrow"] = map[string]any{"a": 1}
						more[key] = inner
					}
				}
				more["of_tomorrow"] = []any{"b"}
				text, err := json.Marshal(more)
				require.NoError(t, err)
				e, err := Decode(agent, eventOf(agent, file), text)
				require.NoError(t, err)
				for _, raw := range []*Event{&whole, &e} { // these are as they came
					raw.Raw, raw.ToolInput, raw.ToolOutput = nil, nil, nil
				}
				assert.Equal(t, line(whole), line(e), file)
			}
		})
	}
}
