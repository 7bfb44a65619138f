package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
)

// Unknown is a count that could not be made.
const Unknown = -1

// Facts are what is kept of a capture beside its commit, to be shown without
// reading the store.
type Facts struct {
	Head        vcs.Head
	Operation   string
	Files       int
	Changed     int  // paths that differ from the checkpoint before; Unknown when there is none
	Unchanged   bool // it is the same commit as the checkpoint before
	NotCaptured []vcs.Missing
	Special     []string
	Nested      []string
	Left        int // paths that are not listed here, because there are too many; the commit knows them
}

// listed is how many paths of a kind are kept in a row.
const listed = 500

// Known returns the facts about a capture, compared with the commit of the
// checkpoint before, which may be "".
func Known(ctx context.Context, w *vcs.Worktree, found *vcs.Capture, previous vcs.Commit) Facts {
	f := factsOf(found)
	f.Changed = (&Recorder{Worktree: w}).changed(ctx, previous, found.Commit)
	f.Unchanged = previous == found.Commit
	return f
}

func factsOf(found *vcs.Capture) Facts {
	return Facts{Head: found.Head, Operation: found.Operation, Files: found.Stats.Files, Changed: Unknown,
		NotCaptured: found.NotCaptured, Special: found.Special, Nested: found.Nested}
}

// FactsOf returns what a row says of its capture.
func FactsOf(c ledger.Checkpoint) (Facts, error) {
	row := factsRow{Files: Unknown, Changed: Unknown} // a move notes less
	if err := json.Unmarshal([]byte(c.Stats), &row); err != nil {
		return Facts{}, fmt.Errorf("c%d: stats: %w", c.ID, err)
	}
	f := Facts{Head: row.Head, Operation: row.Operation, Files: row.Files, Changed: row.Changed, Unchanged: row.Unchanged,
		Special: texts(row.Special), Nested: texts(row.Nested), Left: row.Left}
	for _, m := range row.NotCaptured {
		f.NotCaptured = append(f.NotCaptured, vcs.Missing{Path: string(m.Path), Reason: m.Reason, Size: m.Size})
	}
	return f, nil
}

func (f Facts) encode() (string, error) {
	row := factsRow{Head: f.Head, Operation: f.Operation, Files: f.Files, Changed: f.Changed, Unchanged: f.Unchanged, Left: f.Left}
	missing, special, nested := cut(f.NotCaptured, &row.Left), cut(f.Special, &row.Left), cut(f.Nested, &row.Left)
	for _, m := range missing {
		row.NotCaptured = append(row.NotCaptured, missingRow{Path: name(m.Path), Reason: m.Reason, Size: m.Size})
	}
	row.Special, row.Nested = names(special), names(nested)
	b, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("stats: %w", err)
	}
	return string(b), nil
}

func cut[T any](all []T, left *int) []T {
	if len(all) <= listed {
		return all
	}
	*left += len(all) - listed
	return all[:listed]
}

// factsRow is Facts in a row's stats. Its names are in files that exist.
type factsRow struct {
	Head        vcs.Head     `json:"head"`
	Operation   string       `json:"operation,omitempty"`
	Files       int          `json:"files"`
	Changed     int          `json:"changed"`
	Unchanged   bool         `json:"unchanged,omitempty"`
	NotCaptured []missingRow `json:"not_captured,omitempty"`
	Special     []name       `json:"special,omitempty"`
	Nested      []name       `json:"nested,omitempty"`
	Left        int          `json:"left,omitempty"`
}

type missingRow struct {
	Path   name   `json:"path"`
	Reason string `json:"reason"`
	Size   int64  `json:"size,omitempty"`
}

// name is bytes: a string in JSON when it can be one, else an object.
type name string

type nameBytes struct {
	Bytes []byte `json:"bytes"`
}

func (n name) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return json.Marshal(string(n))
	}
	return json.Marshal(nameBytes{[]byte(n)})
}

func (n *name) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var v nameBytes
		err := json.Unmarshal(b, &v)
		*n = name(v.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(n))
}

func names(paths []string) (out []name) {
	for _, p := range paths {
		out = append(out, name(p))
	}
	return out
}

func texts(paths []name) (out []string) {
	for _, p := range paths {
		out = append(out, string(p))
	}
	return out
}
