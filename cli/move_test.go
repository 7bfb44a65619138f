package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"c1": "c1", "r1@before": "r1@before", "": "''", "~start": "'~start'", "two words": "'two words'",
		"it's": `'it'\''s'`, "$HOME": "'$HOME'", "a;b": "'a;b'", "über": "'über'", "-1": "-1",
	} {
		assert.Equal(t, want, quoted(in), in)
	}
}

// What is offered to be pasted is the line as it was, and the flag.
func TestAgain(t *testing.T) {
	for _, test := range []struct {
		line []string
		want string
	}{
		{[]string{"restore", "c1"}, "retcon restore c1 --yes"},
		{[]string{"restore", "c1", "--", "-x"}, "retcon restore c1 --yes -- -x"},
		{[]string{"-C", "my dir", "undo"}, "retcon -C 'my dir' undo --yes"},
	} {
		c := &console{line: test.line}
		assert.Equal(t, test.want, c.again("--yes"))
	}
}

func TestLooksLikeRef(t *testing.T) {
	for word, want := range map[string]bool{
		"c1": true, "c": false, "c1x": false, "r3": true, "r3@before": true, "-1": true, "last": true, "~x": true,
		"start": false, "main.go": false, "c1.go": false,
	} {
		assert.Equal(t, want, looksLikeRef(word), word)
	}
}

// A directory that comes or goes together with what is in it is not counted.
func TestImpliedDirectories(t *testing.T) {
	file, absent, dir := retcon.State{Kind: retcon.KindFile, Mode: 0o644}, retcon.State{Kind: retcon.KindAbsent}, retcon.State{Kind: retcon.KindDir, Mode: 0o755}
	step := func(path, action string, old, new retcon.State) timeline.Step {
		return timeline.Step{FileChange: retcon.FileChange{Path: path, Old: old, New: new}, Action: action}
	}
	m := newMoved(&timeline.Result{Verb: "restore", Op: 1, Plan: &timeline.Plan{Verb: "restore", Target: "c1", Changes: []timeline.Step{
		step("empty", timeline.Mkdir, absent, dir),
		step("gone", timeline.Rmdir, dir, absent),
		step("gone-x", timeline.Delete, file, absent),
		step("gone/a", timeline.Delete, file, absent),
		step("mode", timeline.Chmod, file, retcon.State{Kind: retcon.KindFile, Mode: 0o755}),
	}}})
	assert.Equal(t, totals{Added: 1, Changed: 1, Removed: 2}, m.Totals)
	assert.Len(t, m.Changes, 5, "a program is told of all")
	var out bytes.Buffer
	m.Text(&page{w: &out})
	assert.Equal(t, "op 1  restored c1: 1 added, 1 changed, 2 removed\n  + empty  (dir)\n  - gone-x\n  - gone/a\n  ~ mode  (mode 0644 -> 0755)\n", out.String())
}

func TestLongPlansAreCut(t *testing.T) {
	p := &timeline.Plan{Verb: "restore", Target: "c1"}
	for i := range shown + 5 {
		p.Changes = append(p.Changes, timeline.Step{Action: timeline.Delete, FileChange: retcon.FileChange{
			Path: string(rune('a' + i)), Old: retcon.State{Kind: retcon.KindFile}, New: retcon.State{Kind: retcon.KindAbsent},
		}})
	}
	var out bytes.Buffer
	newMoved(&timeline.Result{Verb: "restore", Op: 7, Plan: p}).Text(&page{w: &out})
	assert.Contains(t, out.String(), "\n  and 5 more: retcon op show 7\n")
	out.Reset()
	newMoved(&timeline.Result{Verb: "restore", DryRun: true, Plan: p}).Text(&page{w: &out})
	assert.NotContains(t, out.String(), "more")
}

// A store is found from below it, and from a linked worktree, without making one.
func TestHasStore(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"plain/.retcon/store.git", "plain/sub", "repo/.git/retcon", "repo/sub", "fresh/.git", "wt", "repo/.git/worktrees/wt"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "wt/.git"), []byte("gitdir: "+dir+"/repo/.git/worktrees/wt\n"), 0o600))
	for at, want := range map[string]bool{"plain": true, "plain/sub": true, "repo": true, "repo/sub": true, "wt": true, "fresh": false, ".": false} {
		c := &console{Env: Env{Dir: filepath.Join(dir, at)}}
		assert.Equal(t, want, c.hasStore(), at)
	}
	assert.False(t, (&console{}).hasStore())
}
