// Package peer holds the command lines of the contestants: git, jj, go-git, and
// the driver that stands for retcon. None of them sees the settings of whoever
// runs the bench.
package peer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
)

// Env returns an environment without settings, whose home is an empty folder.
func Env(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "TMPDIR=" + os.TempDir(), "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=4", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0", "GIT_CONFIG_KEY_1=maintenance.auto", "GIT_CONFIG_VALUE_1=false",
		"GIT_CONFIG_KEY_2=init.defaultBranch", "GIT_CONFIG_VALUE_2=main", "GIT_CONFIG_KEY_3=advice.addEmbeddedRepo", "GIT_CONFIG_VALUE_3=false",
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@example.invalid", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@example.invalid", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
}

// Git is git, at work in one folder.
type Git struct {
	Bin string
	Dir string
	Env []string
}

// FindGit returns git as it is on PATH.
func FindGit(home string) (Git, error) {
	bin, err := exec.LookPath("git")
	if err != nil {
		return Git{}, err
	}
	return Git{Bin: bin, Env: Env(home)}, nil
}

// In returns git at work in another folder.
func (g Git) In(dir string) Git {
	g.Dir = dir
	return g
}

// Indexed returns git with another index than the folder's own.
func (g Git) Indexed(file string) Git {
	g.Env = append(g.Env[:len(g.Env):len(g.Env)], "GIT_INDEX_FILE="+file)
	return g
}

// Run runs one git command.
func (g Git) Run(ctx context.Context, args ...string) (string, bench.Usage, error) {
	out, u, err := bench.Command{Dir: g.Dir, Env: g.Env, Args: append([]string{g.Bin}, args...)}.Run(ctx)
	return strings.TrimSpace(string(out)), u, err
}

// Do runs commands of which only the success matters.
func (g Git) Do(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		if _, _, err := g.Run(ctx, strings.Fields(c)...); err != nil {
			return err
		}
	}
	return nil
}

// Capture is how git captures a worktree: add -A, write-tree.
func (g Git) Capture(ctx context.Context) (tree string, u bench.Usage, err error) {
	_, add, err := g.Run(ctx, "add", "-A")
	if err != nil {
		return "", add, err
	}
	tree, write, err := g.Run(ctx, "write-tree")
	return tree, add.Then(write), err
}

// TempIndex is the path of a copy of the folder's index, made anew.
func (g Git) TempIndex() (string, error) {
	data, err := os.ReadFile(filepath.Join(g.Dir, ".git", "index"))
	if err != nil {
		return "", err
	}
	file := filepath.Join(g.Dir, ".git", "bench-index")
	return file, os.WriteFile(file, data, 0o600)
}

// Version is what git calls itself.
func (g Git) Version(ctx context.Context) string {
	v, _, err := g.Run(ctx, "version")
	if err != nil {
		return fmt.Sprint(err)
	}
	return v
}

// Feed runs one git command that reads what is given.
func (g Git) Feed(ctx context.Context, in []byte, args ...string) error {
	cmd := exec.CommandContext(ctx, g.Bin, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = g.Dir, g.Env, bytes.NewReader(in)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %v: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}
