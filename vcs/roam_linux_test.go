package vcs

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A scan of many directories changes nobody's working directory, as the process
// sees it, as its children do, and as others see the process.
func TestRoamingStaysInside(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Create: true})
	for i := range 2 * manyDirs {
		write(t, dir, fmt.Sprintf("d%03d/f", i), fmt.Sprint(i))
	}
	capture(t, w)
	before, err := os.Getwd()
	require.NoError(t, err)
	for i := range 20 {
		write(t, dir, fmt.Sprintf("d%03d/f", i), "again")
		c := capture(t, w)
		assert.Equal(t, "again", content(t, w, c.Commit, fmt.Sprintf("d%03d/f", i)))
		assert.GreaterOrEqual(t, c.Stats.Stated, 2*manyDirs)
	}
	after, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, before, after)
	seen, err := os.Readlink("/proc/self/cwd")
	require.NoError(t, err)
	assert.Equal(t, before, seen)
	tasks, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, task := range tasks { // no thread that goes on is anywhere else
		if is, err := os.Readlink("/proc/self/task/" + task.Name() + "/cwd"); err == nil {
			assert.Equal(t, before, is)
		}
	}
}
