package agent

import (
	"fmt"
	"path/filepath"
	"strings"
)

// What follows was written from published schemas and has not been checked on
// a running client: Verified is empty.

// cursor is Cursor's agent.
var cursor = client{
	Info:   Info{Name: Cursor, Title: "Cursor", Hint: "https://cursor.com"},
	decode: decodeCursor,
	answers: map[string]form{
		"preToolUse":           {deny: cursorDeny},
		"beforeShellExecution": {deny: cursorDeny},
		"beforeMCPExecution":   {deny: cursorDeny},
		"beforeSubmitPrompt": {deny: func(_, reason string) any {
			return fields{"continue": false, "user_message": reason}
		}},
	},
	setup: cursorSetup,
}

func cursorDeny(_, reason string) any {
	return fields{"permission": "deny", "user_message": reason, "agent_message": reason}
}

var cursorKinds = map[string]Kind{
	"sessionStart": SessionStart, "sessionEnd": SessionEnd, "beforeSubmitPrompt": Prompt,
	"preToolUse": ToolBefore, "postToolUse": ToolAfter, "postToolUseFailure": ToolFailed,
	"beforeShellExecution": Other, "afterShellExecution": Other, "beforeMCPExecution": Other, "afterMCPExecution": Other,
	"afterFileEdit": Other, // told by postToolUse as well
	"subagentStart": SubagentStart, "subagentStop": SubagentEnd, "preCompact": Compact, "stop": TurnEnd,
}

func decodeCursor(event string, o object) Event {
	e := hookFields(event, o)
	e.Kind = cursorKinds[e.Name]
	e.Session, e.Turn = o.str("conversation_id", "session_id"), o.str("generation_id")
	if out := o.raw("tool_output"); out != nil {
		e.ToolOutput = out
	}
	input := o.sub("tool_input")
	e.Command = o.str("command")
	if e.Command == "" && e.Tool == "Shell" {
		e.Command = input.str("command")
	}
	e.Paths = append(input.paths("file_path", "path"), o.paths("file_path")...)
	if e.CWD == "" && len(e.Roots) > 0 {
		e.CWD = e.Roots[0]
	}
	if e.Kind == SessionStart {
		e.Source = "startup"
	}
	if tool, ok := strings.CutPrefix(e.Tool, "MCP:"); ok {
		e.Server, e.ServerTool = "cursor", tool // which server it is of, it does not say
	}
	e.Output = said(e.ToolOutput)
	e.Interrupted = e.Kind == TurnEnd && o.str("status") == "aborted"
	return e
}

var cursorSetup = jsonHooks{
	agent: Cursor,
	file:  settings("hooks.json", ".cursor", "", ".cursor"),
	events: []hookEvent{
		{name: "sessionStart"}, {name: "beforeSubmitPrompt"},
		{name: "preToolUse"}, {name: "postToolUse"}, {name: "postToolUseFailure"},
		{name: "subagentStart"}, {name: "subagentStop"}, {name: "preCompact"}, {name: "stop"}, {name: "sessionEnd"},
	},
	entry: func(e hookEvent, command string) any { return handler{Command: command, Matcher: e.matcher} },
	head:  map[string]any{"version": 1},
}

// copilot is GitHub's Copilot CLI.
var copilot = client{
	Info:   Info{Name: Copilot, Title: "GitHub Copilot CLI", Binary: "copilot", Hint: "npm install -g @github/copilot"},
	decode: decodeCopilot,
	answers: map[string]form{
		"preToolUse": {deny: func(_, reason string) any {
			return fields{"permissionDecision": "deny", "permissionDecisionReason": reason}
		}},
	},
	setup: copilotSetup,
}

var copilotKinds = map[string]Kind{
	"sessionStart": SessionStart, "sessionEnd": SessionEnd, "userPromptSubmitted": Prompt,
	"preToolUse": ToolBefore, "postToolUse": ToolAfter, "agentStop": TurnEnd, "subagentStop": SubagentEnd, "errorOccurred": Other,
}

// decodeCopilot: the arguments of a tool are an object before the call and a
// string of JSON after it, or the other way round.
func decodeCopilot(event string, o object) Event {
	e := Event{
		Name: event, Kind: copilotKinds[event], Session: o.str("sessionId"), CWD: o.str("cwd"), Transcript: o.str("transcriptPath"),
		Tool: o.str("toolName"), ToolInput: o.raw("toolArgs"), ToolOutput: o.raw("toolResult"),
		Prompt: o.str("prompt", "initialPrompt"), Source: o.str("source"), Reason: o.str("reason", "stopReason"),
	}
	if s := o.str("toolArgs"); s != "" {
		if _, err := parseObject([]byte(s)); err == nil {
			e.ToolInput = []byte(s)
		}
	}
	input, err := parseObject(e.ToolInput)
	if err != nil {
		input = object{}
	}
	if e.Tool == "bash" || e.Tool == "powershell" {
		e.Command = input.str("command")
	}
	e.Paths = input.paths("path", "file_path")
	if e.Kind == ToolAfter && o.sub("toolResult").str("resultType") == "failure" {
		e.Kind = ToolFailed
	}
	e.Denied = o.sub("toolResult").str("resultType") == "denied"
	e.Output = o.sub("toolResult").str("textResultForLlm")
	return e
}

