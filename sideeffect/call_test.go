package sideeffect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run resolves and carries out the compensation of an effect.
func run(t *testing.T, e Effect, h Handlers) Outcome {
	t.Helper()
	call, err := Resolve(e, h)
	require.NoError(t, err)
	return call.Run(t.Context())
}

// shell is an effect that is undone by a script in dir.
func shell(script string, args ...string) Effect {
	return Effect{Key: "r/t/c#0", Tool: "t", Status: Succeeded, Fields: map[string]string{"id": "7"},
		Compensation: Compensation{Shell: &Script{Text: script, Args: args}}}
}

func shellHandlers(t *testing.T) Handlers {
	return Handlers{Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "ONE=1"}}
}

func TestCommandOutcomes(t *testing.T) {
	for _, test := range []struct {
		name, script string
		gone         []string
		want         Outcome
	}{
		{"done", `echo out; echo err >&2`, nil, Outcome{Result: Done, Output: "out\nerr\n"}},
		{"refused", `echo out; echo no such ticket >&2; exit 3`, nil, Outcome{Result: Refused, Detail: "exit status 3: no such ticket", Output: "out\nno such ticket\n"}},
		{"refused on standard output", `echo first; echo last; exit 1`, nil, Outcome{Result: Refused, Detail: "exit status 1: last", Output: "first\nlast\n"}},
		{"refused without a word", `exit 1`, nil, Outcome{Result: Refused, Detail: "exit status 1"}},
		{"gone already", `echo 'release not found' >&2; exit 1`, []string{"404", "not found"}, Outcome{Result: Done, Detail: "nothing left to undo", Output: "release not found\n"}},
		{"gone, it says and succeeds", `echo 'not found'`, []string{"not found"}, Outcome{Result: Done, Output: "not found\n"}},
		{"killed", `kill -9 $$`, []string{"x"}, Outcome{Result: Unsure, Detail: "killed: signal: killed"}},
		{"values are arguments", `printf '%s|' "$@"`, nil, Outcome{Result: Done, Output: "7|a b|$(id)|"}},
		{"the environment is what was given", `echo ${HOME-none} $ONE`, nil, Outcome{Result: Done, Output: "none 1\n"}},
		{"the effect is on standard input", `sed 's/.*"key":"\([^"]*\)".*/\1/'`, nil, Outcome{Result: Done, Output: "r/t/c#0\n"}},
		{"input that is not read", `exit 0`, nil, Outcome{Result: Done}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := shell(test.script, "{{.id}}", "a b", "$(id)")
			e.Compensation.Gone = test.gone
			if test.name == "input that is not read" {
				e.Output = strings.Repeat("x", 1<<20) // more than a pipe holds
			}
			assert.Equal(t, test.want, run(t, e, shellHandlers(t)))
		})
	}
}

func TestCommandRunsWithoutShell(t *testing.T) {
	h := shellHandlers(t)
	e := Effect{Tool: "t", Status: Succeeded, Fields: map[string]string{"x": "$(touch made); `touch made` > made"}, Compensation: argv("echo", "{{.x}}", "*")}
	got := run(t, e, h)
	assert.Equal(t, Outcome{Result: Done, Output: "$(touch made); `touch made` > made *\n"}, got)
	assert.NoFileExists(t, filepath.Join(h.Dir, "made"))
}

// No variable of ours reaches a command that was given none.
func TestEmptyEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_OURS", "x")
	dir := t.TempDir()
	script := filepath.Join(dir, "undo")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho ${SECRET_OF_OURS-none}\n"), 0o755))
	got := run(t, Effect{Tool: "t", Status: Succeeded, Compensation: argv(script)}, Handlers{Dir: dir})
	assert.Equal(t, "none\n", got.Output)
}

func TestCommandNotStarted(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "undo")
	require.NoError(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755))
	got := run(t, Effect{Tool: "t", Status: Succeeded, Compensation: argv(script)}, Handlers{Dir: dir})
	assert.Equal(t, Refused, got.Result)
	assert.Contains(t, got.Detail, "not started: ")
}

