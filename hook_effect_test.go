package retcon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
)

// caller is a session of a client in whose shell gh can be called. What gh is
// told is in a log.
type caller struct {
	*talker
	bin string
}

func newCaller(t *testing.T, client string) *caller {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	git(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
	bin := filepath.Join(filepath.Dir(dir), "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "gh"), []byte("#!/bin/sh\necho \"$*\" >> "+bin+"/log\n"), 0o755))
	p := openPlace(t, dir, retcon.Options{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}})
	p.write("a", "1")
	c := &caller{talker: newTalker(p, client, "s1"), bin: bin}
	c.process = 0 // the client lives: calls of Gemini can't be told apart when it doesn't
	return c
}

// called is what gh was told, a call a line.
func (c *caller) called() string {
	b, err := os.ReadFile(filepath.Join(c.bin, "log"))
	if !os.IsNotExist(err) {
		require.NoError(c.t, err)
	}
	return strings.TrimSpace(string(b))
}

// effects are those of the session, oldest first: "rule status state url".
func (c *caller) effects() (all []string) {
	c.t.Helper()
	list, err := c.Effects(ctx, retcon.EffectsOptions{Run: c.session})
	require.NoError(c.t, err)
	for _, e := range list {
		all = append([]string{strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Rule, e.Status, e.State))}, all...)
	}
	return all
}

const (
	createIssue = "gh issue create --title it --body x"
	issueURL    = "https://github.com/o/r/issues/7"
)

// shellCalls tell how each client reports a shell command: before it, and after
// it with what it printed and how it ended.
var shellCalls = map[string]struct {
	prompt, before, after, end string
	told                       func(c *caller, command, output string, exit int) (before, after fields)
}{
	agent.Claude: {"UserPromptSubmit", "PreToolUse.Bash", "PostToolUse.Bash", "Stop",
		func(c *caller, command, output string, exit int) (before, after fields) {
			before = fields{"tool_input": fields{"command": command}, "tool_use_id": "c1", "prompt_id": c.turn()}
			after = fields{"tool_input": fields{"command": command}, "tool_use_id": "c1", "tool_response": fields{"stdout": output, "stderr": ""}}
			if exit != 0 {
				after["hook_event_name"], after["tool_response"] = "PostToolUseFailure", nil
				after["error"] = fmt.Sprintf("Exit code %d\n%s", exit, output)
			}
			return before, after
		}},
	agent.Codex: {"UserPromptSubmit", "PreToolUse.Bash.codemode", "PostToolUse.Bash.codemode", "Stop",
		func(c *caller, command, output string, exit int) (before, after fields) {
			record := filepath.Join(c.bin, "rollout.jsonl") // the one place where Codex says how a command ended
			line := fmt.Sprintf(`{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"exec-1","exit_code":%d}}}`, exit)
			require.NoError(c.t, os.WriteFile(record, []byte("{}\n"+line+"\n"), 0o600))
			return fields{"tool_input": fields{"command": command}, "tool_use_id": "exec-1", "transcript_path": record},
				fields{"tool_input": fields{"command": command}, "tool_use_id": "exec-1", "transcript_path": record, "tool_response": output}
		}},
	agent.Gemini: {"BeforeAgent", "BeforeTool.run_shell_command", "AfterTool.run_shell_command", "AfterAgent",
		func(_ *caller, command, output string, exit int) (before, after fields) {
			told := "Output: " + output + "\n"
			if exit != 0 {
				told += fmt.Sprintf("Exit Code: %d\n", exit)
			}
			return fields{"tool_input": fields{"command": command}},
				fields{"tool_input": fields{"command": command}, "tool_response": fields{"llmContent": told + "Process Group PGID: 1", "returnDisplay": output}}
		}},
	agent.OpenCode: {"chat.message", "tool.execute.before.bash", "tool.execute.after.bash", "event.session.idle",
		func(c *caller, command, output string, exit int) (before, after fields) {
			return fields{"input": fields{"tool": "bash", "sessionID": c.session, "callID": "c1"}, "output": fields{"args": fields{"command": command}}},
				fields{"input": fields{"tool": "bash", "sessionID": c.session, "callID": "c1", "args": fields{"command": command}},
					"output": fields{"output": output, "metadata": fields{"exit": exit}}}
		}},
}

