package agent

// Probe is a test event: what a client would send, and how.
type Probe struct {
	Command string // for a shell, as the client's settings have it when they are [Installed]
	Payload []byte // for its standard input
}

// Probe is an event that begins a session in a directory, sent the way our hooks
// are called once they are installed. It fails with [ErrUnsupported] where there
// are no hooks.
func (s Setup) Probe(agent, session, dir string) (Probe, error) {
	c, err := named(agent)
	if err != nil {
		return Probe{}, err
	}
	event, payload := "SessionStart", fields{"hook_event_name": "SessionStart", "session_id": session, "cwd": dir, "source": "startup"}
	switch agent {
	case Claude, Codex, Gemini:
	case OpenCode: // its plugin starts us without a shell, with the same words
		event = "event"
		payload = fields{"hook": "event", "directory": dir, "input": fields{"type": "session.created",
			"properties": fields{"sessionID": session, "info": fields{"id": session, "directory": dir}}}}
	case Cursor:
		event = "sessionStart"
		payload = fields{"hook_event_name": event, "conversation_id": session, "cwd": dir, "workspace_roots": []string{dir}}
	case Copilot:
		event, payload = "sessionStart", fields{"sessionId": session, "cwd": dir, "source": "startup"}
	case Cline:
		event, payload = "TaskStart", fields{"hookName": "agent_start", "taskId": session, "workspaceInfo": fields{"rootPath": dir}}
	default:
		return Probe{}, unsupported(c, "hooks")
	}
	return Probe{Command: s.command(agent, event), Payload: encodedLine(payload)}, nil
}