// A command that takes too long ends with everything it has started.
func TestCommandTimeout(t *testing.T) {
	h := shellHandlers(t)
	h.Timeout = 300 * time.Millisecond
	begun := time.Now()
	got := run(t, shell(`sleep 60 & echo $! > child; sleep 60`), h)
	assert.Equal(t, Outcome{Result: Unsure, Detail: "no answer in time"}, got)
	assert.Less(t, time.Since(begun), 20*time.Second)
	assertEnds(t, filepath.Join(h.Dir, "child"))
}

// So does one that is interrupted.
func TestCommandInterrupted(t *testing.T) {
	h := shellHandlers(t)
	call, err := Resolve(shell(`echo $$ > child; sleep 60`), h)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(filepath.Join(h.Dir, "child")); err == nil && len(text) > 0 {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	assert.Equal(t, Outcome{Result: Unsure, Detail: "interrupted"}, call.Run(ctx))
	assertEnds(t, filepath.Join(h.Dir, "child"))
}

// What a command leaves behind ends with it, and does not hold us up.
func TestCommandLeavesNothing(t *testing.T) {
	h := shellHandlers(t)
	begun := time.Now()
	got := run(t, shell(`sleep 60 & echo $! > child; echo done`), h)
	assert.Equal(t, Outcome{Result: Done, Output: "done\n"}, got)
	assert.Less(t, time.Since(begun), 20*time.Second)
	assertEnds(t, filepath.Join(h.Dir, "child"))
}

// assertEnds waits until the process whose number is in a file is no more.
func assertEnds(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		zombie := err == nil && strings.Contains(string(stat), ") Z ")
		return zombie || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}, 10*time.Second, 5*time.Millisecond, "process %d lives", pid)
}

func TestCommandOutputIsCapped(t *testing.T) {
	got := run(t, shell(`head -c 300000 /dev/zero | tr '\0' x; head -c 300000 /dev/zero | tr '\0' y >&2; echo end`), shellHandlers(t))
	assert.Equal(t, Done, got.Result)
	assert.Equal(t, strings.Repeat("x", outputCap), got.Output)
}

func TestNotBegun(t *testing.T) {
	h := shellHandlers(t)
	call, err := Resolve(shell(`touch made`), h)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, Refused, call.Run(ctx).Result)
	assert.NoFileExists(t, filepath.Join(h.Dir, "made"))

	h.Go = map[string]func(context.Context, Effect) error{"f": func(context.Context, Effect) error {
		t.Error("it was called")
		return nil
	}}
	call, err = Resolve(Effect{Tool: "t", Status: Succeeded, Compensation: Compensation{Handler: "f"}}, h)
	require.NoError(t, err)
	assert.Equal(t, Refused, call.Run(ctx).Result)
}

// A tracker is a small service with tickets. It remembers keys, as handlers must.
type tracker struct {
	tickets map[string]bool
	keys    map[string]int
	calls   atomic.Int32
}