// say sends an event of a client, whatever it calls the session.
func (c *caller) say(name string, change fields) {
	c.t.Helper()
	if c.client != agent.OpenCode {
		c.hook(name, change)
		return
	}
	if change == nil && name == "event.session.idle" {
		change = fields{"properties": fields{"sessionID": c.session}}
	} else if change == nil {
		change = fields{"input": fields{"sessionID": c.session}}
	}
	event := strings.TrimSuffix(name, ".bash")
	if strings.HasPrefix(name, "event.") {
		event = "event"
	}
	_, err := c.Hook(ctx, retcon.HookOptions{Agent: c.client, Event: event, Payload: c.payload(name, change), Client: c.process})
	require.NoError(c.t, err)
}

// shell has the client run a command: what is before is recorded before it.
func (c *caller) shell(command, output string, exit int) {
	c.t.Helper()
	with := shellCalls[c.client]
	before, after := with.told(c, command, output, exit)
	c.say(with.before, before)
	name := with.after
	if event, ok := after["hook_event_name"].(string); ok {
		name = event + ".Bash"
	}
	c.say(name, after)
}

// T117: what the shell of an agent does outside is recorded before it is done,
// and its output tells how it is undone: a rewind of the session undoes it.
func TestT117EffectsOfAnAgentsShell(t *testing.T) {
	for client, with := range shellCalls {
		t.Run(client, func(t *testing.T) {
			c := newCaller(t, client)
			before, after := with.told(c, "cd sub && "+createIssue, issueURL+"\n", 0)
			c.say(with.prompt, nil)
			c.say(with.before, before)
			assert.Equal(t, []string{"gh issue create intended"}, c.effects(), "before it happens")
			c.write("a", "2")
			c.say(with.after, after)
			c.say(with.end, nil)
			assert.Equal(t, []string{"gh issue create succeeded"}, c.effects())
			list, err := c.Effects(ctx, retcon.EffectsOptions{Run: c.session})
			require.NoError(t, err)
			assert.Equal(t, issueURL, list[0].Fields["url"])
			assert.Equal(t, 1, list[0].Attempt, "of the call's attempt")
			assert.Contains(t, list[0].Task, "prompt-1/")
			assert.Equal(t, int64(1), list[0].Frame)

			dry, err := c.Rewind(ctx, retcon.TravelOptions{Run: c.session, Frame: 0, DryRun: true})
			require.NoError(t, err)
			require.Len(t, dry.Plan.Effects, 1)
			assert.Equal(t, timeline.Compensate, dry.Plan.Effects[0].What)
			assert.Empty(t, c.called())
			_, err = c.Rewind(ctx, retcon.TravelOptions{Run: c.session, Frame: 0})
			require.NoError(t, err)
			assert.Equal(t, "issue close "+issueURL+" --reason not planned", c.called())
			assert.Equal(t, "1", c.read("a"))
			assert.Equal(t, []string{"gh issue create succeeded compensated"}, c.effects())
		})
	}
}

// One that failed did nothing, and is in nobody's way.
func TestFailedEffectOfAnAgentsShell(t *testing.T) {
	for client, with := range shellCalls {
		t.Run(client, func(t *testing.T) {
			c := newCaller(t, client)
			c.say(with.prompt, nil)
			c.shell(createIssue, "GraphQL: no such repository", 1)
			c.say(with.end, nil)
			assert.Equal(t, []string{"gh issue create failed"}, c.effects())
			_, err := c.Rewind(ctx, retcon.TravelOptions{Run: c.session, Frame: 0})
			require.NoError(t, err)
			assert.Empty(t, c.called())
		})
	}
}

// Of a call whose end nobody has told it is not known what it did: it counts as
// done, and blocks, whichever way it came to an end.
func TestUnknownEffectOfAnAgentsShell(t *testing.T) {
	const killed = "no process is left of it"
	for name, end := range map[string]func(c *caller){
		"the turn ends":       func(c *caller) { c.say("Stop", fields{"prompt_id": c.turn()}) },
		"the next prompt":     func(c *caller) { c.say("UserPromptSubmit", fields{"prompt": "again"}); c.say("Stop", nil) },
		"the client is gone":  func(c *caller) { c.say("SessionEnd", nil) },
		"it is cut short":     func(c *caller) { c.after(fields{"is_interrupt": true}); c.say("Stop", nil) },
		"the call is another": func(c *caller) { c.after(fields{"tool_input": fields{"command": "true"}}); c.say("Stop", nil) },
		"it goes on behind":   func(c *caller) { c.background(); c.say("Stop", fields{"prompt_id": c.turn()}) },
		killed:                func(c *caller) { c.say("SessionStart.resume", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t, agent.Claude)
			if name == killed {
				c.process = 1 << 30
			}
			c.say("UserPromptSubmit", fields{"prompt_id": c.turn()})
			c.say("PreToolUse.Bash", fields{"tool_input": fields{"command": createIssue}, "tool_use_id": "c1"})
			end(c)
			assert.Equal(t, []string{"gh issue create unknown"}, c.effects())
			c.write("a", "2")
			_, err := c.Rewind(ctx, retcon.TravelOptions{Run: c.session, Frame: 0})
			var blocked *timeline.BlockedError
			require.ErrorAs(t, err, &blocked)
			assert.Contains(t, err.Error(), "nobody knows its url, nor whether it happened")
			assert.Equal(t, "2", c.read("a"), "nothing has moved")
			_, err = c.SettleEffect(ctx, 1, retcon.EffectOutcome{Status: retcon.EffectFailed})
			require.NoError(t, err)
			_, err = c.Rewind(ctx, retcon.TravelOptions{Run: c.session, Frame: 0})
			require.NoError(t, err, "somebody has looked")
		})
	}
}

