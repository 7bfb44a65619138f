package proc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// path is enough to find the tools the tests use.
const path = "PATH=/usr/local/bin:/usr/bin:/bin"

// run runs a script that may leave nothing behind, unless the test says so.
func run(t *testing.T, c Command) Result {
	t.Helper()
	if c.Env == nil {
		c.Env = []string{path}
	}
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { // what a test leaves, it leaves on purpose
		for _, pid := range r.Left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for _, pid := range r.Left {
			eventually(t, func() bool { return !running(pid) }, "%d still runs", pid)
		}
	})
	return r
}

func eventually(t *testing.T, ok func() bool, format string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf(format, args...)
		}
	}
}

func running(pid int) bool {
	for _, p := range processes() {
		if p.pid == pid {
			return p.alive
		}
	}
	return false
}

// number reads the number in a file that a script writes.
func number(t *testing.T, file string) (n int) {
	t.Helper()
	eventually(t, func() bool {
		b, err := os.ReadFile(file)
		if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
			return false
		}
		n, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	}, "%s was not written", file)
	return n
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	for _, test := range []struct {
		name string
		c    Command
		want Result
	}{
		{"program", Command{Argv: []string{"echo", "a b", "$HOME"}}, Result{Stdout: []byte("a b $HOME\n")}},
		{"script", Command{Shell: "echo out; echo err >&2; exit 3"}, Result{Exit: 3, Stdout: []byte("out\n"), Stderr: []byte("err\n")}},
		{"silence", Command{Shell: ":"}, Result{}},
		{"folder", Command{Shell: "pwd -P", Dir: dir}, Result{Stdout: []byte(real + "\n")}},
		{"exact environment", Command{Argv: []string{"/usr/bin/env"}, Env: []string{"A=1", "A=2"}}, Result{Stdout: []byte("A=2\n")}},
		{"no environment", Command{Argv: []string{"/usr/bin/env"}, Env: []string{}}, Result{}},
		{"input", Command{Argv: []string{"cat"}, Stdin: []byte("a\x00b")}, Result{Stdout: []byte("a\x00b")}},
		{"no input", Command{Shell: "cat; echo end"}, Result{Stdout: []byte("end\n")}},
		{"no UTF-8", Command{Shell: `printf '\377\376'`}, Result{Stdout: []byte("\xff\xfe")}},
		{"signal", Command{Shell: "kill -KILL $$"}, Result{Exit: -1, Signal: "SIGKILL"}},
		{"signal of its own", Command{Shell: "kill -TERM $$"}, Result{Exit: -1, Signal: "SIGTERM"}},
		{"signal of a child", Command{Shell: "sh -c 'kill -KILL $$'; true"}, Result{}},
		{"closed streams", Command{Shell: "exec >&- 2>&- <&-; exit 4"}, Result{Exit: 4}},
		{"no terminal", Command{Shell: "(: </dev/tty) 2>/dev/null || echo none"}, Result{Stdout: []byte("none\n")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, test.c)
			test.want.StdoutSize, test.want.StderrSize = int64(len(test.want.Stdout)), int64(len(test.want.Stderr))
			if test.name == "signal of a child" {
				got.Stderr, got.StderrSize = nil, 0 // some shells tell
			}
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.want.Exit == 0, got.OK())
		})
	}
}

// An environment that is not given is empty: nothing is inherited.
func TestNoEnvironment(t *testing.T) {
	t.Setenv("INHERITED", "1")
	r, err := Run(t.Context(), Command{Argv: []string{"/usr/bin/env"}})
	require.NoError(t, err)
	assert.Empty(t, string(r.Stdout))
}

func TestOK(t *testing.T) {
	assert.True(t, Result{Left: []int{1}, Open: true, Truncated: true}.OK())
	for _, r := range []Result{{Exit: 1}, {Exit: -1, Signal: "SIGKILL"}, {TimedOut: true}, {Cancelled: true}} {
		assert.False(t, r.OK(), "%+v", r)
	}
}

// An input that nobody reads, larger than a pipe holds.
func TestUnreadInput(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 1<<20)
	assert.Equal(t, 7, run(t, Command{Shell: "exit 7", Stdin: big}).Exit)
	assert.Equal(t, "x", string(run(t, Command{Shell: "head -c 1", Stdin: big}).Stdout))
	assert.EqualValues(t, len(big), run(t, Command{Shell: "exec <&-; exec cat /dev/zero | head -c " + strconv.Itoa(len(big)), Stdin: big}).StdoutSize)
}