func (tr *tracker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tr.calls.Add(1)
	id := strings.TrimPrefix(r.URL.Path, "/tickets/")
	tr.keys[r.Header.Get("Idempotency-Key")]++
	switch {
	case r.Header.Get("Authorization") != "Bearer s3cret":
		http.Error(w, "who are you", http.StatusUnauthorized)
	case r.Method != http.MethodDelete:
		http.Error(w, "no", http.StatusMethodNotAllowed)
	case !tr.tickets[id]:
		http.Error(w, "no such ticket", http.StatusNotFound)
	default:
		delete(tr.tickets, id)
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestHTTPTwice(t *testing.T) {
	tr := &tracker{tickets: map[string]bool{"12": true}, keys: map[string]int{}}
	server := httptest.NewServer(tr)
	defer server.Close()
	h := Handlers{Client: server.Client(), Env: []string{"TOKEN=s3cret"}}
	e := Effect{Key: "r/t/c#0", Tool: "t", Status: Succeeded, Output: `{"id":12}`, Compensation: Compensation{HTTP: &Request{
		Method: "DELETE", URL: server.URL + "/tickets/{{.output.id}}", Headers: map[string]string{"Authorization": "Bearer {{.env.TOKEN}}"},
	}}}
	assert.Equal(t, Outcome{Result: Done}, run(t, e, h))
	assert.Empty(t, tr.tickets)
	again := run(t, e, h)
	assert.Equal(t, Done, again.Result, "a second call finds nothing, which is what was wanted")
	assert.Equal(t, map[string]int{"r/t/c#0": 2}, tr.keys)

	h.Env = []string{"TOKEN=other"}
	assert.Equal(t, Outcome{Result: Refused, Detail: "401 Unauthorized: who are you", Output: "who are you\n"}, run(t, e, h))
}

func TestHTTPRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	e := Effect{Key: "k#1", Tool: "t", Status: Succeeded, Fields: map[string]string{"id": `7","admin":"yes`}, Compensation: Compensation{HTTP: &Request{
		Method: "PATCH", URL: server.URL + "/a?b=1", KeyHeader: "X-Request-Id", Headers: map[string]string{"X-Id": "{{.id}}"},
		Body: map[string]any{"id": "{{.id}}", "n": json.Number("1")},
	}}}
	require.Equal(t, Done, run(t, e, Handlers{Client: server.Client()}).Result)
	assert.Equal(t, "PATCH /a?b=1", got.Method+" "+got.URL.String())
	assert.Equal(t, "k#1", got.Header.Get("X-Request-Id"))
	assert.Empty(t, got.Header.Get("Idempotency-Key"))
	assert.Equal(t, `7","admin":"yes`, got.Header.Get("X-Id"))
	assert.Equal(t, "application/json", got.Header.Get("Content-Type"))
	assert.JSONEq(t, `{"id":"7\",\"admin\":\"yes","n":1}`, string(body), "a value is one string")
}

func TestHTTPStatuses(t *testing.T) {
	for _, test := range []struct {
		method string
		status int
		expect []int
		want   Result
	}{
		{"POST", 200, nil, Done}, {"POST", 204, nil, Done}, {"POST", 202, nil, Done},
		{"DELETE", 404, nil, Done}, {"DELETE", 410, nil, Done}, {"POST", 404, nil, Refused}, {"DELETE", 403, nil, Refused},
		{"POST", 409, nil, Refused}, {"POST", 429, nil, Refused}, {"POST", 302, nil, Refused},
		{"POST", 500, nil, Unsure}, {"POST", 502, nil, Unsure}, {"POST", 504, nil, Unsure}, {"POST", 501, nil, Refused}, {"POST", 503, nil, Refused},
		{"POST", 409, []int{409}, Done}, {"DELETE", 404, []int{204}, Refused}, {"POST", 200, []int{204}, Unsure},
	} {
		t.Run(fmt.Sprint(test.method, test.status, test.expect), func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
			}))
			defer server.Close()
			e := Effect{Tool: "t", Status: Succeeded, Compensation: Compensation{HTTP: &Request{Method: test.method, URL: server.URL + "/x", Expect: test.expect}}}
			got := run(t, e, Handlers{Client: server.Client()})
			assert.Equal(t, test.want, got.Result)
			assert.Equal(t, test.want == Done, got.Detail == "")
			assert.EqualValues(t, 1, calls.Load(), "redirects are not followed")
		})
	}
}

func TestHTTPTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	e := Effect{Tool: "t", Status: Succeeded, Compensation: Compensation{HTTP: &Request{Method: "POST", URL: server.URL + "/"}}}
	got := run(t, e, Handlers{Client: server.Client(), Timeout: 200 * time.Millisecond})
	assert.Equal(t, Outcome{Result: Unsure, Detail: "no answer in time"}, got)
}

