package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Cutting is where a conversation can be continued from: everything up to and
// with Keep stays.
type Cutting struct {
	Keep   Entry // the zero Entry: nothing stays
	Offset int64 // where what stays ends, in a file that is a list
	// Exact is false when the client knows no such place, and the nearest one
	// outside was taken: calls made in one answer stand or fall together.
	Exact bool
}

// NoCutError: the conversation does not know the call or prompt. Nested calls
// have ids of their own; what a client has not written yet is not there
// either. Take the cut of the prompt.
type NoCutError struct{ Call, Prompt string }

func (e *NoCutError) Error() string {
	if e.Call != "" {
		return fmt.Sprintf("call %s is not in the conversation", e.Call)
	}
	return fmt.Sprintf("prompt %s is not in the conversation", e.Prompt)
}

// CutAfter finds the place after a call: behind its result, and behind those
// of the calls that were made with it.
func CutAfter(agent string, entries []Entry, call string) (Cutting, error) {
	live, at, err := liveCall(agent, entries, call)
	if err != nil {
		return Cutting{}, err
	}
	batch := calls(live[answerOf(live, at):answerEnd(live, at)])
	last, left := at, len(batch)
	for i := at + 1; i < len(live) && left > 0; i++ {
		if live[i].Kind != Came {
			continue
		}
		for _, c := range live[i].Calls {
			if slices.Contains(batch, c) {
				last, left = i, left-1
			}
		}
	}
	return cutting(live, last, len(batch) == 1), nil
}

// CutBefore finds the place before a call: in front of the answer that made
// it.
func CutBefore(agent string, entries []Entry, call string) (Cutting, error) {
	live, at, err := liveCall(agent, entries, call)
	if err != nil {
		return Cutting{}, err
	}
	first := answerOf(live, at)
	return cutting(live, first-1, calls(live[first : at+1])[0] == call), nil
}

// CutBeforePrompt finds the place before a prompt, by its own id or the one of
// its turn.
func CutBeforePrompt(agent string, entries []Entry, prompt string) (Cutting, error) {
	live, err := Live(agent, entries)
	if err != nil {
		return Cutting{}, err
	}
	at := slices.IndexFunc(live, func(e Entry) bool { return e.Kind == Said && (e.ID == prompt || e.Turn == prompt) })
	if at < 0 {
		return Cutting{}, &NoCutError{Prompt: prompt}
	}
	start := live[at].Offset
	if turn := live[at].Turn; turn != "" { // a client may have written more about it, and before it
		first := slices.IndexFunc(entries, func(e Entry) bool { return e.Turn == turn })
		start = min(start, entries[first].Offset)
	}
	kept := slices.IndexFunc(live, func(e Entry) bool { return e.End() > start })
	c := cutting(live, kept-1, true)
	if kept > 0 {
		c.Offset = start
	}
	return c, nil
}

// CallKey is what a call is known by of which a hook tells no id: what it is to
// do.
func CallKey(tool string, input json.RawMessage) string {
	does := bytes.NewBufferString(tool + "\x00")
	if err := json.Compact(does, input); err != nil { // a client that sends none, or no JSON
		does.Write(input)
	}
	sum := sha256.Sum256(does.Bytes())
	return "h" + hex.EncodeToString(sum[:6])
}

// CallsDoing are the ids of the calls in the conversation that do the same, in
// their order.
func CallsDoing(agent string, entries []Entry, key string) ([]string, error) {
	live, err := Live(agent, entries)
	var ids []string
	for _, e := range live {
		for i, does := range e.Does {
			if does == key {
				ids = append(ids, e.Calls[i])
			}
		}
	}
	return ids, err
}

func liveCall(agent string, entries []Entry, call string) ([]Entry, int, error) {
	live, err := Live(agent, entries)
	if err != nil {
		return nil, 0, err
	}
	at := slices.IndexFunc(live, func(e Entry) bool { return e.Kind == Called && slices.Contains(e.Calls, call) })
	if at < 0 {
		return nil, 0, &NoCutError{Call: call}
	}
	return live, at, nil
}

func cutting(live []Entry, last int, exact bool) Cutting {
	c := Cutting{Exact: exact}
	if last >= 0 {
		c.Keep, c.Offset = live[last], live[last].End()
	}
	return c
}

// answerOf is where the answer begins that has a call in it: what the model
// said in one go, which a client may have written on several lines.
func answerOf(live []Entry, at int) int {
	for at > 0 && sameAnswer(live[at-1], live[at]) {
		at--
	}
	return at
}

// answerEnd is where it ends. Results that came meanwhile may stand inside.
func answerEnd(live []Entry, at int) int {
	end := at + 1
	for i := end; i < len(live); i++ {
		switch {
		case sameAnswer(live[at], live[i]):
			end = i + 1
		case live[i].Kind != Came || live[at].Answer == "":
			return end
		}
	}
	return end
}

// sameAnswer: where a client does not number answers, what the model says in
// a row is one.
func sameAnswer(a, b Entry) bool {
	said := func(e Entry) bool { return e.Kind == Message || e.Kind == Called }
	return said(a) && said(b) && a.Answer == b.Answer
}

func calls(entries []Entry) (all []string) {
	for _, e := range entries {
		if e.Kind == Called {
			all = append(all, e.Calls...)
		}
	}
	return all
}
