package agent

import (
	"regexp"
	"strings"
)

var claudeKinds = map[string]Kind{
	"SessionStart": SessionStart, "SessionEnd": SessionEnd,
	"UserPromptSubmit": Prompt,
	"PreToolUse":       ToolBefore, "PostToolUse": ToolAfter, "PostToolUseFailure": ToolFailed, "PostToolBatch": ToolBatch,
	"Stop": TurnEnd, "StopFailure": TurnEnd,
	"SubagentStart": SubagentStart, "SubagentStop": SubagentEnd,
	"PreCompact": Compact, "PostCompact": Compact,
	"PermissionRequest": Permission, "Notification": Notification,
	"CwdChanged": Moved, "DirectoryAdded": Moved, "WorktreeCreate": Moved, "WorktreeRemove": Moved,
	"PermissionDenied": Other, "InstructionsLoaded": Other, "MessageDisplay": Other, "FileChanged": Other,
	"ConfigChange": Other, "Setup": Other, "TaskCreated": Other, "TaskCompleted": Other, "UserPromptExpansion": Other,
}

// claudeShell are the tools that run what they are told.
var claudeShell = map[string]bool{"Bash": true, "PowerShell": true}

func decodeClaude(event string, o object) Event {
	e := hookFields(event, o)
	e.Kind = claudeKinds[e.Name]
	if o["cursor_version"] != nil { // Cursor runs Claude's hooks, too
		e.Agent = Cursor
	}
	input, output := o.sub("tool_input"), o.sub("tool_response")
	if claudeShell[e.Tool] {
		e.Command = input.str("command")
	}
	e.Paths = input.paths("file_path", "notebook_path")
	if e.Paths == nil {
		e.Paths = output.sub("bashEditDiff").strings("changedFiles")
	}
	e.Background = input.yes("run_in_background") || output["backgroundTaskId"] != nil
	e.Denied = e.Name == "PermissionDenied"
	claudeOutcome(&e, output)
	switch e.Name {
	case "PostToolUse":
		e.Spawned = output.str("agentId")
	case "CwdChanged":
		e.CWD = o.str("new_cwd", "cwd")
	case "DirectoryAdded":
		e.Paths = o.paths("directory")
	case "WorktreeRemove":
		e.Paths = o.paths("worktree_path")
	case "FileChanged", "InstructionsLoaded":
		e.Paths = o.paths("file_path")
	case "UserPromptSubmit":
		if call, ok := taskDone(e.Prompt); ok {
			e.Kind, e.CallID = BackgroundEnd, call
		}
	}
	return e
}

// hookFields are the fields that Claude Code named first and others took over.
func hookFields(event string, o object) Event {
	if event == "" {
		event = o.str("hook_event_name")
	}
	e := Event{
		Name: event, Session: o.str("session_id", "conversation_id"), Turn: o.str("prompt_id", "turn_id"),
		Subagent: o.str("agent_id"), SubagentType: o.str("agent_type"),
		Tool: o.str("tool_name"), CallID: o.str("tool_use_id"),
		ToolInput: o.raw("tool_input"), ToolOutput: o.raw("tool_response"),
		CWD: o.str("cwd"), Roots: o.strings("workspace_roots"),
		Transcript: o.str("transcript_path"), SubTranscript: o.str("agent_transcript_path"),
		Prompt: o.str("prompt"), Message: o.str("last_assistant_message"),
		Source: o.str("source"), Reason: o.str("reason", "trigger"), Model: o.str("model"), Permission: o.str("permission_mode"),
		Error: o.str("error"), Interrupted: o.yes("is_interrupt"), Running: running(o),
	}
	if e.Message == "" {
		e.Message = o.str("message")
	}
	e.Server, e.ServerTool = serverTool(e.Tool)
	for _, c := range o.objects("tool_calls") {
		e.Calls = append(e.Calls, Call{ID: c.str("tool_use_id"), Tool: c.str("tool_name"), Input: c.raw("tool_input"), Output: c.raw("tool_response")})
	}
	return e
}

// running are the background tasks that had not ended with the turn.
func running(o object) []string {
	all := o.strings("background_tasks")
	for _, t := range o.objects("background_tasks") {
		switch t.str("status") {
		case "completed", "failed", "killed", "stopped", "cancelled":
		default:
			all = append(all, t.str("id", "task_id"))
		}
	}
	return all
}

var taskCall = regexp.MustCompile(`<tool-use-id>([^<]+)</tool-use-id>`)

// taskDone tells whether a prompt is the client's own message that background
// work has ended, and which call had started it.
func taskDone(prompt string) (call string, ok bool) {
	if !strings.HasPrefix(prompt, "<task-notification>") {
		return "", false
	}
	if m := taskCall.FindStringSubmatch(prompt); m != nil {
		call = m[1]
	}
	return call, true
}