// after ends the call that creates an issue.
func (c *caller) after(change fields) {
	name := "PostToolUse.Bash"
	all := fields{"tool_input": fields{"command": createIssue}, "tool_use_id": "c1", "tool_response": fields{"stdout": issueURL}}
	for k, v := range change {
		all[k] = v
	}
	if all["is_interrupt"] != nil {
		name, all["error"] = "PostToolUseFailure.Bash", "Exit code 1"
	}
	c.say(name, all)
}

// background has the call go on behind the turn, and end.
func (c *caller) background() {
	c.after(fields{"tool_response": fields{"stdout": "", "backgroundTaskId": "b1"}})
	assert.Equal(c.t, []string{"gh issue create intended"}, c.effects(), "it goes on")
	c.say("UserPromptSubmit", fields{"prompt": "<task-notification>\n<tool-use-id>c1</tool-use-id>"})
}

// The end that is told after the call was given up is the better word; so is
// that of a call that nobody has seen begin.
func TestEffectThatIsToldLate(t *testing.T) {
	c := newCaller(t, agent.Claude)
	c.say("UserPromptSubmit", fields{"prompt_id": c.turn()})
	c.say("PreToolUse.Bash", fields{"tool_input": fields{"command": createIssue}, "tool_use_id": "c1"})
	c.say("Stop", fields{"prompt_id": c.turn()})
	for range 2 {
		c.after(nil)
		assert.Equal(t, []string{"gh issue create succeeded"}, c.effects())
	}
	c.say("UserPromptSubmit", fields{"prompt": "more", "prompt_id": "t2"})
	c.after(fields{"tool_use_id": "c2"})
	assert.Equal(t, []string{"gh issue create succeeded", "gh issue create succeeded"}, c.effects())
	c.say("Stop", fields{"prompt_id": "t2"})
	_, err := c.Rewind(ctx, retcon.TravelOptions{Run: c.session, Frame: 1})
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(c.called(), "issue close"), "only what came after the frame")
}

// What a server's tool does cannot be seen, and it may have done something: it
// is in the way. Clients call the same tool by different names.
func TestT117EffectsOfAServersTool(t *testing.T) {
	for client, names := range map[string][4]string{
		agent.Claude:   {"UserPromptSubmit", "PreToolUse.mcp__note__add_note", "PostToolUse.mcp__note__add_note", "Stop"},
		agent.Codex:    {"UserPromptSubmit", "PreToolUse.mcp__note__add_note", "PostToolUse.mcp__note__add_note", "Stop"},
		agent.Gemini:   {"BeforeAgent", "BeforeTool.mcp_note_add_note", "AfterTool.mcp_note_add_note", "AfterAgent"},
		agent.OpenCode: {"chat.message", "tool.execute.before.note_add_note", "tool.execute.after.note_add_note", "event.session.idle"},
	} {
		t.Run(client, func(t *testing.T) {
			c := newCaller(t, client)
			for i, name := range names {
				event, _, _ := strings.Cut(name, ".")
				var all map[string]any
				require.NoError(t, json.Unmarshal(c.payload(name, nil), &all))
				if client == agent.OpenCode {
					event = strings.TrimSuffix(name, ".note_add_note")
					if i == 3 {
						event = "event"
						all["properties"].(map[string]any)["sessionID"] = c.session
					} else {
						all["input"].(map[string]any)["sessionID"] = c.session
					}
				}
				delete(all, "turn_id")
				payload, err := json.Marshal(all)
				require.NoError(t, err)
				_, err = c.Hook(ctx, retcon.HookOptions{Agent: client, Event: event, Payload: payload, Client: c.process})
				require.NoError(t, err)
				if i == 1 {
					assert.Equal(t, []string{"mcp__note__add_note intended"}, c.effects())
				}
			}
			assert.Equal(t, []string{"mcp__note__add_note succeeded"}, c.effects())
			list, err := c.Effects(ctx, retcon.EffectsOptions{Run: c.session})
			require.NoError(t, err)
			assert.JSONEq(t, `{"text": "hello from the model"}`, string(list[0].Args))
			assert.Equal(t, "maybe", list[0].Class)
			_, err = c.Rewind(ctx, retcon.TravelOptions{Run: c.session, Frame: 0})
			var blocked *timeline.BlockedError
			require.ErrorAs(t, err, &blocked)
			_, err = c.Rewind(ctx, retcon.TravelOptions{Run: c.session, Frame: 0, Force: true})
			require.NoError(t, err)
			assert.Equal(t, []string{"mcp__note__add_note succeeded crossed"}, c.effects())
		})
	}
}

