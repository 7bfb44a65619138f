// Package examples_test runs the examples as a person would, with a scripted
// agent in place of a real one.
package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"retcon":   func() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, cli.System())) },
		"pipeline": pipeline,
	})
}

// pipeline becomes the example in Go, which a test has built.
func pipeline() {
	err := syscall.Exec(os.Getenv("PIPELINE"), append([]string{"pipeline"}, os.Args[1:]...), os.Environ())
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// Every example does what it says, and goes on where it was stopped.
func TestExamples(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pipeline")
	out, err := exec.Command("go", "build", "-o", program, "./go/pipeline").CombinedOutput()
	require.NoError(t, err, string(out))
	t.Setenv("PIPELINE", program)
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireUniqueNames: true, Setup: setup})
}

// setup puts the examples and the agent where a script finds them: in $EXAMPLES
// and on PATH.
func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"HOME":                home,
		"XDG_CONFIG_HOME":     filepath.Join(home, ".config"),
		"GIT_CONFIG_NOSYSTEM": "1",
		"GIT_CONFIG_GLOBAL":   filepath.Join(home, ".gitconfig"),
		"NO_COLOR":            "1",
		"GORACE":              "atexit_sleep_ms=0",
		"EXAMPLES":            here,
		"PIPELINE":            os.Getenv("PIPELINE"),
		"CLAUDE_SCRIPT":       filepath.Join(env.WorkDir, "agent.sh"),
		"PATH":                filepath.Join(here, "testdata") + string(os.PathListSeparator) + env.Getenv("PATH"),
	} {
		env.Setenv(name, value)
	}
	return nil
}
