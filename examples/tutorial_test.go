package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// translator is what the agent of the tutorial does.
const translator = `
language=${PROMPT#*into }
language=${language%% *}
sed "s/It begins/($language) It begins/" 1.md >"1.$language.md"
echo done
`

// The tutorial prints what it says: its files are written, the commands behind
// a $ are run in order, and what follows each up to the next is what comes out.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile("../docs/workflows.md")
	require.NoError(t, err)
	_, tour, found := strings.Cut(string(text), "\n## Tutorial\n")
	require.True(t, found)
	tour, _, _ = strings.Cut(tour, "\n## ")

	dir := t.TempDir()
	here, err := filepath.Abs("testdata")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	work, bin := filepath.Join(dir, "work"), filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(work, 0o700))
	require.NoError(t, os.Mkdir(bin, 0o700))
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "retcon"))) // see TestMain
	script := filepath.Join(dir, "agent.sh")
	write := func(path, text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write(script, translator)
	write(filepath.Join(work, "1.md"), "# One\nIt begins.\n")
	write(filepath.Join(work, "2.md"), "# Two\nIt ends.\n")
	sh := func(line string) string {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = work
		cmd.Env = []string{"GORACE=atexit_sleep_ms=0", "PATH=" + bin + ":" + here + ":" + os.Getenv("PATH"),
			"HOME=" + filepath.Join(dir, "home"), "CLAUDE_SCRIPT=" + script}
		out, _ := cmd.CombinedOutput() // some are meant to fail
		return string(out)
	}
	sh("git init -q")

	steps := 0
	for i, block := range strings.Split(tour, "```") {
		if i%2 == 0 {
			continue // between the blocks
		}
		if source, ok := strings.CutPrefix(block, "python\n# "); ok {
			name, _, _ := strings.Cut(source, "\n")
			write(filepath.Join(work, name), "# "+source)
			continue
		}
		for _, step := range strings.Split(block, "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			assert.Equal(t, steady(want), steady(sh(line)), "$ %s", line)
			steps++
		}
	}
	assert.Greater(t, steps, 12)
}

// steady makes what differs from run to run the same: how long things took, how
// many frames branches have made that ended together.
func steady(text string) string {
	for _, one := range []struct{ pattern, with string }{
		{`\b[0-9.]+ (ms|s)\b`, "1 ms"},
		{`\b1 ms ago\b`, "just now"},
		{`at frame \d+`, "at frame N"},
		{` +`, " "},
	} {
		text = regexp.MustCompile(one.pattern).ReplaceAllString(text, one.with)
	}
	return strings.TrimSpace(text)
}
