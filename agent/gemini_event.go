package agent

var geminiKinds = map[string]Kind{
	"SessionStart": SessionStart, "SessionEnd": SessionEnd,
	"BeforeAgent": Prompt, "AfterAgent": TurnEnd,
	"BeforeTool": ToolBefore, "AfterTool": ToolAfter,
	"Notification": Notification,
	// The client says so before every request, whether or not it shortens.
	"PreCompress": Other,
	"BeforeModel": Other, "AfterModel": Other, "BeforeToolSelection": Other,
}

// decodeGemini reads an event of Gemini CLI. It sends no id of a call, of a
// prompt or of a subagent: pair before with after by tool and input, first in,
// first out.
func decodeGemini(event string, o object) Event {
	e := hookFields(event, o)
	e.Kind = geminiKinds[e.Name]
	input, output := o.sub("tool_input"), o.sub("tool_response")
	if e.Tool == "run_shell_command" {
		e.Command = input.str("command")
	}
	e.Paths = input.paths("file_path", "absolute_path")
	e.Background = input.yes("is_background")
	if e.Error = output.sub("error").str("message"); e.Error == "" {
		e.Error = output.str("error")
	}
	if context := o.sub("mcp_context"); context.str("server_name") != "" {
		e.Server, e.ServerTool = context.str("server_name"), context.str("tool_name")
	}
	geminiOutcome(&e, output)
	if e.Kind == TurnEnd {
		e.Message = o.str("prompt_response")
	}
	return e
}
