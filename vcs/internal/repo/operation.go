package repo

import (
	"bytes"
	"path/filepath"
)

// Operation names what git is in the middle of in this worktree: "merge",
// "rebase", "am", "cherry-pick", "revert" or "bisect"; "" when nothing. Of
// several, the one that owns the worktree's content is named: a bisection
// only waits.
func (r *Repo) Operation() string {
	has := func(name string) bool { return exists(filepath.Join(r.GitDir, name)) }
	switch {
	case has("MERGE_HEAD"):
		return "merge"
	case has("rebase-apply/applying"):
		return "am"
	case has("rebase-apply"), has("rebase-merge"):
		return "rebase"
	case has("CHERRY_PICK_HEAD"):
		return "cherry-pick"
	case has("REVERT_HEAD"):
		return "revert"
	case has("sequencer/todo"):
		return r.sequence()
	case has("BISECT_LOG"):
		return "bisect"
	}
	return ""
}

// sequence tells which command left a to-do list: between two of its commits
// there is nothing else to see.
func (r *Repo) sequence() string {
	data, err := readSmall(filepath.Join(r.GitDir, "sequencer", "todo"))
	if err == nil && bytes.HasPrefix(bytes.TrimLeft(data, " \t\n"), []byte("revert")) {
		return "revert"
	}
	return "cherry-pick"
}
