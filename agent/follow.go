package agent

// Followed is a conversation that was read on.
type Followed struct {
	Leaf string // its last entry now
	// Straight tells that what was written since goes on from where the
	// conversation stood. Where it is false, look at all of the transcript: a
	// client may have left entries aside, or gone back to an earlier one.
	Straight bool
}

// Follow tells where a conversation stands after more of its transcript was
// read. Leaf is where it stood before; empty at the beginning of a transcript.
// It fails with ErrUnsupported where the client keeps no such file.
func Follow(agent, leaf string, more []Entry) (Followed, error) {
	rec, err := recordOf(agent)
	if err != nil {
		return Followed{}, err
	}
	return rec.follow(leaf, more), nil
}

// followList is for a transcript that is a list: what comes last is where it
// stands, unless a line says that it goes on from elsewhere.
func followList(leaf string, more []Entry) Followed {
	f := Followed{Leaf: leaf, Straight: true}
	for _, e := range more {
		switch {
		case e.Kind == Cut, e.Base != nil:
			f.Straight = false
		case e.Kind != Meta && e.ID != "":
			f.Leaf = e.ID
		}
	}
	return f
}

// followTree is for a transcript that is a tree: the chain of the newest entry
// leads to where the conversation stood, or it does not.
func followTree(leaf string, more []Entry) Followed {
	last := newest(more)
	if last == "" {
		return Followed{Leaf: leaf, Straight: true}
	}
	at, seen := byID(more), map[string]bool{}
	id := last
	for !seen[id] {
		i, ok := at[id]
		if !ok {
			break
		}
		seen[id], id = true, more[i].Parent
	}
	return Followed{Leaf: last, Straight: id == leaf}
}
