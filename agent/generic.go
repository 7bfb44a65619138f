package agent

// generic is any agent that can run a command and speaks these words:
//
//	retcon hook generic EVENT < payload
//
// EVENT is a [Kind]. The payload is a JSON object; everything but session is
// optional:
//
//	{"session": "…", "parent": "…", "turn": "…",
//	 "subagent": "…", "subagent_type": "…",
//	 "call": "…", "tool": "…", "input": {…}, "output": …, "exit": 0, "command": "…", "paths": ["…"],
//	 "cwd": "…", "roots": ["…"], "transcript": "…", "entry": "…",
//	 "prompt": "…", "message": "…", "source": "startup", "reason": "…", "model": "…",
//	 "background": false, "running": ["…"], "denied": false, "interrupted": false, "error": "…"}
//
// What comes back is nothing, or {"deny": true, "reason": "…"} in reply to
// tool-before, permission and prompt, or {"note": "…"} for the model.
var generic = client{
	Info:   Info{Name: Generic, Title: "any agent, by documented JSON", Verified: "1"},
	decode: decodeGeneric,
	answers: map[string]form{
		string(SessionStart): {note: genericNote},
		string(Prompt):       {deny: genericDeny, note: genericNote},
		string(ToolBefore):   {deny: genericDeny, note: genericNote},
		string(ToolAfter):    {note: genericNote},
		string(ToolFailed):   {note: genericNote},
		string(Permission):   {deny: genericDeny},
	},
}

func genericDeny(_, reason string) any { return fields{"deny": true, "reason": reason} }
func genericNote(_, text string) any   { return fields{"note": text} }

// genericKinds are what others may say; the rest is for us to find out.
var genericKinds = []Kind{
	SessionStart, SessionEnd, Prompt, ToolBefore, ToolAfter, ToolFailed, ToolBatch, TurnEnd,
	SubagentStart, SubagentEnd, BackgroundEnd, Compact, Permission, Notification, Moved, Rewind,
}

func decodeGeneric(event string, o object) Event {
	if event == "" {
		event = o.str("event")
	}
	e := Event{
		Name: event, Session: o.str("session"), Parent: o.str("parent"), Turn: o.str("turn"),
		Subagent: o.str("subagent"), SubagentType: o.str("subagent_type"),
		CallID: o.str("call"), Tool: o.str("tool"), ToolInput: o.raw("input"), ToolOutput: o.raw("output"),
		Command: o.str("command"), Paths: o.strings("paths"), CWD: o.str("cwd"), Roots: o.strings("roots"),
		Transcript: o.str("transcript"), Entry: o.str("entry"),
		Prompt: o.str("prompt"), Message: o.str("message"), Source: o.str("source"), Reason: o.str("reason"), Model: o.str("model"),
		Background: o.yes("background"), Running: o.strings("running"), Denied: o.yes("denied"), Interrupted: o.yes("interrupted"), Error: o.str("error"),
	}
	for _, k := range genericKinds {
		if event == string(k) {
			e.Kind = k
		}
	}
	e.Server, e.ServerTool = serverTool(e.Tool)
	e.Output, e.Exit = said(e.ToolOutput), o.exit("exit")
	return e
}