// A process that stays behind holds the input and does not read it. Nothing of
// ours waits for it.
func TestHeldInput(t *testing.T) {
	before := runtime.NumGoroutine()
	r := run(t, Command{Shell: "exec 3<&0; sleep 68 <&3 >/dev/null 2>&1 & exit 5", Stdin: bytes.Repeat([]byte("x"), 1<<20)})
	assert.Equal(t, 5, r.Exit)
	assert.Len(t, r.Left, 1)
	eventually(t, func() bool { return runtime.NumGoroutine() <= before }, "a goroutine still runs")
}

func TestLimit(t *testing.T) {
	all := strings.Repeat("0123456789", 30_000)
	for _, test := range []struct {
		name  string
		shell string
		max   int64
		head  string
		cut   bool
	}{
		{"less", `printf abc`, 4, "abc", false},
		{"exactly", `printf abcd`, 4, "abcd", false},
		{"more", `printf abcde`, 4, "abcd", true},
		{"between characters", `printf 'ab\303\251x'`, 4, "abé", true},
		{"in a character of two bytes", `printf 'abc\303\251'`, 4, "abc", true},
		{"in one of three", `printf 'ab\342\202\254'`, 4, "ab", true},
		{"in one of four", `printf 'a\360\237\230\200'`, 4, "a", true},
		{"not text", `printf 'ab\377\376x'`, 4, "ab\xff\xfe", true},
		{"not text, and a stray continuation", `printf 'a\200\200\200\200'`, 4, "a\x80\x80\x80", true},
		{"huge", `yes 0123456789 | tr -d '\n' | head -c 300000`, 100_000, all[:100_000], true},
	} {
		t.Run(test.name, func(t *testing.T) {
			whole := run(t, Command{Shell: test.shell}).Stdout
			got := run(t, Command{Shell: test.shell + "; echo e >&2", Max: test.max})
			assert.Equal(t, test.head, string(got.Stdout))
			assert.Equal(t, test.cut, got.Truncated)
			assert.EqualValues(t, len(whole), got.StdoutSize)
			want := [32]byte{}
			if test.cut {
				want = sha256.Sum256(whole)
			}
			assert.Equal(t, want, got.StdoutHash)
			assert.Equal(t, "e\n", string(got.Stderr), "the other stream is whole")
			assert.Zero(t, got.StderrHash)
		})
	}
	t.Run("by default", func(t *testing.T) {
		got := run(t, Command{Shell: "head -c 3000000 /dev/zero >&2"})
		assert.Len(t, got.Stderr, 1<<20)
		assert.EqualValues(t, 3_000_000, got.StderrSize)
		assert.Equal(t, sha256.Sum256(make([]byte, 3_000_000)), got.StderrHash)
		assert.True(t, got.Truncated)
	})
}

func TestLines(t *testing.T) {
	var got []string
	run(t, Command{Max: 2, Shell: `printf 'a\n\nb'; sleep 0.05; printf 'c\r\nlast'; sleep 0.05; echo err >&2; sleep 0.05`,
		OnLine: func(stream string, line []byte) { got = append(got, stream+" "+string(line)) }})
	assert.ElementsMatch(t, []string{"stdout a", "stdout ", "stdout bc\r", "stderr err", "stdout last"}, got)

	var sizes []int
	run(t, Command{Shell: "head -c 200000 /dev/zero; echo; echo end", OnLine: func(_ string, line []byte) { sizes = append(sizes, len(line)) }})
	total := 0
	for _, n := range sizes {
		assert.Less(t, n, 2*longest)
		total += n
	}
	assert.Equal(t, 200_003, total)
	assert.GreaterOrEqual(t, len(sizes), 3, "a long line comes in pieces")
}

// One line at a time, whatever the streams do; the race detector looks on too.
func TestLinesTakeTurns(t *testing.T) {
	inside, n := false, 0
	run(t, Command{Shell: "seq 1 500 & seq 1 500 >&2; wait", OnLine: func(string, []byte) {
		if inside {
			t.Error("two at a time")
		}
		inside = true
		n++
		inside = false
	}})
	assert.Equal(t, 1000, n)
}

