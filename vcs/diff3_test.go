package vcs

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// triple is a random base and two texts made from it.
func triple(rng *rand.Rand, words int) (base, ours, theirs string) {
	word := func() string {
		w := fmt.Sprintf("w%d\n", rng.Intn(words))
		if rng.Intn(6) == 0 {
			w = "\n"
		}
		return w
	}
	var text []string
	for range rng.Intn(30) {
		text = append(text, word())
	}
	edit := func() string {
		out := append([]string(nil), text...)
		for range rng.Intn(4) {
			at := rng.Intn(len(out) + 1)
			to := min(at+rng.Intn(4), len(out))
			var in []string
			for range rng.Intn(4) {
				in = append(in, word())
			}
			out = append(append(append([]string(nil), out[:at]...), in...), out[to:]...)
		}
		s := strings.Join(out, "")
		if rng.Intn(8) == 0 {
			s = strings.TrimSuffix(s, "\n")
		}
		return s
	}
	base, ours, theirs = strings.Join(text, ""), edit(), edit()
	if rng.Intn(8) == 0 {
		base = strings.TrimSuffix(base, "\n")
	}
	return base, ours, theirs
}

// gitMerge is what git merge-file makes of a triple.
func gitMerge(t testing.TB, dir, base, ours, theirs string) (text string, clean bool) {
	t.Helper()
	for name, s := range map[string]string{"base": base, "ours": ours, "theirs": theirs} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(s), 0o600))
	}
	cmd := exec.Command("git", "merge-file", "-p", "-q", "ours", "base", "theirs")
	cmd.Dir, cmd.Env = dir, gitEnv()
	out, err := cmd.Output()
	if err != nil {
		require.Positive(t, cmd.ProcessState.ExitCode(), "%v", err)
		require.Less(t, cmd.ProcessState.ExitCode(), 128, "%v", err)
	}
	return string(out), err == nil
}

// TestMergeTextAsGit merges random texts, of few words, of more and of many: the
// same text, or a conflict in both.
func TestMergeTextAsGit(t *testing.T) {
	rounds := 420
	if testing.Short() {
		rounds = 90
	}
	dir := t.TempDir()
	clean := 0
	for seed := range rounds {
		rng := rand.New(rand.NewSource(int64(seed)))
		base, ours, theirs := triple(rng, []int{3, 12, 200}[seed%3])
		want, wantClean := gitMerge(t, dir, base, ours, theirs)
		got, gotClean := mergeText([]byte(base), []byte(ours), []byte(theirs), [2]string{})
		require.Equal(t, wantClean, gotClean, "seed %d\n%q\n%q\n%q", seed, base, ours, theirs)
		if wantClean {
			clean++
			require.Equal(t, want, string(got), "seed %d\n%q\n%q\n%q", seed, base, ours, theirs)
		}
	}
	assert.Greater(t, clean, rounds/4)
	assert.Less(t, clean, rounds*3/4)
}

// TestGitEdits holds that the edits of random texts make the one into the other,
// and those of long texts too, in bounded time.
func TestGitEdits(t *testing.T) {
	apply := func(a, b [][]byte, edits []edit) (out [][]byte) {
		at := 0
		for _, e := range edits {
			out = append(append(out, a[at:e.oldFrom]...), b[e.newFrom:e.newTo]...)
			at = e.oldTo
		}
		return append(out, a[at:]...)
	}
	for seed := range 500 {
		rng := rand.New(rand.NewSource(int64(seed)))
		base, ours, _ := triple(rng, []int{3, 12, 200}[seed%3])
		a, b := lines([]byte(base)), lines([]byte(ours))
		edits := gitEdits(a, b)
		require.Equal(t, ours, string(bytes.Join(apply(a, b, edits), nil)), "seed %d", seed)
		for i := 1; i < len(edits); i++ {
			require.Greater(t, edits[i].oldFrom, edits[i-1].oldTo, "seed %d: they touch", seed)
		}
	}
	rng := rand.New(rand.NewSource(1))
	long := func() (ls [][]byte) {
		for range 20000 {
			ls = append(ls, fmt.Appendf(nil, "%d\n", rng.Intn(9000)))
		}
		return ls
	}
	a, b := long(), long()
	assert.Equal(t, bytes.Join(b, nil), bytes.Join(apply(a, b, gitEdits(a, b)), nil))
}
