package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Answer is what a client is told in reply to an event. The zero Answer says
// nothing: the agent goes on as if we were not there.
type Answer struct {
	Deny   bool   // what is about to happen must not
	Reason string // for the model, word for word
	Note   string // for the model; a denial carries it behind its reason
}

// form is how a client is told something in reply to one event; nil when it
// cannot be.
type form struct {
	deny func(event, reason string) any
	note func(event, text string) any
}

// Encode writes the answer as the client's hook prints it: nothing at all when
// there is nothing to say, or no way to say it in reply to this event (ask
// [Hears] first where that matters). It never writes a field that the client
// does not know.
func Encode(agent, event string, a Answer) ([]byte, error) {
	c, err := named(agent)
	if err != nil {
		return nil, err
	}
	f := c.answers[event]
	switch {
	case a.Deny && f.deny != nil:
		return encoded(f.deny(event, a.text())), nil
	case a.Note != "" && f.note != nil:
		return encoded(f.note(event, a.Note)), nil
	}
	return nil, nil
}

// Hears tells what can be said in reply to an event.
func Hears(agent, event string) (deny, note bool, err error) {
	c, err := named(agent)
	if err != nil {
		return false, false, err
	}
	f := c.answers[event]
	return f.deny != nil, f.note != nil, nil
}

func (a Answer) text() string {
	switch {
	case a.Note == "":
		return a.Reason
	case a.Reason == "":
		return a.Note
	}
	return fmt.Sprintf("%s\n\n%s", a.Reason, a.Note)
}

func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("BUG: an answer that is not JSON: " + err.Error())
	}
	return b.Bytes()
}

// encodedLine is a value without a newline, < and > as they are.
func encodedLine(v any) []byte { return bytes.TrimSuffix(encoded(v), []byte("\n")) }

type fields map[string]any

// The forms that Claude Code invented and Codex took over.

func specific(event string, more fields) any {
	more["hookEventName"] = event
	return fields{"hookSpecificOutput": more}
}

func hookNote(event, text string) any { return specific(event, fields{"additionalContext": text}) }

func hookDeny(event, reason string) any {
	return specific(event, fields{"permissionDecision": "deny", "permissionDecisionReason": reason})
}

func permissionDeny(event, reason string) any {
	return specific(event, fields{"decision": fields{"behavior": "deny", "message": reason}})
}

func block(_, reason string) any { return fields{"decision": "block", "reason": reason} }

// deny is Gemini CLI's word for it.
func deny(_, reason string) any { return fields{"decision": "deny", "reason": reason} }
