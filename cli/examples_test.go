package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
)

// Every example of the help runs, as it stands there, in a workspace with some
// history. Without a terminal the moves that would ask refuse, and diff finds
// differences.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each example")
	}
	c := &console{Env: Env{}.orNothing()}
	own := map[string]bool{ // what it does would be in the way of the others
		"checkpoint": true, "snapshots": true, "forget": true, "restore": true, "undo": true, "redo": true,
		"resume": true, "signal": true, "cancel": true, "settle": true, "retry": true,
	}
	shared := storied(t)
	var visit func(parent string, commands []*cli.Command)
	visit = func(parent string, commands []*cli.Command) {
		for _, command := range commands {
			full := parent + " " + command.Name
			visit(full, command.Subcommands)
			if command.Hidden {
				continue
			}
			_, after, found := strings.Cut(command.Description, "Examples:\n")
			if !assert.True(t, found, "%s --help has no examples", full) {
				continue
			}
			t.Run(strings.ReplaceAll(full, " ", "_"), func(t *testing.T) {
				sh := shared
				if own[command.Name] {
					t.Parallel()
					sh = storied(t)
				}
				if command.Name == "redo" {
					sh("retcon undo --yes")
				}
				for example := range strings.Lines(after) {
					example = strings.TrimSpace(example)
					line := example
					if example == "retcon watch" {
						line += " --for 20ms" // it would go on for ever
					}
					code, out := sh(line)
					switch {
					case code == 1 && command.Name == "diff":
					case code == 4 && strings.Contains(out, "hint: "+example+" --yes\n"):
					default:
						assert.Equal(t, 0, code, "$ %s\n%s", line, out)
					}
				}
			})
		}
	}
	visit("retcon", c.commands())
}

// storied makes a workspace in which things have happened, and returns a shell
// in it.
func storied(t *testing.T) func(line string) (code int, out string) {
	t.Helper()
	dir := t.TempDir()
	work, bin, home := filepath.Join(dir, "work"), filepath.Join(dir, "bin"), filepath.Join(dir, "home")
	for _, d := range []string{filepath.Join(work, "pkg"), bin, home,
		filepath.Join(home, ".local/share/bash-completion/completions"), filepath.Join(home, ".zfunc"), filepath.Join(home, ".config/fish/completions")} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "retcon"))) // see TestMain
	require.NoError(t, os.WriteFile(filepath.Join(bin, "make"), []byte("#!/bin/sh\n"), 0o700))
	for name, text := range map[string]string{
		"build.star": "def main(ctx):\n    return sh('echo hello', name='hello').out()\n",
		"flaky.star": "def main(ctx):\n    sh('test -e fixed', name='test').out()\n",
		"gate.star":  "def main(ctx):\n    signal('approve', schema={'type': 'boolean'}).out()\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o600))
	}
	sh := func(line string) (int, string) {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = work
		cmd.Env = []string{"GORACE=atexit_sleep_ms=0", "PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home}
		out, err := cmd.CombinedOutput()
		if _, ended := err.(*exec.ExitError); err != nil && !ended {
			require.NoError(t, err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	for _, line := range []string{
		"git init -q && echo one >main.go && echo two >pkg/a.go",
		"retcon checkpoint --label start",
		"echo more >>main.go && retcon checkpoint && echo again >>main.go && retcon checkpoint",
		"retcon exec -- sh -c 'echo run >run.txt'",
		"retcon restore c1 --yes",
		"retcon restore c2 --yes",
		"retcon run build.star --name greet",
		"retcon run gate.star --name gate || test $? = 1",
		"retcon run flaky.star --name flaky || test $? = 1",
		"touch fixed",
		`retcon effects record flaky --tool mailer --call hello --undo '{"command": ["true"]}'`,
	} {
		code, out := sh(line)
		require.Equal(t, 0, code, "$ %s\n%s", line, out)
	}
	return sh
}
