package agent

// codex is OpenAI's Codex CLI.
var codex = client{
	Info: Info{
		Name: Codex, Title: "Codex", Binary: "codex",
		Hint: "npm install -g @openai/codex", Verified: "0.171.0",
	},
	decode: decodeCodex,
	answers: map[string]form{
		"SessionStart":      {note: hookNote},
		"UserPromptSubmit":  {deny: block, note: hookNote},
		"PreToolUse":        {deny: hookDeny, note: hookNote},
		"PermissionRequest": {deny: permissionDeny},
		"PostToolUse":       {note: hookNote},
		"SubagentStart":     {note: hookNote},
	},
	setup:    codexHooks{},
	variable: "CODEX_THREAD_ID",
	headless: &codexHeadless,
	record:   &codexRecord,
	resume:   codexContinue,
}

// codexTools are those that may change files.
const codexTools = "Bash|apply_patch|spawn_agent|mcp__.*"

// codexEvents: the client allows the last two no more than three seconds.
var codexEvents = []hookEvent{
	{name: "SessionStart", timeout: 10},
	{name: "UserPromptSubmit", timeout: 10},
	{name: "PreToolUse", matcher: codexTools, timeout: 10},
	{name: "PostToolUse", matcher: codexTools, timeout: 10},
	{name: "SubagentStart", timeout: 10},
	{name: "SubagentStop", timeout: 10},
	{name: "PreCompact", timeout: 10},
	{name: "Stop", timeout: 10},
	{name: "Interrupt", timeout: 3},
	{name: "SessionEnd", timeout: 3},
}
