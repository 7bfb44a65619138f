package cli

import (
	"time"

	"github.com/retcon-dev/retcon"
)

// taken is a checkpoint as it is told. Lists of checkpoints hold the same, so
// that a program learns one shape.
type taken struct {
	Ref         string    `json:"ref"`
	Commit      string    `json:"commit"`
	Tree        string    `json:"tree"`
	Tier        string    `json:"tier"`
	Run         string    `json:"run"`
	Edge        string    `json:"edge"`
	Label       string    `json:"label"`
	Pinned      bool      `json:"pinned"`
	Note        string    `json:"note"`
	Actor       string    `json:"actor"`
	Created     time.Time `json:"created"`
	Files       int       `json:"files"`
	Changed     *int      `json:"changed"`
	Unchanged   bool      `json:"unchanged"`
	Partial     bool      `json:"partial"`
	NotCaptured []missing `json:"not_captured"`
	Special     []place   `json:"special"`
	Head        head      `json:"head"`
	Operation   string    `json:"git_operation"`
}

// missing is a path whose content is in no checkpoint, and why.
type missing struct {
	place
	Reason string `json:"reason"`
	Size   int64  `json:"size_bytes"`
}

// head is where the user's git stood.
type head struct {
	Ref string `json:"ref"`
	ID  string `json:"id"`
}

func newTaken(p *retcon.Checkpoint) taken {
	t := taken{
		Ref: p.Ref, Commit: p.Commit, Tree: p.Tree, Tier: p.Tier, Run: p.Run, Edge: p.Edge,
		Label: p.Label, Pinned: p.Pinned, Note: p.Note, Actor: p.Actor, Created: p.Created.UTC(),
		Files: p.Files, Unchanged: p.Unchanged, Partial: p.Partial,
		NotCaptured: newMissing(p.NotCaptured), Special: newPlaces(p.Special),
		Head: head{p.Head.Ref, p.Head.ID}, Operation: p.Operation,
	}
	if p.Changed >= 0 {
		t.Changed = &p.Changed
	}
	return t
}

func newMissing(all []retcon.Missing) []missing {
	told := make([]missing, 0, len(all))
	for _, m := range all {
		told = append(told, missing{newPlace(m.Path), m.Reason, m.Size})
	}
	return told
}

func newTakens(all []retcon.Checkpoint) []taken {
	told := make([]taken, 0, len(all))
	for i := range all {
		told = append(told, newTaken(&all[i]))
	}
	return told
}

// Text begins with the reference, alone on its line: ref=$(retcon checkpoint | head -n 1).
func (t taken) Text(p *page) {
	p.printf("%s\n%s", p.bold(t.Ref), count(t.Files, "file"))
	switch {
	case t.Unchanged:
		p.printf(", nothing changed")
	case t.Changed != nil:
		p.printf(", %s", count(*t.Changed, "path changed", "paths changed"))
	}
	if t.Label != "" {
		p.printf(", labelled %s", p.green(name(t.Label)))
	}
	if t.Pinned {
		p.printf(", pinned")
	}
	p.printf("\n")
	if t.Operation != "" {
		p.printf("git is in the middle of a %s\n", t.Operation)
	}
	for _, m := range t.NotCaptured {
		p.printf("%s %s: %s\n", p.yellow("not captured:"), name(m.Path), m.why())
	}
	for _, s := range t.Special {
		p.printf("%s %s: socket, FIFO or device\n", p.yellow("not captured:"), name(s.Path))
	}
}

func (m missing) why() string {
	switch m.Reason {
	case "size":
		return "too large, " + size(m.Size)
	case "changing":
		return "changed while it was read"
	case "reserved":
		return "a name that git keeps for itself"
	}
	return m.Reason
}

// row is a checkpoint as a line of a list.
func (t taken) row(p *page) []string {
	why := t.Tier
	switch {
	case t.Run != "" && t.Edge != "":
		why = t.Edge + " " + t.Run
	case t.Run != "":
		why += " " + t.Run
	}
	changed := ""
	switch {
	case t.Unchanged:
		changed = p.dim("nothing changed")
	case t.Changed != nil:
		changed = count(*t.Changed, "change")
	}
	var about string
	add := func(s string) {
		if about != "" {
			about += "  "
		}
		about += s
	}
	if t.Label != "" {
		add(p.green("~" + name(t.Label)))
	}
	if t.Pinned {
		add("pinned")
	}
	if t.Partial {
		add(p.yellow("partial"))
	}
	if t.Note != "" {
		add(clean(t.Note))
	}
	return []string{p.bold(t.Ref), p.ago(t.Created), why, changed, about}
}
