package agent

import (
	"slices"
	"strings"
)

var openCodeKinds = map[string]Kind{
	"tool.execute.before": ToolBefore, "tool.execute.after": ToolAfter,
	"chat.message": Prompt, "permission.ask": Permission, "experimental.session.compacting": Compact,
	"dispose": SessionEnd, "plugin.load": Other, "shell.env": Other, "experimental.text.complete": Other,

	"session.created": SessionStart, "session.deleted": SessionEnd, "session.compacted": Compact,
	"session.idle": TurnEnd, "session.error": TurnEnd, "session.updated": Other,
	"session.status": Other, "session.diff": Other, "message.updated": Other, "message.part.updated": Other,
	"file.edited": Other, "file.watcher.updated": Other, "integration.updated": Other, "reference.updated": Other,
}

// decodeOpenCode reads what our plugin passes on: {hook, input, output,
// directory}, where the input of the hook "event" is an event of the bus. A
// bare event of the bus is understood as well.
func decodeOpenCode(event string, o object) Event {
	name := o.str("hook")
	if name == "" {
		name = event
	}
	input, output := o.sub("input"), o.sub("output")
	if bus := busEvent(o, input); bus != nil {
		return decodeBus(bus, o)
	}
	args := output.sub("args")
	if name == "tool.execute.after" {
		args = input.sub("args")
	}
	e := Event{
		Name: name, Kind: openCodeKinds[name], Session: input.str("sessionID"), CWD: input.str("cwd"),
		Tool: input.str("tool"), CallID: input.str("callID"), ToolInput: output.raw("args"),
		Paths: args.paths("filePath", "path"),
	}
	if e.CWD == "" {
		e.CWD = o.str("directory")
	}
	if e.Tool == "bash" {
		e.Command = args.str("command")
	}
	if patch := args.str("patchText", "patch"); patch != "" {
		e.Paths = patchPaths(patch)
	}
	e.Server, e.ServerTool = openCodeServer(e.Tool)
	switch name {
	case "tool.execute.after":
		e.ToolInput, e.ToolOutput = input.raw("args"), o.raw("output")
		openCodeOutcome(&e, output)
		e.Spawned = output.sub("metadata").str("sessionId")
	case "chat.message":
		message := output.sub("message")
		e.Prompt = texts(output)
		e.Turn, e.Entry = message.str("id"), message.str("id")
		e.Model = message.sub("model").str("modelID")
	}
	return e
}

// busEvent finds the event of the bus in a payload; nil when there is none.
func busEvent(o, input object) object {
	for _, b := range []object{input, o} {
		if b.str("type") != "" && b["properties"] != nil {
			return b
		}
	}
	return nil
}

func decodeBus(bus, envelope object) Event {
	p := bus.sub("properties")
	info := p.sub("info")
	e := Event{
		Name: bus.str("type"), Kind: openCodeKinds[bus.str("type")],
		Session: p.str("sessionID"), Parent: info.str("parentID"), CWD: info.str("directory"), Model: info.sub("model").str("id", "modelID"),
	}
	if e.CWD == "" {
		e.CWD = envelope.str("directory")
	}
	switch e.Name {
	case "session.created", "session.updated", "session.deleted":
		if e.Session == "" {
			e.Session = info.str("id")
		}
		revert := info.sub("revert")
		switch {
		case e.Name == "session.created" && e.Parent != "":
			e.Kind, e.Subagent = SubagentStart, e.Session
		case e.Name == "session.created":
			e.Source = "startup"
		case e.Name == "session.updated" && revert.str("messageID") != "":
			e.Kind, e.Entry = Rewind, revert.str("messageID")
		}
	case "session.error":
		failure := p.sub("error")
		e.Error = failure.sub("data").str("message")
		if e.Error == "" {
			e.Error = failure.str("name")
		}
		e.Interrupted = failure.str("name") == "MessageAbortedError"
	case "message.part.updated":
		failedPart(&e, p.sub("part"))
	case "file.edited", "file.watcher.updated":
		e.Paths = p.paths("file")
	}
	return e
}

// failedPart: a tool that throws sends no after event; the bus tells of it.
func failedPart(e *Event, part object) {
	state := part.sub("state")
	if part.str("type") != "tool" || state.str("status") != "error" {
		return
	}
	e.Kind, e.Session = ToolFailed, part.str("sessionID")
	e.Tool, e.CallID, e.Entry = part.str("tool"), part.str("callID"), part.str("messageID")
	e.ToolInput, e.Error = state.raw("input"), state.str("error")
	e.Server, e.ServerTool = openCodeServer(e.Tool)
	e.Output = e.Error
	input := state.sub("input")
	e.Paths = input.paths("filePath", "path")
	if e.Tool == "bash" {
		e.Command = input.str("command")
	}
}

// texts joins the text parts of a message. `opencode run` puts quotes round a
// prompt of several words: they are left as they are.
func texts(output object) string {
	var all []string
	for _, p := range output.objects("parts") {
		if p.str("type") == "text" && !p.yes("synthetic") {
			all = append(all, p.str("text"))
		}
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "\n")
}
