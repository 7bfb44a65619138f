package agent

// claude is Claude Code.
var claude = client{
	Info: Info{
		Name: Claude, Title: "Claude Code", Binary: "claude",
		Hint: "npm install -g @anthropic-ai/claude-code", Verified: "2.1.332",
	},
	decode: decodeClaude,
	answers: map[string]form{
		"SessionStart":       {note: hookNote},
		"UserPromptSubmit":   {deny: block, note: hookNote},
		"PreToolUse":         {deny: hookDeny, note: hookNote},
		"PermissionRequest":  {deny: permissionDeny},
		"PostToolUse":        {note: hookNote},
		"PostToolUseFailure": {note: hookNote},
		"PostToolBatch":      {note: hookNote},
		"SubagentStart":      {note: hookNote},
	},
	setup:    claudeSetup,
	variable: "CLAUDE_CODE_SESSION_ID",
	headless: &claudeHeadless,
	record:   &claudeRecord,
	resume:   claudeContinue,
}

// claudeTools are those that may change files.
const claudeTools = "Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit|Agent|Task|EnterWorktree|ExitWorktree|mcp__.*"

var claudeSetup = jsonHooks{
	agent: Claude,
	file: func(s Setup) (string, error) {
		name := "settings.json"
		if s.Scope == Project {
			name = "settings.local.json"
		}
		return settings(name, ".claude", "CLAUDE_CONFIG_DIR", ".claude")(s)
	},
	// WorktreeCreate is not among them: who asks for it must make the worktree.
	events: []hookEvent{
		{name: "SessionStart", timeout: 10},
		{name: "UserPromptSubmit", timeout: 10},
		{name: "PreToolUse", matcher: claudeTools, timeout: 10},
		{name: "PostToolUse", matcher: claudeTools, timeout: 10},
		{name: "PostToolUseFailure", matcher: claudeTools, timeout: 10},
		{name: "PostToolBatch", timeout: 10},
		{name: "SubagentStart", timeout: 10},
		{name: "SubagentStop", timeout: 10},
		{name: "PreCompact", timeout: 10},
		{name: "Stop", timeout: 10},
		{name: "StopFailure", timeout: 10},
		{name: "CwdChanged", timeout: 10},
		{name: "DirectoryAdded", timeout: 10},
		{name: "WorktreeRemove", timeout: 10},
		{name: "SessionEnd", timeout: 10},
	},
	entry: groupEntry,
	off: func(o object) string {
		if o.yes("disableAllHooks") {
			return `"disableAllHooks" is set`
		}
		return ""
	},
}
