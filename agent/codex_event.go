package agent

import "strings"

var codexKinds = map[string]Kind{
	"SessionStart": SessionStart, "SessionEnd": SessionEnd,
	"UserPromptSubmit": Prompt,
	"PreToolUse":       ToolBefore, "PostToolUse": ToolAfter,
	"Stop": TurnEnd, "Interrupt": TurnEnd, "notify": TurnEnd,
	"SubagentStart": SubagentStart, "SubagentStop": SubagentEnd,
	"PreCompact": Compact, "PostCompact": Compact,
	"PermissionRequest": Permission,
	"PreModelRequest":   Other, "PostModelRequest": Other,
}

func decodeCodex(event string, o object) Event {
	e := hookFields(event, o)
	if e.Name == "" && o.str("type") == "agent-turn-complete" {
		e.Name = "notify"
	}
	e.Kind = codexKinds[e.Name]
	e.Interrupted = e.Name == "Interrupt"
	codexOutcome(&e, o)
	switch input := o.sub("tool_input"); e.Tool {
	case "Bash":
		e.Command = input.str("command")
	case "apply_patch":
		e.Paths = patchPaths(input.str("command"))
	case "spawn_agent":
		if out, err := parseObject([]byte(o.str("tool_response"))); err == nil {
			e.Spawned = out.str("agent_id")
		}
	}
	if e.Name == "notify" {
		e.Session, e.Turn = o.str("thread-id"), o.str("turn-id")
		e.Message = o.str("last-assistant-message")
		e.Prompt = strings.Join(o.strings("input-messages"), "\n")
	}
	return e
}

// patchPaths are the files that a patch of Codex's own format names.
func patchPaths(patch string) []string {
	var all []string
	for line := range strings.Lines(patch) {
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if p, ok := strings.CutPrefix(line, head); ok {
				all = append(all, strings.TrimRight(p, "\r\n"))
			}
		}
	}
	return all
}
