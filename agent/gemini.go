package agent

// gemini is Gemini CLI.
var gemini = client{
	Info: Info{
		Name: Gemini, Title: "Gemini CLI", Binary: "gemini",
		Hint: "npm install -g @google/gemini-cli", Verified: "0.61.0",
	},
	decode: decodeGemini,
	answers: map[string]form{
		"SessionStart": {note: hookNote},
		"BeforeAgent":  {deny: deny, note: hookNote},
		"BeforeTool":   {deny: deny},
		"AfterTool":    {note: hookNote},
	},
	setup:    geminiSetup,
	variable: "GEMINI_SESSION_ID",
	headless: &geminiHeadless,
	record:   &geminiRecord,
	resume:   geminiContinue,
}

// geminiTools are those that may change files.
const geminiTools = "write_file|replace|run_shell_command|invoke_agent|mcp_.*"

// geminiSetup: timeouts are in milliseconds. Hooks of a project run in a
// trusted folder only.
var geminiSetup = jsonHooks{
	agent: Gemini,
	file: func(s Setup) (string, error) {
		return settings("settings.json", ".gemini", "", ".gemini")(s)
	},
	events: []hookEvent{
		{name: "SessionStart", timeout: 10_000},
		{name: "BeforeAgent", timeout: 10_000},
		{name: "BeforeTool", matcher: geminiTools, timeout: 10_000},
		{name: "AfterTool", matcher: geminiTools, timeout: 10_000},
		{name: "AfterAgent", timeout: 10_000},
		{name: "SessionEnd", timeout: 10_000},
	},
	entry: func(e hookEvent, command string) any {
		return group{Matcher: e.matcher, Hooks: []handler{{Type: "command", Name: "retcon", Command: command, Timeout: e.timeout}}}
	},
	off: func(o object) string {
		if enabled := o.sub("hooksConfig").raw("enabled"); string(enabled) == "false" {
			return `"hooksConfig.enabled" is false`
		}
		return ""
	},
}