// Most of what an agent does is no effect, and a secret of what is one is not
// kept.
func TestEffectsOfAnAgentAreFewAndClean(t *testing.T) {
	c := newCaller(t, agent.Claude)
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	c.prompt("go")
	c.tool("Write", "w1", func() { c.write("b", "1") })
	c.tool("Edit", "w2", func() { c.write("b", "2") })
	for i, command := range []string{"ls", "git commit -qm x", "gh issue view 7", "grep -r x . | head"} {
		id := fmt.Sprintf("c%d", i)
		c.hook("PreToolUse.Bash", fields{"tool_input": fields{"command": command}, "tool_use_id": id})
		c.hook("PostToolUse.Bash", fields{"tool_input": fields{"command": command}, "tool_use_id": id})
	}
	assert.Empty(t, c.effects())
	command := "curl -X POST -H 'Authorization: Bearer " + secret + "' https://example.org/x"
	c.hook("PreToolUse.Bash", fields{"tool_input": fields{"command": command}, "tool_use_id": "c9"})
	c.hook("PostToolUse.Bash", fields{"tool_input": fields{"command": command}, "tool_use_id": "c9", "tool_response": fields{"stdout": "token=" + secret}})
	args := fields{"tool_input": fields{"token": secret, "text": "x"}, "tool_use_id": "c10"}
	c.hook("PreToolUse.mcp__note__add_note", args)
	c.hook("PostToolUse.mcp__note__add_note", args)
	c.stop()
	assert.Len(t, c.effects(), 2)
	c.nowhere(secret)
}

// nowhere looks for a text in the ledger.
func (p *place) nowhere(text string) {
	p.t.Helper()
	p.book(func(tx *ledger.Tx) error { return nil }) // so that nothing is left in a journal unread
	for _, name := range []string{"ledger.db", "ledger.db-wal"} {
		b, err := os.ReadFile(filepath.Join(p.Folder(), name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(p.t, err)
		assert.NotContains(p.t, string(b), text, name)
	}
}

// Two things done by one line are two effects; they are told apart by what they
// are, and each gets its own values.
func TestSeveralEffectsOfOneCall(t *testing.T) {
	c := newCaller(t, agent.Claude)
	c.prompt("go")
	line := "gh issue create -t one -b x && gh pr create -t two -b y && kubectl apply -f x.yaml"
	c.shell(line, issueURL+"\nhttps://github.com/o/r/pull/8", 0)
	c.stop()
	assert.Equal(t, []string{"gh issue create succeeded", "gh pr create succeeded", "kubectl apply succeeded"}, c.effects())
	list, err := c.Effects(ctx, retcon.EffectsOptions{Run: "s1"})
	require.NoError(t, err)
	assert.Equal(t, issueURL, list[2].Fields["url"])
	assert.Equal(t, "https://github.com/o/r/pull/8", list[1].Fields["url"])
	_, err = c.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0})
	var blocked *timeline.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.Len(t, blocked.Effects, 1, "one that cannot be undone keeps all of them")
	assert.Empty(t, c.called())
}

// What comes in after a rewind has gone behind it is late, and somebody has to
// look.
func TestEffectOfACallThatEndsAfterARewind(t *testing.T) {
	c := newCaller(t, agent.Claude)
	c.prompt("go")
	c.hook("PreToolUse.Bash", fields{"tool_input": fields{"command": createIssue}, "tool_use_id": "c1"})
	c.stop()
	_, err := c.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: 0, Force: true})
	require.NoError(t, err)
	c.after(nil)
	assert.Equal(t, []string{"gh issue create succeeded crossed"}, c.effects())
	e, err := c.Effect(ctx, 1)
	require.NoError(t, err)
	assert.True(t, e.Late)
	runs, err := c.Runs(ctx, 1)
	require.NoError(t, err)
	assert.Len(t, runs[0].NeedsAttention, 2, "it was crossed, and it was late")
}