// What was sent and not answered may have been done; what never left was not.
func TestHTTPConnectionLost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	}))
	e := Effect{Tool: "t", Status: Succeeded, Compensation: Compensation{HTTP: &Request{Method: "POST", URL: server.URL + "/"}}}
	got := run(t, e, Handlers{Client: server.Client()})
	assert.Equal(t, Unsure, got.Result)
	assert.Contains(t, got.Detail, "no answer: ")
	server.Close()
	got = run(t, e, Handlers{Client: &http.Client{}})
	assert.Equal(t, Refused, got.Result)
	assert.Contains(t, got.Detail, "not sent: ")

	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never a handshake
	require.NoError(t, err)
	defer silent.Close()
	e.Compensation.HTTP.URL = "https://" + silent.Addr().String() + "/"
	got = run(t, e, Handlers{Client: &http.Client{}, Timeout: 200 * time.Millisecond})
	assert.Equal(t, Refused, got.Result, "%v", got)
}

func TestFunctionOutcomes(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for _, test := range []struct {
		name string
		call func(context.Context, Effect) error
		want Outcome
	}{
		{"done", func(context.Context, Effect) error { return nil }, Outcome{Result: Done}},
		{"refused", func(context.Context, Effect) error { return errors.New("no such ticket") }, Outcome{Result: Refused, Detail: "no such ticket"}},
		{"unsure", func(context.Context, Effect) error { return fmt.Errorf("lost: %w", ErrUnsure) },
			Outcome{Result: Unsure, Detail: "lost: it may have been carried out"}},
		{"too late", func(ctx context.Context, _ Effect) error { <-ctx.Done(); return ctx.Err() }, Outcome{Result: Unsure}},
		{"never", func(context.Context, Effect) error { <-hang; return nil }, Outcome{Result: Unsure, Detail: "no answer in time"}},
		{"panics", func(context.Context, Effect) error { panic("oh") }, Outcome{Result: Unsure, Detail: "handler panicked: oh"}},
		{"gets the effect", func(_ context.Context, e Effect) error {
			if e.Key != "k" {
				return errors.New("no key")
			}
			return nil
		}, Outcome{Result: Done}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := Handlers{Timeout: 100 * time.Millisecond, Go: map[string]func(context.Context, Effect) error{"f": test.call}}
			got := run(t, Effect{Key: "k", Tool: "t", Status: Succeeded, Compensation: Compensation{Handler: "f"}}, h)
			if test.name == "too late" {
				got.Detail = "" // either of two words for it
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestMCPOutcomes(t *testing.T) {
	e := Effect{Key: "k", Tool: "t", Status: Succeeded, Fields: map[string]string{"id": "7"},
		Compensation: Compensation{MCP: &ToolUse{Server: "s", Tool: "del", Args: map[string]any{"id": "{{.id}}"}}}}
	for _, test := range []struct {
		name   string
		answer ToolAnswer
		err    error
		want   Outcome
	}{
		{"done", ToolAnswer{Text: "deleted"}, nil, Outcome{Result: Done, Output: "deleted"}},
		{"refused", ToolAnswer{Refused: true, Text: "x\nno such ticket"}, nil, Outcome{Result: Refused, Detail: "no such ticket", Output: "x\nno such ticket"}},
		{"lost", ToolAnswer{}, io.ErrUnexpectedEOF, Outcome{Result: Unsure, Detail: "unexpected EOF"}},
		{"not sent", ToolAnswer{}, fmt.Errorf("no server: %w", ErrNotSent), Outcome{Result: Refused, Detail: "no server: it was not sent"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := Handlers{MCP: func(_ context.Context, use ToolUse, key string) (ToolAnswer, error) {
				assert.Equal(t, ToolUse{Server: "s", Tool: "del", Args: map[string]any{"id": "7"}}, use)
				assert.Equal(t, "k", key)
				return test.answer, test.err
			}}
			assert.Equal(t, test.want, run(t, e, h))
		})
	}
	assert.Equal(t, "{{.id}}", e.Compensation.MCP.Args["id"], "the template is as it was")
}

// What is beyond the cap is taken, so that nobody waits, and not kept.
func TestCapped(t *testing.T) {
	var c capped
	for range 3 {
		n, err := c.Write(make([]byte, outputCap-1))
		require.NoError(t, err)
		assert.Equal(t, outputCap-1, n)
	}
	assert.Equal(t, outputCap, c.Len())
}
