package agent

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Kind says what an event means, whatever the client calls it.
type Kind string

// The kinds of event.
const (
	SessionStart  Kind = "session-start"  // a conversation begins, or goes on: Source
	SessionEnd    Kind = "session-end"    // Reason
	Prompt        Kind = "prompt"         // a person, or a parent agent, said something: Prompt
	ToolBefore    Kind = "tool-before"    // a tool is about to run
	ToolAfter     Kind = "tool-after"     // it ran, with whatever result
	ToolFailed    Kind = "tool-failed"    // it ran and failed; it may have changed files
	ToolBatch     Kind = "tool-batch"     // all calls of one answer are done: Calls
	TurnEnd       Kind = "turn-end"       // the agent waits for the next prompt, or was interrupted
	SubagentStart Kind = "subagent-start" // Subagent, or Session with its Parent
	SubagentEnd   Kind = "subagent-end"   // Subagent
	BackgroundEnd Kind = "background-end" // what an earlier call left running has ended: CallID
	Compact       Kind = "compact"        // the conversation is about to be shortened, or was
	Permission    Kind = "permission"     // the client asks whether a tool may run
	Notification  Kind = "notification"   // Message
	Moved         Kind = "moved"          // the session's directories changed
	Rewind        Kind = "rewind"         // the conversation was cut inside the client: Entry
	Other         Kind = "other"          // known, and of no interest
	Unknown       Kind = "unknown"        // not known to us
)

// Event is what a hook told us, in neutral words. Fields that the client did
// not send are empty.
type Event struct {
	Agent   string
	Name    string // as the client calls it
	Kind    Kind
	Session string
	Parent  string // session that this one belongs to
	Turn    string // one per prompt

	Subagent     string // who acts, when it is not the main agent
	SubagentType string
	Spawned      string // subagent or child session that the call started

	Tool       string
	CallID     string // pairs before with after; unknown at Gemini
	ToolInput  json.RawMessage
	ToolOutput json.RawMessage
	Command    string   // what a shell tool runs
	Server     string   // MCP server that the tool is of; empty for one of the client's own
	ServerTool string   // what the server calls it
	Output     string   // what the tool said, as text
	Exit       *int     // 0 for success; nil where the client does not tell, or it is not over
	Paths      []string // files that the tool names, as it names them
	Calls      []Call   // of a batch

	CWD           string   // where the tool runs; follows the agent's cd
	Roots         []string // directories of the workspace, where the client tells
	Transcript    string
	SubTranscript string // of the subagent

	Prompt     string
	Message    string // the agent's last words
	Source     string // of a start: startup, resume, clear, compact, fork
	Reason     string // of an end
	Model      string
	Permission string // mode
	Entry      string // in the conversation, where the event has one

	Background  bool     // the call goes on after its after event
	Running     []string // background work that goes on after the turn
	Denied      bool
	Interrupted bool
	Error       string

	Raw json.RawMessage
}

// Call is one of the calls of a batch.
type Call struct {
	ID     string
	Tool   string
	Input  json.RawMessage
	Output json.RawMessage
}

// ErrPayload: what the hook got is not a JSON object. There is nothing to
// record; the agent must not notice.
var ErrPayload = errors.New("hook payload is not a JSON object")

// Decode reads what a client sent to a hook. Event is the client's name for
// it; when empty, the payload's own. Any JSON object is an Event, if need be
// one of the kind [Unknown]. It fails with [ErrUnknown] or [ErrPayload].
func Decode(agent, event string, payload []byte) (Event, error) {
	c, err := named(agent)
	if err != nil {
		return Event{}, err
	}
	o, err := parseObject(payload)
	if err != nil {
		return Event{}, fmt.Errorf("%s %s: %w", agent, event, err)
	}
	e := c.decode(event, o)
	if e.Agent == "" {
		e.Agent = c.Name
	}
	if e.Kind == "" {
		e.Kind = Unknown
	}
	e.Raw = payload
	return e, nil
}
