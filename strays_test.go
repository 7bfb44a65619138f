package retcon_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
)

// A plan warns of what a run has left running in the worktree, and nothing else
// that works there.
func TestStrays(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("what other processes are shows only in /proc, which is not here")
	}
	p := newFolder(t)
	p.write("a", "one")
	p.checkpoint(retcon.CheckpointOptions{})
	start := func(dir string, env ...string) int {
		cmd := exec.Command("sleep", "60")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			assert.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait() // killed
		})
		return cmd.Process.Pid
	}
	warnings := func() []string {
		r, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1", DryRun: true})
		require.NoError(t, err)
		return r.Plan.Warnings
	}
	left := 0
	_, err := p.Exec(ctx, retcon.ExecOptions{Argv: []string{"agent"}, Run: func(_ context.Context, env []string) (int, error) {
		p.write("a", "two")
		left = start(p.dir, env...)
		return 0, nil
	}})
	require.NoError(t, err)
	start(p.dir)                        // a person's
	start(t.TempDir(), "RETCON_RUN=r1") // elsewhere
	start(p.dir, "RETCON_RUN=r99")      // of another ledger
	assert.Equal(t, []string{fmt.Sprintf("process %d (sleep) of r1 still works here, and may write", left)}, warnings())
}
