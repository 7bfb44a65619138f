package retcon_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// openCode sends what opencode was recorded to send about a session.
func openCode(p *place) func(session, name string, change ...string) {
	return func(session, name string, change ...string) {
		p.t.Helper()
		text, err := os.ReadFile(filepath.Join("agent", "testdata", "opencode", name+".json"))
		require.NoError(p.t, err)
		old := append([]string{"/home/dev/project", p.dir, "ses_dd7507a2affeCxM66jLnhYkvuo", session, "ses_dd75010f4ffeHDEEcFK2Wu7Hha", session}, change...)
		hook := name
		for _, tool := range []string{".write", ".task"} {
			hook = strings.TrimSuffix(hook, tool)
		}
		_, err = p.Hook(ctx, retcon.HookOptions{Agent: agent.OpenCode, Event: hook, Payload: []byte(strings.NewReplacer(old...).Replace(string(text)))})
		require.NoError(p.t, err, name)
	}
}

func created(p *place, session, parent string) {
	p.t.Helper()
	bus(p, "session.created", fields{"info": fields{"id": session, "parentID": parent, "directory": p.dir}})
}

// bus sends an event of opencode's bus.
func bus(p *place, name string, properties fields) {
	p.t.Helper()
	b, err := json.Marshal(fields{"type": name, "properties": properties})
	require.NoError(p.t, err)
	_, err = p.Hook(ctx, retcon.HookOptions{Agent: agent.OpenCode, Event: "event", Payload: b})
	require.NoError(p.t, err)
}

// What a subagent does in a session of its own is part of the prompt that it was
// started for, also one level below, and is taken back with it.
func TestSubagentsSessionIsPartOfItsParents(t *testing.T) {
	p := newRepo(t)
	p.write("a", "1")
	say := openCode(p)
	created(p, "ses_1", "")
	say("ses_1", "chat.message", "FIRST PROMPT", "DELEGATE")
	say("ses_1", "tool.execute.before.task")
	created(p, "ses_2", "ses_1")
	created(p, "ses_2", "ses_1") // told twice
	say("ses_2", "chat.message", "FIRST PROMPT", "SUBTASK", "msg_228af87b0001GNj20RFLwrpO0J", "msg_2")
	say("ses_2", "tool.execute.before.write")
	p.write("sub", "2")
	say("ses_2", "tool.execute.after.write")
	created(p, "ses_3", "ses_2")
	say("ses_3", "tool.execute.before.write", "call_5d3a19593228603574dbf701", "call_below")
	p.write("below", "3")
	say("ses_3", "tool.execute.after.write", "call_5d3a19593228603574dbf701", "call_below")
	say("ses_3", "event.session.idle")
	say("ses_2", "event.session.idle")
	bus(p, "session.compacted", fields{"sessionID": "ses_2"})
	bus(p, "session.deleted", fields{"info": fields{"id": "ses_2"}})
	say("ses_1", "tool.execute.after.task")
	assert.Equal(t, []string{"0 start"}, p.frames("ses_1"), "the prompt goes on")
	k := &talker{place: p, client: agent.OpenCode, session: "ses_1"}
	assert.Equal(t, []string{"1 session-start", "1 prompt", "1 tool-before", "1 subagent", "1 tool-before", "1 tool-after",
		"1 subagent", "1 tool-before", "1 tool-after", "1 subagent-end", "1 subagent-end", "1 tool-after"}, k.types())
	say("ses_1", "event.session.idle")

	assert.Equal(t, "1 prompt prompt-1 done prompt-1/sub-1 done prompt-1/sub-2 done +2 ~0 -0 (\"DELEGATE: do the work\")", p.frames("last")[0])
	assert.Equal(t, []string{
		"prompt-1/task[call_d0e9f40d39c087135e8b2557] ok +below +sub",
		"prompt-1/sub-1/write[call_5d3a19593228603574dbf701] ok +sub",
		"prompt-1/sub-2/write[call_below] ok +below",
	}, k.windows())
	_, err := p.Rewind(ctx, retcon.TravelOptions{Run: "last", Frame: 0})
	require.NoError(t, err)
	assert.NoFileExists(t, p.path("sub"))
	assert.NoFileExists(t, p.path("below"))

	runs, err := p.Runs(ctx, 0)
	require.NoError(t, err)
	require.Len(t, runs, 3)
	assert.Equal(t, []string{"r2", "r1", ""}, []string{runs[0].Parent, runs[1].Parent, runs[2].Parent})
}

// The subagent of a session that nobody has heard of is a session like others.
func TestSubagentOfAnUnknownSession(t *testing.T) {
	p := newRepo(t)
	say := openCode(p)
	created(p, "ses_2", "ses_1")
	say("ses_2", "tool.execute.before.write")
	p.write("sub", "2")
	say("ses_2", "tool.execute.after.write")
	say("ses_2", "event.session.idle")
	created(p, "ses_2", "ses_1")
	assert.Equal(t, "1 prompt prompt-1 done +1 ~0 -0 ((no prompt was heard of))", p.frames("last")[0])
}
