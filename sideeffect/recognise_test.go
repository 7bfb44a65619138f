package sideeffect

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A story is a command line and the effects that are expected of it.
type story struct {
	command string
	want    []string
}

// stories reads testdata/commands.txt.
func stories(t testing.TB) (all []story) {
	t.Helper()
	text, err := os.ReadFile("testdata/commands.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		command, begins := strings.CutPrefix(line, "$ ")
		more, continues := strings.CutPrefix(line, "> ")
		switch {
		case begins:
			all = append(all, story{command: command})
		case line == "" || strings.HasPrefix(line, "#"):
		case continues:
			all[len(all)-1].command += "\n" + more
		default:
			all[len(all)-1].want = append(all[len(all)-1].want, line)
		}
	}
	require.Greater(t, len(all), 300, "the file has not been read")
	return all
}

func TestCommands(t *testing.T) {
	for _, s := range stories(t) {
		t.Run(s.command, func(t *testing.T) {
			var got []string
			for _, e := range (Rules{}).Recognise(ToolCall{Tool: "Bash", Command: s.command}) {
				got = append(got, string(e.Class)+" "+e.Rule)
				assert.Equal(t, Intended, e.Status)
				assert.NoError(t, e.Compensation.Validate())
			}
			assert.Equal(t, s.want, got)
		})
	}
}
