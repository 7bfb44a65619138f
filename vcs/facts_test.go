package vcs

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What was packed comes out again, whatever bytes names are of; what is cut short,
// or something else, is refused.
func TestFactsPacked(t *testing.T) {
	name := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "name")) })
	names := rapid.Custom(func(t *rapid.T) []string {
		if l := rapid.SliceOf(name).Draw(t, "names"); len(l) > 0 {
			return l
		}
		return nil
	})
	made := rapid.Custom(func(t *rapid.T) facts {
		f := facts{
			Root: [2]uint64{rapid.Uint64().Draw(t, "dev"), 2}, Store: name.Draw(t, "store"), Rules: "rules",
			Generation: rapid.Uint64().Draw(t, "generation"), Packs: "packs", PackTime: rapid.Int64().Draw(t, "time"),
			Modes: modes{rapid.Uint32().Draw(t, "mode"), 1, 2}, Scan: 3, Boot: "boot", Commit: "commit",
		}
		if rapid.Bool().Draw(t, "capture") {
			f.Capture = &Capture{Commit: "c", Tree: "t", Head: Head{Ref: "r", ID: "i"}, Operation: "merge", Special: names.Draw(t, "special"), Nested: names.Draw(t, "nested")}
			for _, n := range names.Draw(t, "missing") {
				f.Capture.NotCaptured = append(f.Capture.NotCaptured, Missing{Path: n, Reason: "large", Size: int64(len(n)) - 2})
			}
		}
		g := &f.Git
		g.Head, g.Operation, g.Tree, g.Degraded, g.Imported = Head{Ref: name.Draw(t, "ref"), ID: "id"}, "rebase", "tree", "why", "imported"
		g.Signature.Size, g.Signature.Seconds, g.Signature.Nanos, g.Signature.Inode, g.Signature.Trailer[19] = 1, -2, 3, 4, 5
		g.Sparse, g.Links = rapid.Bool().Draw(t, "sparse"), rapid.Bool().Draw(t, "links")
		for _, n := range names.Draw(t, "extra") {
			g.Extra = append(g.Extra, indexExtra{Path: []byte(n), Stage: 3, Mode: 0o100644, ID: "x", Flags: 128})
		}
		return f
	})
	rapid.Check(t, func(t *rapid.T) {
		f := made.Draw(t, "facts")
		b := pack(&f)
		var again facts
		require.True(t, unpack(b, &again))
		require.Equal(t, f, again)
		var other facts
		require.False(t, unpack(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")], &other))
		require.False(t, unpack(append(b, 0), &other))
		_ = unpack(rapid.SliceOf(rapid.Byte()).Draw(t, "noise"), &other)
	})
}
