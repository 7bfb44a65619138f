package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/mcp"
)

// listen serves over HTTP until the test ends.
func (w *work) listen(token string) (url string) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	stopping, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	s := w.server(mcp.Options{})
	go func() { served <- s.Listen(stopping, l, token) }()
	w.t.Cleanup(func() {
		stop()
		require.NoError(w.t, <-served)
	})
	return "http://" + l.Addr().String() + "/mcp"
}

// bearer shows a token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestOverHTTP(t *testing.T) {
	w := newWork(t, threeSteps)
	url := w.listen("secret")
	dial := func(name string) *client {
		c := w.client(name, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer("secret")}})
		t.Cleanup(func() { require.NoError(t, c.session.Close()) })
		return c
	}
	one, two := dial("one"), dial("two")
	one.carry("rewind_run", args{"run": "r1", "frame": 1})
	assert.Equal(t, "plan.txt=1", w.files())
	two.carry("undo_operation", nil)
	assert.Equal(t, whole, w.files())
	var actors []any
	for _, op := range one.ok("list_operations", nil)["operations"].([]any) {
		actors = append(actors, op.(map[string]any)["actor"])
	}
	assert.Equal(t, []any{"two", "one"}, actors)
}

func TestHTTPIsGuarded(t *testing.T) {
	w := newWork(t, "")
	url := w.listen("secret")
	own := strings.TrimSuffix(url, "/mcp")
	for _, test := range []struct {
		name, host, origin, authorization string
		want                              int
	}{
		{"as it should be", "", "", "Bearer secret", http.StatusOK},
		{"from a page of its own", "", own, "Bearer secret", http.StatusOK},
		{"by name", "localhost", "", "Bearer secret", http.StatusOK},
		{"no token", "", "", "", http.StatusUnauthorized},
		{"a wrong token", "", "", "Bearer secreT", http.StatusUnauthorized},
		{"the beginning of the token", "", "", "Bearer sec", http.StatusUnauthorized},
		{"a token of another kind", "", "", "Basic secret", http.StatusUnauthorized},
		{"another name that points here", "evil.example", "", "Bearer secret", http.StatusForbidden},
		{"a name that begins alike", "127.0.0.1.evil.example", "", "Bearer secret", http.StatusForbidden},
		{"a page elsewhere", "", "https://evil.example", "Bearer secret", http.StatusForbidden},
		{"a page at another port", "", "http://127.0.0.1:1", "Bearer secret", http.StatusForbidden},
		{"a page from nowhere", "", "null", "Bearer secret", http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
			r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(hello))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			if test.host != "" {
				r.Host = test.host
			}
			for name, value := range map[string]string{"Origin": test.origin, "Authorization": test.authorization} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			got, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			defer got.Body.Close()
			body, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			assert.Equal(t, test.want, got.StatusCode, string(body))
		})
	}
}

// The program prints where it listens and the token that opens it.
func TestHTTPAsAProcess(t *testing.T) {
	w := newWork(t, threeSteps)
	server := exec.Command(os.Args[0], "--json", "mcp", "serve", "--http", "0")
	server.Dir, server.Stderr, server.Env = w.dir, os.Stderr, append(os.Environ(), beProgram+"=1")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	var at struct{ URL, Token string }
	require.NoError(t, json.NewDecoder(out).Decode(&at))
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+/mcp$`, at.URL)
	assert.GreaterOrEqual(t, len(at.Token), 26)
	c := w.client("one", &sdk.StreamableClientTransport{Endpoint: at.URL, HTTPClient: &http.Client{Transport: bearer(at.Token)}})
	assert.Len(t, c.ok("list_runs", nil)["runs"], 1)
	require.NoError(t, c.session.Close())
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
}
