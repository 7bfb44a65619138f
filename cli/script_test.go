package cli

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the wanted output in testdata/script")

// TestMain makes the test binary be retcon when a script calls it so.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"retcon": func() { os.Exit(Main(os.Args, os.Stdin, os.Stdout, os.Stderr, System())) },
		"probe":  func() { testOnlyCommands = probes; os.Exit(Main(os.Args, os.Stdin, os.Stdout, os.Stderr, System())) },
	})
}

func init() {
	if filepath.Base(os.Args[0]) != "retcon" {
		testOnlyCommands = probes // in this process, for the tests that call Main
	}
}

// TestScript runs the scripts: one topic each, named for the verb. They see a
// home of their own, and a git that reads no configuration but theirs.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: false,
		Setup:               hermetic,
	})
}

func hermetic(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	config := filepath.Join(home, ".gitconfig")
	const text = "[user]\n\tname = A. Author\n\temail = author@example.com\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgsign = false\n[core]\n\thooksPath = /dev/null\n[gc]\n\tauto = 0\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"HOME":                home,
		"XDG_CONFIG_HOME":     filepath.Join(home, ".config"),
		"GIT_CONFIG_GLOBAL":   config,
		"GIT_CONFIG_NOSYSTEM": "1",
		"GIT_CONFIG_SYSTEM":   os.DevNull,
		"GIT_AUTHOR_DATE":     "2030-01-01T00:00:00Z",
		"GIT_COMMITTER_DATE":  "2030-01-01T00:00:00Z",
		"GIT_TERMINAL_PROMPT": "0",
		"LC_ALL":              "C",
		"TZ":                  "UTC",
		"NO_COLOR":            "",
		"TERM":                "xterm",
		"GORACE":              "atexit_sleep_ms=0", // the race detector's processes would each sleep for a second
	} {
		env.Setenv(name, value)
	}
	return nil
}