func TestStartError(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), mode))
		return file
	}
	plain := write("plain", "#!/bin/sh\necho plain\n", 0o644)
	prog := write("prog", "#!/bin/sh\necho prog\n", 0o755)
	lost := write("lost", "#!/no/such/interpreter\n", 0o755)
	odd := write("odd", "\x7fELF nonsense", 0o755)
	in := []string{"PATH=" + dir}
	t.Chdir(dir) // where a relative PATH would find them
	for _, test := range []struct {
		name     string
		c        Command
		notFound bool
		want     string
	}{
		{"nothing", Command{}, false, "start nothing: no program is given"},
		{"empty name", Command{Argv: []string{""}}, false, "start nothing: no program is given"},
		{"both", Command{Argv: []string{"a"}, Shell: "b"}, false, "start nothing: both a program and a script are given"},
		{"not in PATH", Command{Argv: []string{"no-such-program"}, Env: []string{path}}, true, "start no-such-program: not in PATH: file does not exist"},
		{"no PATH", Command{Argv: []string{"sh"}}, true, "start sh: not in PATH: file does not exist"},
		{"the last PATH", Command{Argv: []string{"sh"}, Env: []string{path, "PATH=/nowhere"}}, true, ""},
		{"a relative PATH", Command{Argv: []string{"prog"}, Dir: dir, Env: []string{"PATH=.:"}}, true, ""},
		{"no such file", Command{Argv: []string{"/no/such/file"}}, true, "start /no/such/file: stat /no/such/file: no such file or directory"},
		{"no such file here", Command{Argv: []string{"./none"}, Dir: dir}, true, ""},
		{"not executable", Command{Argv: []string{plain}}, false, "start " + plain + ": exec " + plain + ": permission denied"},
		{"not executable in PATH", Command{Argv: []string{"plain"}, Env: in}, false, "start plain: exec " + plain + ": permission denied"},
		{"a folder", Command{Argv: []string{dir}}, false, "start " + dir + ": exec " + dir + ": is a directory"},
		{"no interpreter", Command{Argv: []string{lost}}, true, ""},
		{"no program at all", Command{Argv: []string{odd}}, false, ""},
		{"no such folder", Command{Argv: []string{prog}, Dir: "/no/such/folder"}, false, "start " + prog + ": in its folder: stat /no/such/folder: no such file or directory"},
		{"a file for a folder", Command{Argv: []string{prog}, Dir: plain}, false, "start " + prog + ": in its folder: chdir " + plain + ": not a directory"},
		{"too many arguments", Command{Argv: []string{prog, strings.Repeat("x", 4<<20)}}, false, ""},
		{"a zero byte", Command{Argv: []string{prog, "a\x00b"}}, false, ""},
		{"a zero byte in the environment", Command{Argv: []string{prog}, Env: []string{"A=\x00"}}, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := Run(t.Context(), test.c)
			var start *StartError
			require.ErrorAs(t, err, &start)
			assert.Equal(t, test.notFound, start.NotFound, "%v", err)
			assert.Equal(t, Result{}, r)
			if test.want != "" {
				assert.EqualError(t, err, test.want)
			}
		})
	}
	assert.Equal(t, "prog\n", string(run(t, Command{Argv: []string{"prog"}, Env: in}).Stdout))
	assert.Equal(t, "prog\n", string(run(t, Command{Argv: []string{"./prog"}, Dir: dir}).Stdout))
	assert.Equal(t, "prog\n", string(run(t, Command{Argv: []string{"prog"}, Env: []string{"PATH=/nowhere:" + plain + ":" + dir}}).Stdout))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Command{Argv: []string{prog}})
	var start *StartError
	require.ErrorAs(t, err, &start)
	assert.ErrorIs(t, err, context.Canceled)
}

// A program that is still open for writing can't be started; a moment later it
// can.
func TestStartsWhatWasJustWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prog")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = f.WriteString("#!/bin/sh\necho ran\n")
	require.NoError(t, err)

	_, err = Run(t.Context(), Command{Argv: []string{file}})
	if err == nil {
		t.Skip("this system starts a program that is being written")
	}
	assert.ErrorIs(t, err, syscall.ETXTBSY)

	timer := time.AfterFunc(20*time.Millisecond, func() { f.Close() })
	defer timer.Stop()
	assert.Equal(t, "ran\n", string(run(t, Command{Argv: []string{file}}).Stdout))
}

func TestTimeout(t *testing.T) {
	r := run(t, Command{Argv: []string{"sleep", "60"}, Timeout: 50 * time.Millisecond})
	assert.Equal(t, Result{Exit: -1, Signal: "SIGTERM", TimedOut: true}, r)
	assert.False(t, r.OK())
	assert.True(t, run(t, Command{Shell: ":", Timeout: time.Minute}).OK(), "it has ended in time")
}

// stop runs a script and cancels it when it says that it is ready.
func stop(t *testing.T, c Command) Result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Env = []string{path}
	c.OnLine = func(_ string, line []byte) {
		if string(line) == "ready" {
			cancel()
		}
	}
	r, err := Run(ctx, c)
	require.NoError(t, err)
	assert.True(t, r.Cancelled)
	assert.False(t, r.OK())
	assert.Empty(t, r.Left)
	return r
}

