package checkpoint

import (
	"strings"

	"github.com/retcon-dev/retcon/vcs"
)

// Shown leaves of a difference what a person would call a change, in the same
// order. Not so called is a directory that came or went together with something
// in it, and what is ignored and was never captured.
func Shown(changes []vcs.FileChange) []vcs.FileChange {
	silent := func(s vcs.State) bool { return s.Kind == vcs.KindAbsent || s.Kind == vcs.KindIgnored }
	dir := func(s vcs.State) bool { return s.Kind == vcs.KindDir }
	absent := func(s vcs.State) bool { return s.Kind == vcs.KindAbsent }
	var out []vcs.FileChange
	// From the end, a directory comes after what is in it: in byte order "a/b"
	// may stand behind "a-b", but always behind "a".
	holds := make(map[string]bool)
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		if silent(c.Old) && silent(c.New) {
			continue
		}
		if (dir(c.Old) && absent(c.New) || absent(c.Old) && dir(c.New)) && holds[c.Path] {
			continue
		}
		for dir := parent(c.Path); dir != "" && !holds[dir]; dir = parent(dir) {
			holds[dir] = true
		}
		out = append(out, c)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }
