package agent

import (
	"slices"
	"strings"
)

var codexRecord = record{entry: codexEntry, live: codexLive, follow: followList, exit: codexExit}

// codexExit: a line of its own says how a command ended.
func codexExit(o object) (call string, exit *int) {
	p := o.sub("payload")
	if item := p.sub("item"); p.str("type") == "item_completed" && item.str("type") == "CommandExecution" {
		return item.str("id"), item.exit("exit_code")
	}
	return "", nil
}

// codexEntry: a rollout of Codex is a list. What the model gets are the
// response items; the rest tells about them.
func codexEntry(o object) Entry {
	p := o.sub("payload")
	e := Entry{ID: p.str("id"), Turn: p.str("turn_id"), Kind: Meta}
	switch o.str("type") {
	case "session_meta":
		if base := p.sub("history_base"); base["end_byte_offset"] != nil {
			e.Base = &Base{Session: base.str("thread_id"), Offset: int64(base.number("end_byte_offset"))}
		}
		return e
	case "response_item":
	default:
		return e
	}
	about := p.sub("internal_chat_message_metadata_passthrough")
	e.Turn = orElse(e.Turn, about.str("turn_id"))
	switch kind := p.str("type"); {
	case kind == "message":
		e.Kind = codexMessage(p, about)
		for _, c := range p.objects("content") {
			e.Text = orElse(e.Text, c.str("text"))
		}
	case strings.HasSuffix(kind, "_output"):
		e.Kind, e.Calls = Came, p.paths("call_id")
	case strings.HasSuffix(kind, "_call"):
		e.Kind, e.Calls = Called, p.paths("call_id")
	case kind == "reasoning":
		e.Kind = Message
	default:
		e.Kind = Aside
	}
	return e
}

func codexMessage(p, about object) EntryKind {
	kinds := about.strings("content_item_kinds")
	switch {
	case p.str("role") == "assistant":
		return Message
	case p.str("role") != "user":
		return Aside
	case len(kinds) > 0 && !slices.Contains(kinds, "user.text"):
		return Aside
	}
	for _, c := range p.objects("content") {
		if strings.HasPrefix(c.str("text"), "<environment_context>") {
			return Aside
		}
	}
	return Said
}

func codexLive(entries []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Kind == Meta })
}