// copilotSetup: hooks are read from files in the repository.
var copilotSetup = ownFiles{files: func(s Setup) ([]ownFile, error) {
	if s.Scope != Project {
		return nil, ErrProjectOnly
	}
	events := []string{"sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "agentStop", "sessionEnd"}
	hooks := map[string]any{}
	for _, e := range events {
		hooks[e] = []any{fields{"type": "command", "bash": s.command(Copilot, e), "timeoutSec": 10}}
	}
	content := encoded(fields{"version": 1, "hooks": hooks, "description": ownMark + " copilot"})
	return []ownFile{{path: filepath.Join(s.Root, ".github", "hooks", "retcon.json"), content: content, events: events}}, nil
}}

// cline is Cline, in an editor or a terminal.
var cline = client{
	Info:   Info{Name: Cline, Title: "Cline", Hint: "https://cline.bot"},
	decode: decodeCline,
	answers: map[string]form{
		"PreToolUse":       {deny: clineDeny, note: clineNote},
		"PostToolUse":      {note: clineNote},
		"UserPromptSubmit": {deny: clineDeny, note: clineNote},
		"TaskStart":        {note: clineNote},
		"TaskResume":       {note: clineNote},
	},
	setup: clineSetup,
}

func clineDeny(_, reason string) any { return fields{"cancel": true, "errorMessage": reason} }
func clineNote(_, text string) any   { return fields{"contextModification": text} }

// clineEvents are files named after events; clineNames is what the payload
// calls them.
var clineEvents = map[string]Kind{
	"TaskStart": SessionStart, "TaskResume": SessionStart, "SessionShutdown": SessionEnd, "UserPromptSubmit": Prompt,
	"PreToolUse": ToolBefore, "PostToolUse": ToolAfter, "TaskComplete": TurnEnd, "TaskCancel": TurnEnd, "TaskError": TurnEnd, "PreCompact": Compact,
}

var clineNames = map[string]string{
	"agent_start": "TaskStart", "agent_resume": "TaskResume", "session_shutdown": "SessionShutdown", "prompt_submit": "UserPromptSubmit",
	"tool_call": "PreToolUse", "tool_result": "PostToolUse", "agent_end": "TaskComplete", "agent_abort": "TaskCancel", "agent_error": "TaskError",
}

func decodeCline(event string, o object) Event {
	if event == "" {
		event = clineNames[o.str("hookName")]
	}
	call := o.sub("tool_call")
	if len(call) == 0 {
		call = o.sub("tool_result")
	}
	input := call.sub("input")
	e := Event{
		Name: event, Kind: clineEvents[event], Session: o.str("taskId"), Parent: o.sub("sessionContext").str("rootSessionId"),
		Tool: call.str("name"), CallID: call.str("id"), ToolInput: call.raw("input"), ToolOutput: call.raw("output"), Error: call.str("error"),
		Command: strings.Join(input.strings("commands"), "\n"), Paths: input.paths("path", "file_path"),
		Roots: o.strings("workspaceRoots"), CWD: o.sub("workspaceInfo").str("rootPath"),
		Prompt: o.sub("userPromptSubmit").str("prompt"), Reason: o.str("reason"), Interrupted: event == "TaskCancel",
	}
	if parent := o.str("parent_agent_id"); parent != "" {
		e.Subagent = o.str("agent_id")
	}
	if e.Error != "" && e.Kind == ToolAfter {
		e.Kind = ToolFailed
	}
	e.Output = said(e.ToolOutput)
	if e.Tool == "use_mcp_tool" {
		e.Server, e.ServerTool = input.str("server_name"), input.str("tool_name")
	}
	switch event {
	case "TaskStart":
		e.Source = "startup"
	case "TaskResume":
		e.Source = "resume"
	}
	return e
}

var clineSetup = ownFiles{files: func(s Setup) ([]ownFile, error) {
	var files []ownFile
	for _, e := range []string{"TaskStart", "TaskResume", "UserPromptSubmit", "PreToolUse", "PostToolUse", "TaskComplete", "TaskError", "TaskCancel", "SessionShutdown"} {
		files = append(files, ownFile{
			path: filepath.Join(s.folder(".cline", "", ".cline"), "hooks", e), events: []string{e}, program: true,
			content: fmt.Appendf(nil, "#!/bin/sh\n# %s cline.\n%s\n", ownMark, s.command(Cline, e)),
		})
	}
	return files, nil
}}
