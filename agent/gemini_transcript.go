package agent

var geminiRecord = record{entry: geminiEntry, live: geminiLive, follow: followList}

// geminiEntry: a chat of Gemini CLI is a log. A line with an id seen before
// replaces the earlier one, and a line can drop others.
func geminiEntry(o object) Entry {
	if target := o.str("$rewindTo"); target != "" {
		return Entry{Kind: Cut, Target: target}
	}
	if set := o.sub("$set").objects("messages"); len(set) > 0 {
		return Entry{Kind: Aside, ID: set[len(set)-1].str("id")}
	}
	e := Entry{ID: o.str("id"), Kind: Meta, Text: o.str("content")}
	for _, part := range o.objects("content") {
		e.Text = orElse(e.Text, part.str("text"))
		if id := part.sub("functionResponse").str("id"); id != "" {
			e.Calls = append(e.Calls, id)
		}
	}
	switch o.str("type") {
	case "user":
		e.Kind = Said
		if len(e.Calls) > 0 {
			e.Kind = Came
		}
	case "gemini":
		e.Kind, e.Answer = Message, e.ID
		for _, c := range o.objects("toolCalls") {
			e.Kind, e.Calls = Called, append(e.Calls, c.str("id"))
			e.Does = append(e.Does, CallKey(c.str("name"), c.raw("args")))
		}
	}
	return e
}

func geminiLive(entries []Entry) []Entry {
	var live []Entry
	at := map[string]int{}
	for _, e := range entries {
		i, known := at[e.ID]
		switch {
		case e.Kind == Cut:
			if i, ok := at[e.Target]; ok {
				for _, dropped := range live[i:] {
					delete(at, dropped.ID)
				}
				live = live[:i]
			}
		case e.Kind == Meta || e.ID == "":
		case known && e.Kind == Aside: // a resume writes the whole list anew: each stays where it was said
		case known:
			live[i] = e
		default:
			at[e.ID] = len(live)
			live = append(live, e)
		}
	}
	return live
}
