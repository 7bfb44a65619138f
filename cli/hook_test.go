package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The process that a hook works for is the one above the shells.
func TestClient(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("what other processes are shows only in /proc, which is not here")
	}
	assert.Equal(t, os.Getpid(), client(os.Getpid()))
	cmd := exec.Command("sh", "-c", "read line; exit 0")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	assert.Equal(t, os.Getpid(), client(cmd.Process.Pid))
	require.NoError(t, in.Close())
	_ = cmd.Wait() // read found the end: not 0 in every shell
	assert.Zero(t, client(1), "nobody is above the first")
	assert.Zero(t, client(0))
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("BUG: out of cheese") }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("gone") }

// Whatever happens, an agent sees success and nothing on either stream.
func TestHookNeverFails(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700)) // no repository
	for name, test := range map[string]struct {
		line string
		in   io.Reader
	}{
		"a panic":            {"retcon hook claude Stop", panicking{}},
		"no payload":         {"retcon hook claude Stop", failing{}},
		"an empty payload":   {"retcon hook claude Stop", strings.NewReader("")},
		"garbage":            {"retcon hook claude Stop", strings.NewReader("\x00{")},
		"too much":           {"retcon hook claude Stop", io.LimitReader(zeros{}, payloadMax+10)},
		"nobody":             {"retcon hook nobody Stop", strings.NewReader("{}")},
		"a relative place":   {"retcon hook claude Stop", strings.NewReader(`{"session_id": "s", "cwd": "x"}`)},
		"a place that's not": {"retcon hook claude Stop", strings.NewReader(`{"session_id": "s", "cwd": "/does/not/exist"}`)},
		"nothing":            {"retcon hook", strings.NewReader("")},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Main(strings.Fields(test.line), test.in, &out, &errs, Env{Dir: dir})
			assert.Equal(t, said{}, said{code, out.String(), errs.String()})
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