func TestCancel(t *testing.T) {
	t.Run("ends at SIGTERM", func(t *testing.T) {
		r := stop(t, Command{Shell: "echo ready; exec sleep 60"})
		assert.Equal(t, Result{Exit: -1, Signal: "SIGTERM", Stdout: []byte("ready\n"), StdoutSize: 6, Cancelled: true}, r)
	})
	t.Run("cleans up at SIGTERM", func(t *testing.T) {
		r := stop(t, Command{Shell: "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.02; done", Grace: time.Minute})
		assert.Equal(t, "ready\ncleaned\n", string(r.Stdout))
		assert.Equal(t, []any{0, ""}, []any{r.Exit, r.Signal})
	})
	t.Run("ignores SIGTERM", func(t *testing.T) {
		r := stop(t, Command{Shell: "trap '' TERM; echo ready; while :; do sleep 0.02; done", Grace: 100 * time.Millisecond})
		assert.Equal(t, []any{-1, "SIGKILL"}, []any{r.Exit, r.Signal})
	})
	t.Run("was stopped by a signal", func(t *testing.T) {
		if _, err := os.Stat("/proc/self/status"); err != nil {
			t.Skip("a script can't see here that it is stopped")
		}
		r := stop(t, Command{Shell: "trap 'echo woken; exit 0' TERM; (while ! grep -q '^State:.T' /proc/$$/status; do sleep 0.01; done; echo ready) & kill -STOP $$; sleep 60", Grace: time.Minute})
		assert.Equal(t, "ready\nwoken\n", string(r.Stdout))
	})
	t.Run("its child is stopped as well", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		stop(t, Command{Shell: "sleep 61 & echo $! >" + file + "; echo ready; wait", Grace: time.Minute})
		assert.False(t, running(number(t, file)))
	})
	t.Run("its child ignores SIGTERM", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		r := stop(t, Command{Shell: `sh -c 'trap "" TERM; echo $$ >` + file + `; echo ready; while :; do sleep 0.02; done' & wait`, Grace: 100 * time.Millisecond})
		assert.Equal(t, "SIGTERM", r.Signal, "the command itself went at once")
		assert.False(t, running(number(t, file)), "its child was killed")
	})
	t.Run("jobs with groups of their own", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		stop(t, Command{Argv: []string{bash(t), "-c", "set -m; sleep 62 & echo $! >" + file + "; echo ready; wait"}, Grace: time.Minute})
		assert.False(t, running(number(t, file)))
	})
}

// bash is a shell whose jobs work without a terminal.
func bash(t *testing.T) string {
	t.Helper()
	file, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	return file
}

func TestLeft(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name, shell string
		open, left  bool
	}{
		{"away from the streams", `sleep 63 >/dev/null 2>&1 & echo $! >pid`, false, true},
		{"holding a stream", `sleep 64 & echo $! >pid`, true, true},
		{"forked twice", `(sleep 65 & echo $! >pid)`, true, true},
		{"a job of its own, holding a stream", bash(t) + ` -c 'set -m; sleep 66 & echo $! >pid'`, true, true},
		{"ended by itself", `sleep 0.1 & echo $! >pid`, false, false},
		{"waited for", `sleep 0.01 & echo $! >pid; wait`, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			drain := time.Minute
			if test.open {
				drain = 50 * time.Millisecond // it is over without an end
			}
			r := run(t, Command{Shell: test.shell + "; echo out", Dir: dir, Drain: drain})
			pid := number(t, filepath.Join(dir, "pid"))
			var want []int
			if test.left {
				want = []int{pid}
			}
			assert.Equal(t, Result{Stdout: []byte("out\n"), StdoutSize: 4, Open: test.open, Left: want}, r)
			assert.Equal(t, test.left, running(pid))
		})
	}
}

// Who leaves the session is out of reach, but does not keep Run waiting.
func TestDaemon(t *testing.T) {
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	dir := t.TempDir()
	r := run(t, Command{Shell: `setsid sh -c 'echo $$ >pid; exec sleep 67' & while ! test -s pid; do sleep 0.01; done`, Dir: dir, Drain: 50 * time.Millisecond})
	pid := number(t, filepath.Join(dir, "pid"))
	t.Cleanup(func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		eventually(t, func() bool { return !running(pid) }, "%d still runs", pid)
	})
	assert.True(t, r.Open, "it holds a stream")
	assert.Equal(t, 0, r.Exit)
}

func TestSignalName(t *testing.T) {
	assert.Equal(t, "SIGTERM", signalName(syscall.SIGTERM))
	assert.Equal(t, "signal 99", signalName(99))
}

func TestErrorsAreTyped(t *testing.T) {
	inner := errors.New("x")
	err := fmt.Errorf("task: %w", &StartError{Name: "a", Err: inner})
	assert.ErrorIs(t, err, inner)
}

func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		if r, err := Run(b.Context(), Command{Shell: ":"}); err != nil || !r.OK() {
			b.Fatal(r, err)
		}
	}
}
