package agent

var claudeRecord = record{entry: claudeEntry, live: claudeLive, follow: followTree}

// claudeEntry: a transcript of Claude Code is a tree of uuid and parentUuid,
// with one line for each block of content.
func claudeEntry(o object) Entry {
	e := Entry{
		ID: o.str("uuid"), Parent: o.str("parentUuid", "logicalParentUuid"), Turn: o.str("promptId"), Side: o.yes("isSidechain"), Kind: Meta,
	}
	if e.ID == "" {
		return e
	}
	message := o.sub("message")
	e.Text = message.str("content")
	calls, text := claudeBlocks(message.objects("content"))
	e.Calls, e.Text = calls, orElse(e.Text, text)
	switch o.str("type") {
	case "assistant":
		e.Kind, e.Answer = Message, message.str("id")
		if len(calls) > 0 {
			e.Kind = Called
		}
	case "user":
		switch {
		case len(calls) > 0:
			e.Kind = Came
		case o.yes("isMeta") || o.yes("isCompactSummary"):
			e.Kind = Aside
		default:
			e.Kind = Said
		}
	case "system", "attachment":
		e.Kind = Aside
	}
	return e
}

func claudeBlocks(blocks []object) (calls []string, text string) {
	for _, b := range blocks {
		switch b.str("type") {
		case "text":
			text = orElse(text, b.str("text"))
		case "tool_use":
			calls = append(calls, b.str("id"))
		case "tool_result":
			calls = append(calls, b.str("tool_use_id"))
		}
	}
	return calls, text
}

// claudeLive follows the newest entry to the root. The results of calls made
// in one answer hang off their calls, and all but one of them off the chain.
func claudeLive(entries []Entry) []Entry {
	at := byID(entries)
	chain := map[string]bool{}
	for id := newest(entries); id != "" && !chain[id]; {
		chain[id] = true
		id = parentOf(entries, at, id)
	}
	var live []Entry
	for _, e := range entries {
		if inTree(e) && (chain[e.ID] || e.Kind == Came && chain[e.Parent]) {
			live = append(live, e)
		}
	}
	return live
}

func inTree(e Entry) bool { return e.ID != "" && e.Kind != Meta && !e.Side }

func byID(entries []Entry) map[string]int {
	at := map[string]int{}
	for i, e := range entries {
		if inTree(e) {
			at[e.ID] = i
		}
	}
	return at
}

func parentOf(entries []Entry, at map[string]int, id string) string {
	i, ok := at[id]
	if !ok {
		return ""
	}
	return entries[i].Parent
}

func newest(entries []Entry) string {
	for i := len(entries) - 1; i >= 0; i-- {
		if inTree(entries[i]) {
			return entries[i].ID
		}
	}
	return ""
}
