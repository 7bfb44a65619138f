package cli

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

// The tour of the README prints what the README says: every line behind a $ is
// run, in order, and what follows it up to the next is what comes out.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, tour, found := strings.Cut(string(text), "\n## Five minutes\n")
	require.True(t, found)
	tour, _, _ = strings.Cut(tour, "\n## ")

	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	work, bin := filepath.Join(dir, "tour"), filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(work, 0o700))
	require.NoError(t, os.Mkdir(bin, 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "retcon"))) // see TestMain
	require.NoError(t, os.WriteFile(filepath.Join(work, "main.txt"), []byte("say hello\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(work, "notes.txt"), []byte("keep me\n"), 0o644))

	steps := 0
	for i, block := range strings.Split(tour, "```\n") {
		if i%2 == 0 {
			continue // between the blocks
		}
		for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = work
			cmd.Env = []string{"GORACE=atexit_sleep_ms=0", "PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home")}
			out, _ := cmd.CombinedOutput() // diff exits with 1
			got := strings.ReplaceAll(string(out), work, "/home/me/tour")
			assert.Equal(t, soon(strings.TrimRight(want, "\n")), soon(strings.TrimRight(got, "\n")), "$ %s", line)
			steps++
		}
	}
	assert.Greater(t, steps, 7)
}

// soon makes times of a slow machine those of a quick one.
func soon(text string) string {
	text = regexp.MustCompile(`\b\d+ s ago\b`).ReplaceAllString(text, "just now")
	return regexp.MustCompile(`  +`).ReplaceAllString(text, "  ")
}
