package cli

import (
	"fmt"

	"github.com/retcon-dev/retcon"
)

// state is what is at a path, on one side of a difference.
type state struct {
	Kind    string `json:"kind"`
	Mode    string `json:"mode"` // "0644", "" where there is none
	ID      string `json:"id"`   // git's blob id
	Reason  string `json:"reason,omitempty"`
	Size    int64  `json:"size_bytes,omitempty"`
	Ignored bool   `json:"ignored,omitempty"`
}

// change is one path that differs.
type change struct {
	place
	Change string `json:"change"` // added, removed, changed, mode or kind
	Old    state  `json:"old"`
	New    state  `json:"new"`
}

func newChange(f retcon.FileChange) change {
	d := change{place: newPlace(f.Path), Old: newState(f.Old), New: newState(f.New)}
	switch {
	case d.Old.Kind == retcon.KindAbsent:
		d.Change = "added"
	case d.New.Kind == retcon.KindAbsent:
		d.Change = "removed"
	case d.Old.Kind != d.New.Kind:
		d.Change = "kind"
	case d.Old.ID == d.New.ID && d.Old.Mode != d.New.Mode:
		d.Change = "mode"
	default:
		d.Change = "changed"
	}
	return d
}

func newChanges(all []retcon.FileChange) (told []change, sum totals) {
	told = make([]change, 0, len(all))
	for _, f := range all {
		d := newChange(f)
		told = append(told, d)
		sum.add(d.Change)
	}
	return told, sum
}

func newState(s retcon.State) state {
	told := state{Kind: s.Kind, ID: s.ID, Reason: s.Reason, Size: s.Size, Ignored: s.Ignored}
	if mode := s.Mode & 0o7777; mode != 0 {
		told.Mode = fmt.Sprintf("%04o", mode)
	}
	return told
}

// sign stands before a path in every list of differences, so that colour is not
// the only carrier of what happened to it.
func (d change) sign(p *page) string {
	switch d.Change {
	case "added":
		return p.green("+")
	case "removed":
		return p.red("-")
	}
	return p.yellow("~")
}

// detail says what cannot be seen from the sign.
func (d change) detail() string {
	what := func(s state) string {
		if s.Kind == retcon.KindUnknown {
			return "not captured"
		}
		return s.Kind
	}
	switch d.Change {
	case "mode":
		return fmt.Sprintf("mode %s -> %s", d.Old.Mode, d.New.Mode)
	case "kind":
		return fmt.Sprintf("%s -> %s", what(d.Old), what(d.New))
	case "added", "removed":
		s := d.New
		if d.Change == "removed" {
			s = d.Old
		}
		if s.Kind != retcon.KindFile {
			return what(s)
		}
	default:
		if d.Old.Kind != retcon.KindFile {
			return what(d.New)
		}
		if d.Old.Mode != d.New.Mode {
			return fmt.Sprintf("mode %s -> %s", d.Old.Mode, d.New.Mode)
		}
	}
	return ""
}

// line is the difference as a line of a list.
func (d change) line(p *page) {
	p.printf("%s %s", d.sign(p), name(d.Path))
	if detail := d.detail(); detail != "" {
		p.printf("  %s", p.dim("("+detail+")"))
	}
	p.printf("\n")
}

// totals counts differences by what a reader asks first.
type totals struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

func (t *totals) add(what string) {
	switch what {
	case "added":
		t.Added++
	case "removed":
		t.Removed++
	default:
		t.Changed++
	}
}

func (t totals) all() int { return t.Added + t.Changed + t.Removed }

func (t totals) String() string {
	text := ""
	for _, part := range []struct {
		n    int
		what string
	}{{t.Added, "added"}, {t.Changed, "changed"}, {t.Removed, "removed"}} {
		if part.n == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", part.n, part.what)
	}
	return text
}
